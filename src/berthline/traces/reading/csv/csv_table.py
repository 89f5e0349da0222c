"""CsvTable: a text table with separators, with a line number in every error.

Formats that are text tables get columns from it as numbers, times or categories and state which
values are valid. An invalid value is a TraceError with file, line, column and the original value.
`CsvReader` reads the columns; unused ones are not read.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.errors import TraceError, unknown_name
from berthline.traces.reading.csv.csv_columns import (
    CellType,
    Column,
    as_numbers,
    as_times,
    holds_number,
)
from berthline.traces.reading.csv.csv_look import Form
from berthline.traces.reading.csv.csv_reader import CsvReader
from berthline.traces.reading.dates import from_local, has_zone
from berthline.traces.reading.files import text_pieces
from berthline.traces.reading.leading_comments import blank_leading_comments
from berthline.traces.reading.line_error import LineError
from berthline.traces.reading.quoted import presentable, shorten
from berthline.traces.reading.text_columns import LONGEST_LABEL, categorize, label_array

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import polars as pl


def _uncommented(
    pieces: Callable[[int], Iterable[bytes]], *, has_header: bool
) -> Callable[[int], Iterator[bytes]]:
    """Return the text in pieces, without the comments above the table."""

    def of_size(size: int) -> Iterator[bytes]:
        for number, piece in enumerate(pieces(size)):
            yield piece if number else blank_leading_comments(piece, has_header=has_header)

    return of_size


class CsvTable:
    """The rows of one file, by column name.

    Attributes:
        path: the file.
        columns: the names of its columns.
        time_patterns: the date formats of the columns read as times.
    """

    def __init__(
        self,
        path: Path,
        *,
        columns: Sequence[str] | None = None,
        exact: bool = False,
        required: Sequence[str] = (),
        numbers: Iterable[str] | None = None,
        times: Mapping[str, str] | None = None,
        words: Iterable[str] | None = None,
        texts: Iterable[str] | None = None,
        separator: str = ",",
        quote: str | None = '"',
        comment: str | None = None,
        pieces: Callable[[int], Iterable[bytes]] | None = None,
        hint: str = "",
        read: bool = True,
    ) -> None:
        """Read the file.

        Args:
            path: plain or gzip'd text.
            columns: the names of the columns of a file without a header line; such a file may
                have more columns, which are not read, but not fewer.
            exact: a file without a header line must have exactly these columns.
            required: columns that a header line must have; more are allowed.
            numbers: see `read`.
            times: see `read`.
            words: see `read`.
            texts: see `read`.
            separator: one character.
            quote: encloses cells that contain the separator; None = no quotes.
            comment: lines that start with it are left out.
            pieces: the file's text, if a format has to repair it first: returns it in pieces of
                whole lines of about N bytes; None = read the file.
            hint: added to every error.
            read: False = read only the first line now; call `read` for the rest.

        Raises:
            TraceError: the file cannot be read, has no rows, lacks a column, or has a line with
                the wrong number of cells.
        """
        self.path, self._hint = path, hint
        self._header_lines = 0 if columns is not None else 1
        form = Form(separator, quote, comment, columns is not None and not exact)
        pieces = _uncommented(
            pieces or functools.partial(text_pieces, path), has_header=columns is None
        )
        self._reader = CsvReader(path, pieces, form, columns=columns, hint=hint)
        if columns is not None:
            found = self._reader.num_cells
            if found < len(columns) or (exact and found > len(columns)):
                raise TraceError(
                    f"the first line has {found} cells",
                    where=f"{path}, line 1",
                    expected=f"{len(columns)} cells: " + ", ".join(columns),
                    hint=hint,
                )
        names = self._reader.names
        self.columns: tuple[str, ...] = names if columns is None else names[: len(columns)]
        self.require(required)
        self.time_patterns: Mapping[str, str] = {}
        self._rows = 0
        self._pieces: dict[str, list[pl.Series]] = {}
        if read:
            self.read(numbers=numbers, times=times, words=words, texts=texts)

    def read(
        self,
        *,
        numbers: Iterable[str] | None = None,
        times: Mapping[str, str] | None = None,
        words: Iterable[str] | None = None,
        texts: Iterable[str] | None = None,
    ) -> None:
        """Read columns; columns that do not exist are ignored.

        Args:
            numbers: columns that will be used as numbers.
            times: columns that will be used as times, with their date formats in strftime
                notation.
            words: columns that will be used as categories, or as text with few distinct values.
            texts: columns that will be used as labels or other text. A column in none of these is
                read when it is first used, which is slow; if all four are empty, all columns are
                read as text.

        Raises:
            TraceError: there are no rows, or a line has the wrong number of cells.
        """
        wanted = {
            **dict.fromkeys(numbers or (), Column(CellType.NUMBER)),
            **{name: Column(CellType.TIME, pattern) for name, pattern in (times or {}).items()},
            **dict.fromkeys(words or (), Column(CellType.WORD)),
            **dict.fromkeys(texts or (), Column(CellType.TEXT)),
        } or dict.fromkeys(self.columns, Column(CellType.TEXT))
        wanted = {name: column for name, column in wanted.items() if name in self.columns}
        self.time_patterns = times or {}
        self._rows, self._pieces = self._reader.read(wanted)
        if self._rows == 0:
            raise TraceError(
                "the file has a header but no rows",
                where=str(self.path),
                expected="one line for each job",
                hint=self._hint,
            )

    def __len__(self) -> int:
        return self._rows

    def require(self, names: Sequence[str]) -> None:
        """Raise a TraceError for the first of these columns that the table lacks, if any."""
        for name in names:
            if name not in self.columns:
                _, _, near = unknown_name("column", name, presentable(self.columns))
                raise TraceError(
                    f"there is no column {name!r}",
                    where=f"{self.path}, line 1",
                    expected="a header line with " + ", ".join(names),
                    hint=near or self._hint,
                )

    def text(self, name: str, *, rows: npt.NDArray[np.bool_] | None = None) -> pl.Series:
        """Return the cells of a column as text without surrounding blanks; an empty cell is null.

        The type is polars' String, or Categorical for columns read as words.

        Args:
            name: the column.
            rows: which rows; None = all.
        """
        import polars as pl

        pieces = self._pieces.get(name, [])
        if any(piece.dtype not in (pl.String, pl.Categorical) for piece in pieces) or not pieces:
            pieces = self._read(name, CellType.TEXT)
        cells = pl.concat(pieces, rechunk=False)
        return cells if rows is None or rows.all() else cells.filter(pl.Series(rows))

    def is_empty(self, name: str) -> bool:
        """Return whether all cells of a column are empty."""
        pieces = self._pieces.get(name)
        pieces = [self.text(name)] if pieces is None else pieces
        return all(piece.null_count() == len(piece) for piece in pieces)

    def all_read(self, name: str) -> bool:
        """Return whether all cells of a column have the type it was read as."""
        import polars as pl

        return all(piece.dtype != pl.String for piece in self._pieces[name])

    def first_text(self, name: str) -> str:
        """Return the first non-empty cell of a column, without surrounding blanks."""
        return self._reader.first_text(name)

    def numbers(
        self,
        name: str,
        *,
        lowest: float = -1e15,
        highest: float = 1e15,
        whole: bool = False,
        missing: float | None = None,
        empty: Sequence[str] = (),
    ) -> npt.NDArray[np.float64]:
        """Return a column as numbers.

        Args:
            name: the column.
            lowest: the smallest valid value.
            highest: the largest valid value.
            whole: whether only whole numbers are valid.
            missing: the value for an empty cell; None = an empty cell is an error.
            empty: texts that mean the same as an empty cell.

        Raises:
            TraceError: a cell is not such a number.
        """
        import polars as pl

        pieces = self._pieces.get(name) or self._read(name, CellType.NUMBER)
        if any(holds_number(piece, word) for piece in pieces for word in empty):
            pieces = self._read(name, CellType.TEXT)
        values, wrong = as_numbers(pieces, empty)
        if wrong is None:
            self._pieces[name] = [values]
        array = values.to_numpy()  # NaN for null
        is_null = values.is_null().to_numpy() if values.null_count() else np.bool_(False)
        good = (array >= lowest) & (array <= highest)  # false for NaN too
        if whole:
            good &= array == np.floor(array)
        if missing is not None:
            good |= is_null
        if wrong is not None:
            good &= ~wrong.to_numpy()
        if not good.all():
            kind = "a whole number" if whole else "a number"
            self.refuse(pl.Series(~good), name, f"{kind} from {lowest:g} to {highest:g}")
        if missing is not None and values.null_count():
            array[is_null] = missing
        return array

    def times(
        self,
        name: str,
        *,
        empty: Sequence[str] = (),
        optional: bool = False,
        zone: str | None = None,
    ) -> npt.NDArray[np.float64]:
        """Return a column that was read as times in seconds since 1970; NaN = missing.

        Args:
            name: the column.
            empty: texts that mean a missing time.
            optional: whether a time may be missing.
            zone: the time zone of the dates; see `unix_seconds`.

        Raises:
            TraceError: a cell is not such a date.
        """
        pattern = self.time_patterns[name]
        column, wrong = as_times(self._pieces[name], empty, pattern)
        if not optional and column.null_count():
            wrong = column.is_null()
        if wrong is not None:
            self.refuse(wrong, name, f"a time such as {_example(pattern)}")
        self._pieces[name] = [column]
        if zone is not None and not has_zone(pattern):
            local, column = column, from_local(column, zone)
            if column.null_count() > local.null_count():
                self.refuse(column.is_null() & local.is_not_null(), name, f"a time in {zone}")
        return column.to_numpy()

    def categories(
        self, name: str, *, missing: str = "unknown", rows: npt.NDArray[np.bool_] | None = None
    ) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
        """Return a column as codes and the names they stand for, in order of first appearance.

        Args:
            name: the column.
            missing: the name for an empty cell.
            rows: which rows; None = all. Names that occur only in other rows are left out.
        """
        return categorize(self.text(name, rows=rows), missing=missing)

    def labels(
        self, name: str, *, rows: npt.NDArray[np.bool_] | None = None
    ) -> npt.NDArray[np.str_]:
        """Return a column as texts, such as the ids of jobs; an empty cell is an empty text.

        Args:
            name: the column.
            rows: which rows; None = all.

        Raises:
            TraceError: a cell is longer than a label may be.
        """
        self.refuse_long(name)
        return label_array(self.text(name, rows=rows))

    def refuse_long(self, name: str) -> None:
        """Raise a TraceError for the first cell that is longer than a label may be, if any."""
        import polars as pl

        cells = self.text(name)
        if cells.dtype == pl.Categorical:
            cells = cells.unique().cast(pl.String)
            if (cells.str.len_chars() > LONGEST_LABEL).any():
                cells = self.text(name).cast(pl.String)
        # Counting bytes is faster than counting characters.
        if (cells.str.len_bytes().max() or 0) > LONGEST_LABEL:  # type: ignore[operator]  # an int
            self.refuse(
                cells.str.len_chars() > LONGEST_LABEL, name, f"up to {LONGEST_LABEL} characters"
            )

    def refuse(self, bad: pl.Series | npt.NDArray[np.bool_], name: str, expected: str) -> None:
        """Raise a TraceError for the first row where `bad` is true, if there is one."""
        import polars as pl

        if not bad.any():
            return
        bad = pl.Series(bad)
        count = int(bad.fill_null(False).sum())
        if not count:
            return
        row = bad.arg_max()
        assert row is not None
        value = pl.concat(self._reader.read({name: Column(CellType.TEXT)})[1][name])[row]
        more = f" (and {count - 1:,} more like it)" if count > 1 else ""
        numbers = (np.flatnonzero(bad.fill_null(False).to_numpy()) + self._header_lines).tolist()
        raise LineError(
            f"column {name!r} holds {shorten(value)}",
            where=f"{self.path}, line {self.line_of(row)}{more}",
            expected=expected,
            hint=self._hint,
            lines=lambda: self._reader.lines.lines_of(numbers),
        )

    def _read(self, name: str, kind: CellType) -> list[pl.Series]:
        """Read a column again with another type, keep it, and return it."""
        self._pieces |= self._reader.read({name: Column(kind)})[1]
        return self._pieces[name]

    def line_of(self, row: int) -> int:
        """Return the number of the line on which a row starts, counted from 1."""
        return self._reader.lines.line_of(row + self._header_lines)


def _example(pattern: str) -> str:
    import datetime as dt

    zone = dt.timezone(dt.timedelta(hours=8))
    known = pattern.replace("%.f", "").replace("%#z", "%z").replace("%:z", "%z")
    return dt.datetime(2020, 4, 1, 13, 5, 59, tzinfo=zone).strftime(known)
