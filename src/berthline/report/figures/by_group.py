"""JCT by size of job, by priority, by user and by pool: absolute, and against the baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.evaluate.metrics.groups import SIZES, group_priorities
from berthline.number_text import signed_percent
from berthline.report.figures.axes import (
    DURATIONS,
    duration_axis,
    in_style,
    legend_below,
    panels_in_a_row,
    plain_line,
    significant,
    twin_layout,
    twin_line,
)
from berthline.report.figures.layout import SMALL, is_narrow
from berthline.report.figures.page_picture import ON_DARK, ON_LIGHT
from berthline.report.run_results import NotShown

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from berthline.report.figures.lineup import Lineup
    from berthline.report.run_results import RunResults

MOST_GROUPS = 8
"""At most this number of groups is shown, those with the most jobs."""
GAPS = "Oranges"
LARGEST_GAP = 2.0
"""Binary logarithm of the ratio with the darkest colour."""
GAP_TICKS = ("best", "+50", "+100", "x 3", "x 4")
NARROW_GROUPS = 4
"""Groups side by side on a phone; the others are below them."""
ORDERED = ("GPUs per job", "priority")
"""Groups with an order; between users a line would be meaningless, also if names are numbers."""


def size_data(run: RunResults) -> pl.DataFrame:
    """Return the mean JCT of every size class; see `group_means`."""
    return group_means(run, "size")


def priority_data(run: RunResults) -> pl.DataFrame:
    """Return the mean JCT of every priority; see `group_means`."""
    return group_means(run, "priority")


def user_data(run: RunResults) -> pl.DataFrame:
    """Return the mean JCT of the users with the most jobs; see `group_means`."""
    return group_means(run, "user")


def pool_data(run: RunResults) -> pl.DataFrame:
    """Return the mean JCT of the jobs of every pool; see `group_means`."""
    return group_means(run, "pool")


def group_means(run: RunResults, by: str, *, most: int | None = MOST_GROUPS) -> pl.DataFrame:
    """Return means over the jobs of every group, all windows of the first cell together.

    Formula: arithmetic means over jobs; change = mean JCT / the baseline's for the same group - 1;
    above_best = mean JCT / the smallest of any scheduler for that group - 1.

    Args:
        run: the results.
        by: size, priority, user or pool.
        most: largest number of groups; those with the most jobs are kept. None = all.

    Returns:
        Columns scheduler, group, jobs, jct, wait, bounded_slowdown, change, above_best.

    Raises:
        NotShown: the jobs are all of one group.
    """
    import polars as pl

    jobs = run.jobs
    if by not in ("size", *jobs.columns):
        raise NotShown(f"the workload names no {by}s")
    frame, names = with_groups(jobs, by)
    counts = frame.filter(pl.col("scheduler") == run.baseline)[by].value_counts(sort=True)
    if len(counts) < 2:
        raise NotShown(f"all jobs are of one {by}" if by != "size" else "all jobs are of one size")
    chosen = counts[by].head(most or len(counts))
    if by in ("priority", "size"):
        chosen = chosen.sort()
    frame = (
        frame.filter(pl.col(by).is_in(chosen.implode()))
        .group_by("scheduler", by)
        .agg(
            pl.len().alias("jobs"),
            pl.col("jct").cast(pl.Float64).mean(),
            pl.col("wait").cast(pl.Float64).mean(),
            pl.col("bounded_slowdown").cast(pl.Float64).mean(),
        )
        .with_columns(pl.col("scheduler").cast(pl.String))
    )
    theirs = frame.filter(pl.col("scheduler") == run.baseline).select(
        by, pl.col("jct").alias("baseline")
    )
    rank = {value: place for place, value in enumerate(chosen)}
    order = {name: place for place, name in enumerate(run.schedulers)}
    return (
        frame.join(theirs, on=by)
        .with_columns(
            (pl.col("jct") / pl.col("baseline") - 1).alias("change"),
            (pl.col("jct") / pl.col("jct").min().over(by) - 1).alias("above_best"),
            pl.col("scheduler").replace_strict(order, return_dtype=pl.Int64).alias("_order"),
            pl.col(by).replace_strict(rank, return_dtype=pl.Int64).alias("_rank"),
        )
        .sort("_order", "_rank")
        .select(
            "scheduler",
            _group_name(by, names).alias("group"),
            "jobs",
            "jct",
            "wait",
            "bounded_slowdown",
            "change",
            "above_best",
        )
    )


def size_class(gpus: pl.Expr) -> pl.Expr:
    """Return the size class of jobs, an index into `groups.SIZES`, under the name `size`."""
    import polars as pl

    whole = 2 + gpus.cast(pl.Float64).log(2).ceil()
    return (
        pl.when(gpus <= 0)
        .then(0)
        .when(gpus < 1)
        .then(1)
        .otherwise(whole)
        .cast(pl.Int64)
        .alias("size")
    )


def with_groups(jobs: pl.DataFrame, by: str) -> tuple[pl.DataFrame, Sequence[str] | None]:
    """Return the jobs with their group in the column `by`, and the names that it points to.

    Sizes and priorities are numbered in their order, with one name for each; many priorities are
    ranges, as in `groups.priority_groups`. Users and pools are their own names: None.
    """
    import polars as pl

    if by == "size":
        return jobs.with_columns(size_class(pl.col("gpus"))), SIZES
    if by == "priority":
        groups = group_priorities(jobs["priority"].cast(pl.Float64).to_numpy())
        return jobs.with_columns(pl.Series(by, groups.member, pl.Int64)), groups.labels
    return jobs, None


def _group_name(by: str, names: Sequence[str] | None) -> pl.Expr:
    import polars as pl

    if names is None:
        return pl.col(by).cast(pl.String)
    return pl.col(by).replace_strict(dict(enumerate(names)), return_dtype=pl.String)


def draw(frame: pl.DataFrame, lineup: Lineup, *, groups_are: str) -> Any:
    """Return the figure: mean JCT of the groups, and the change to the baseline as a table."""
    return in_style(lambda: _draw(frame, lineup, groups_are))


def _draw(frame: pl.DataFrame, lineup: Lineup, groups_are: str) -> Any:
    groups = _in_order(frame["group"].to_list())
    others = len(lineup.schedulers) > 1
    rows = len(lineup.schedulers)
    # A phone has room for the numbers of a few groups side by side; the rest go below them.
    each = NARROW_GROUPS if is_narrow() else len(groups)
    parts = [groups[at : at + each] for at in range(0, len(groups), each)] if others else []
    figure, panels = panels_in_a_row(
        11.0 if others else 6.0,
        max(4.0, 1.75 + 0.25 * rows),
        1 + len(parts),
        narrow_panel=max(2.4, 1.2 + 0.25 * rows),
        width_ratios=(1.0, 1.25) if others else None,
    )
    _draw_means(panels[0], frame, lineup, groups, groups_are)
    for axes, part in zip(panels[1:], parts, strict=True):
        image = _draw_gaps(axes, frame, lineup, part)
    for axes in panels:
        axes.set_xlabel(groups_are)
    if others:
        panels[1].set_title("Mean JCT above the best of each column, %", fontsize=9.5)
        _gap_scale(figure, image, panels[1:])
    legend_below(figure, lineup, markers=True)
    return figure


def _draw_means(
    axes: Any, frame: pl.DataFrame, lineup: Lineup, groups: Sequence[str], groups_are: str
) -> None:
    ordered = groups_are in ORDERED
    for name in lineup.by_weight:
        look = lineup.looks[name]
        values = _values(frame, name, groups, "jct")
        if not ordered:
            look = look._replace(line="")
        more = {"marker": look.marker, "markersize": 4.5 if look.stands_out else 2.5}
        if ordered and not look.stands_out:
            more = {}
        plain_line(axes, range(len(groups)), values, look, **more)
    times = frame["jct"].to_numpy()
    low, high = float(np.nanmin(times)), float(np.nanmax(times))
    duration_axis(axes.yaxis, max(low / 1.3, 0.1), high * 1.3)
    _name_groups(axes, groups)
    axes.set_xlim(-0.3, len(groups) - 0.7)
    axes.set_title("Mean JCT")


def _name_groups(axes: Any, groups: Sequence[str]) -> None:
    names = [_folded(group) for group in groups]
    axes.set_xticks(range(len(groups)), names, fontsize=SMALL)
    if max(map(len, names)) * len(names) > (26 if is_narrow() else 60):
        axes.tick_params(axis="x", rotation=45 if is_narrow() else 30)


def _draw_gaps(axes: Any, frame: pl.DataFrame, lineup: Lineup, groups: Sequence[str]) -> Any:
    """Draw the distance of each scheduler from the best of each group, as number and colour."""
    names = [*lineup.leaders, lineup.baseline]
    table = np.array([_values(frame, name, groups, "above_best") for name in names])
    logs = np.log2(1 + table)
    image = axes.imshow(logs, cmap=GAPS, vmin=0, vmax=LARGEST_GAP, aspect="auto")
    for row, values in enumerate(table):
        for column, value in enumerate(values):
            axes.text(
                column,
                row,
                "best" if value == 0 else change_text(value),
                ha="center",
                va="center",
                fontsize=SMALL,
                fontweight="bold" if value == 0 else "normal",
                color=ON_DARK if logs[row, column] > 0.6 * LARGEST_GAP else ON_LIGHT,
            )
    _name_groups(axes, groups)
    axes.set_yticks(range(len(names)), [lineup.names[name] for name in names], fontsize=SMALL)
    axes.grid(visible=False)
    axes.tick_params(length=0)
    return image


def _gap_scale(figure: Any, image: Any, panels: Sequence[Any]) -> None:
    """Add the colour bar; all figures of groups have the same scale."""
    where = {"location": "bottom", "aspect": 30} if is_narrow() else {"pad": 0.01, "aspect": 30}
    bar = figure.colorbar(image, ax=panels, extend="max", **where)
    bar.set_ticks([0.0, np.log2(1.5), 1.0, np.log2(3.0), 2.0], labels=GAP_TICKS)
    bar.ax.tick_params(labelsize=SMALL, length=2)
    bar.outline.set_visible(False)


def interactive(frame: pl.DataFrame, lineup: Lineup, *, groups_are: str) -> dict[str, Any]:
    """Return the figure for plotly: mean JCT of the groups."""
    groups = _in_order(frame["group"].to_list())
    traces = [
        {
            "type": "scatter",
            "mode": "lines+markers" if groups_are in ORDERED else "markers",
            "name": lineup.names[name],
            "x": groups,
            "y": [significant(value) for value in _values(frame, name, groups, "jct")],
            "line": twin_line("", [], [], lineup.looks[name])["line"],
        }
        for name in lineup.by_weight
    ]
    return {
        "data": traces,
        "layout": twin_layout(
            xaxis={"title": {"text": groups_are}},
            yaxis={
                "type": "log",
                "title": {"text": "mean JCT"},
                "tickvals": [at for at, _ in DURATIONS],
                "ticktext": [text for _, text in DURATIONS],
            },
        ),
    }


def change_text(change: float) -> str:
    """Return a relative change as text: percent, or a factor if it is large.

    Example:
        >>> change_text(-0.123), change_text(0.004), change_text(4.0)
        ('-12', '0', 'x 5')
    """
    if not np.isfinite(change):
        return "-"
    if change >= 2:
        factor = 1 + change
        return f"x {factor:,.0f}" if factor >= 9.5 else f"x {factor:.2g}"
    text = signed_percent(change, 0)
    return "0" if text == "+0" else text


def _values(frame: pl.DataFrame, scheduler: str, groups: Sequence[str], column: str) -> list[float]:
    import polars as pl

    mine = frame.filter(pl.col("scheduler") == scheduler)
    found = dict(zip(mine["group"].to_list(), mine[column].to_list(), strict=True))
    return [found.get(group, float("nan")) for group in groups]


def _in_order(values: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(values))


def _folded(group: str) -> str:
    """Return the name of a group, shortened for an axis."""
    text = group.removesuffix(" GPUs").removesuffix(" GPU").replace(" to ", "-")
    if group in SIZES and text not in ("no", "part of a"):
        return text
    text = {"no": "none", "part of a": "part"}.get(text, text) if group in SIZES else group
    return text if len(text) <= 12 else text[:11] + "…"
