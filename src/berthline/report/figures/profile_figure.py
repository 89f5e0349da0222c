"""Performance profile: the share of windows in which a scheduler is within a factor of the best."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.evaluate.statistics.profiles import ratios_to_best
from berthline.report.figures.axes import in_style, legend_below, new_figure, slowdown_ticks
from berthline.report.run_results import NotShown

if TYPE_CHECKING:
    import polars as pl

    from berthline.report.figures.lineup import Lineup
    from berthline.report.run_results import RunResults

FEWEST_WINDOWS = 5
LOG_FROM = 4.0
"""An axis of factors that ends above this is logarithmic, so that the leaders are not flat."""


def data(run: RunResults) -> pl.DataFrame:
    """Return, for each window of every cell, the factor by which mean JCT is above the best.

    Formula: factor = value / smallest value of any scheduler in that window; share = rank of the
    factor among the scheduler's own / number of windows (Dolan and More, Mathematical Programming
    91(2), 2002).

    Returns:
        Columns scheduler, factor (ascending), share.
    """
    import polars as pl

    values = np.hstack(
        [[run.values(name, "jct_mean", cell) for name in run.schedulers] for cell in run.cells]
    )
    values = values[:, values.min(axis=0) > 0]
    windows = values.shape[1]
    if len(run.schedulers) < 2 or windows < FEWEST_WINDOWS:
        raise NotShown(f"it needs two schedulers and {FEWEST_WINDOWS} windows")
    return pl.concat(
        pl.DataFrame(
            {
                "scheduler": [name] * windows,
                "factor": np.sort(mine),
                "share": np.arange(1, windows + 1) / windows,
            }
        )
        for name, mine in zip(run.schedulers, ratios_to_best(values), strict=True)
    )


def draw(frame: pl.DataFrame, lineup: Lineup) -> Any:
    """Return the figure: further up and to the left is better."""
    return in_style(lambda: _draw(frame, lineup))


def _draw(frame: pl.DataFrame, lineup: Lineup) -> Any:
    import polars as pl

    figure = new_figure(7.5, 4.2, narrow_height=4.4)
    axes = figure.subplots()
    # Exact large factors are not informative: the axis ends where most of the lines end.
    ends = frame.group_by("scheduler").agg(pl.col("factor").max())["factor"].to_numpy()
    end = max(1.05, float(np.quantile(ends, 0.9)) * 1.03)
    for name in lineup.by_weight:
        mine = frame.filter(pl.col("scheduler") == name)
        look = lineup.looks[name]
        x = np.concatenate([[1.0], mine["factor"].to_numpy(), [max(end, ends.max())]])
        y = 100 * np.concatenate([[0.0], mine["share"].to_numpy(), [1.0]])
        axes.step(
            x,
            y,
            where="post",
            color=look.colour,
            linestyle=look.line,
            linewidth=look.width,
            zorder=3 if look.stands_out else 2,
        )
    if end > LOG_FROM:
        ticks = slowdown_ticks(end)
        axes.set_xscale("log")
        axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        axes.minorticks_off()
    axes.set_xlim(1, end)
    axes.set_ylim(0, 101)
    axes.set_title("Windows in which mean JCT is within a factor of the best, %")
    axes.set_xlabel("factor")
    legend_below(figure, lineup)
    return figure
