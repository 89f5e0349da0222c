"""The figure of a page of paired windows: ratios to the baseline, with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.paired_windows import MEASURES, names, ratio

from berthline.palette import BLUE, GREEN, GREY, ORANGE, RED
from berthline.report.figures.drawing import STYLE, save_figure

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.paired_windows import Experiment
    from benchmarks.result_files import Row
    from matplotlib.axes import Axes

COLOURS = (BLUE, ORANGE, GREEN, RED, "#CC79A7", "#56B4E9")
"""Colours of the schedulers in order, without the baseline; Okabe and Ito's palette."""
WIDE = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
NARROW = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4, 1.6, 1.8, 2.0)
FINE = tuple(tick / 100 for tick in range(90, 111))
MANY_TICKS = 5
MARKERS = "osD^vP"
"""Colour is never the only mark."""


def draw(rows: Sequence[Row], experiment: Experiment, path: Path) -> None:
    """Write the figure: a row for each setting, a column for each measure shown.

    Raises:
        OutputError: the file cannot be written.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    settings = names(rows, "setting")
    measures = experiment.measures[: experiment.shown]
    lines = max(len(names(rows, "scheduler", setting=setting)) for setting in settings)
    with mpl.rc_context(STYLE):
        figure = Figure(
            figsize=(2.0 + 2.6 * len(measures), 0.6 + (0.55 + 0.23 * lines) * len(settings)),
            layout="constrained",
        )
        panels = figure.subplots(
            len(settings), len(measures), squeeze=False, sharey="row", sharex="col"
        )
        for line, setting in enumerate(settings):
            for place, key in enumerate(measures):
                _panel(panels[line][place], rows, setting, key)
            panels[line][0].set_title(setting)
        baseline = names(rows, "scheduler")[0]
        for axes, key in zip(panels[-1], measures, strict=True):
            axes.set_xlabel(f"{MEASURES[key][0]} / that of {baseline}")
            _set_ticks(axes)
        save_figure(figure, path)


def _panel(axes: Axes, rows: Sequence[Row], setting: str, key: str) -> None:
    _, *others = names(rows, "scheduler", setting=setting)
    axes.axvline(1.0, color=GREY, linewidth=1.0)
    for place, scheduler in enumerate(others):
        found = ratio(rows, setting, scheduler, key)
        if found.ratio is None or found.low is None or found.high is None:
            continue
        axes.errorbar(
            found.ratio,
            place,
            xerr=[[found.ratio - found.low], [found.high - found.ratio]],
            fmt=MARKERS[place % len(MARKERS)],
            color=COLOURS[place % len(COLOURS)],
            markersize=5,
            capsize=2.5,
        )
    axes.set_xscale("log", base=2)
    axes.set_yticks(range(len(others)), others)
    axes.set_ylim(len(others) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")


def _set_ticks(axes: Axes) -> None:
    """Put ticks at round ratios, because a short logarithmic axis has too few by default."""
    low, high = axes.get_xlim()
    ticks: list[float] = []
    for candidates in (WIDE, NARROW, FINE):
        ticks = [tick for tick in candidates if low <= tick <= high]
        if len(ticks) > MANY_TICKS // 2:
            break
    while len(ticks) > MANY_TICKS:
        ticks = [tick for index, tick in enumerate(ticks) if index % 2 == ticks.index(1.0) % 2]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
