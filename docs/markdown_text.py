"""Markdown that the generated parts of the documentation are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def table(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a Markdown table."""
    lines = [list(columns)]
    lines.append(["---"] * len(lines[0]))
    lines += [[str(cell).replace("|", "\\|") for cell in row] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def code(text: object) -> str:
    """Return text as Markdown code; empty stays empty."""
    return f"`{text}`" if str(text) else ""


def mark(*, needed: bool) -> str:
    """Return the mark of what needs to know run times."""
    return "yes" if needed else ""


def options(values: Mapping[str, float]) -> str:
    """Return options with their values."""
    return ", ".join(code(f"{key}={value:g}") for key, value in values.items())
