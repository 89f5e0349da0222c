"""LineError: an error that has the numbers of all its lines, so that a check can continue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from berthline.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Callable


class LineError(TraceError):
    """Lines of a trace file that cannot be used, all for the same reason.

    Args:
        what: as in every error, for the first of the lines.
        where: as in every error.
        expected: as in every error.
        hint: as in every error.
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
