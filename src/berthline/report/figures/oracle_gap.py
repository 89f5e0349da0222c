"""Gaps: the distance of schedulers from the best in hindsight, and from a proven bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from berthline.evaluate.statistics.change_in_words import times
from berthline.number_text import duration
from berthline.palette import BLUE, GREEN
from berthline.report.figures.axes import duration_axis, in_style, new_figure, round_durations
from berthline.report.figures.layout import SMALL, is_narrow
from berthline.report.run_results import NotShown, mean

if TYPE_CHECKING:
    import polars as pl

    from berthline.report.figures.lineup import Lineup
    from berthline.report.run_results import RunResults

FLAT = 8.0
"""Largest ratio of the values on a linear axis; beyond it, the smallest would look alike."""


def data(run: RunResults) -> pl.DataFrame:
    """Return the gaps in mean JCT.

    Formula: mean JCT / mean JCT of X - 1, means over windows, where X is the oracle, the best
    scheduler of each single window, or the lower bound. The *oracle* is the fixed scheduler that
    was best over all windows. No schedule is below the *bound*, and it may not be reachable.

    Returns:
        Columns scheduler, jct_mean, gap_to_oracle, gap_to_best_of_window, gap_to_bound (empty
        where the run has no bound), bound.
    """
    import polars as pl

    values = {name: run.values(name, "jct_mean") for name in run.schedulers}
    oracle = min(mean(mine) for mine in values.values())
    best = mean([min(window) for window in zip(*values.values(), strict=True)])
    bound = mean_bound(run)
    if len(values) < 2 and bound is None:
        raise NotShown("there is one scheduler, and the run has no bound")
    if not oracle > 0 or not best > 0:
        raise NotShown("mean JCT is 0")
    rows = [
        {
            "scheduler": name,
            "jct_mean": mean(mine),
            "gap_to_oracle": mean(mine) / oracle - 1,
            "gap_to_best_of_window": mean(mine) / best - 1,
            "gap_to_bound": mean(mine) / bound - 1 if bound else None,
            "bound": bound,
        }
        for name, mine in values.items()
    ]
    return pl.DataFrame(
        rows,
        schema={"scheduler": pl.String, **dict.fromkeys(list(rows[0])[1:], pl.Float64)},
    ).sort("jct_mean")


def mean_bound(run: RunResults) -> float | None:
    """Return the lower bound on mean JCT, averaged over windows; None where the run has none."""
    bounds = run.cell.get("bounds") or []
    found = mean([float(bound["mean"]) for bound in bounds if bound["mean"] is not None])
    return found if found > 0 else None


def draw(frame: pl.DataFrame, lineup: Lineup) -> Any:
    """Return the figure: mean JCT as bars, best first, and the bound."""
    return in_style(lambda: _draw(frame, lineup))


def _draw(frame: pl.DataFrame, lineup: Lineup) -> Any:
    names = frame["scheduler"].to_list()
    values = frame["jct_mean"].to_numpy()
    bound = frame["bound"][0]
    figure = new_figure(9.5, 1.4 + 0.3 * len(names), narrow_height=1.6 + 0.48 * len(names))
    axes = figure.subplots()
    places = range(len(names))
    least = float(values.min()) if bound is None else min(float(bound), float(values.min()))
    most = float(values.max())
    begin, end = 0.0, most * (2.4 if is_narrow() else 1.5)
    is_log = most > FLAT * least
    if is_log:  # bars from 0 would show one extreme scheduler, and all others as equal
        begin, room = least / 1.6, (2.0 if is_narrow() else 0.8)
        end = most * (most / begin) ** room
    colours = [lineup.looks[name].colour for name in names]
    axes.barh(places, values - begin, left=begin, color=colours, height=0.62, alpha=0.9)
    newline = "\n" if is_narrow() else " "
    for place, (value, oracle, gap) in enumerate(
        zip(values, frame["gap_to_oracle"], frame["gap_to_bound"], strict=True)
    ):
        words = "the oracle" if place == 0 else f"{_above(oracle)} the oracle"
        if gap is not None:
            words += f",{newline}{_above(gap)} the bound"
        axes.annotate(
            words, (value, place), xytext=(5, 0), textcoords="offset points", va="center",
            fontsize=SMALL,
        )  # fmt: skip
    axes.axvline(values[0], color=BLUE, linewidth=1.0, linestyle="--")
    if bound is not None:
        axes.axvline(bound, color=GREEN, linewidth=1.6)
        axes.text(
            bound,
            -0.75,
            f" no schedule is below {duration(bound)} ",
            ha="left" if is_log or bound < 0.3 * end else "right",
            color="#00684C",
            fontsize=SMALL,
        )
    axes.set_yticks(places, [lineup.names[name] for name in names])
    axes.set_ylim(len(names) - 0.4, -1.15)
    if is_log:
        duration_axis(axes.xaxis, begin, end)
        axes.set_xticks([at for at in axes.get_xticks() if at <= 2 * most])
        axes.set_xlabel("mean JCT (logarithmic)")
    else:
        axes.set_xlim(0, end)
        ticks = round_durations(0.0, end)
        axes.set_xticks([at for at, _ in ticks], [text for _, text in ticks])
        axes.set_xlabel("mean JCT")
    axes.grid(visible=False, axis="y")
    axes.set_title("Mean JCT, and its distance to the best in hindsight")
    return figure


def _above(gap: float) -> str:
    """Return a gap in words."""
    return f"{100 * gap:.2g} % above" if gap < 0.995 else f"{times(1 + gap)} x"
