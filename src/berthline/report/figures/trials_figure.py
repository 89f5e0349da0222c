"""The figure of a sweep: what mattered, and the value of every trial.

Needs matplotlib (the extra `report`), imported when a figure is drawn.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from berthline.evaluate.metrics.compared_metrics import METRICS
from berthline.palette import BLUE, GREY, ORANGE
from berthline.report.figures.drawing import STYLE, save_figure

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from matplotlib.axes import Axes

_ACROSS = 3
"""Panels in a row."""
_MOST_WORDS = 8
"""Choices whose names fit side by side."""


def draw_trials(summary: Mapping[str, Any], path: Path) -> None:
    """Write the figure.

    Args:
        summary: of the sweep.
        path: the file.

    Raises:
        OutputError: the file cannot be written.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    names = sorted(summary["vary"], key=lambda name: -summary["importance"].get(name, 0.0))
    panels = len(names) + 1
    down = -(-panels // _ACROSS)
    across = min(panels, _ACROSS)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(3.3 * across, 2.8 * down), layout="constrained")
        axes = figure.subplots(down, across, squeeze=False).ravel()
        _draw_shares(axes[0], names, summary["importance"])
        for one, name in zip(axes[1:panels], names, strict=True):
            _draw_values(one, name, summary)
        for one in axes[panels:]:
            one.set_visible(False)
        about = METRICS[summary["metric"]]
        better = "higher" if about.higher_is_better else "lower"
        figure.supylabel(
            f"{about.label} on VAL / best heuristic ({better} is better)", fontsize=9.0
        )
        figure.supxlabel("a dot is a trial, later ones are darker; orange: the best", fontsize=9.0)
        save_figure(figure, path)


def _draw_shares(axes: Axes, names: list[str], shares: Mapping[str, float]) -> None:
    axes.set_title("What mattered")
    if not shares:
        axes.text(0.5, 0.5, "too few trials to say", ha="center", va="center", color=GREY)
        axes.set_axis_off()
        return
    places = list(range(len(names)))[::-1]
    axes.barh(places, [shares.get(name, 0.0) for name in names], color=BLUE, height=0.6)
    axes.set_yticks(places, [_label(name) for name in names])
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of the differences")
    axes.grid(visible=False, axis="y")


def _draw_values(axes: Axes, name: str, summary: Mapping[str, Any]) -> None:
    from matplotlib import ticker

    done = [trial for trial in summary["trials"] if trial["value"] is not None]
    given = [trial["params"][name] for trial in done]
    values = [trial["value"] for trial in done]
    best = summary["best"]["trial"]
    is_number = all(isinstance(one, int | float) and not isinstance(one, bool) for one in given)
    is_range = is_number and ":" in summary["vary"][name]
    choices = sorted({_word(one) for one in given}) if not is_range else []
    places = given if is_range else [choices.index(_word(one)) for one in given]
    # Later trials are darker: the sweep learns where to look.
    axes.scatter(
        places,
        values,
        c=range(len(done)),
        cmap="Blues",
        vmin=-len(done),
        s=22,
        edgecolors=GREY,
        linewidths=0.4,
    )
    for place, value, trial in zip(places, values, done, strict=True):
        if trial["trial"] == best:
            axes.scatter([place], [value], s=46, color=ORANGE, zorder=3)
    if name in summary["log"]:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(ticker.NullFormatter())
    elif is_range and all(isinstance(one, int) for one in given):
        axes.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
    if not is_range:
        axes.set_xticks(
            range(len(choices)), choices, rotation=0 if len(choices) < _MOST_WORDS else 90
        )
        axes.margins(x=0.2)
    axes.axhline(1.0, color=GREY, linewidth=0.8, linestyle="--")
    axes.set_title(_label(name).replace("\n", " "))


def _word(value: Any) -> str:
    return "-".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _label(name: str) -> str:
    _, _, field = name.rpartition(".")
    return "\n".join(textwrap.wrap(field.replace("_", " "), 16))
