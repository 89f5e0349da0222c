"""CsvTable: a text table with separators, read at once, whose every complaint has a line number.

Formats that are tables of text ask it for columns as numbers, times or categories and say which
values make sense; what does not is a TraceError with file, line, column and value. All cells are
read as text first, so that the error shows what the file says, not what a parser made of it.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.errors import TraceError, unknown_name
from berthline.traces.csv_lines import CsvLines
from berthline.traces.dates import unix_seconds
from berthline.traces.files import read_text
from berthline.traces.line_error import LineError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    import polars as pl

_SHOWN_CHARACTERS = 40
_SHOWN_NAMES = 60
_REPEATED = re.compile(r"_duplicated_\d+$")  # what polars adds to the name of a column seen before

_MOST_COLUMNS = 2000
"""More make no table of jobs, and reading a line of a million separators takes minutes."""

LONGEST_LABEL = 200
"""Characters. Labels are stored at the width of the longest, so one must not be a whole file."""


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
        exact: bool = False,
        required: Sequence[str] = (),
        separator: str = ",",
        quote: str | None = '"',
        comment: str | None = None,
        text: bytes | None = None,
        hint: str = "",
    ) -> None:
        """Read the file.

        Args:
            path: plain or gzip'd text.
            columns: the names of the columns of a file without a header line; such a file may
                have more columns, which are not read, but not fewer.
            exact: a file without a header line has these columns and no more.
            required: columns a header line must have; more are allowed.
            separator: one character.
            quote: encloses cells that hold the separator; None = no cell does.
            comment: lines that start with it are left out.
            text: the file's lines, where a format had to mend them first; None = read the file.
            hint: added to every complaint.

        Raises:
            TraceError: the file cannot be read, has no rows, lacks a column, or has a line with
                the wrong number of cells.
        """
        import polars as pl

        self.path, self._separator, self._quote, self._hint = path, separator, quote, hint
        self._comment = comment
        self._header_lines = 0 if columns is not None else 1
        self._mended = text
        text = self._text()
        width = _first_line(text, comment).count(separator.encode()) + 1
        if width > _MOST_COLUMNS:
            raise TraceError(
                f"the first line has {width:,} cells",
                where=f"{path}, line 1",
                expected=f"up to {_MOST_COLUMNS:,} columns",
                hint=hint,
            )
        try:
            self._frame = pl.read_csv(
                text,
                has_header=columns is None,
                separator=separator,
                quote_char=quote,
                comment_prefix=comment,
                infer_schema=False,
                # Repairing bytes that are no UTF-8 doubles the time, so only where there may be.
                encoding="utf8" if text.isascii() else "utf8-lossy",
                truncate_ragged_lines=columns is not None and not exact,
            )
        except (pl.exceptions.PolarsError, ValueError) as error:
            self._lines().explain(error)
        if columns is None:
            names = [name.strip().removeprefix("\ufeff") for name in self._frame.columns]
            originals = [_REPEATED.sub("", name) for name in names]
            again = [name for name in originals if originals.count(name) > 1]
            if again:
                raise TraceError(
                    f"two columns have the same name, {shorten(again[0])}",
                    where=f"{path}, line 1",
                    expected="a name of its own for each column",
                    hint=hint,
                )
            self._frame.columns = names
        else:
            if self._frame.width < len(columns) or (exact and self._frame.width > len(columns)):
                raise TraceError(
                    f"the first line has {self._frame.width} cells",
                    where=f"{path}, line 1",
                    expected=f"{len(columns)} cells: " + ", ".join(columns),
                    hint=hint,
                )
            self._frame = self._frame[:, : len(columns)]
            self._frame.columns = list(columns)
        self.columns: tuple[str, ...] = tuple(self._frame.columns)
        self.require(required)
        # A blank line reads as a row of empty cells.
        self._frame = self._frame.filter(~pl.all_horizontal(pl.all().is_null()))
        if self._frame.height == 0:
            raise TraceError(
                "the file has a header but no rows",
                where=str(path),
                expected="one line for each job",
                hint=hint,
            )

    def __len__(self) -> int:
        return self._frame.height

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
        """Return the cells of a column as text without blanks around it; an empty cell is null.

        Args:
            name: the column.
            rows: which rows; None = all.
        """
        import polars as pl

        cells = self._frame[name]
        if rows is not None and not rows.all():
            cells = cells.filter(pl.Series(rows))
        stripped = cells.str.strip_chars()
        return stripped.set(stripped == "", None) if stripped.dtype == pl.String else stripped

    def first_text(self, name: str) -> str:
        """Return the first cell of a column that is not empty, without blanks around it."""
        cells = self._frame[name]
        first = cells.is_not_null().arg_max()
        return str(cells[first] or "").strip() if first is not None else ""

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

        text = self._frame[name]
        values = text.cast(pl.Float64, strict=False)
        if empty or values.null_count() > text.null_count():  # blanks around numbers, other texts
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
        zone: str | None = None,
    ) -> npt.NDArray[np.float64]:
        """Return a column of dates as seconds since 1970; NaN = missing.

        Args:
            name: the column.
            pattern: the form of the dates, as strftime writes it.
            empty: texts that mean that there is no time.
            optional: whether a time may be missing.
            zone: where the dates are the local time; see `unix_seconds`.

        Raises:
            TraceError: a cell is not such a date.
        """
        text = self.text(name)
        if empty:
            text = text.set(text.is_in(list(empty)), None)
        seconds = unix_seconds(text, pattern, zone)
        bad = text.is_not_null() & seconds.is_null()
        if not optional:
            bad |= text.is_null()
        self.refuse(bad, name, f"a time such as {_example(pattern)}")
        return seconds.fill_null(np.nan).to_numpy().astype(np.float64, copy=True)

    def categories(
        self, name: str, *, missing: str = "unknown", rows: npt.NDArray[np.bool_] | None = None
    ) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
        """Return a column as codes and the names they stand for, in order of first appearance.

        Args:
            name: the column.
            missing: what an empty cell is called.
            rows: which rows; None = all. Names of other rows do not appear.
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
        self.refuse(
            self._frame[name].str.len_chars() > LONGEST_LABEL,
            name,
            f"up to {LONGEST_LABEL} characters",
        )
        return label_array(self.text(name, rows=rows))

    def refuse(self, bad: pl.Series | npt.NDArray[np.bool_], name: str, expected: str) -> None:
        """Raise a TraceError for the first row where `bad` is true, if there is one."""
        import polars as pl

        bad = pl.Series(bad)
        count = int(bad.fill_null(False).sum())
        if not count:
            return
        row = bad.arg_max()
        assert row is not None
        value = self._frame[name][row]
        more = f" (and {count - 1:,} more like it)" if count > 1 else ""
        numbers = (np.flatnonzero(bad.fill_null(False).to_numpy()) + self._header_lines).tolist()
        raise LineError(
            f"column {name!r} holds {shorten(value)}",
            where=f"{self.path}, line {self.line_of(row)}{more}",
            expected=expected,
            hint=self._hint,
            lines=lambda: self._lines().lines_of(numbers),
        )

    def line_of(self, row: int) -> int:
        """Return the number of the line on which a row starts, counted from 1."""
        return self._lines().line_of(row + self._header_lines)

    def _text(self) -> bytes:
        return read_text(self.path) if self._mended is None else self._mended

    def _lines(self) -> CsvLines:
        return CsvLines(
            self._text(),
            self.path,
            separator=self._separator,
            quote=self._quote,
            comment=self._comment,
            hint=self._hint,
        )


def _first_line(text: bytes, comment: str | None) -> bytes:
    """Return the first line that is not blank and no comment."""
    start = 0
    while start < len(text):
        end = text.find(b"\n", start)
        end = len(text) if end < 0 else end
        line = text[start:end].strip(b" \r")  # a tab may be a separator
        if line and not (comment and line.startswith(comment.encode())):
            return line
        start = end + 1
    return b""


def label_array(text: pl.Series) -> npt.NDArray[np.str_]:
    """Return texts that are not long as an array; null becomes an empty text."""
    text = text.fill_null("")
    width = max(int(text.str.len_chars().max() or 0), 1)  # type: ignore[arg-type]  # an int
    # Far faster than by way of a list: numpy's own layout, zeros after the end included.
    padded = text.str.pad_end(width, "\0").str.join("").item().encode("utf-32-le")
    return np.frombuffer(padded, dtype=f"<U{width}")


def categorize(
    text: pl.Series, *, missing: str = "unknown"
) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
    """Return texts as codes and the names they stand for, in order of first appearance."""
    import polars as pl

    text = text.fill_null(missing)
    names = text.unique(maintain_order=True)
    codes = text.cast(pl.Enum(names)).to_physical()
    return codes.to_numpy().astype(np.int32), tuple(names.to_list())


def count_values(text: pl.Series, *, missing: str = "unknown") -> dict[str, int]:
    """Return how often each text occurs, the most frequent first."""
    counts = text.fill_null(missing).rename("text").value_counts(sort=True, name="count")
    return dict(zip(counts["text"].to_list(), counts["count"].to_list(), strict=True))


def presentable(names: Iterable[str]) -> list[str]:
    """Return names that a file gave, for a message: not too many, and none longer than a line."""
    return [name[:_SHOWN_CHARACTERS] for name in itertools.islice(names, _SHOWN_NAMES)]


def shorten(value: object) -> str:
    """Return a cell's value for a message: quoted, and not longer than fits on a line."""
    if value is None:
        return "nothing"
    text = str(value)
    return repr(text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "...")


def _example(pattern: str) -> str:
    import datetime as dt

    zone = dt.timezone(dt.timedelta(hours=8))
    known = pattern.replace("%.f", "").replace("%#z", "%z").replace("%:z", "%z")
    return dt.datetime(2020, 4, 1, 13, 5, 59, tzinfo=zone).strftime(known)
