"""Robustness: how close a scheduler is to the best in every metric, or in every cell."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from berthline.evaluate.metrics.compared_metrics import METRICS
from berthline.report.figures.axes import in_style, legend_below, new_figure
from berthline.report.figures.layout import SMALL, is_narrow
from berthline.report.run_results import NotShown, mean

if TYPE_CHECKING:
    import polars as pl

    from berthline.report.figures.lineup import Lineup
    from berthline.report.run_results import Cell, RunResults

FEWEST_CELLS = 3
MOST_AXES = 12


def data(run: RunResults) -> pl.DataFrame:
    """Return scores: 1 for the best scheduler on an axis, 0.5 for one that is twice as bad.

    Formula: best / value (value / best where higher is better), of means over windows. The axes
    are the metrics of the first cell; with three or more cells, mean JCT in every cell.

    Returns:
        Columns scheduler, axis, value, score.
    """
    import polars as pl

    if len(run.schedulers) < 2:
        raise NotShown("there is one scheduler, and nothing to compare it with")
    rows = []
    for axis, metric, cell in _axes(run):
        means = {name: mean(run.values(name, metric, cell)) for name in run.schedulers}
        higher = METRICS[metric].higher_is_better
        best = (max if higher else min)(means.values())
        for name, value in means.items():
            part, whole = (value, best) if higher else (best, value)
            rows.append((name, axis, value, part / whole if whole > 0 else 1.0))
    schema = {"scheduler": pl.String, "axis": pl.String, "value": pl.Float64, "score": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _axes(run: RunResults) -> list[tuple[str, str, Cell]]:
    if len(run.cells) < FEWEST_CELLS:
        # Waits can be almost 0 under one scheduler; then all others would score 0.
        return [
            (metric.label, name, run.cell)
            for name, metric in METRICS.items()
            if name != "wait_mean"
        ]
    return [(cell_name(cell, run.cells), "jct_mean", cell) for cell in run.cells[:MOST_AXES]]


def cell_name(cell: Cell, cells: list[Cell]) -> str:
    """Return what distinguishes a cell from the others, in words."""
    words = [
        f"load {cell[key]:g}" if key == "load" else str(cell[key])
        for key in ("workload", "part", "cluster", "load", "knowledge")
        if len({str(other.get(key)) for other in cells}) > 1 and cell.get(key) is not None
    ]
    return ", ".join(words) or str(cell.get("workload", ""))


def draw(frame: pl.DataFrame, lineup: Lineup) -> Any:
    """Return the figure: the schedulers that stand out, one polygon each."""
    return in_style(lambda: _draw(frame, lineup))


def _draw(frame: pl.DataFrame, lineup: Lineup) -> Any:
    import polars as pl

    names = list(dict.fromkeys(frame["axis"].to_list()))
    angles = [2 * math.pi * place / len(names) for place in range(len(names))]
    figure = new_figure(7.5, 6.2, narrow_height=5.2)
    axes = figure.add_subplot(projection="polar")
    for name in reversed(lineup.highlighted):
        mine = frame.filter(pl.col("scheduler") == name)
        score = dict(zip(mine["axis"].to_list(), mine["score"].to_list(), strict=True))
        values = [score[axis] for axis in names]
        look = lineup.looks[name]
        axes.plot(
            [*angles, angles[0]],
            [*values, values[0]],
            color=look.colour,
            linestyle=look.line,
            linewidth=look.width,
            marker=look.marker,
            markersize=4,
        )
    axes.set_theta_offset(math.pi / 2)
    axes.set_theta_direction(-1)
    axes.set_xticks(angles, [_folded(name) for name in names])
    for label, angle in zip(axes.get_xticklabels(), angles, strict=True):
        side = math.sin(angle)
        label.set_ha("center" if abs(side) < 0.1 else "left" if side > 0 else "right")
    axes.set_ylim(0, 1.02)
    axes.set_yticks([0.25, 0.5, 0.75, 1.0], ["", "half as good", "", "best"], fontsize=SMALL)
    axes.set_rlabel_position(180 / len(names))
    axes.set_title("Share of the best scheduler's result (outside is better)", pad=16)
    legend_below(figure, lineup._replace(schedulers=tuple(lineup.highlighted)), markers=True)
    return figure


def _folded(text: str) -> str:
    words = text.split(" ") if is_narrow() else text.split(", ")
    return "\n".join(words)
