"""A part of a formula as text, with as few brackets as possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from berthline.policies.formulas import Node

_SIGNS = {
    "less": "<",
    "less_equal": "<=",
    "equal": "==",
    "not_equal": "!=",
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "power": "**",
}
# How tightly each binds; arguments that bind less tightly go into brackets.
_BINDING = {"<": 0, "<=": 0, "==": 0, "!=": 0, "+": 1, "-": 1, "*": 2, "/": 2, "**": 4}
_NEGATE, _ATOM = 3, 5


def text_of(node: Node) -> str:
    """Return a formula that parses to this tree.

    Example:
        >>> from berthline.policies.formulas import Formula
        >>> text_of(Formula.parse("-((wait/estimate)**3) * gpus").root)
        '-(wait / estimate) ** 3 * gpus'
    """
    return _write(node)[0]


def _write(node: Node) -> tuple[str, int]:
    """Return a text and how tightly it binds."""
    if node.op == "word":
        return node.word, _ATOM
    if node.op == "number":
        value = node.value
        return (str(int(value)) if value.is_integer() and value < 1e15 else repr(value)), _ATOM
    if node.op == "negate":
        text, binding = _write(node.args[0])
        return f"-{text if binding >= _NEGATE else f'({text})'}", _NEGATE
    if node.op not in _SIGNS:
        return f"{node.op}({', '.join(_write(argument)[0] for argument in node.args)})", _ATOM
    sign = _SIGNS[node.op]
    binding = _BINDING[sign]
    # The left of a chain needs no brackets, the right does; a power's base is an atom.
    least_left = _ATOM if sign == "**" else 1 if binding == 0 else binding
    least_right = _NEGATE if sign == "**" else binding + 1
    written = []
    for argument, least in zip(node.args, (least_left, least_right), strict=True):
        text, inner = _write(argument)
        written.append(text if inner >= least else f"({text})")
    return f" {sign} ".join(written), binding
