"""The page of meta_regimes.py: its CSV files as tables, verdicts and a figure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from benchmarks.paired_windows import in_words, names

from berthline.evaluate.statistics.paired import Ratio, paired_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.result_files import Row

WORLDS = ("one GPU", "several GPUs")
KEYS = ("jct_mean", "jct_p95", "jct_p99", "jct_max", "missed")
JOINT = ("jct_mean", "jct_p95", "missed")
MEASURES = {
    "jct_mean": "mean JCT",
    "jct_p95": "p95 JCT",
    "missed": "missed deadlines",
    "joint": "joint",
    "jct_p99": "p99 JCT",
    "jct_max": "longest JCT",
}
_ANYWHERE = (
    "fcfs",
    "static-priority",
    "edf",
    "sjf",
    "dynamic-heuristic",
    "hrrn",
    "wfp3",
    "unicep",
    "sexp",
)
_SIZES = ("smallest-area", "sqrt-area", "smallest-first", "largest-first")
FIXED = {
    # There, all jobs fit equally well, so disciplines do not differ.
    WORLDS[0]: tuple(f"{order}+skip" for order in _ANYWHERE),
    WORLDS[1]: tuple(
        f"{order}+{discipline}"
        for order in (*_ANYWHERE, *_SIZES)
        for discipline in ("strict", "skip", "easy")
    ),
}
GOALS = (
    ("jct_mean", 1.005, WORLDS),
    ("jct_p95", 0.98, WORLDS[1:]),
    ("joint", 0.98, WORLDS),
)
"""A goal: a measure, its largest ratio to the best fixed scheduler, and where."""

Values = npt.NDArray[np.float64]


def values(rows: Sequence[Row], world: str, name: str, windows: str, key: str) -> Values:
    """Return a measure of a scheduler, regime by regime."""
    chosen = [
        row for row in rows if (row["world"], row["name"], row["windows"]) == (world, name, windows)
    ]
    chosen.sort(key=lambda row: int(row["regime"]))
    columns = [np.array([float(row[k]) for row in chosen]) for k in KEYS]
    found = dict(zip(KEYS, columns, strict=True))
    if key == "joint":
        return np.prod([found[k] for k in JOINT], axis=0) ** (1 / len(JOINT))
    return found[key]


def best_fixed(rows: Sequence[Row], world: str, windows: str, key: str) -> str:
    """Return the fixed scheduler that is best over all regimes, in hindsight."""
    return min(FIXED[world], key=lambda n: np.log(values(rows, world, n, windows, key)).mean())


class Contender:
    """What was tuned or learned for one goal in one world, with all its seeds."""

    def __init__(self, rows: Sequence[Row], world: str, name: str) -> None:
        self._rows, self.world, self.name = rows, world, name
        every = names(rows, "name", world=world)
        self.seeds = [each for each in every if each.startswith(f"{name}, seed")]
        self.windows = names(rows, "windows", world=world, name=self.seeds[0])[0]

    def ratio(self, key: str) -> Ratio:
        """Return the ratio to the best fixed scheduler: the geometric mean over the seeds."""
        logs = [
            np.log(values(self._rows, self.world, seed, self.windows, key)) for seed in self.seeds
        ]
        return paired_ratio(np.exp(np.mean(logs, axis=0)).tolist(), self._best(key).tolist())

    def of_seeds(self, key: str) -> list[float]:
        """Return the ratio of each seed."""
        logs = np.log(self._best(key))
        return [
            math.exp((np.log(values(self._rows, self.world, s, self.windows, key)) - logs).mean())
            for s in self.seeds
        ]

    def _best(self, key: str) -> Values:
        best = best_fixed(self._rows, self.world, self.windows, key)
        return values(self._rows, self.world, best, self.windows, key)

    def told(self, key: str) -> str:
        """Return the ratio in words, with the range over the seeds."""
        ends = [100 * (x - 1) for x in (min(self.of_seeds(key)), max(self.of_seeds(key)))]
        return f"{in_words(self.ratio(key))} ({ends[0]:+z.1f} to {ends[1]:+z.1f})"


def contenders(rows: Sequence[Row], world: str) -> list[Contender]:
    """Return all contenders of a world."""
    found = [name for name in names(rows, "name", world=world) if ", seed " in name]
    kinds = dict.fromkeys(name.partition(", seed ")[0] for name in found)
    return [Contender(rows, world, kind) for kind in kinds]


def verdicts(rows: Sequence[Row], *, met: bool) -> list[str]:
    """Return which contenders meet or miss which goal."""
    lines = []
    for key, limit, worlds in GOALS:
        for world in worlds:
            for contender in contenders(rows, world):
                found = contender.ratio(key)
                assert found.ratio is not None
                if (found.ratio <= limit) == met:
                    best = best_fixed(rows, world, contender.windows, key)
                    lines.append(
                        f"- {MEASURES[key]}, {world}: {contender.name}: {contender.told(key)}"
                        f" against `{best}`; asked for: {100 * (limit - 1):+z.1f} %."
                    )
    return lines or ["None."]


def fixed_table(rows: Sequence[Row]) -> list[str]:
    """Return the best fixed schedulers, and what a choice for each regime would give."""
    lines = [
        "| world | measure | best fixed | the next | best for each regime, in hindsight |",
        "| --- | --- | --- | --- | ---: |",
    ]
    for world in WORLDS:
        for key in ("jct_mean", "jct_p95", "missed", "joint"):
            logs = {n: np.log(values(rows, world, n, "all", key)) for n in FIXED[world]}
            first, second = sorted(FIXED[world], key=lambda n: logs[n].mean())[:2]
            gap = math.expm1((logs[second] - logs[first]).mean())
            oracle = math.exp((np.min(list(logs.values()), axis=0) - logs[first]).mean())
            lines.append(
                f"| {world} | {MEASURES[key]} | `{first}` | `{second}` {100 * gap:+z.1f} %"
                f" | {100 * (oracle - 1):+z.1f} % |"
            )
    return lines


def contender_table(rows: Sequence[Row], world: str) -> list[str]:
    """Return all contenders of a world against the best fixed scheduler by each measure."""
    lines = [
        "| | " + " | ".join(MEASURES.values()) + " |",
        "| --- |" + " ---: |" * len(MEASURES),
    ]
    for contender in contenders(rows, world):
        cells = [contender.told(key) for key in MEASURES]
        lines.append(f"| {contender.name} | " + " | ".join(cells) + " |")
    return lines


def parts(found: Sequence[Row], rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return the computed parts of the page, by name."""
    chosen = []
    for world in WORLDS:
        for how, goal in dict.fromkeys((row["how"], row["goal"]) for row in found):
            of = [r for r in found if (r["world"], r["how"], r["goal"]) == (world, how, goal)]
            best = min(of, key=lambda row: float(row["val_loss"]))
            chosen.append(f"- {world}, {how} for {goal}: `{best['scheduler']}`")
    tables: list[str] = []
    for world in WORLDS:
        tables += [f"**{world}**", "", *contender_table(rows, world), ""]
    return {
        "losses": verdicts(rows, met=False),
        "gains": verdicts(rows, met=True),
        "fixed": fixed_table(rows),
        "contenders": tables[:-1],
        "schedulers": chosen,
    }


def draw(rows: Sequence[Row], path: Path) -> None:
    """Write the figure: ratios to the best fixed scheduler, with intervals over regimes.

    Raises:
        OutputError: the file cannot be written.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from berthline.palette import BLUE, GREY
    from berthline.report.figures.drawing import STYLE, save_figure

    shown = ("jct_mean", "jct_p95", "joint")
    limits = {key: limit for key, limit, _ in GOALS}
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.6, 5.0), layout="constrained")
        panels = figure.subplots(len(WORLDS), len(shown), squeeze=False, sharey="row")
        for line, world in enumerate(WORLDS):
            everyone = contenders(rows, world)
            for axes, key in zip(panels[line], shown, strict=True):
                axes.axvline(1.0, color=GREY, linewidth=1.0)
                axes.axvline(limits[key], color=GREY, linewidth=0.8, linestyle="--")
                for place, contender in enumerate(everyone):
                    each = contender.of_seeds(key)
                    axes.plot(each, [place] * len(each), "|", color=GREY, markersize=8)
                    found = contender.ratio(key)
                    assert found.ratio is not None
                    assert found.low is not None
                    assert found.high is not None
                    axes.errorbar(
                        found.ratio,
                        place,
                        xerr=[[found.ratio - found.low], [found.high - found.ratio]],
                        fmt="o",
                        color=BLUE,
                        markersize=5,
                        capsize=2.5,
                    )
                axes.set_yticks(range(len(everyone)), [one.name for one in everyone])
                axes.set_ylim(len(everyone) - 0.5, -0.5)
                axes.set_title(f"{world}: {MEASURES[key]}")
                axes.grid(visible=False, axis="y")
        for axes in panels[-1]:
            axes.set_xlabel("ratio to the best fixed scheduler")
        save_figure(figure, path)
