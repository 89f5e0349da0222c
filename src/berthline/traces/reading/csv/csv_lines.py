"""Line numbers of a text table, found line by line: slow but exact, only for errors.

Because of quoted line ends, comments and blank lines, line numbers differ from row numbers.
"""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
from typing import TYPE_CHECKING, NoReturn

from berthline.errors import TraceError
from berthline.traces.reading.line_error import LineError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


class CsvLines:
    """The lines of a text table."""

    def __init__(
        self,
        text: bytes,
        path: Path,
        *,
        separator: str,
        quote: str | None,
        comment: str | None,
        hint: str,
    ) -> None:
        """Store the text of a table; see `CsvTable` for the arguments."""
        # The csv module fails on a carriage return inside a line; for counting lines, use a blank.
        self._text = text.decode("utf-8", errors="replace").replace("\r", " ")
        self._path = path
        self._separator, self._quote, self._comment = separator, quote, comment
        self._hint = hint

    def line_of(self, number: int) -> int:
        """Return the line on which the `number`-th row starts, counting the header as a row."""
        lines = (line for line, _ in self._rows())
        return next(itertools.islice(lines, number, None), number + 1)

    def lines_of(self, numbers: Sequence[int]) -> list[int]:
        """Return the lines on which these rows start, given in ascending order."""
        wanted = set(numbers)
        return [line for number, (line, _) in enumerate(self._rows()) if number in wanted]

    def refuse_widths(self, width: int, *, shorter: bool = False, longer: bool = False) -> None:
        """Raise a TraceError for the lines that have the wrong number of cells, if any.

        Args:
            width: the required number of cells.
            shorter: whether lines with fewer cells are wrong.
            longer: whether lines with more cells are wrong.
        """
        cells_on = {line: len(cells) for line, cells in self._rows() if len(cells) != width}
        # Short and long lines have different causes, so an error is about one kind.
        long = {line: cells for line, cells in cells_on.items() if longer and cells > width}
        short = {line: cells for line, cells in cells_on.items() if shorter and cells < width}
        odd = long or short
        if not odd:
            return
        line, cells = next(iter(odd.items()))
        more = f" (and {len(odd) - 1:,} more like it)" if len(odd) > 1 else ""
        cut_short = "if it is the last line, the file may have been cut short"
        raise LineError(
            f"the line has {cells} cell{'' if cells == 1 else 's'}",
            where=f"{self._path}, line {line}{more}",
            expected=f"{width} cells, as in the first line",
            hint=self._hint if cells > width else "; ".join(filter(None, (cut_short, self._hint))),
            lines=lambda: list(odd),
        )

    def explain(self, error: Exception) -> NoReturn:
        """Raise a TraceError for a table that could not be read, with the line if known."""
        with contextlib.suppress(csv.Error):
            width = next((len(cells) for _, cells in self._rows()), 0)
            self.refuse_widths(width, longer=True)
        for line, text in enumerate(self._text.split("\n"), start=1):
            if self._quote and text.count(self._quote) % 2:
                self._refuse(
                    f"a quote ({self._quote}) is not closed, or is inside a cell",
                    f"{self._path}, line {line}",
                    f"cells that start and end with {self._quote}; a quote inside is doubled",
                )
        reason = str(error).partition("\n")[0]
        self._refuse(
            f"the table cannot be read ({reason[:200]})",
            str(self._path),
            f"lines of cells separated by {self._separator!r}",
        )

    def _refuse(self, what: str, where: str, expected: str) -> NoReturn:
        raise TraceError(what, where=where, expected=expected, hint=self._hint)

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the line and the cells of every row that is not blank or a comment."""
        csv.field_size_limit(2**31 - 1)
        text = io.StringIO(self._text)
        if self._quote is None:
            reader = csv.reader(text, delimiter=self._separator, quoting=csv.QUOTE_NONE)
        else:
            reader = csv.reader(text, delimiter=self._separator, quotechar=self._quote)
        line = 1
        for cells in reader:
            is_comment = self._comment is not None and "".join(cells[:1]).startswith(self._comment)
            if any(cells) and not is_comment:
                yield line, cells
            line = reader.line_num + 1
