"""Bounds of columns: what a formula can be at least and at most, by interval arithmetic.

Every operation of IEEE arithmetic is monotone, so bounds computed with it hold to the last bit. A
word without an entry here may be anything, and a column without a known bound has the limit that
observations are clipped to. Observations are 0 where there is no row or no number, so 0 is always
within the bounds.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from berthline import _native
from berthline.policies.formulas import OPERATIONS, Formula, Node
from berthline.policies.vocabulary import VOCABULARY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from berthline.model.cluster import Cluster

_LIMIT = float(_native.observation_limit)


class Bounds(NamedTuple):
    """The least and the largest value."""

    low: float
    high: float


_ANY = Bounds(-math.inf, math.inf)
_NOT_NEGATIVE = Bounds(0.0, math.inf)
_SHARE = Bounds(0.0, 1.0)
_OF_WORD: dict[str, Bounds] = {
    **{
        name: _NOT_NEGATIVE
        for name in VOCABULARY
        # A wait is a difference of sums, see `bounds_of`; a deadline may be past, a priority < 0.
        if name not in ("wait", "deadline", "slack", "priority", "user_share")
    },
    **dict.fromkeys(
        ("running", "random", "pool_fragmentation", "can_start", "utilization", "fragmentation"),
        _SHARE,
    ),
    **dict.fromkeys(("ways_tier1", "ways_tier2"), Bounds(0.0, 2.0)),
    "max_priority": Bounds(1.0, math.inf),
}
_AT_MOST = {
    ("gpus", "total_gpus"),
    ("gpus", "pool_total_gpus"),
    ("busy_gpus", "total_gpus"),
    ("free_gpus", "total_gpus"),
    ("down_gpus", "total_gpus"),
    ("pool_free_gpus", "pool_total_gpus"),
    ("node_free_gpus", "node_total_gpus"),
    ("node_total_gpus", "max_node_gpus"),
    ("node_free_cpus", "node_total_cpus"),
    ("node_total_cpus", "max_node_cpus"),
    ("node_free_memory_mib", "node_total_memory_mib"),
    ("node_total_memory_mib", "max_node_memory_mib"),
    ("priority", "max_priority"),
}
"""Pairs of words of which the first is never more than the second."""


def bounds_of(formula: Formula, *, has_plain_waits: bool, cluster: Cluster | None = None) -> Bounds:
    """Return the bounds of a column, within those of observations.

    Args:
        formula: of the column.
        has_plain_waits: whether no job of the table has run before: then a wait is the difference
            of two times, and not negative; else rounding may leave it just below 0.
        cluster: whose GPUs bound words; None = of any size.

    Example:
        >>> bounds_of(Formula.parse("wait / (wait + 3600)"), has_plain_waits=True)
        Bounds(low=0.0, high=1.0)
    """
    known = {**_OF_WORD, "wait": _NOT_NEGATIVE} if has_plain_waits else dict(_OF_WORD)
    if cluster is not None:
        known |= _of_cluster(cluster)
    found = _walk(formula.root, known)
    low, high = (min(max(value, -_LIMIT), _LIMIT) for value in found)
    return Bounds(min(low, 0.0), max(high, 0.0))


def _of_cluster(cluster: Cluster) -> dict[str, Bounds]:
    total, largest = float(cluster.total_gpus), float(cluster.gpus.max(initial=0))
    up_to = {name: Bounds(0.0, total) for less, more in _AT_MOST for name in (less, more)}
    return {
        **{name: bounds for name, bounds in up_to.items() if name.endswith("gpus")},
        "total_gpus": Bounds(total, total),
        "max_node_gpus": Bounds(largest, largest),
        **dict.fromkeys(("node_total_gpus", "node_free_gpus"), Bounds(0.0, largest)),
    }


def _walk(node: Node, known: Mapping[str, Bounds]) -> Bounds:
    if node.op == "number":
        return _ANY if math.isnan(node.value) else Bounds(node.value, node.value)
    if node.op == "word":
        return known.get(node.word, _ANY)
    args = [_walk(one, known) for one in node.args]
    found = _OF_OPERATION[node.op](*args) if node.op in _OF_OPERATION else _ANY
    if node.op == "divide":
        found = _of_share(node, known, found)
    # Both give their first argument where the second is no number, such as 0 / 0.
    if node.op == "min" and _may_be_no_number(node.args[1]):
        found = Bounds(found.low, args[0].high)
    if node.op == "max" and _may_be_no_number(node.args[1]):
        found = Bounds(args[0].low, found.high)
    # inf - inf or 0 * inf: the operation has no bound there.
    if math.isnan(found.low) or math.isnan(found.high):
        return _ANY
    return found


def _may_be_no_number(node: Node) -> bool:
    if node.op in ("negate", "abs", "floor"):
        return _may_be_no_number(node.args[0])
    return node.op not in ("number", "word") or (node.op == "number" and math.isnan(node.value))


def _of_share(node: Node, known: Mapping[str, Bounds], found: Bounds) -> Bounds:
    """Return the bounds of a quotient, at most 1 where the divisor is never less."""
    numerator, divisor = node.args
    parts = _sum_of(divisor)
    # A sum of parts that are not negative is never less than one of them, rounded or not.
    is_part = numerator in parts and all(_walk(part, known).low >= 0 for part in parts)
    is_less = (numerator.word, divisor.word) in _AT_MOST
    if not (is_part or is_less):
        return found
    return Bounds(found.low, min(found.high, 1.0))


def _sum_of(node: Node) -> list[Node]:
    if node.op != "add":
        return [node]
    return [part for one in node.args for part in _sum_of(one)]


def _product(a: Bounds, b: Bounds) -> Bounds:
    # 0 times infinity is no number, which observations show as 0: it takes the bound of 0.
    values = [0.0 if 0.0 in (x, y) else x * y for x in a for y in b]
    return Bounds(min(values), max(values))


def _quotient(a: Bounds, b: Bounds) -> Bounds:
    if b.low > 0 or b.high < 0:
        values = [x / y for x in a for y in b if not (math.isinf(x) and math.isinf(y))]
        values += [0.0] if math.inf in b or -math.inf in b else []
        values += [x for x in a if math.isinf(x)] if b.low > 0 else []
        if b.high < 0:
            values += [-x for x in a if math.isinf(x)]
        return Bounds(min(values), max(values))
    if b.low == 0 and math.copysign(1.0, b.low) > 0 and a.low >= 0:
        return Bounds(0.0, math.inf)
    return _ANY


def _rising(name: str) -> Callable[[Bounds], Bounds]:
    """Return the bounds of a function that never falls; its last bit may be rounded either way."""
    function = OPERATIONS[name][1]

    def apply(a: Bounds) -> Bounds:
        low, high = function(a.low), function(a.high)
        if math.isnan(low):  # of a negative number
            low = -math.inf
        return Bounds(_outward(low, -1), _outward(high, 1))

    return apply


def _outward(value: float, sign: int) -> float:
    if value in (0.0, 1.0, -1.0) or math.isinf(value):
        return value  # exact in every library
    return value + sign * abs(value) * 1e-12


_OF_OPERATION: dict[str, Callable[..., Bounds]] = {
    "add": lambda a, b: Bounds(a.low + b.low, a.high + b.high),
    "subtract": lambda a, b: Bounds(a.low - b.high, a.high - b.low),
    "multiply": _product,
    "divide": _quotient,
    "negate": lambda a: Bounds(-a.high, -a.low),
    "less": lambda *_: _SHARE,
    "less_equal": lambda *_: _SHARE,
    "equal": lambda *_: _SHARE,
    "not_equal": lambda *_: _SHARE,
    "log2": _rising("log2"),
    "log10": _rising("log10"),
    "ln": _rising("ln"),
    "exp": _rising("exp"),
    "sqrt": _rising("sqrt"),
    "tanh": _rising("tanh"),
    "floor": _rising("floor"),
    "abs": lambda a: (
        Bounds(min(abs(a.low), abs(a.high)), max(abs(a.low), abs(a.high)))
        if a.low >= 0 or a.high <= 0
        else Bounds(0.0, max(-a.low, a.high))
    ),
    "min": lambda a, b: Bounds(min(a.low, b.low), min(a.high, b.high)),
    "max": lambda a, b: Bounds(max(a.low, b.low), max(a.high, b.high)),
    "where": lambda _, a, b: Bounds(min(a.low, b.low), max(a.high, b.high)),
}
"""The bounds of the other operations are unknown."""
