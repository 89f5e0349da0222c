"""Learning curves: validations and losses of a training run or a search, by step."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from berthline.palette import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY
from berthline.report.figures.axes import in_style, new_figure
from berthline.report.figures.layout import is_narrow
from berthline.report.figures.lineup import LINES, MARKERS
from berthline.report.run_results import NotShown
from berthline.runs.run_layout import CURVE, METRICS

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl

    from berthline.runs.open_run import Run

VALIDATIONS = {
    "return": "return on VAL",
    "against_best_heuristic": "metric / best heuristic's",
    "jct_against_best_heuristic": "mean JCT / best heuristic's",  # of runs before 0.2
    "mean_bounded_slowdown": "bounded slowdown",
    "utilization": "GPU utilisation, %",
}
"""Columns of curve.csv that are shown, and their labels."""

PERCENT = ("utilization",)
"""Columns that are fractions, and shown in per cent."""

LOSSES = {
    "val_loss": "loss on VAL, change to the reference, %",
    "train_loss": "loss on TRAIN, change to the reference, %",
}
"""Values of a search in metrics.jsonl; a loss is the logarithm of a ratio."""

MOST_PANELS = 6
_COLOURS = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY)
_PREFIX = "losses/"


def validation_data(run: Run) -> pl.DataFrame:
    """Return the validations of training.

    Returns:
        Columns panel, curve, step, value; a curve for each seed.

    Raises:
        NotShown: there are fewer than two validations.
    """
    rows = [
        (label, name, int(row["step"]), (100.0 if column in PERCENT else 1.0) * row[column])
        for name, part in _parts(run).items()
        if (part.path / CURVE).is_file()
        for column, label in VALIDATIONS.items()
        if column in part.curve.columns
        for row in part.curve.iter_rows(named=True)
        if row[column] is not None
    ]
    return _table(rows, "the run has fewer than two validations")


def loss_data(run: Run) -> pl.DataFrame:
    """Return the losses of the algorithm, one panel for each.

    Returns:
        Columns panel, curve, step, value.

    Raises:
        NotShown: the run has none.
    """
    rows = []
    for name, part in _parts(run).items():
        if not (part.path / METRICS).is_file():
            continue
        for line in part.metrics:
            for key, value in line.items():
                if key.startswith(_PREFIX) and value is not None:
                    rows.append((key.removeprefix(_PREFIX), name, int(line["step"]), float(value)))
    panels = list(dict.fromkeys(row[0] for row in rows))[:MOST_PANELS]
    return _table((row for row in rows if row[0] in panels), "the run has no losses yet")


def search_data(run: Run) -> pl.DataFrame:
    """Return the losses of a search after each generation.

    Formula: 100 (exp(loss) - 1).

    Returns:
        Columns panel, curve, step, value; a curve for each search.

    Raises:
        NotShown: there are fewer than two generations.
    """
    rows = [
        (label, name, int(line["step"]), 100 * math.expm1(line[key]))
        for name, part in _parts(run).items()
        if (part.path / METRICS).is_file()
        for key, label in LOSSES.items()
        for line in part.metrics
        if line.get(key) is not None
    ]
    return _table(rows, "the search has fewer than two generations")


def _parts(run: Run) -> dict[str, Run]:
    return run.parts or {str(run.settings.get("algorithm", "")): run}


def _table(rows: Iterable[tuple[str, str, int, float]], missing: str) -> pl.DataFrame:
    import polars as pl

    schema = {"panel": pl.String, "curve": pl.String, "step": pl.Int64, "value": pl.Float64}
    frame = pl.DataFrame(list(rows), schema=schema, orient="row")
    if frame["step"].n_unique() < 2:
        raise NotShown(missing)
    return frame


def draw(frame: pl.DataFrame, _lineup: object = None, *, steps: str = "steps") -> Any:
    """Return the figure: a panel for each value, a line for each curve."""
    return in_style(lambda: _draw(frame, steps))


def _draw(frame: pl.DataFrame, steps: str) -> Any:
    import polars as pl
    from matplotlib.ticker import EngFormatter

    panels = list(dict.fromkeys(frame["panel"].to_list()))
    curves = list(dict.fromkeys(frame["curve"].to_list()))
    columns = 1 if is_narrow() else min(len(panels), 2 if len(panels) in (2, 4) else 3)
    lines = math.ceil(len(panels) / columns)
    figure = new_figure(
        11.0 if columns > 1 else 6.0, 0.5 + 2.7 * lines, narrow_height=0.5 + 2.0 * lines
    )
    grid = figure.subplots(lines, columns, squeeze=False, sharex=True).ravel()
    for axes, panel in zip(grid, panels, strict=False):
        for place, curve in enumerate(curves):
            rows = (pl.col("panel") == panel) & (pl.col("curve") == curve)
            mine = frame.filter(rows).sort("step")
            axes.plot(
                mine["step"].to_numpy(),
                mine["value"].to_numpy(),
                color=_COLOURS[place] if place < len(_COLOURS) else GREY,
                linestyle=("-", *LINES)[place % len(_COLOURS)],
                linewidth=1.6,
                marker=MARKERS[place % len(MARKERS)],
                markevery=max(len(mine) // 20, 1),
                markersize=3.5,
                label=curve,
            )
        axes.set_title(panel, fontsize=9.5)
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:.6g}")
        axes.tick_params(axis="x", labelbottom=True)
        axes.set_xlabel(steps)
    for axes in grid[len(panels) :]:
        axes.remove()
    if len(curves) > 1:
        handles, labels = grid[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower left", ncols=3 if is_narrow() else 6)
    return figure
