"""Cumulative distributions of JCT and wait, and the tail of JCT."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.report.figures.axes import (
    duration_axis,
    in_style,
    legend_below,
    panels_in_a_row,
    plain_line,
    twin_duration_axis,
    twin_layout,
    twin_line,
)
from berthline.report.figures.layout import SMALL

if TYPE_CHECKING:
    import polars as pl

    from berthline.report.figures.lineup import Lineup
    from berthline.report.run_results import RunResults

COLUMNS = {"jct": "JCT", "wait": "wait"}
SHORTEST = 1.0
"""Seconds; shorter times, also 0, are drawn here: a logarithmic axis has no zero."""

TAIL = 0.8
"""The tail begins at this share of the jobs."""

LEVELS = np.concatenate(
    [
        np.linspace(0.0, 0.9, 91),
        1.0 - np.geomspace(0.1, 1e-4, 61)[1:],
        [1.0],
    ]
)
"""Shares of jobs at which the distribution is stored, denser towards the tail."""


def data(run: RunResults) -> pl.DataFrame:
    """Return the quantiles of JCT and wait.

    Formula: for a share p of n jobs, the ceil(p n)-th smallest value (the smallest for 0).

    Returns:
        Columns scheduler, metric (jct or wait), share, seconds; all windows of the first cell
        together.
    """
    import polars as pl

    parts = []
    jobs = run.jobs
    for name in run.schedulers:
        mine = jobs.filter(pl.col("scheduler") == name)
        for metric in COLUMNS:
            values = np.sort(mine[metric].to_numpy())
            if not values.size:
                continue
            row = np.maximum(np.ceil(LEVELS * values.size - 1e-9).astype(np.int64) - 1, 0)
            parts.append(
                pl.DataFrame(
                    {
                        "scheduler": [name] * len(LEVELS),
                        "metric": [metric] * len(LEVELS),
                        "share": LEVELS,
                        "seconds": values[row].astype(np.float64),
                    }
                )
            )
    return pl.concat(parts)


def draw(frame: pl.DataFrame, lineup: Lineup) -> Any:
    """Return the figure: JCT, wait, and the tail of JCT with a logarithmic share."""
    return in_style(lambda: _draw(frame, lineup))


def _draw(frame: pl.DataFrame, lineup: Lineup) -> Any:
    figure, panels = panels_in_a_row(10.0, 4.1, 3, narrow_panel=2.4)
    highest = max(float(frame["seconds"].max() or 1.0), 10.0) * 1.1  # type: ignore[arg-type]
    for axes, (metric, title) in zip(panels[:2], COLUMNS.items(), strict=True):
        lowest = _lowest(frame, metric)
        for name in lineup.by_weight:
            seconds, share = curve(frame, name, metric)
            look = lineup.looks[name]
            plain_line(axes, np.maximum(seconds, lowest), 100 * share, look, drawstyle="steps-post")
        duration_axis(axes.xaxis, lowest, highest)
        axes.set_ylim(0, 101)
        axes.set_title(f"Jobs with a {title} up to, %")
    tail = panels[2]
    lowest = highest
    for name in lineup.by_weight:
        seconds, share = curve(frame, name, "jct")
        within = share >= TAIL
        lowest = min(lowest, float(seconds[within].min()))
        # The last point, the longest job, has share 0, which a logarithmic axis cannot show.
        plain_line(tail, seconds[within][:-1], 100 * (1 - share[within][:-1]), lineup.looks[name])
    tail.set_yscale("log")
    tail.set_ylim(0.01, 20)
    tail.set_yticks([10, 1, 0.1, 0.01], ["10", "1", "0.1", "0.01"])
    duration_axis(tail.xaxis, max(lowest, SHORTEST), highest)
    tail.set_title("The tail: jobs with a longer JCT, %")
    for axes in panels:
        axes.tick_params(axis="x", labelsize=SMALL)
    legend_below(figure, lineup)
    return figure


def interactive(frame: pl.DataFrame, lineup: Lineup) -> dict[str, Any]:
    """Return the figure for plotly: the same three panels."""
    traces = []
    for name in lineup.by_weight:
        look = lineup.looks[name]
        for place, metric in enumerate(COLUMNS):
            seconds, share = curve(frame, name, metric)
            trace = twin_line(
                lineup.names[name],
                np.maximum(seconds, _lowest(frame, metric)),
                100 * share,
                look,
                xaxis=f"x{place + 1}",
                showlegend=place == 0,
                hovertemplate="%{y:.1f} % within %{x:,.0f} s",
            )
            trace["line"]["shape"] = "hv"
            traces.append(trace)
        seconds, share = curve(frame, name, "jct")
        within = share >= TAIL
        traces.append(
            twin_line(
                lineup.names[name],
                seconds[within][:-1],
                100 * (1 - share[within][:-1]),
                look,
                xaxis="x3",
                yaxis="y3",
                showlegend=False,
                hovertemplate="%{y:.3g} % longer than %{x:,.0f} s",
            )
        )
    return {
        "data": traces,
        "layout": twin_layout(
            height=540,
            xaxis=twin_duration_axis("JCT up to", domain=[0, 0.3]),
            xaxis2=twin_duration_axis("wait up to", domain=[0.34, 0.64]),
            xaxis3=twin_duration_axis(
                "JCT longer than", within=_tail_range(frame), domain=[0.71, 1], anchor="y3"
            ),
            yaxis={"title": {"text": "jobs, %"}, "range": [0, 101], "gridcolor": "#E3E3E3"},
            yaxis3={
                "type": "log",
                "anchor": "x3",
                "tickvals": [10, 1, 0.1, 0.01],
                "ticktext": ["10", "1", "0.1", "0.01"],
                "gridcolor": "#E3E3E3",
                "domain": [0, 1],
            },
        ),
    }


def curve(frame: pl.DataFrame, scheduler: str, metric: str) -> tuple[Any, Any]:
    """Return seconds and shares of one line."""
    import polars as pl

    mine = frame.filter((pl.col("scheduler") == scheduler) & (pl.col("metric") == metric))
    return mine["seconds"].to_numpy(), mine["share"].to_numpy()


def _tail_range(frame: pl.DataFrame) -> tuple[float, float]:
    import polars as pl

    tail = frame.filter((pl.col("metric") == "jct") & (pl.col("share") >= TAIL))["seconds"]
    low = max(float(tail.min() or 0.0), SHORTEST)  # type: ignore[arg-type]
    return low, max(float(tail.max() or 0.0), 2 * low)  # type: ignore[arg-type]


def _lowest(frame: pl.DataFrame, metric: str) -> float:
    """Return the start of an axis: the shortest time of any job, but at least a second."""
    import polars as pl

    found = frame.filter((pl.col("metric") == metric) & (pl.col("share") > 0))["seconds"].min()
    return max(float(found or 0.0), SHORTEST)  # type: ignore[arg-type]
