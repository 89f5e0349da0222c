"""Sweeps: metrics of schedulers as the load rises or the cluster grows, with bands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.errors import BerthlineError
from berthline.evaluate.metrics.compared_metrics import METRICS
from berthline.report.figures.axes import (
    duration_axis,
    duration_ticks,
    in_style,
    legend_below,
    new_figure,
    plain_line,
    slowdown_ticks,
    twin_layout,
    twin_line,
    twin_menu,
)
from berthline.report.figures.layout import is_narrow
from berthline.report.run_results import Cell, NotShown, mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from berthline.report.figures.lineup import Lineup
    from berthline.report.run_results import RunResults

SHOWN = ("jct_mean", "jct_p99", "bounded_slowdown_mean", "utilization")
TIMES = ("jct_mean", "jct_p99", "wait_mean", "makespan")
RESAMPLES = 2000
LABELS = {"load": "offered load", "gpus": "GPUs of the cluster"}


def load_data(run: RunResults) -> pl.DataFrame:
    """Return the metrics at every load, for the first workload and cluster; see `sweep_data`."""
    return sweep_data(run, "load", [cell.get("load") for cell in run.cells])


def gpu_data(run: RunResults) -> pl.DataFrame:
    """Return the metrics for every number of GPUs, at the first load; see `sweep_data`."""
    return sweep_data(run, "gpus", [gpus_of(cell) for cell in run.cells])


def sweep_data(run: RunResults, by: str, at: Sequence[float | None]) -> pl.DataFrame:
    """Return means over windows at every point of a sweep, with an interval.

    Formula: arithmetic mean over windows; low and high are the 2.5 % and 97.5 % quantiles of the
    means of 2,000 resamples of windows. They show how well a mean is known, not whether two
    schedulers differ: schedulers ran the same windows, so their ratio is known better.

    Args:
        run: the results.
        by: load or gpus; cells that differ from the first in anything else are omitted.
        at: its value in each cell.

    Returns:
        Columns sweep (load or gpus), at, scheduler, metric, mean, low, high.

    Raises:
        NotShown: there are fewer than two points.
    """
    import polars as pl

    fixed = ("workload", "knowledge", *(["load"] if by == "gpus" else ["cluster"]))
    points = {
        float(value): cell
        for cell, value in reversed(list(zip(run.cells, at, strict=True)))
        if value is not None and all(cell.get(key) == run.cell.get(key) for key in fixed)
    }
    if len(points) < 2:
        what = "load" if by == "load" else "number of GPUs"
        raise NotShown(f"the run has one {what}")
    rows = []
    for value, cell in sorted(points.items()):
        for name in run.schedulers:
            for metric in SHOWN:
                values = run.values(name, metric, cell)
                rows.append((by, value, name, metric, mean(values), *interval_of_mean(values)))
    columns = {
        "sweep": pl.String,
        "at": pl.Float64,
        "scheduler": pl.String,
        "metric": pl.String,
        **dict.fromkeys(("mean", "low", "high"), pl.Float64),
    }
    return pl.DataFrame(rows, schema=columns, orient="row")


def interval_of_mean(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % percentile interval of the mean, by resampling; the value itself for one."""
    if len(values) < 2:
        return values[0], values[0]
    generator = np.random.Generator(np.random.Philox(0))
    drawn = generator.integers(0, len(values), (RESAMPLES, len(values)))
    low, high = np.quantile(np.array(values)[drawn].mean(axis=1), (0.025, 0.975))
    return float(low), float(high)


def gpus_of(cell: Cell) -> int | None:
    """Return the number of GPUs of a cell's cluster; None if it is unknown."""
    from berthline.model.cluster import Cluster

    if "gpus" in cell:
        return int(cell["gpus"])
    try:
        return Cluster.parse(str(cell["cluster"])).total_gpus
    except BerthlineError:
        return None


def draw(frame: pl.DataFrame, lineup: Lineup) -> Any:
    """Return the figure: mean JCT, its 99th percentile, bounded slowdown and utilisation."""
    return in_style(lambda: _draw(frame, lineup))


def _draw(frame: pl.DataFrame, lineup: Lineup) -> Any:
    by = frame["sweep"][0]
    figure = new_figure(11.0, 6.2, narrow_height=10.0)
    panels = figure.subplots(*((4, 1) if is_narrow() else (2, 2)), sharex=True).ravel()
    for axes, metric in zip(panels, SHOWN, strict=True):
        scale = 100.0 if metric == "utilization" else 1.0
        for name in lineup.by_weight:
            mine = _line(frame, name, metric)
            look = lineup.looks[name]
            x = mine["at"].to_numpy()
            if look.stands_out:
                axes.fill_between(
                    x,
                    scale * mine["low"].to_numpy(),
                    scale * mine["high"].to_numpy(),
                    color=look.colour,
                    alpha=0.13,
                    linewidth=0,
                )
            more = {"marker": look.marker, "markersize": 4} if look.stands_out else {}
            plain_line(axes, x, scale * mine["mean"].to_numpy(), look, **more)
        axes.set_title(METRICS[metric].label + (", %" if metric == "utilization" else ""))
        _scale(axes, metric)
    at = sorted(set(frame["at"].to_list()))
    for axes in panels[-1:] if is_narrow() else panels[2:]:
        axes.set_xlabel(LABELS[by])
        if by == "gpus":
            axes.set_xscale("log", base=2)
        if len(at) <= 10:
            axes.set_xticks(at, [f"{value:g}" for value in at])
            axes.minorticks_off()
    legend_below(figure, lineup, markers=True)
    return figure


def _scale(axes: Any, metric: str) -> None:
    low, high = axes.get_ylim()
    lowest = min(
        float(np.nanmin(line.get_ydata())) for line in axes.get_lines() if len(line.get_ydata())
    )
    if metric in TIMES and lowest > 0:
        duration_axis(axes.yaxis, 0.85 * lowest, 1.05 * high)
    elif metric == "bounded_slowdown_mean":
        axes.set_yscale("log")
        axes.set_ylim(0.9, max(1.1 * high, 2.0))
        ticks = slowdown_ticks(high)
        axes.set_yticks(ticks, [f"{tick:,}" for tick in ticks])
        axes.minorticks_off()
    else:
        axes.set_ylim(max(0.0, low - 5), min(103.0, high + 5))


def interactive(frame: pl.DataFrame, lineup: Lineup) -> dict[str, Any]:
    """Return the figure for plotly: one metric at a time, chosen above it."""
    by = frame["sweep"][0]
    at = sorted(set(frame["at"].to_list()))
    first = _twin_ticks(frame, SHOWN[0])
    traces, buttons = [], []
    for metric in SHOWN:
        scale = 100.0 if metric == "utilization" else 1.0
        label = METRICS[metric].label + (", %" if metric == "utilization" else "")
        for name in lineup.by_weight:
            mine = _line(frame, name, metric)
            traces.append(
                twin_line(
                    lineup.names[name],
                    mine["at"].to_list(),
                    (scale * mine["mean"]).to_list(),
                    lineup.looks[name],
                    visible=metric == SHOWN[0],
                    error_y={
                        "type": "data",
                        "symmetric": False,
                        "array": (scale * (mine["high"] - mine["mean"])).to_list(),
                        "arrayminus": (scale * (mine["mean"] - mine["low"])).to_list(),
                        "thickness": 1,
                        "width": 3,
                    },
                    mode="lines+markers",
                )
            )
        shown = [other == metric for other in SHOWN for _ in lineup.by_weight]
        ticks = _twin_ticks(frame, metric)
        axis = {
            "yaxis.title.text": label,
            "yaxis.type": "log" if metric != "utilization" else "linear",
            "yaxis.tickvals": [at for at, _ in ticks] if ticks else None,
            "yaxis.ticktext": [text for _, text in ticks] if ticks else None,
        }
        buttons.append(
            {"label": METRICS[metric].label, "method": "update", "args": [{"visible": shown}, axis]}
        )
    return {
        "data": traces,
        "layout": twin_layout(
            xaxis={
                "title": {"text": LABELS[by]},
                "type": "log" if by == "gpus" else "linear",
                **({"tickvals": at, "ticktext": [f"{x:g}" for x in at]} if len(at) <= 10 else {}),
            },
            yaxis={
                "type": "log",
                "title": {"text": METRICS[SHOWN[0]].label},
                "tickvals": [at for at, _ in first],
                "ticktext": [text for _, text in first],
            },
            updatemenus=[twin_menu(buttons, y=1.15)],
        ),
    }


def _twin_ticks(frame: pl.DataFrame, metric: str) -> list[tuple[float, str]]:
    """Return round marks of a metric's axis for plotly; none for a linear axis."""
    import polars as pl

    mine = frame.filter(pl.col("metric") == metric)
    highest = float(mine["high"].max() or 1.0)  # type: ignore[arg-type]
    if metric in TIMES:
        low = max(float(mine["low"].min() or 0.0), 1.0)  # type: ignore[arg-type]
        return duration_ticks(low, max(highest, 2 * low), apart=0.09)
    if metric == "utilization":
        return []
    return [(float(tick), f"{tick:,}") for tick in slowdown_ticks(highest)]


def _line(frame: pl.DataFrame, scheduler: str, metric: str) -> pl.DataFrame:
    import polars as pl

    return frame.filter((pl.col("scheduler") == scheduler) & (pl.col("metric") == metric)).sort(
        "at"
    )
