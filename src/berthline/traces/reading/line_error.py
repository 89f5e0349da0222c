"""LineError: an error that knows every line it is about, so that a check can go on after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from berthline.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Callable


class LineError(TraceError):
    """Lines of a trace file that cannot be used, all for the same reason.

    Args:
        what: as of every error, for the first of the lines.
        where: of the error.
        expected: of the error.
        hint: of the error.
        lines: returns the numbers of all the lines; evaluated lazily.
    """

    def __init__(
        self,
        what: str,
        *,
        where: str,
        expected: str,
        hint: str = "",
        lines: Callable[[], list[int]],
    ) -> None:
        super().__init__(what, where=where, expected=expected, hint=hint)
        self.lines = lines
