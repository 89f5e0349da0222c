"""Write the generated parts of the documentation: tables of the registries, help, demo output.

A generated part stands between two comments in a page and is never edited by hand:

    <!-- generated: NAME -->
    <!-- end: NAME -->

`make docs` rewrites all of them. `python docs/generate.py --check` changes nothing and fails when
one is stale, which is what the tests call.
"""

from __future__ import annotations

import difflib
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import command_output
import environment_tables
import layer_table
import metric_tables
import public_api
import run_tables
import scheduler_tables
import simulation_tables
import task_tables
import training_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parent.parent

PARTS: dict[str, Callable[[], str]] = {
    **command_output.PARTS,
    **environment_tables.PARTS,
    **layer_table.PARTS,
    **metric_tables.PARTS,
    **public_api.PARTS,
    **run_tables.PARTS,
    **scheduler_tables.PARTS,
    **simulation_tables.PARTS,
    **task_tables.PARTS,
    **training_tables.PARTS,
}
"""Each generated part and what makes it."""

_PART = re.compile(r"(<!-- generated: ([\w -]+) -->\n)(.*?)(<!-- end: \2 -->)", re.DOTALL)


def pages() -> Iterator[Path]:
    """Yield every Markdown page of the documentation."""
    yield from sorted(ROOT.glob("*.md"))
    yield from sorted((ROOT / "docs").rglob("*.md"))


def generated(text: str, page: str) -> tuple[str, set[str]]:
    """Return a page's text with its parts generated again, and the names of those parts."""
    names = set()

    def fill(match: re.Match[str]) -> str:
        begin, name, _, end = match.groups()
        if name not in PARTS:
            raise SystemExit(f"error: unknown generated part {name!r}: {page}")
        names.add(name)
        return f"{begin}\n{PARTS[name]()}\n\n{end}"

    filled = _PART.sub(fill, text)
    if text.count("<!-- generated: ") != len(_PART.findall(text)):
        raise SystemExit(f"error: a generated part has no end: {page}")
    return filled, names


def write_pages(argv: list[str]) -> int:
    """Write all pages; with --check, only say what is stale."""
    check = argv == ["--check"]
    if argv and not check:
        raise SystemExit("usage: python docs/generate.py [--check]")
    used: set[str] = set()
    stale = False
    for path in pages():
        page = str(path.relative_to(ROOT))
        before = path.read_text(encoding="utf-8")
        after, names = generated(before, page)
        used |= names
        if after == before:
            continue
        stale = True
        if check:
            difference = difflib.unified_diff(
                before.splitlines(), after.splitlines(), page, "generated now", lineterm="", n=1
            )
            sys.stdout.write("\n".join(difference) + "\n")
        else:
            path.write_text(after, encoding="utf-8")
            sys.stdout.write(f"written: {page}\n")
    if unused := PARTS.keys() - used:
        raise SystemExit(f"error: parts on no page: {', '.join(sorted(unused))}")
    if check and stale:
        sys.stdout.write("hint: make docs\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(write_pages(sys.argv[1:]))
