"""JsonRows: a list of records in a JSON file, with a line number in every error.

A format describes its records as msgspec structs with the fields it needs; all others are skipped
while reading. A record that does not match is a TraceError with file, line and the position in the
record.
"""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

import msgspec

from berthline.errors import TraceError
from berthline.traces.reading.files import read_text
from berthline.traces.reading.quoted import shorten

if TYPE_CHECKING:
    from pathlib import Path

Record = TypeVar("Record")


class JsonRows(Generic[Record]):
    """The records of one file.

    Attributes:
        path: the file.
        rows: the records, in the order of the file.
    """

    def __init__(
        self, path: Path, record: type[Record], *, key: str | None = None, hint: str = ""
    ) -> None:
        """Read the file.

        Args:
            path: plain or gzip'd JSON.
            record: the type of one record.
            key: the key of the list of records, if the file is an object; None = the file is the
                list.
            hint: added to every error.

        Raises:
            TraceError: the file cannot be read, is not such JSON, or contains no records.
        """
        self.path, self._key, self._hint = path, key, hint
        self._text = read_text(path, long_lines=True)
        try:
            self.rows: list[Record] = _decode(self._text, record, key)
        except msgspec.ValidationError as error:
            self._explain_misfit(str(error))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            self._explain_failure(error)
        if not self.rows:
            raise TraceError("the list of jobs is empty", where=str(path), hint=hint)

    def __len__(self) -> int:
        return len(self.rows)

    def refuse(self, row: int, name: str, value: object, expected: str) -> NoReturn:
        """Raise a TraceError about a field of a record."""
        raise TraceError(
            f"{name!r} is {shorten(value)}",
            where=f"{self.path}, line {self.line_of(row)} (job {row + 1:,} of the list)",
            expected=expected,
            hint=self._hint,
        )

    def line_of(self, row: int) -> int:
        """Return the number of the line on which a record starts, counted from 1."""
        # Only for errors: finds the records one after another, in the order of the file.
        start = at = 0
        for raw in _decode(self._text, msgspec.Raw, self._key)[: row + 1]:
            start = self._text.index(bytes(raw), at)
            at = start + len(bytes(raw))
        return self._line_at(start)

    def _line_at(self, position: int) -> int:
        return self._text.count(b"\n", 0, position) + 1

    def _explain_misfit(self, message: str) -> NoReturn:
        """Raise a TraceError for JSON that does not match the format."""
        what, _, place = message.partition(" - at ")
        place = place.strip("`")
        inside = re.match(r"\$(?:\.\w+)?\[(\d+)\]", place)
        where = str(self.path)
        if inside:
            # If the text after this record is not JSON, the line is unknown.
            with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                where += f", line {self.line_of(int(inside[1]))}"
        raise TraceError(
            f"the JSON is not as expected: {what[:1].lower()}{what[1:200]}",
            where=f"{where} ({place[:200]})" if place else where,
            expected=f"an object with a list {self._key!r}" if self._key else "a list of jobs",
            hint=self._hint,
        )

    def _explain_failure(self, error: Exception) -> NoReturn:
        """Raise a TraceError for text that is not JSON, with the line if it is known."""
        where = str(self.path)
        position = re.search(r"\(byte (\d+)\)", str(error))
        if position:
            where += f", line {self._line_at(int(position[1]))}"
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]
        raise TraceError(
            f"the file is not valid JSON ({reason})",
            where=where,
            expected="complete JSON text in UTF-8",
            hint=self._hint or "it may have been cut short: copy or download it again",
        )


def _decode(text: bytes, record: type[Record], key: str | None) -> list[Record]:
    """Return the records of a JSON text."""
    rows: list[Record]
    if key is None:
        rows = msgspec.json.decode(text, type=list[record])  # type: ignore[valid-type]
        return rows
    field = ("rows", list[record])  # type: ignore[valid-type]
    holder: Any = msgspec.defstruct("Holder", [field], rename={"rows": key})
    rows = msgspec.json.decode(text, type=holder).rows
    return rows
