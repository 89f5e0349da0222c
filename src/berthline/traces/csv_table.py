"""CsvTable: a text table with separators, read at once, whose every complaint has a line number.

Formats that are tables of text ask it for columns as numbers, times or categories and say which
values make sense; what does not is a TraceError with file, line, column and value. All cells are
read as text first, so that the error shows what the file says, not what a parser made of it.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from berthline.errors import TraceError, unknown_name
from berthline.traces.files import read_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import polars as pl

_SHOWN_CHARACTERS = 40


class CsvTable:
    """The rows of one file, by column name.

    Attributes:
        path: the file.
        columns: the names of its columns.
    """

    def __init__(
        self,
        path: Path,
        *,
        columns: Sequence[str] | None = None,
        required: Sequence[str] = (),
        separator: str = ",",
        quote: str | None = '"',
        hint: str = "",
    ) -> None:
        """Read the file.

        Args:
            path: plain or gzip'd text.
            columns: the names of the columns of a file without a header line; such a file may
                have more columns, which are not read, but not fewer.
            required: columns a header line must have; more are allowed.
            separator: one character.
            quote: encloses cells that hold the separator; None = no cell does.
            hint: added to every complaint.

        Raises:
            TraceError: the file cannot be read, has no rows, lacks a column, or has a line with
                the wrong number of cells.
        """
        import polars as pl

        self.path, self._separator, self._quote, self._hint = path, separator, quote, hint
        self._header_lines = 0 if columns is not None else 1
        try:
            self._frame = pl.read_csv(
                io.BytesIO(read_text(path)),
                has_header=columns is None,
                separator=separator,
                quote_char=quote,
                infer_schema=False,
                encoding="utf8-lossy",
                truncate_ragged_lines=columns is not None,
            )
        except (pl.exceptions.PolarsError, ValueError) as error:
            self._explain_failure(error)
        if columns is None:
            names = [name.strip().removeprefix("\ufeff") for name in self._frame.columns]
            if len(set(names)) < len(names):
                raise TraceError("two columns have the same name", where=f"{path}, line 1")
            self._frame.columns = names
        else:
            if self._frame.width < len(columns):
                raise TraceError(
                    f"the first line has {self._frame.width} cells",
                    where=f"{path}, line 1",
                    expected=f"{len(columns)} cells: " + ", ".join(columns),
                    hint=hint,
                )
            self._frame = self._frame[:, : len(columns)]
            self._frame.columns = list(columns)
        self.columns: tuple[str, ...] = tuple(self._frame.columns)
        for name in required:
            if name not in self.columns:
                _, _, near = unknown_name("column", name, self.columns)
                raise TraceError(
                    f"there is no column {name!r}",
                    where=f"{path}, line 1",
                    expected="a header line with " + ", ".join(required),
                    hint=near or hint,
                )
        # A blank line reads as a row of empty cells.
        self._frame = self._frame.filter(~pl.all_horizontal(pl.all().is_null()))
        if self._frame.height == 0:
            raise TraceError("the file has a header but no rows", where=str(path), hint=hint)

    def __len__(self) -> int:
        return self._frame.height

    def text(self, name: str) -> pl.Series:
        """Return the cells of a column as text without blanks around it; an empty cell is null."""
        import polars as pl

        stripped = self._frame[name].str.strip_chars()
        return stripped.set(stripped == "", None) if stripped.dtype == pl.String else stripped

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
            lowest: the smallest value that makes sense.
            highest: the largest value that makes sense.
            whole: whether only whole numbers do.
            missing: what an empty cell becomes; None = an empty cell is an error.
            empty: texts that mean the same as an empty cell.

        Raises:
            TraceError: a cell is not such a number.
        """
        import polars as pl

        text = self.text(name)
        if empty:
            text = text.set(text.is_in(list(empty)), None)
        values = text.cast(pl.Float64, strict=False)
        bad = text.is_not_null() & (
            values.is_null() | ~values.is_between(lowest, highest) | values.is_nan()
        )
        if whole:
            bad |= values.is_not_null() & (values != values.floor())
        if missing is None:
            bad |= text.is_null()
        kind = "a whole number" if whole else "a number"
        self.refuse(bad, name, f"{kind} from {lowest:g} to {highest:g}")
        filled = values.fill_null(np.nan if missing is None else missing)
        return filled.to_numpy().astype(np.float64, copy=True)

    def times(
        self,
        name: str,
        pattern: str = "%Y-%m-%d %H:%M:%S",
        *,
        empty: Sequence[str] = (),
        optional: bool = False,
    ) -> npt.NDArray[np.float64]:
        """Return a column of dates as seconds since 1970 in the file's own zone; NaN = missing.

        Args:
            name: the column.
            pattern: the form of the dates, as strftime writes it.
            empty: texts that mean that there is no time.
            optional: whether a time may be missing.

        Raises:
            TraceError: a cell is not such a date.
        """
        import polars as pl

        text = self.text(name)
        if empty:
            text = text.set(text.is_in(list(empty)), None)
        moments = text.str.to_datetime(pattern, strict=False, time_unit="us")
        if moments.dtype.time_zone:  # type: ignore[attr-defined]  # a Datetime by construction
            moments = moments.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        bad = text.is_not_null() & moments.is_null()
        if not optional:
            bad |= text.is_null()
        self.refuse(bad, name, f"a time such as {_example(pattern)}")
        seconds = moments.dt.epoch("us").cast(pl.Float64) / 1e6
        return seconds.fill_null(np.nan).to_numpy().astype(np.float64, copy=True)

    def categories(
        self, name: str, *, missing: str = "unknown"
    ) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
        """Return a column as codes and the names they stand for, in order of first appearance."""
        import polars as pl

        text = self.text(name).fill_null(missing)
        names = text.unique(maintain_order=True)
        codes = text.cast(pl.Enum(names)).to_physical()
        return codes.to_numpy().astype(np.int32), tuple(names.to_list())

    def refuse(self, bad: pl.Series, name: str, expected: str) -> None:
        """Raise a TraceError for the first row where `bad` is true, if there is one."""
        count = int(bad.fill_null(False).sum())
        if not count:
            return
        row = bad.arg_max()
        assert row is not None
        value = self._frame[name][row]
        more = f" (and {count - 1:,} more like it)" if count > 1 else ""
        raise TraceError(
            f"column {name!r} holds {shorten(value)}",
            where=f"{self.path}, line {self.line_of(row)}{more}",
            expected=expected,
            hint=self._hint,
        )

    def line_of(self, row: int) -> int:
        """Return the number of the line on which a row starts, counted from 1."""
        # Only for complaints: quoted line ends and blank lines make lines differ from rows.
        reader = self._reader()
        seen = -self._header_lines
        line = 1
        for cells in reader:
            if cells:
                if seen == row:
                    return line
                seen += 1
            line = reader.line_num + 1
        return row + 1 + self._header_lines

    def _reader(self) -> Any:
        csv.field_size_limit(2**31 - 1)
        text = read_text(self.path).decode("utf-8", errors="replace")
        if self._quote is None:
            return csv.reader(io.StringIO(text), delimiter=self._separator, quoting=csv.QUOTE_NONE)
        return csv.reader(io.StringIO(text), delimiter=self._separator, quotechar=self._quote)

    def _explain_failure(self, error: Exception) -> NoReturn:
        """Raise a TraceError for a table that could not be read, with the line if it is found."""
        reader = self._reader()
        width, line = 0, 1
        try:
            for cells in reader:
                if cells and not width:
                    width = len(cells)
                elif cells and len(cells) > width:
                    raise TraceError(
                        f"the line has {len(cells)} cells",
                        where=f"{self.path}, line {line}",
                        expected=f"{width} cells, as in the first line",
                        hint=self._hint,
                    )
                line = reader.line_num + 1
        except csv.Error:
            pass
        reason = str(error).partition("\n")[0]
        raise TraceError(
            f"the table cannot be read ({reason[:200]})",
            where=str(self.path),
            expected=f"lines of cells separated by {self._separator!r}",
            hint=self._hint,
        )


def shorten(value: object) -> str:
    """Return a cell's value for a message: quoted, and not longer than fits on a line."""
    if value is None:
        return "nothing"
    text = str(value)
    return repr(text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "...")


def _example(pattern: str) -> str:
    import datetime as dt

    zone = dt.timezone(dt.timedelta(hours=8))
    return dt.datetime(2020, 4, 1, 13, 5, 59, tzinfo=zone).strftime(pattern)
