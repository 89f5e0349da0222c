"""The figure of docs/results/winning-policy.md: slowdown against mean JCT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from berthline.palette import BLUE, GREEN, GREY, ORANGE
from berthline.report.figures.drawing import STYLE, save_figure

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.result_files import Row

ROLES = {
    "slowdown": ("heuristic with the lowest slowdown", BLUE, "o", -0.25),
    "jct": ("heuristic with the lowest mean JCT", ORANGE, "s", 0.0),
    "lane": ("best express lane", GREEN, "D", 0.25),
}
PANELS = {
    "mean_bounded_slowdown": ("mean bounded slowdown, ratio", (0.3, 0.5, 0.7, 1.0, 1.5)),
    "mean_jct": ("mean JCT, ratio", (0.8, 0.9, 1.0, 1.1, 1.2)),
}


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw both ratios of the chosen policies, with their intervals, against each rival.

    Raises:
        OutputError: the file cannot be written.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullLocator

    settings = list(dict.fromkeys(row["setting"] for row in rows))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.0, 0.36 * len(settings) + 1.6), layout="constrained")
        panels = figure.subplots(1, len(PANELS), sharey=True)
        for panel, (metric, (title, ticks)) in zip(panels, PANELS.items(), strict=True):
            panel.axvline(1.0, color=GREY, linewidth=1)
            for role, (label, colour, marker, offset) in ROLES.items():
                chosen = [r for r in rows if r["policy"] == "chosen" and r["role"] == role]
                y = [settings.index(row["setting"]) + offset for row in chosen]
                ratio, low, high = (
                    [float(row[f"{metric}_{end}"]) for row in chosen]
                    for end in ("ratio", "low", "high")
                )
                panel.hlines(y, low, high, color=colour, linewidth=1.5)
                panel.plot(ratio, y, marker, color=colour, markersize=4, label=label)
            panel.set_xscale("log")
            panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            panel.xaxis.set_minor_locator(NullLocator())
            panel.set_xlabel(title)
        panels[0].set_yticks(range(len(settings)), settings)
        panels[0].invert_yaxis()
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(ROLES), frameon=False)
        save_figure(figure, path)
