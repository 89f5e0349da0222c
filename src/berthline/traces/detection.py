"""What a format needs to recognise its files: degrees of sureness, and the first lines as text."""

from __future__ import annotations

import enum


class Match(enum.IntEnum):
    """How sure a format is that a file is of its kind; the surest one reads it."""

    NO = 0
    NAMED = 1
    """Only the file's name or header says so. Its rows may be damaged, and the reader is the one
    that can say which line is wrong."""
    CERTAIN = 2
    """The rows look right."""


def head_lines(head: bytes) -> list[str]:
    """Return the lines of a file's first bytes that are not blank, without one cut at the end."""
    lines = head.decode("utf-8", errors="replace").splitlines(keepends=True)
    if len(lines) > 1 and not lines[-1].endswith(("\n", "\r")):
        lines.pop()
    return [line.strip() for line in lines if line.strip()]
