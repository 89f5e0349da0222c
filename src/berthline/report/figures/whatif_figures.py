"""Figures of whatif: alternatives against today's scheduler, and the quality of its model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from berthline.palette import BLUE, GREY, ORANGE
from berthline.report.figures.axes import (
    duration_axis,
    in_style,
    interval_bars,
    new_figure,
    panels_in_a_row,
    ratio_axis,
    ratio_range,
)
from berthline.report.figures.layout import NARROW_NAME, SMALL, is_narrow
from berthline.report.figures.lineup import short_names
from berthline.report.figures.page_picture import ON_DARK, ON_LIGHT
from berthline.report.run_results import NotShown

if TYPE_CHECKING:
    import polars as pl

    from berthline.evaluate.whatif.whatif_result import WhatIf

RATIOS = {"jct": "mean JCT", "bounded_slowdown": "bounded slowdown"}
LARGEST = 4.0
"""Binary logarithm of the change of wait with the darkest colour."""
NARROW_GROUPS = 4
"""Sizes side by side on a phone; the others are below them."""


def change_data(found: WhatIf) -> pl.DataFrame:
    """Return the ratio of each alternative to the model of today's scheduler.

    Formula: ratio of daily means, paired by day, with its 95 % interval (`paired_ratio`).

    Returns:
        Columns scheduler, metric, ratio, low, high, could_explain: the share of the change in mean
        wait that the error of the model could explain.

    Raises:
        NotShown: there is no alternative.
    """
    import polars as pl

    rows = []
    for each in found.outcomes:
        if (against := each.against_today) is None:
            continue
        for name in RATIOS:
            paired = getattr(against, name)
            values = (paired.ratio, paired.low, paired.high, against.could_explain)
            rows.append((each.scheduler, name, *values))
    if not rows:
        raise NotShown("there is no alternative to today's scheduler")
    schema: dict[str, Any] = {"scheduler": pl.String, "metric": pl.String}
    schema |= dict.fromkeys(("ratio", "low", "high", "could_explain"), pl.Float64)
    return pl.DataFrame(rows, schema=schema, orient="row")


def draw_changes(frame: pl.DataFrame, _lineup: object = None) -> Any:
    """Return the figure: a row for each alternative, a panel for each metric."""
    return in_style(lambda: _draw_changes(frame))


def _draw_changes(frame: pl.DataFrame) -> Any:
    import polars as pl

    order = list(dict.fromkeys(frame["scheduler"].to_list()))
    names = short_names(order, NARROW_NAME if is_narrow() else 34)
    figure, panels = panels_in_a_row(
        9.0, 1.2 + 0.36 * len(order), len(RATIOS), narrow_panel=1.0 + 0.3 * len(order), sharey=True
    )
    for axes, (metric, label) in zip(panels, RATIOS.items(), strict=True):
        mine = frame.filter((pl.col("metric") == metric) & pl.col("ratio").is_not_null())
        places = [order.index(name) for name in mine["scheduler"]]
        low, high = (mine[end].fill_null(mine["ratio"]) for end in ("low", "high"))
        ratio_axis(axes, *ratio_range(mine["ratio"].to_list(), [*low, *high]))
        interval_bars(axes, low.to_list(), high.to_list(), places, color=BLUE, linewidth=3.2)
        axes.scatter(mine["ratio"], places, s=34, color=BLUE, edgecolors="white", zorder=4)
        axes.set_title(f"{label}, ratio to today's", fontsize=9.5)
        axes.set_xlabel("← better", fontsize=SMALL, loc="left")
        axes.grid(visible=False, axis="y")
    panels[0].set_yticks(range(len(order)), [names[name] for name in order])
    panels[0].set_ylim(len(order) - 0.4, -0.6)
    return figure


def fidelity_data(found: WhatIf) -> pl.DataFrame:
    """Return recorded and modelled mean waits, by size of job.

    Returns:
        Columns group, jobs, recorded, modelled, within_2x.
    """
    import polars as pl

    groups = {"all jobs": found.fidelity, **found.fidelity_by_size}
    rows = [
        (name, each.jobs, each.recorded_mean, each.simulated_mean, each.within_2x)
        for name, each in groups.items()
    ]
    schema: dict[str, Any] = {"group": pl.String, "jobs": pl.Int64}
    schema |= dict.fromkeys(("recorded", "modelled", "within_2x"), pl.Float64)
    return pl.DataFrame(rows, schema=schema, orient="row")


def draw_fidelity(frame: pl.DataFrame, _lineup: object = None) -> Any:
    """Return the figure: two dots for each size, recorded and modelled."""
    return in_style(lambda: _draw_fidelity(frame))


def _draw_fidelity(frame: pl.DataFrame) -> Any:
    figure = new_figure(8.0, 1.4 + 0.32 * len(frame))
    axes = figure.subplots()
    places = list(range(len(frame)))
    # A logarithmic axis has no 0.
    recorded, modelled = (frame[name].clip(1.0).to_numpy() for name in ("recorded", "modelled"))
    axes.hlines(places, recorded, modelled, color=GREY, linewidth=1.2)
    axes.scatter(recorded, places, s=44, marker="D", color=ORANGE, label="recorded", zorder=3)
    axes.scatter(modelled, places, s=24, color=BLUE, label="modelled", zorder=4)
    low, high = min(recorded.min(), modelled.min()), max(recorded.max(), modelled.max())
    duration_axis(axes.xaxis, float(low) / 1.5, float(high) * 1.5)
    labels = [f"{row['group']} ({row['jobs']:,})" for row in frame.iter_rows(named=True)]
    axes.set_yticks(places, labels)
    axes.set_ylim(len(frame) - 0.4, -0.6)
    axes.set_title("Mean wait by size of job (number of jobs)", fontsize=9.5)
    axes.grid(visible=False, axis="y")
    figure.legend(loc="outside lower left", ncols=2)
    return figure


def wait_data(found: WhatIf) -> pl.DataFrame:
    """Return the mean wait of each scheduler, by size of job, and its change to today's.

    Returns:
        Columns scheduler, group, jobs, wait, change, error (of the model).
    """
    import polars as pl

    rows = [
        (each.scheduler, size, group.jobs, group.wait_mean, group.wait_change, group.wait_error)
        for each in found.outcomes
        for size, group in each.by_size.items()
    ]
    schema: dict[str, Any] = {"scheduler": pl.String, "group": pl.String, "jobs": pl.Int64}
    schema |= dict.fromkeys(("wait", "change", "error"), pl.Float64)
    return pl.DataFrame(rows, schema=schema, orient="row")


def draw_waits(frame: pl.DataFrame, _lineup: object = None) -> Any:
    """Return the figure: a table of mean waits, coloured by the change to today's."""
    return in_style(lambda: _draw_waits(frame))


def _draw_waits(frame: pl.DataFrame) -> Any:
    import numpy as np

    order = list(dict.fromkeys(frame["scheduler"].to_list()))
    groups = list(dict.fromkeys(frame["group"].to_list()))
    names = short_names(order, NARROW_NAME if is_narrow() else 34)
    wait, change = (np.full((len(order), len(groups)), np.nan) for _ in range(2))
    for row in frame.iter_rows(named=True):
        at = order.index(row["scheduler"]), groups.index(row["group"])
        wait[at], change[at] = row["wait"], row["change"]
    before = np.maximum(wait - change, 60.0)
    shade = np.log2(np.maximum(wait, 60.0) / before)
    each = NARROW_GROUPS if is_narrow() else len(groups)
    parts = [range(at, min(at + each, len(groups))) for at in range(0, len(groups), each)]
    figure, panels = panels_in_a_row(
        3.2 + 0.85 * len(groups),
        1.3 + 0.36 * len(order),
        len(parts),
        narrow_panel=0.8 + 0.3 * len(order),
    )
    for axes, part in zip(panels, parts, strict=True):
        image = axes.imshow(
            shade[:, part], cmap="PuOr_r", vmin=-LARGEST, vmax=LARGEST, aspect="auto"
        )
        for at, value in np.ndenumerate(wait[:, part]):
            if np.isfinite(value):
                is_dark = abs(shade[:, part][at]) > 0.7 * LARGEST
                axes.text(
                    at[1], at[0], _in_hours(value), ha="center", va="center",
                    color=ON_DARK if is_dark else ON_LIGHT,
                )  # fmt: skip
        labels = [groups[place].replace(" GPU", "\nGPU") for place in part]
        axes.set_xticks(range(len(part)), labels, fontsize=SMALL)
        axes.set_yticks(range(len(order)), [names[name] for name in order])
        axes.grid(visible=False)
        axes.tick_params(length=0)
    panels[0].set_title("Mean wait, hours", fontsize=9.5)
    where = {"location": "bottom", "aspect": 30} if is_narrow() else {"pad": 0.01}
    bar = figure.colorbar(image, ax=panels, extend="both", **where)
    marks = {-4: "1/16", -2: "1/4", 0: "as today", 2: "x 4", 4: "x 16"}
    bar.set_ticks(list(marks), labels=list(marks.values()))
    bar.outline.set_visible(False)
    return figure


def _in_hours(seconds: float) -> str:
    value = seconds / 3600
    return (
        f"{value:,.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 0.95 else f"{value:.2f}"
    )
