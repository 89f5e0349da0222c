"""Ablation: the effect of each part of a scheduler, from schedulers that differ in one part."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from berthline.errors import BerthlineError
from berthline.evaluate.metrics.compared_metrics import METRICS
from berthline.evaluate.statistics.paired import verdict
from berthline.palette import INK
from berthline.report.figures.axes import (
    in_style,
    interval_bars,
    panels_in_a_row,
    ratio_axis,
    ratio_range,
)
from berthline.report.figures.layout import NARROW_NAME, SMALL, is_narrow
from berthline.report.run_results import NotShown

if TYPE_CHECKING:
    import polars as pl

    from berthline.report.figures.lineup import Lineup
    from berthline.report.run_results import RunResults

SEATS = ("order", "discipline", "placement", "gate", "preemption")
SHOWN = ("jct_mean", "jct_p99", "bounded_slowdown_mean", "utilization")
_SEATS = re.compile(
    r"(?P<order>\[[^\]]*\]|[^+@?!]+)\+(?P<discipline>[^@?!]+)@(?P<placement>\[[^\]]*\]|[^?!]+)"
    r"(?:\?(?P<gate>\[[^\]]*\]|[^!]+))?(?:!(?P<preemption>.+))?"
)


def data(run: RunResults) -> pl.DataFrame:
    """Return the schedulers that differ from the whole one in a single seat, and by how much.

    The whole scheduler is the one with most such variants in the run; among equals, the one with
    the lowest mean JCT. Formula: `paired_ratio` of the variant's value to the whole one's.

    Returns:
        Columns whole, scheduler, seat, change (the rule in that seat), metric, ratio, low, high,
        verdict.

    Raises:
        NotShown: no two schedulers differ in a single seat.
    """
    import polars as pl

    seats = {name: seats_of(name) for name in run.ranked("jct_mean")}
    variants = {
        name: [
            (other, seat)
            for other in run.schedulers
            if (seat := single_difference(seats[name], seats[other])) is not None
        ]
        for name in seats
    }
    whole = max(variants, key=lambda name: len(variants[name]))
    if not variants[whole]:
        raise NotShown("no two schedulers differ in a single part")
    rows = []
    for other, seat in variants[whole]:
        theirs = (seats[other] or {})[seat] or "none"
        for metric in SHOWN:
            found = run.ratio(other, whole, metric)
            words = verdict(found, higher_is_better=metric == "utilization")
            rows.append(
                (whole, other, seat, theirs, metric, found.ratio, found.low, found.high, words)
            )
    schema: dict[str, Any] = dict.fromkeys(
        ("whole", "scheduler", "seat", "change", "metric"), pl.String
    )
    schema |= dict.fromkeys(("ratio", "low", "high"), pl.Float64)
    return pl.DataFrame(rows, schema={**schema, "verdict": pl.String}, orient="row")


def seats_of(scheduler: str) -> dict[str, str] | None:
    """Return all parts of a scheduler, including defaults; None if it cannot be parsed.

    Example:
        >>> list(seats_of("sjf+easy").values())
        ['sjf', 'easy', 'first-fit', '', '']
    """
    from berthline.policies.scheduler import Scheduler

    try:
        match = _SEATS.fullmatch(str(Scheduler.parse(scheduler)))
    except BerthlineError:
        return None
    return None if match is None else {seat: match[seat] or "" for seat in SEATS}


def single_difference(one: dict[str, str] | None, other: dict[str, str] | None) -> str | None:
    """Return the seat in which two schedulers differ, if it is exactly one."""
    if one is None or other is None:
        return None
    differ = [seat for seat in SEATS if one[seat] != other[seat]]
    return differ[0] if len(differ) == 1 else None


def draw(frame: pl.DataFrame, lineup: Lineup) -> Any:
    """Return the figure: a bar for each variant and metric, with its interval."""
    return in_style(lambda: _draw(frame, lineup))


def _draw(frame: pl.DataFrame, lineup: Lineup) -> Any:
    import polars as pl

    variants = frame.filter(pl.col("metric") == SHOWN[0]).sort(
        pl.col("seat").replace_strict({seat: k for k, seat in enumerate(SEATS)}), "ratio"
    )
    order = variants["scheduler"].to_list()
    labels = [
        f"{seat}: {_short(change)}"
        for seat, change in zip(variants["seat"], variants["change"], strict=True)
    ]
    figure, panels = panels_in_a_row(
        11.0, 1.5 + 0.33 * len(order), len(SHOWN), narrow_panel=0.9 + 0.28 * len(order), sharey=True
    )
    for axes, metric in zip(panels, SHOWN, strict=True):
        mine = {
            row["scheduler"]: row for row in frame.filter(pl.col("metric") == metric).to_dicts()
        }
        ratios = [row["ratio"] for row in mine.values()]
        ends = [end for row in mine.values() for end in (row["low"], row["high"])]
        ratio_axis(axes, *ratio_range(ratios, ends))
        for place, name in enumerate(order):
            ratio, low, high = (mine[name][key] for key in ("ratio", "low", "high"))
            if ratio is None:
                continue
            colour = lineup.looks[name].colour
            axes.barh(place, ratio - 1, left=1.0, height=0.6, color=colour, alpha=0.8, zorder=2)
            if low is not None and high is not None:
                interval_bars(axes, [low], [high], [place], color=INK, linewidth=1.4, zorder=3)
        axes.set_title(METRICS[metric].label, fontsize=9.5)
        worse = "left" if METRICS[metric].higher_is_better else "right"
        axes.set_xlabel("← worse" if worse == "left" else "worse →", fontsize=SMALL, loc=worse)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="x", labelsize=SMALL)
    panels[0].set_yticks(range(len(order)), labels)
    panels[0].set_ylim(len(order) - 0.4, -0.6)
    figure.suptitle(
        f"Ratio to {lineup.names[frame['whole'][0]]} with one part changed, 95 % intervals",
        x=0.01,
        ha="left",
        fontsize=10,
    )
    return figure


def _short(text: str) -> str:
    longest = NARROW_NAME - 6 if is_narrow() else 24
    return text if len(text) <= longest else text[: longest - 1] + "…"
