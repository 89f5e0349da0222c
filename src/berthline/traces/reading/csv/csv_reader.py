"""CsvReader: selected columns of a text table, read in pieces, each with its own type.

A piece of the file is read, converted to columns and released, so a long file takes only the memory
of the wanted columns.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from berthline import _native
from berthline.errors import TraceError
from berthline.traces.reading.csv.csv_careful import CarefulReader
from berthline.traces.reading.csv.csv_columns import CellType, Column
from berthline.traces.reading.csv.csv_lines import CsvLines
from berthline.traces.reading.csv.csv_native import NativeReader
from berthline.traces.reading.files import HEAD_BYTES, PIECE_BYTES
from berthline.traces.reading.quoted import shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import polars as pl

    from berthline.traces.reading.csv.csv_look import Form

_REPEATED = re.compile(r"_duplicated_\d+$")  # polars adds this to the name of a repeated column

_MOST_COLUMNS = 2000
"""A table of jobs does not have more, and reading a line of a million separators takes minutes."""


class CsvReader:
    """The columns of one text table.

    Attributes:
        names: of all its columns; extra columns of a table without a header are named by their
            numbers.
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
            pieces: returns the text from its start, in pieces of whole lines of about N bytes.
            form: its separator, quotes and comments.
            columns: the names of the columns of a file without a header line; None = it has one.
            hint: added to every error.

        Raises:
            TraceError: the file cannot be read, its first line is not a row of a table, or a name
                is repeated.
        """
        self._path, self._pieces, self._form, self._hint = path, pieces, form, hint
        self._has_header = columns is None
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
        self._careful = CarefulReader(
            self.names, self._width, form, explain=lambda error: self.lines.explain(error)
        )

    @property
    def lines(self) -> CsvLines:
        """The lines of the text, for errors."""
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
        """The number of cells in the first line."""
        return self._width

    def read(self, wanted: Mapping[str, Column]) -> tuple[int, dict[str, list[pl.Series]]]:
        """Return the number of rows, and columns by name, each in pieces.

        A piece of a column is String if not all of its cells have the wanted type. Text has no
        surrounding blanks; an empty cell is null.

        Args:
            wanted: the columns to read, by name.

        Raises:
            TraceError: the table cannot be read, or a line has the wrong number of cells.
        """
        columns: dict[str, list[pl.Series]] = {name: [] for name in wanted}

        def add(pieces: Mapping[str, list[pl.Series]]) -> None:
            for name, cells in pieces.items():
                columns[name] += cells

        native = NativeReader(self.names, self._width, self._form, wanted)
        is_odd = False
        for piece in self._rows(PIECE_BYTES):
            if not native.read(piece):
                frame, odd = self._careful.read(piece, wanted)
                is_odd |= odd
                add(native.take())
                add({cells.name: [cells] for cells in frame})
        if is_odd:
            self.lines.refuse_widths(self._width, shorter=True, longer=not self._form.longer_lines)
        add(native.take())
        height = sum(len(cells) for cells in next(iter(columns.values()), ()))
        return height, native.with_words(columns)

    def first_text(self, name: str) -> str:
        """Return the first non-empty cell of a column; empty = there is none."""
        for piece in self._rows(HEAD_BYTES):
            frame, _ = self._careful.read(piece, {name: Column(CellType.TEXT)})
            cells = frame[name].drop_nulls()
            if len(cells):
                return str(cells[0])
        return ""

    def _rows(self, size: int) -> Iterator[bytes]:
        """Yield the text without its header line, in pieces."""
        for number, piece in enumerate(self._whole_pieces(size)):
            yield self._part_first(piece)[1] if number == 0 and self._has_header else piece

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
            raise TraceError(
                f"two columns have the same name, {shorten(again[0])}",
                where=f"{self._path}, line 1",
                expected="a unique name for each column",
                hint=self._hint,
            )

    def _whole_pieces(self, size: int) -> Iterator[bytes]:
        """Yield the text in pieces that do not end inside quotes."""
        quote = self._form.quote
        held: list[bytes] = []
        is_open = False
        for piece in self._pieces(size):
            is_open ^= quote is not None and _native.count_bytes(piece, quote) % 2 == 1
            held.append(piece)
            if not is_open:
                yield b"".join(held) if len(held) > 1 else piece
                held = []
        if held:
            yield b"".join(held)

    def _part_first(self, piece: bytes) -> tuple[bytes, bytes]:
        """Return the first row after blank lines and comments, and the text after it."""
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
