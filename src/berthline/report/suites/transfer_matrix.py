"""Transfer: policies trained in one place, evaluated in all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from berthline.report.figures.axes import in_style
from berthline.report.run_results import NotShown
from berthline.report.suites.cell_names import short_cells
from berthline.report.suites.heat_map import Square, map_figure

if TYPE_CHECKING:
    import polars as pl

    from berthline.report.figures.lineup import Lineup
    from berthline.report.suites.shown_suite import ShownSuite


def transfer_data(suite: ShownSuite) -> pl.DataFrame:
    """Return the ratio of every trained part to the best rule, in every cell.

    Returns:
        Columns trained_on (the part), evaluated_on (the cell), best, ratio, low, high, is_open,
        higher.

    Raises:
        NotShown: fewer than two parts are trained.
    """
    import polars as pl

    trained = [part.name for part in suite.plan.parts if part.train is not None]
    rows = [
        {
            "trained_on": one.scheduler,
            "evaluated_on": one.cell,
            "best": one.best,
            "ratio": one.ratio,
            "low": one.low,
            "high": one.high,
            "is_open": one.is_open,
            "higher": suite.higher,
        }
        for one in suite.ratios
        if one.scheduler in trained
    ]
    if suite.page != "transfer" or len({row["trained_on"] for row in rows}) < 2:
        raise NotShown("this suite does not train policies in several places")
    return pl.DataFrame(rows, infer_schema_length=None)


def draw_transfer(frame: pl.DataFrame, lineup: Lineup) -> Any:
    """Return the matrix: a row for each place of training."""
    return in_style(lambda: _draw_transfer(frame, lineup))


def _draw_transfer(frame: pl.DataFrame, lineup: Lineup) -> Any:
    rows = list(dict.fromkeys(frame["trained_on"].to_list()))
    columns = list(dict.fromkeys(frame["evaluated_on"].to_list()))
    found = {(row["trained_on"], row["evaluated_on"]): row for row in frame.to_dicts()}
    squares = [
        [
            Square(None) if one is None else Square(one["ratio"], one["is_open"])
            for column in columns
            for one in (found.get((row, column)),)
        ]
        for row in rows
    ]
    return map_figure(
        squares,
        [lineup.names[row] for row in rows],
        list(short_cells(columns).values()),
        title="Trained (row), evaluated (column): ratio to the best rule there",
        worse="worse than the best rule",
        better="better",
        higher=bool(frame["higher"][0]),
    )
