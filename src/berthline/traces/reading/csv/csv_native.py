"""NativeReader: columns of a plain text table, read by the native core.

Most tables are plain: ASCII, no blanks around cells, the same number of cells in every line. Other
pieces are left to `CarefulReader`. Both give the same result for every piece that both can read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from berthline import _native
from berthline.traces.reading.csv.csv_columns import CellType, Column, converted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from berthline.traces.reading.csv.csv_look import Form


class NativeReader:
    """Reads columns in the plain pieces of one text table."""

    def __init__(
        self, names: Sequence[str], width: int, form: Form, wanted: Mapping[str, Column]
    ) -> None:
        """Store the properties of the table.

        Args:
            names: of its columns.
            width: number of cells in a line.
            form: its separator, quotes and comments.
            wanted: the columns to read, by name.
        """
        self._wanted = dict(sorted(wanted.items(), key=lambda item: names.index(item[0])))
        self._table = _native.TextTable(
            columns=[
                (names.index(name), column.kind.value, column.pattern)
                for name, column in self._wanted.items()
            ],
            width=width,
            separator=form.separator,
            quote=form.quote or "",
            comment=form.comment or "",
        )

    def read(self, piece: bytes) -> bool:
        """Read a piece; False = it is not plain, and was not read."""
        return self._table.read(piece)

    def take(self) -> dict[str, list[pl.Series]]:
        """Return the columns read since the last call, by name, each in pieces.

        Words are numbers, which `with_words` replaces.
        """
        import polars as pl

        return {
            name: [converted(pl.Series(cells).rename(name), column) for cells in pieces]
            for pieces, (name, column) in zip(self._table.take(), self._wanted.items(), strict=True)
        }

    def with_words(self, columns: Mapping[str, list[pl.Series]]) -> dict[str, list[pl.Series]]:
        """Return columns with words in place of their numbers, after all pieces have been read."""
        import polars as pl

        named = dict(columns)
        for at, (name, column) in enumerate(self._wanted.items()):
            if column.kind is CellType.WORD:
                words = pl.Series(self._table.words(at)).cast(pl.Categorical).rename(name)
                named[name] = [
                    words.gather(piece) if piece.dtype == pl.UInt32 else piece
                    for piece in columns[name]
                ]
        return named
