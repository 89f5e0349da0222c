"""Columns of a text table, converted to the type in use: numbers, times, words or text.

They come in pieces. A piece stays text if not all its cells can be converted, so that the caller
sees the original text.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple

from berthline.traces.reading.dates import clock_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl


class CellType(enum.Enum):
    """The type that a column is read as; values are the names in the native core."""

    NUMBER = "number"
    """float64."""
    TIME = "time"
    """float64: seconds, as `clock_seconds` returns them."""
    WORD = "word"
    """Categorical: text with few distinct values."""
    TEXT = "text"
    """String."""


class Column(NamedTuple):
    """A column to read.

    Attributes:
        kind: its type.
        pattern: the date format.
    """

    kind: CellType
    pattern: str = ""


def converted(cells: pl.Series, column: Column) -> pl.Series:
    """Return a piece of text converted to the wanted type, or unchanged if that is impossible."""
    import polars as pl

    if column.kind is CellType.TEXT or cells.dtype != pl.String:
        return cells
    if column.kind is CellType.WORD:
        return cells.cast(pl.Categorical)
    if column.kind is CellType.NUMBER:
        values = cells.cast(pl.Float64, strict=False)
    else:
        values = clock_seconds(cells, column.pattern).rename(cells.name)
    return values if values.null_count() == cells.null_count() else cells


def holds_number(piece: pl.Series, word: str) -> bool:
    """Return whether a piece of numbers contains the value of a word such as nan."""
    import polars as pl

    try:
        number = float(word)
    except ValueError:
        return False
    return piece.dtype == pl.Float64 and bool((piece == number).any())  # in polars, NaN == NaN


def as_numbers(
    pieces: Sequence[pl.Series], empty: Sequence[str]
) -> tuple[pl.Series, pl.Series | None]:
    """Return a column as numbers, null if missing, and which cells are not numbers.

    Args:
        pieces: as numbers, or as text.
        empty: texts that mean a missing number.

    Returns:
        The numbers, and which cells are wrong; None = no cell is wrong.
    """
    import polars as pl

    return _as_values(pieces, empty, lambda text: text.cast(pl.Float64, strict=False))


def as_times(
    pieces: Sequence[pl.Series], empty: Sequence[str], pattern: str
) -> tuple[pl.Series, pl.Series | None]:
    """Return a column as seconds, null if missing, and which cells are not dates.

    Args:
        pieces: as seconds, or as text.
        empty: texts that mean a missing time.
        pattern: the date format.

    Returns:
        The seconds, and which cells are wrong; None = no cell is wrong.
    """
    return _as_values(pieces, empty, lambda text: clock_seconds(text, pattern))


def _as_values(
    pieces: Sequence[pl.Series], empty: Sequence[str], read: Callable[[pl.Series], pl.Series]
) -> tuple[pl.Series, pl.Series | None]:
    import polars as pl

    values, wrong = [], []
    for piece in pieces:
        is_text = piece.dtype != pl.Float64
        text = piece.cast(pl.String) if is_text else piece
        if is_text and empty:
            text = text.set(text.is_in(list(empty)), None)
        values.append(read(text) if is_text else piece)
        wrong.append(values[-1].is_null() & text.is_not_null() if is_text else None)
    if not any(each is not None and each.any() for each in wrong):
        return pl.concat(values), None
    none = pl.Series([False])
    return pl.concat(values), pl.concat(
        none.new_from_index(0, len(piece)) if each is None else each
        for piece, each in zip(pieces, wrong, strict=True)
    )
