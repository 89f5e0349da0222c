"""The figure of the packing experiment: unallocated GPUs while pods arrive, and the ranking.

Needs matplotlib (the extra `report`), imported when a figure is drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from berthline.experiments.packing import LEVELS
from berthline.palette import BLUE, GREEN, GREY, ORANGE, RED
from berthline.report.figures.drawing import STYLE, check_figure_file, save_figure

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from berthline.experiments.packing import Packing

__all__ = ["check_figure_file", "draw_packing"]

_FIRST_LEVEL, _MOST_SHOWN = 80, 20.0
_COLOURS = {
    "fgd": BLUE,
    "fgd-gangs": "#56B4E9",
    "best-fit": GREEN,
    "dot-product, largest": ORANGE,
    "dot-product, smallest": RED,
    "random": "#CC79A7",
}
"""Lines that stand out; all others are grey."""


def draw_packing(found: Packing, path: Path) -> None:
    """Write the figure.

    Raises:
        OutputError: the file cannot be written.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.5, 4.0), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1.25, 1.0))
        _draw_curves(left, found)
        _draw_ranking(right, found)
        save_figure(figure, path)


def _draw_curves(axes: Axes, found: Packing) -> None:
    levels = list(LEVELS[_FIRST_LEVEL:])
    for packed in reversed(found.placements):
        stands_out = packed.placement in _COLOURS
        axes.plot(
            levels,
            packed.curve[_FIRST_LEVEL:],
            color=_COLOURS.get(packed.placement, GREY),
            linewidth=2.2 if packed.placement == "fgd" else 1.5 if stands_out else 0.9,
            alpha=1.0 if stands_out else 0.6,
        )
    axes.plot([_FIRST_LEVEL, 100], [100 - _FIRST_LEVEL, 0], ":", color="black")
    axes.text(97.0, 2.0, "every pod fits", ha="right", fontsize=8.5)
    axes.text(
        levels[-1], _MOST_SHOWN, "colours as on the right", ha="right", va="top", fontsize=8.5
    )
    axes.set_title("GPUs unallocated while pods arrive")
    axes.set_xlabel("GPUs requested by arrived pods, % of the cluster")
    axes.set_ylabel("GPUs unallocated, %")
    axes.set_xlim(levels[0], levels[-1])
    axes.set_ylim(0, _MOST_SHOWN)


def _draw_ranking(axes: Axes, found: Packing) -> None:
    names = [packed.placement for packed in found.placements]
    places = list(range(len(names)))
    axes.barh(
        places,
        [packed.at_end for packed in found.placements],
        color=[_COLOURS.get(name, GREY) for name in names],
        height=0.6,
        alpha=0.85,
    )
    published = [
        (place, packed.published)
        for place, packed in enumerate(found.placements)
        if packed.published is not None
    ]
    if published:
        axes.plot(
            [figure for _, figure in published],
            [place for place, _ in published],
            "D",
            color="black",
            markersize=5,
            label="published",
        )
        axes.legend(loc="upper right")
    for place, packed in enumerate(found.placements):
        shown = max(packed.at_end, packed.published or 0.0)
        axes.text(shown + 0.45, place, f"{packed.at_end:.2f}", va="center", fontsize=8)
    axes.set_yticks(places, names)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlim(0, 1.15 * max(packed.at_end for packed in found.placements))
    axes.set_title("After the last pod arrived")
    axes.set_xlabel(f"GPUs unallocated, %; mean of {found.seeds} orders of arrival")
