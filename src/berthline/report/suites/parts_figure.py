"""Ablation: what each part of a scheduler is worth, with intervals corrected for their number.

Parts are named `GROUP, whole` and `GROUP, without X`; each is compared with the whole of its group.
A part that is trained has several training seeds, and these are what an interval is about: the jobs
are the same for all. A rule has no training seed, so its interval is about the seeds of jobs.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from berthline.evaluate.statistics.multiple_comparisons import corrected_verdicts, holm
from berthline.evaluate.statistics.paired import Ratio, ratio_of_logs
from berthline.palette import INK
from berthline.report.figures.axes import (
    in_style,
    interval_bars,
    new_figure,
    ratio_axis,
    ratio_range,
)
from berthline.report.figures.layout import NARROW_NAME, SMALL, is_narrow
from berthline.report.figures.lineup import COLOURS
from berthline.report.run_results import NotShown

if TYPE_CHECKING:
    import polars as pl

    from berthline.report.figures.lineup import Lineup
    from berthline.report.suites.shown_suite import ShownSuite

WHOLE = "whole"
RESAMPLES = 10_000


class PartEffect(NamedTuple):
    """What it costs to leave a part out.

    Attributes:
        group: which scheduler it is a part of.
        part: what is left out or replaced.
        ratio: of the metric without it to that of the whole.
        verdict: in words, corrected for the number of parts of the group.
        p_value: corrected by Holm's procedure; None = there is one run.
        trained: number of training seeds; 0 = a rule.
    """

    group: str
    part: str
    ratio: Ratio
    verdict: str
    p_value: float | None
    trained: int


def effects(suite: ShownSuite) -> list[PartEffect]:
    """Return the effect of each part, group by group.

    Formula: per training seed (for rules: per seed), the mean over cells (and seeds) of
    ln(value without / value of the whole); then their geometric mean and its paired interval.

    Raises:
        NotShown: no part is called whole.
    """
    groups: dict[str, list[str]] = {}
    for part in suite.plan.parts:
        group, comma, name = part.name.partition(", ")
        if comma and part.name in suite.schedulers:
            groups.setdefault(group, []).append(name)
    found: list[PartEffect] = []
    for group, names in groups.items():
        if WHOLE not in names:
            continue
        whole = _by_training(suite, f"{group}, {WHOLE}")
        others = [name for name in names if name != WHOLE]
        ratios = [_effect(_by_training(suite, f"{group}, {name}"), whole) for name in others]
        words = corrected_verdicts(ratios, higher_is_better=suite.higher)
        adjusted = holm([ratio.p_value for ratio in ratios])
        trained = len(whole) if None not in whole else 0
        found += [
            PartEffect(group, name, ratio, _of_training(str(word), trained), p, trained)
            for name, ratio, word, p in zip(others, ratios, words, adjusted, strict=True)
        ]
    if not found:
        raise NotShown("no part of this suite is called whole")
    return found


def _of_training(words: str, trained: int) -> str:
    """Return a verdict whose windows are training seeds, or seeds of jobs."""
    seeds = "training seed" if trained else "seed"
    return words.replace("in every window", f"with every {seeds}").replace("windows", f"{seeds}s")


_Values = dict[int | None, dict[tuple[str, int], float]]
"""ln(value) by training seed, then by cell and seed."""


def _by_training(suite: ShownSuite, name: str) -> _Values:
    import polars as pl

    found: _Values = {}
    rows = suite.clean.filter(pl.col("label") == name)
    for trained, cell, seed, value in rows.select(
        "training_seed", "cell", "seed", suite.column
    ).iter_rows():
        if value and value > 0:
            found.setdefault(trained, {})[cell, seed] = float(np.log(value))
    return found


def _effect(without: _Values, whole: _Values) -> Ratio:
    unknown = Ratio(ratio=None, low=None, high=None, windows=0)
    shared = [trained for trained in whole if trained in without]
    if not shared:
        return unknown
    differences: dict[Any, list[float]] = {}
    for trained in shared:
        for at, value in whole[trained].items():
            if at in without[trained]:
                unit = at[1] if trained is None else trained
                differences.setdefault(unit, []).append(without[trained][at] - value)
    if not differences:
        return unknown
    logs = np.array([np.mean(each) for each in differences.values()])
    return ratio_of_logs(logs, resamples=RESAMPLES)


def part_data(suite: ShownSuite) -> pl.DataFrame:
    """Return the effects as a table.

    Returns:
        Columns group, part, ratio, low, high, p_value (corrected), verdict, seeds, trained, higher.
    """
    import polars as pl

    rows = [
        {
            "group": one.group,
            "part": one.part,
            "ratio": one.ratio.ratio,
            "low": one.ratio.low,
            "high": one.ratio.high,
            "p_value": one.p_value,
            "verdict": one.verdict,
            "seeds": one.ratio.windows,
            "trained": one.trained,
            "higher": suite.higher,
        }
        for one in effects(suite)
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def draw_parts(frame: pl.DataFrame, lineup: Lineup) -> Any:
    """Return the figure: a bar for each part, with its interval; a colour for each group."""
    return in_style(lambda: _draw_parts(frame, lineup))


def _draw_parts(frame: pl.DataFrame, lineup: Lineup) -> Any:  # noqa: ARG001 - one signature
    rows = frame.to_dicts()
    groups = list(dict.fromkeys(row["group"] for row in rows))
    places, labels, at = [], [], 0.0
    last = ""
    for row in rows:
        at += 0.0 if not last else 1.0 if row["group"] == last else 1.9
        last = row["group"]
        places.append(at)
        labels.append(row["part"])
    height = 1.3 + 0.31 * (places[-1] + 2)
    figure = new_figure(9.0, height, narrow_height=1.7 + 0.38 * (places[-1] + 2))
    axes = figure.subplots()
    ratios = [row["ratio"] for row in rows if row["ratio"] is not None]
    ratio_axis(
        axes, *ratio_range(ratios, [end for row in rows for end in (row["low"], row["high"])])
    )
    for place, row in zip(places, rows, strict=True):
        if row["ratio"] is None:
            continue
        colour = COLOURS[groups.index(row["group"]) % len(COLOURS)]
        axes.barh(place, row["ratio"] - 1, left=1.0, height=0.62, color=colour, alpha=0.85)
        if row["low"] is not None:
            interval_bars(
                axes, [row["low"]], [row["high"]], [place], color=INK, linewidth=1.4, zorder=3
            )
    for group in groups:
        first = min(p for p, row in zip(places, rows, strict=True) if row["group"] == group)
        axes.text(
            0.005, first - 0.75, group, fontsize=SMALL, fontweight="bold", va="center",
            transform=axes.get_yaxis_transform(),
        )  # fmt: skip
    width = NARROW_NAME if is_narrow() else 40
    axes.set_yticks(places, [textwrap.fill(label, width) for label in labels])
    axes.set_ylim(places[-1] + 0.6, -1.3)
    axes.grid(visible=False, axis="y")
    worse = "left" if frame["higher"][0] else "right"
    axes.set_xlabel(
        "← worse without it" if worse == "left" else "worse without it →", fontsize=SMALL, loc=worse
    )
    axes.set_title("Ratio to the whole, 95 % intervals")
    return figure
