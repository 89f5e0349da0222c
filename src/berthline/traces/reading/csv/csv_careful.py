"""CarefulReader: columns of a text table with any content.

Quotes, blanks, empty lines, comments, characters beyond ASCII, lines with the wrong number of
cells: polars reads the cells, and a scan of the bytes shows what else has to be done.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NoReturn

from berthline.traces.reading.csv.csv_columns import CellType, Column, converted
from berthline.traces.reading.csv.csv_look import Form, PieceLook, has_odd_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import polars as pl

_SURPLUS = "\n"  # a name that no column has


class CarefulReader:
    """Reads pieces of one text table."""

    def __init__(
        self,
        names: Sequence[str],
        width: int,
        form: Form,
        *,
        explain: Callable[[Exception], NoReturn],
    ) -> None:
        """Store the properties of the table.

        Args:
            names: of its columns.
            width: number of cells in a line.
            form: its separator, quotes and comments.
            explain: raises the error for a piece that cannot be read.
        """
        self._names, self._width, self._form = names, width, form
        self._explain = explain
        self._as_text: set[str] = set()  # columns of numbers in which other text was found

    def read(self, piece: bytes, wanted: Mapping[str, Column]) -> tuple[pl.DataFrame, bool]:
        """Return the rows of a piece, and whether a line has the wrong number of cells."""
        import polars as pl

        look = PieceLook(piece, self._form)
        if look.separators > (self._width - 1) * look.lines and not look.quoted:
            piece = self._without_long_blanks(piece)
            look = PieceLook(piece, self._form)
        # One extra column detects lines that are too long; in text with quotes, the last column
        # detects lines that are too short, because it is empty there.
        names = dict.fromkeys((*wanted, _SURPLUS))
        if look.quoted:
            names[self._names[-1]] = None
        native = {name for name in wanted if wanted[name].kind is CellType.NUMBER} - self._as_text
        try:
            frame = self._parse(piece, names, native, look)
        except (pl.exceptions.PolarsError, ValueError):
            try:
                frame = self._parse(piece, names, set(), look)
            except (pl.exceptions.PolarsError, ValueError) as error:
                self._explain(error)
            # Polars reports that a number is wrong, but not in which column.
            numbers = [converted(frame[name], wanted[name]) for name in native]
            self._as_text |= {cells.name for cells in numbers if cells.dtype == pl.String}
            frame = frame.with_columns(numbers)
        if look.blanks:
            texts = [name for name in wanted if frame[name].dtype == pl.String]
            stripped = pl.col(texts).str.strip_chars()
            frame = frame.with_columns(pl.when(stripped != "").then(stripped))
        frame = self._without_blank_rows(frame, piece, look)
        surplus = frame[_SURPLUS].null_count() < frame.height
        if look.quoted:
            doubtful = frame[self._names[-1]].null_count() > 0
        else:
            doubtful = look.separators != (self._width - 1) * look.lines
        odd = (surplus or doubtful) and has_odd_line(piece, self._form, self._width)
        return frame.select(converted(frame[name], column) for name, column in wanted.items()), odd

    def _without_long_blanks(self, piece: bytes) -> bytes:
        """Return a piece in which lines of only separators, and too many, are blank.

        They are not rows in either form, and polars takes minutes to read a million separators.
        """
        separators = re.escape(self._form.separator.encode())
        return re.sub(rb"(?m)^%b{%d,}$" % (separators, self._width), b"", piece)

    def _parse(
        self, piece: bytes, names: Iterable[str], native: set[str], look: PieceLook
    ) -> pl.DataFrame:
        import polars as pl

        all_names = (*self._names, _SURPLUS)
        places = {name: all_names.index(name) for name in names}
        frame = pl.read_csv(
            piece,
            has_header=False,
            columns=list(places.values()),
            separator=self._form.separator,
            quote_char=self._form.quote,
            comment_prefix=self._form.comment,
            schema={name: pl.Float64 if name in native else pl.String for name in all_names},
            # Polars takes the width from the first line, which may be blank or irregular.
            missing_columns="insert",
            extra_columns="ignore",
            # Repairing invalid UTF-8 doubles the time, so do it only if there may be some.
            encoding="utf8" if look.ascii else "utf8-lossy",
            truncate_ragged_lines=True,
            raise_if_empty=False,
        )
        return frame.select(list(places))

    def _without_blank_rows(
        self, frame: pl.DataFrame, piece: bytes, look: PieceLook
    ) -> pl.DataFrame:
        """Return the rows with a non-empty cell: a blank line is read as empty cells."""
        import polars as pl

        empty = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
        if all(series.null_count() for series in frame) and empty.any():
            if frame.width <= self._width:  # an unread column may have content
                whole = self._parse(piece, (*self._names, _SURPLUS), set(), look)
                empty = whole.select(pl.all_horizontal(pl.all().is_null())).to_series()
            return frame.filter(~empty)
        return frame
