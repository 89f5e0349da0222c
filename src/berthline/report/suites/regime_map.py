"""Against the best rule of every cell: a map of regimes, and bars of the whole suite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from berthline.palette import GREY, INK
from berthline.report.figures.axes import (
    in_style,
    interval_bars,
    new_figure,
    ratio_axis,
    ratio_range,
)
from berthline.report.figures.layout import SMALL
from berthline.report.run_results import NotShown
from berthline.report.suites.cell_names import short_cells
from berthline.report.suites.heat_map import Square, map_figure

if TYPE_CHECKING:
    import polars as pl

    from berthline.report.figures.lineup import Lineup
    from berthline.report.suites.shown_suite import ShownSuite

MOST_CELLS = 24


def regime_data(suite: ShownSuite) -> pl.DataFrame:
    """Return the scheduler that the suite is about, against the best rule of each regime.

    Returns:
        Columns scheduler, shape, intensity, gpus, best, ratio, low, high, is_open, higher.

    Raises:
        NotShown: the cells are not regimes.
    """
    import polars as pl

    cells = suite.clean.filter(pl.col("shape") != "")
    if not len(cells):
        raise NotShown("the cells of this suite are not regimes")
    about = cells.unique("cell", keep="first", maintain_order=True)
    of = {row["cell"]: row for row in about.select("cell", "shape", "intensity", "gpus").to_dicts()}
    rows = [
        {
            "scheduler": one.scheduler,
            **{name: of[one.cell][name] for name in ("shape", "intensity", "gpus")},
            "best": one.best,
            "ratio": one.ratio,
            "low": one.low,
            "high": one.high,
            "is_open": one.is_open,
            "higher": suite.higher,
        }
        for one in suite.ratios
        if one.scheduler == suite.subject and one.cell in of
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def draw_regimes(frame: pl.DataFrame, lineup: Lineup) -> Any:
    """Return the map: shapes side by side, intensities and GPUs below each other."""
    return in_style(lambda: _draw_regimes(frame, lineup))


def _draw_regimes(frame: pl.DataFrame, lineup: Lineup) -> Any:
    shapes = list(dict.fromkeys(frame["shape"].to_list()))
    levels = list(dict.fromkeys(zip(frame["intensity"], frame["gpus"], strict=True)))
    found = {(r["shape"], r["intensity"], r["gpus"]): r for r in frame.to_dicts()}
    squares = [
        [
            Square(None) if one is None else Square(one["ratio"], one["is_open"])
            for shape in shapes
            for one in (found.get((shape, *level)),)
        ]
        for level in levels
    ]
    return map_figure(
        squares,
        [f"{intensity}, {gpus} GPUs" for intensity, gpus in levels],
        shapes,
        title=f"{lineup.names[frame['scheduler'][0]]}: ratio to the best rule of each regime",
        worse="worse than the best rule",
        better="better",
        higher=bool(frame["higher"][0]),
    )


def cell_data(suite: ShownSuite) -> pl.DataFrame:
    """Return every scheduler against the best rule of every cell.

    Returns:
        Columns cell, scheduler, best, ratio, low, high, is_open, higher.

    Raises:
        NotShown: there are too few schedulers, or too many cells for a figure.
    """
    import polars as pl

    if len(suite.schedulers) < 2 or not suite.ratios:
        raise NotShown("there is nothing to compare with")
    if len(suite.clean_cells) > MOST_CELLS:
        raise NotShown(f"more than {MOST_CELLS} cells: the map of regimes has them")
    rows = [
        {
            "cell": one.cell,
            "scheduler": one.scheduler,
            "best": one.best,
            "ratio": one.ratio,
            "low": one.low,
            "high": one.high,
            "is_open": one.is_open and one.scheduler != one.best,
            "higher": suite.higher,
        }
        for one in suite.ratios
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def draw_cells(frame: pl.DataFrame, lineup: Lineup) -> Any:
    """Return the map: cells below each other, schedulers side by side."""
    return in_style(lambda: _draw_cells(frame, lineup))


def _draw_cells(frame: pl.DataFrame, lineup: Lineup) -> Any:
    cells = list(dict.fromkeys(frame["cell"].to_list()))
    order = list(dict.fromkeys(frame["scheduler"].to_list()))
    found = {(row["cell"], row["scheduler"]): row for row in frame.to_dicts()}
    squares = [
        [
            Square(None) if one is None else Square(one["ratio"], one["is_open"])
            for name in order
            for one in (found.get((cell, name)),)
        ]
        for cell in cells
    ]
    return map_figure(
        squares,
        list(short_cells(cells).values()),
        [lineup.names[name] for name in order],
        title="Ratio to the best rule of each cell, in hindsight",
        worse="worse than the best rule",
        better="better",
        higher=bool(frame["higher"][0]),
    )


def oracle_data(suite: ShownSuite) -> pl.DataFrame:
    """Return every scheduler over all clean cells.

    Formula: the geometric mean over cells of the ratio to the best fixed rule of each, in
    hindsight. That rule is not the best schedule: nothing says how far it is from one.

    Returns:
        Columns scheduler, ratio, low, high, worst, worst_cell, higher.

    Raises:
        NotShown: there is no rule to compare with.
    """
    import polars as pl

    if len(suite.overall) < 2:
        raise NotShown("there is nothing to compare with")
    rows = []
    for name in suite.ranked:
        one, worst = suite.overall[name], suite.worst(name)
        rows.append(
            {
                "scheduler": name,
                "ratio": one.ratio,
                "low": one.low,
                "high": one.high,
                "worst": None if worst is None else worst.ratio,
                "worst_cell": "" if worst is None else worst.cell,
                "higher": suite.higher,
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)


def draw_oracle(frame: pl.DataFrame, lineup: Lineup) -> Any:
    """Return the figure: a dot and an interval for each scheduler, and its worst cell."""
    return in_style(lambda: _draw_oracle(frame, lineup))


def _draw_oracle(frame: pl.DataFrame, lineup: Lineup) -> Any:
    names = frame["scheduler"].to_list()
    figure = new_figure(9.0, 1.7 + 0.32 * len(names), narrow_height=2.3 + 0.36 * len(names))
    axes = figure.subplots()
    ends = [*frame["low"], *frame["high"], *frame["worst"]]
    ratio_axis(axes, *ratio_range(frame["ratio"].to_list(), ends))
    for place, row in enumerate(frame.to_dicts()):
        look = lineup.looks[row["scheduler"]]
        colour = look.colour if look.stands_out else GREY
        if row["low"] is not None:
            interval_bars(axes, [row["low"]], [row["high"]], [place], color=colour, linewidth=2.4)
        axes.plot(row["ratio"], place, look.marker, color=colour, markersize=6.5, zorder=4)
        if row["worst"] is not None:
            axes.plot(row["worst"], place, "|", color=INK, markersize=11, zorder=3)
    axes.set_yticks(range(len(names)), [lineup.names[name] for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    side = "left" if frame["higher"][0] else "right"
    axes.set_xlabel("← worse" if side == "left" else "worse →", fontsize=SMALL, loc=side)
    axes.set_title("Ratio to the best fixed rule of each cell; | = the worst cell")
    return figure
