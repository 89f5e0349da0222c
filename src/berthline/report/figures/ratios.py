"""Ratios to the baseline: every window as a dot, their box, and the 95 % interval of the mean."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from berthline.evaluate.metrics.compared_metrics import METRICS
from berthline.palette import GREY
from berthline.report.figures.axes import (
    in_style,
    interval_bars,
    panels_in_a_row,
    ratio_axis,
    ratio_range,
    ratio_text,
    ratio_ticks,
)
from berthline.report.figures.layout import SMALL
from berthline.report.run_results import NotShown

if TYPE_CHECKING:
    import polars as pl

    from berthline.report.figures.lineup import Lineup
    from berthline.report.run_results import RunResults

SHOWN = ("jct_mean", "jct_p99", "bounded_slowdown_mean", "makespan", "utilization")
"""Slowdown is never shown without the others."""
FEWEST_FOR_A_BOX = 5
_FRAME = "#C9C9C9"


def data(run: RunResults) -> pl.DataFrame:
    """Return each window's ratio to the baseline, and the mean ratio with its interval.

    Formula: ratio = value / the baseline's value on the same window; mean, low and high as in
    `paired_ratio`.

    Returns:
        Columns scheduler, metric, window, ratio, mean, low, high (the last two empty with one
        window); windows without a ratio are omitted.
    """
    import polars as pl

    if len(run.schedulers) < 2:
        raise NotShown("there is one scheduler, and nothing to compare it with")
    rows = []
    for metric in SHOWN:
        theirs = run.values(run.baseline, metric)
        for name in run.schedulers:
            if name == run.baseline:
                continue
            ours = run.values(name, metric)
            found = run.ratio(name, run.baseline, metric)
            for window, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
                if mine > 0 and other > 0:
                    rows.append(
                        (name, metric, window, mine / other, found.ratio, found.low, found.high)
                    )
    schema = {
        "scheduler": pl.String,
        "metric": pl.String,
        "window": pl.Int64,
        **dict.fromkeys(("ratio", "mean", "low", "high"), pl.Float64),
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def draw(frame: pl.DataFrame, lineup: Lineup) -> Any:
    """Return the figure: a row for each scheduler, best mean JCT first; a panel for each metric."""
    return in_style(lambda: _draw(frame, lineup))


def _draw(frame: pl.DataFrame, lineup: Lineup) -> Any:
    import polars as pl

    means = (
        frame.filter(pl.col("metric") == "jct_mean")
        .group_by("scheduler")
        .agg(pl.col("mean").first())
    )
    mean_of = dict(means.iter_rows())
    order = sorted(mean_of, key=lambda name: mean_of[name] or float("inf"))
    figure, panels = panels_in_a_row(
        11.5, 1.5 + 0.34 * len(order), len(SHOWN), narrow_panel=0.9 + 0.26 * len(order), sharey=True
    )
    for axes, metric in zip(panels, SHOWN, strict=True):
        mine = frame.filter(pl.col("metric") == metric)
        ends = [end for column in ("low", "high") for end in mine[column].to_list()]
        ratio_axis(axes, *ratio_range([*mine["ratio"].to_list(), *mine["mean"].to_list()], ends))
        _draw_rows(axes, mine, order, lineup)
        axes.set_title(METRICS[metric].label, fontsize=9.5)
        better = "right" if METRICS[metric].higher_is_better else "left"
        axes.set_xlabel("better →" if better == "right" else "← better", fontsize=SMALL, loc=better)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="x", labelsize=SMALL)
    panels[0].set_yticks(range(len(order)), [lineup.names[name] for name in order])
    panels[0].set_ylim(len(order) - 0.4, -0.6)
    figure.suptitle(
        f"Ratio to {lineup.names[lineup.baseline]}: windows (dots), their middle half (box), "
        "mean with 95 % interval (bar)",
        x=0.01,
        ha="left",
        fontsize=10,
    )
    return figure


def _draw_rows(axes: Any, mine: pl.DataFrame, order: list[str], lineup: Lineup) -> None:
    """Draw the windows of all schedulers and their intervals, with few calls for speed."""
    import polars as pl

    ratio = pl.col("ratio")
    rank = {name: place for place, name in enumerate(order)}
    rows = mine.with_columns(
        pl.col("scheduler").replace_strict(rank, return_dtype=pl.Int64).alias("place"),
        # Spread the dots a little, deterministically, so that equal ones do not hide each other.
        (0.11 * ((7 * pl.col("window")) % 5 - 2)).alias("aside"),
    )
    each = rows.group_by("place", "scheduler").agg(
        ratio.min().alias("least"),
        ratio.quantile(0.25).alias("lower"),
        ratio.quantile(0.75).alias("upper"),
        ratio.max().alias("most"),
        pl.len().alias("windows"),
        pl.col("mean", "low", "high").first(),
    )
    boxes = each.filter(pl.col("windows") >= FEWEST_FOR_A_BOX)
    axes.hlines(boxes["place"], boxes["least"], boxes["most"], color=_FRAME, linewidth=0.8)
    axes.barh(
        boxes["place"],
        boxes["upper"] - boxes["lower"],
        left=boxes["lower"],
        height=0.62,
        facecolor="white",
        edgecolor=_FRAME,
        linewidth=0.8,
        zorder=2,
    )
    axes.plot(
        rows["ratio"], rows["place"] + rows["aside"], ".", color=GREY, markersize=2.6, alpha=0.55
    )
    known = each.drop_nulls("mean")
    colours = [lineup.looks[name].colour for name in known["scheduler"]]
    low, high = (known[column].fill_null(known["mean"]).to_list() for column in ("low", "high"))
    places = known["place"].to_list()
    interval_bars(axes, low, high, places, color=colours, linewidth=3.4, zorder=4)
    axes.scatter(known["mean"], known["place"], s=36, color=colours, edgecolors="white", zorder=5)


def interactive(frame: pl.DataFrame, lineup: Lineup) -> dict[str, Any]:
    """Return the figure for plotly: mean ratios with intervals, one metric chosen at a time."""
    import polars as pl

    from berthline.report.figures.axes import significant, twin_layout, twin_menu

    traces: list[dict[str, Any]] = []
    for metric in SHOWN:
        mine = (
            frame.filter(pl.col("metric") == metric)
            .unique(["scheduler"], keep="first", maintain_order=True)
            .drop_nulls("mean")
            .sort("mean", descending=not METRICS[metric].higher_is_better)
        )
        means = mine["mean"].to_list()
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": [significant(value) for value in means],
                "y": [lineup.names[name] for name in mine["scheduler"]],
                "visible": metric == SHOWN[0],
                "marker": {
                    "size": 9,
                    "color": [lineup.looks[name].colour for name in mine["scheduler"]],
                },
                "error_x": {
                    "type": "data",
                    "symmetric": False,
                    "color": GREY,
                    "array": [
                        significant((high or value) - value)
                        for value, high in zip(means, mine["high"], strict=True)
                    ],
                    "arrayminus": [
                        significant(value - (low or value))
                        for value, low in zip(means, mine["low"], strict=True)
                    ],
                },
                "hovertemplate": "%{y}: %{x:.3f}<extra></extra>",
            }
        )
    buttons = [
        {
            "label": METRICS[metric].label,
            "method": "restyle",
            "args": ["visible", [other == metric for other in SHOWN]],
        }
        for metric in SHOWN
    ]
    return {
        "data": traces,
        "layout": twin_layout(
            showlegend=False,
            xaxis=_twin_axis(frame),
            yaxis={"automargin": True},
            updatemenus=[twin_menu(buttons, y=1.12)],
        ),
    }


def _twin_axis(frame: pl.DataFrame) -> dict[str, Any]:
    """Return an axis of ratios for plotly, with round marks, for all metrics."""
    ends = [end for column in ("low", "high") for end in frame[column].to_list()]
    low, high = ratio_range([*frame["ratio"].to_list(), *frame["mean"].to_list()], ends)
    ticks = ratio_ticks(low, high)
    return {
        "type": "log",
        "title": {"text": "ratio to the baseline"},
        "range": [math.log10(low / 1.1), math.log10(high * 1.1)],
        "tickvals": ticks,
        "ticktext": [ratio_text(tick) for tick in ticks],
        "gridcolor": "#E3E3E3",
    }
