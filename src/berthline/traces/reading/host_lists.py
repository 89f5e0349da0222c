"""Lists of nodes as batch systems write them: `gpu[01-04,7],login1` are six nodes."""

from __future__ import annotations

import itertools
import re

from berthline.errors import TraceError
from berthline.traces.reading.quoted import shorten

MOST_NODES = 100_000
"""A longer list is an error."""

_PIECE = re.compile(r"([^\[\],]*)(?:\[([\d,\-]+)\])?")


def expand_hosts(text: str) -> list[str]:
    """Return the nodes of a list, in its order.

    Raises:
        TraceError: it is not such a list.

    Example:
        >>> expand_hosts("gpu[09-11],b3")
        ['gpu09', 'gpu10', 'gpu11', 'b3']
    """
    hosts: list[str] = []
    for name in re.split(r",(?![^\[]*\])", text.strip()):
        pieces = [part for part in _PIECE.findall(name) if any(part)]
        if (
            not pieces
            or "".join(head + (f"[{inside}]" * bool(inside)) for head, inside in pieces) != name
        ):
            raise _error(text)
        choices = [[head + number for number in _numbers(inside, text)] for head, inside in pieces]
        hosts += map("".join, itertools.product(*choices))
        if len(hosts) > MOST_NODES:
            raise _error(text)
    return hosts


def _numbers(ranges: str, text: str) -> list[str]:
    """Return the numbers in a bracket: `01-03,7` is 01, 02, 03 and 7."""
    if not ranges:
        return [""]
    numbers: list[str] = []
    for part in ranges.split(","):
        first, dash, last = part.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise _error(text)
        low, high = int(first), int(last or first)
        if not 0 <= high - low <= MOST_NODES:
            raise _error(text)
        numbers += [f"{number:0{len(first)}}" for number in range(low, high + 1)]
    return numbers


def _error(text: str) -> TraceError:
    return TraceError(
        f"cannot read the list of nodes {shorten(text)}",
        expected="names with ranges, such as gpu[01-04,7],login1",
        hint="export with sacct -P: without -P, lists are cut off",
    )
