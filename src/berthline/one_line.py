"""one_line: a name from a log as it can stand in a line or a cell of a table."""

from __future__ import annotations

_WRITTEN_OUT = str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t"})


def one_line(name: str) -> str:
    r"""Return a name with its line breaks and tabs written out.

    Example:
        >>> one_line("eve\nroot")
        'eve\\nroot'
    """
    return name.translate(_WRITTEN_OUT)
