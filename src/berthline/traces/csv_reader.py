"""CsvReader: chosen columns of a text table, read in pieces, each as what it will be used as.

A piece of the file is read, made into columns and let go, so a long file takes the memory of what
is wanted of it. A piece in which not all cells of a column are what they should be keeps that
column as text, and whoever asked for it sees what the file says there.
"""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING, NamedTuple

from berthline.errors import TraceError
from berthline.traces.csv_lines import CsvLines
from berthline.traces.csv_look import Form, Look, has_odd_line
from berthline.traces.dates import clock_seconds
from berthline.traces.files import HEAD_BYTES, PIECE_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt
    import polars as pl

_REPEATED = re.compile(r"_duplicated_\d+$")  # what polars adds to the name of a column seen before

_MOST_COLUMNS = 2000
"""More make no table of jobs, and reading a line of a million separators takes minutes."""

_SHOWN_CHARACTERS = 40


class Kind(enum.Enum):
    """What a column is read as."""

    NUMBER = enum.auto()
    """float64."""
    TIME = enum.auto()
    """float64: seconds, as `clock_seconds` has them."""
    WORD = enum.auto()
    """Categorical: text of which there is not much that differs."""
    TEXT = enum.auto()
    """String."""


class Column(NamedTuple):
    """A column to read.

    Attributes:
        kind: as what.
        pattern: the form of dates.
    """

    kind: Kind
    pattern: str = ""


class CsvReader:
    """The columns of one text table.

    Attributes:
        names: of all its columns; those that a table without header has beyond its named ones are
            called by their numbers.
    """

    def __init__(
        self,
        path: Path,
        pieces: Callable[[int], Iterable[bytes]],
        form: Form,
        *,
        columns: Sequence[str] | None,
        hint: str,
    ) -> None:
        """Look at the first line.

        Args:
            path: the file, for errors.
            pieces: returns the text anew, in pieces of whole lines of about so many bytes.
            form: how it is written.
            columns: the names of the columns of a file without a header line; None = it has one.
            hint: added to every complaint.

        Raises:
            TraceError: the file cannot be read, has a first line that is no row of a table, or
                names that repeat.
        """
        self._path, self._pieces, self._form, self._hint = path, pieces, form, hint
        self._has_header = columns is None
        self._as_text: set[str] = set()  # columns of numbers in which something else was found
        first, _ = self._part_first(next(iter(self._whole_pieces(HEAD_BYTES)), b""))
        self._width = width = first.count(form.separator.encode()) + 1
        if width > _MOST_COLUMNS:
            raise TraceError(
                f"the first line has {width:,} cells",
                where=f"{path}, line 1",
                expected=f"up to {_MOST_COLUMNS:,} columns",
                hint=hint,
            )
        found = self._read_first(first)
        self._width = len(found)
        if columns is None:
            self.names = tuple(name.strip().removeprefix("\ufeff") for name in found)
            self._refuse_repeated()
        else:
            self.names = (*columns, *(str(at + 1) for at in range(len(columns), len(found))))

    @property
    def lines(self) -> CsvLines:
        """The lines of the text, for complaints."""
        form = self._form
        return CsvLines(
            b"".join(self._pieces(PIECE_BYTES)),
            self._path,
            separator=form.separator,
            quote=form.quote,
            comment=form.comment,
            hint=self._hint,
        )

    @property
    def num_cells(self) -> int:
        """How many cells the first line has."""
        return self._width

    def read(self, wanted: Mapping[str, Column]) -> tuple[int, dict[str, list[pl.Series]]]:
        """Return how many rows there are, and columns by name, each as its pieces.

        A piece of a column is String where not all of its cells are of the kind wanted. Text has
        no blanks around it; an empty cell is null.

        Args:
            wanted: the columns to read, by name.

        Raises:
            TraceError: the table cannot be read, or a line has the wrong number of cells.
        """
        columns: dict[str, list[pl.Series]] = {name: [] for name in wanted}
        height, is_odd = 0, False
        for frame, odd in self._frames(wanted, PIECE_BYTES):
            is_odd |= odd
            height += frame.height
            for name in wanted:
                columns[name].append(frame[name])
        if is_odd:
            self.lines.refuse_widths(self._width, shorter=True, longer=not self._form.longer_lines)
        return height, columns

    def first_text(self, name: str) -> str:
        """Return the first cell of a column that is not empty; empty = there is none."""
        for frame, _ in self._frames({name: Column(Kind.TEXT)}, HEAD_BYTES):
            cells = frame[name].drop_nulls()
            if len(cells):
                return str(cells[0])
        return ""

    def _frames(
        self, wanted: Mapping[str, Column], size: int
    ) -> Iterator[tuple[pl.DataFrame, bool]]:
        """Yield the rows of each piece, and whether a line may have the wrong number of cells."""
        for number, piece in enumerate(self._whole_pieces(size)):
            rows = self._part_first(piece)[1] if number == 0 and self._has_header else piece
            yield self._read_piece(rows, wanted)

    def _read_piece(self, piece: bytes, wanted: Mapping[str, Column]) -> tuple[pl.DataFrame, bool]:
        import polars as pl

        look = Look(piece, self._form)
        # One column more than there are, to see lines that are too long; and in text with quotes
        # the last one, which is empty in lines that are too short.
        names = dict.fromkeys((*wanted, _SURPLUS))
        if look.quoted:
            names[self.names[-1]] = None
        native = {name for name in wanted if wanted[name].kind is Kind.NUMBER} - self._as_text
        try:
            frame = self._parse(piece, names, native, look)
        except (pl.exceptions.PolarsError, ValueError):
            try:
                frame = self._parse(piece, names, set(), look)
            except (pl.exceptions.PolarsError, ValueError) as error:
                self.lines.explain(error)
            frame = self._numbers_again(frame, native)
        if look.blanks:
            texts = [name for name in wanted if frame[name].dtype == pl.String]
            stripped = pl.col(texts).str.strip_chars()
            frame = frame.with_columns(pl.when(stripped != "").then(stripped))
        frame = self._without_blank_rows(frame, piece, look)
        surplus = frame[_SURPLUS].null_count() < frame.height
        if look.quoted:
            doubtful = frame[self.names[-1]].null_count() > 0
        else:
            doubtful = look.separators != (self._width - 1) * look.lines
        odd = (surplus or doubtful) and has_odd_line(piece, self._form, self._width)
        return frame.select(_converted(frame[name], column) for name, column in wanted.items()), odd

    def _parse(
        self, piece: bytes, names: Iterable[str], native: set[str], look: Look
    ) -> pl.DataFrame:
        import polars as pl

        all_names = (*self.names, _SURPLUS)
        places = {name: all_names.index(name) for name in names}
        frame = pl.read_csv(
            piece,
            has_header=False,
            columns=list(places.values()),
            separator=self._form.separator,
            quote_char=self._form.quote,
            comment_prefix=self._form.comment,
            schema={name: pl.Float64 if name in native else pl.String for name in all_names},
            # Polars measures a piece by its first line, which may be blank or odd.
            missing_columns="insert",
            extra_columns="ignore",
            # Repairing bytes that are no UTF-8 doubles the time, so only where there may be.
            encoding="utf8" if look.ascii else "utf8-lossy",
            truncate_ragged_lines=True,
            raise_if_empty=False,
        )
        return frame.select(list(places))

    def _numbers_again(self, frame: pl.DataFrame, names: Iterable[str]) -> pl.DataFrame:
        """Return a piece with columns as numbers as far as they are; remember those that are not.

        Polars says that a number is wrong, not which column it is in.
        """
        import polars as pl

        for name in names:
            values = frame[name].cast(pl.Float64, strict=False)
            if values.null_count() == frame[name].null_count():
                frame = frame.with_columns(values)
            else:
                self._as_text.add(name)
        return frame

    def _without_blank_rows(self, frame: pl.DataFrame, piece: bytes, look: Look) -> pl.DataFrame:
        """Return the rows in which a cell is not empty: a blank line reads as empty cells."""
        import polars as pl

        empty = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
        if all(series.null_count() for series in frame) and empty.any():
            if frame.width <= self._width:  # something may stand in a column not read
                whole = self._parse(piece, (*self.names, _SURPLUS), set(), look)
                empty = whole.select(pl.all_horizontal(pl.all().is_null())).to_series()
            return frame.filter(~empty)
        return frame

    def _read_first(self, first: bytes) -> list[str]:
        """Return the cells of the first line."""
        import polars as pl

        try:
            return pl.read_csv(
                first,
                separator=self._form.separator,
                quote_char=self._form.quote,
                infer_schema=False,
                encoding="utf8-lossy",
            ).columns
        except (pl.exceptions.PolarsError, ValueError) as error:
            self.lines.explain(error)

    def _refuse_repeated(self) -> None:
        originals = [_REPEATED.sub("", name) for name in self.names]
        again = [name for name in originals if originals.count(name) > 1]
        if again:
            shown = again[0] if len(again[0]) <= _SHOWN_CHARACTERS else again[0][:40] + "..."
            raise TraceError(
                f"two columns have the same name, {shown!r}",
                where=f"{self._path}, line 1",
                expected="a name of its own for each column",
                hint=self._hint,
            )

    def _whole_pieces(self, size: int) -> Iterator[bytes]:
        """Yield the text in pieces that do not end inside quotes."""
        quote = self._form.quote.encode() if self._form.quote else None
        held: list[bytes] = []
        is_open = False
        for piece in self._pieces(size):
            # Looking for one is far faster than counting none.
            is_open ^= quote is not None and quote in piece and piece.count(quote) % 2 == 1
            held.append(piece)
            if not is_open:
                yield b"".join(held) if len(held) > 1 else piece
                held = []
        if held:
            yield b"".join(held)

    def _part_first(self, piece: bytes) -> tuple[bytes, bytes]:
        """Return the first row, past blank lines and comments, and what follows it."""
        quote = self._form.quote.encode() if self._form.quote else b""
        comment = self._form.comment.encode() if self._form.comment else b""
        start = 0
        while start < len(piece):
            end = piece.find(b"\n", start) + 1 or len(piece)
            line = piece[start:end].strip(b" \r\n")  # a tab may be a separator
            if line and not (comment and line.startswith(comment)):
                while quote and piece.count(quote, start, end) % 2 and end < len(piece):
                    end = piece.find(b"\n", end) + 1 or len(piece)
                return piece[start:end], piece[end:]
            start = end
        return b"", b""


def _converted(cells: pl.Series, column: Column) -> pl.Series:
    """Return a column of text as what is wanted, or as it is where that is not possible."""
    import polars as pl

    if column.kind is Kind.WORD:
        return cells.cast(pl.Categorical)
    if column.kind is Kind.TIME:
        seconds = clock_seconds(cells, column.pattern).rename(cells.name)
        return seconds if seconds.null_count() == cells.null_count() else cells
    return cells


_SURPLUS = "\n"  # a name that no column has


def holds_number(piece: pl.Series, word: str) -> bool:
    """Return whether a word, such as nan, is among numbers as a number."""
    import polars as pl

    try:
        number = float(word)
    except ValueError:
        return False
    return piece.dtype == pl.Float64 and bool((piece == number).any())  # in polars, NaN == NaN


def as_numbers(
    pieces: Sequence[pl.Series], empty: Sequence[str]
) -> tuple[pl.Series, npt.NDArray[np.bool_] | None]:
    """Return a column as numbers, null where there is none, and which cells are no number.

    Args:
        pieces: as numbers, or as text.
        empty: texts that mean that there is none.
    """
    import polars as pl

    values, wrong = [], []
    for piece in pieces:
        text = piece
        if piece.dtype == pl.String and empty:
            text = piece.set(piece.is_in(list(empty)), None)
        values.append(text.cast(pl.Float64, strict=False))
        wrong.append(values[-1].is_null() & text.is_not_null())
    is_wrong = any(each.any() for each in wrong)
    return pl.concat(values), pl.concat(wrong).to_numpy() if is_wrong else None
