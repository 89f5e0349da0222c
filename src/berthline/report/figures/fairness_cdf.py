"""Fairness: the distribution of users' mean slowdown. A steep line means equal treatment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.report.figures.axes import (
    in_style,
    legend_below,
    new_figure,
    slowdown_ticks,
    twin_layout,
    twin_line,
)
from berthline.report.run_results import NotShown

if TYPE_CHECKING:
    import polars as pl

    from berthline.report.figures.lineup import Lineup
    from berthline.report.run_results import RunResults

FEWEST_USERS = 5


def data(run: RunResults) -> pl.DataFrame:
    """Return each user's mean bounded slowdown, in ascending order, with the share of users.

    Formula: arithmetic mean over the user's jobs in all windows of the first cell; share = rank /
    number of users.

    Returns:
        Columns scheduler, user, jobs, bounded_slowdown, share.
    """
    import polars as pl

    jobs = run.jobs
    if "user" not in jobs.columns:
        raise NotShown("the workload names no users")
    frame = (
        jobs.group_by("scheduler", "user")
        .agg(pl.len().alias("jobs"), pl.col("bounded_slowdown").cast(pl.Float64).mean())
        .sort("scheduler", "bounded_slowdown", "user")
        .with_columns(
            (pl.int_range(1, pl.len() + 1) / pl.len()).over("scheduler").alias("share"),
            pl.col("scheduler").cast(pl.String),
            pl.col("user").cast(pl.String),
        )
    )
    if frame["user"].n_unique() < FEWEST_USERS:
        raise NotShown(f"there are fewer than {FEWEST_USERS} users")
    return frame


def draw(frame: pl.DataFrame, lineup: Lineup) -> Any:
    """Return the figure."""
    return in_style(lambda: _draw(frame, lineup))


def _draw(frame: pl.DataFrame, lineup: Lineup) -> Any:
    figure = new_figure(7.5, 4.2, narrow_height=4.4)
    axes = figure.subplots()
    for name in lineup.by_weight:
        slowdown, share = _curve(frame, name)
        axes.step(
            slowdown,
            100 * share,
            where="post",
            color=lineup.looks[name].colour,
            linestyle=lineup.looks[name].line,
            linewidth=lineup.looks[name].width,
            zorder=3 if lineup.looks[name].stands_out else 2,
        )
    highest = float(frame["bounded_slowdown"].max() or 1.0)  # type: ignore[arg-type]
    axes.set_xscale("log")
    axes.set_xlim(1, max(1.05 * highest, 2.0))
    ticks = slowdown_ticks(highest)
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
    axes.set_ylim(0, 101)
    axes.set_title("Users whose mean bounded slowdown is up to, %")
    axes.set_xlabel("mean bounded slowdown of a user (1 = never waited)")
    legend_below(figure, lineup)
    return figure


def interactive(frame: pl.DataFrame, lineup: Lineup) -> dict[str, Any]:
    """Return the figure for plotly."""
    ticks = slowdown_ticks(float(frame["bounded_slowdown"].max() or 1.0))  # type: ignore[arg-type]
    traces = []
    for name in lineup.by_weight:
        slowdown, share = _curve(frame, name)
        trace = twin_line(lineup.names[name], slowdown, 100 * share, lineup.looks[name])
        trace["line"]["shape"] = "hv"
        traces.append(trace)
    return {
        "data": traces,
        "layout": twin_layout(
            xaxis={
                "type": "log",
                "title": {"text": "mean bounded slowdown of a user"},
                "tickvals": ticks,
                "ticktext": [f"{tick:,}" for tick in ticks],
                "gridcolor": "#E3E3E3",
            },
            yaxis={"title": {"text": "users, %"}, "range": [0, 101], "gridcolor": "#E3E3E3"},
        ),
    }


def _curve(frame: pl.DataFrame, scheduler: str) -> tuple[Any, Any]:
    import polars as pl

    mine = frame.filter(pl.col("scheduler") == scheduler)
    return (
        np.concatenate([[1.0], mine["bounded_slowdown"].to_numpy()]),
        np.concatenate([[0.0], mine["share"].to_numpy()]),
    )
