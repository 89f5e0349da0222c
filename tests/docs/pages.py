"""The documentation's pages and the fenced blocks on them."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING

from tests.shared_traces import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

ROOT = REPOSITORY
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

_NOT_RUN = re.compile(r"<!-- not run: (.+) -->")
_FILE = re.compile(r"<!-- file: ([\w.-]+) -->")
_IN_ORDER = "<!-- run in order -->"


@dataclasses.dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, where it is, and what the comment above it says.

    `<!-- not run: WHY -->` is why it is not run; `<!-- file: NAME -->` is the file it shows.
    """

    page: str
    line: int
    language: str
    text: str
    not_run: str
    file: str

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, *languages: str) -> list[Block]:
    """Return a page's blocks in these languages."""
    found = []
    lines = page.read_text(encoding="utf-8").splitlines()
    start: int | None = None
    for number, line in enumerate(lines):
        if not line.startswith("```"):
            continue
        if start is None:
            start = number
            continue
        above = lines[start - 1] if start else ""
        marker, shown = _NOT_RUN.fullmatch(above), _FILE.fullmatch(above)
        found.append(
            Block(
                page=name_of(page),
                line=start + 1,
                language=lines[start].removeprefix("```").strip(),
                text="\n".join(lines[start + 1 : number]) + "\n",
                not_run=marker[1] if marker else "",
                file=shown[1] if shown else "",
            )
        )
        start = None
    assert start is None, f"{name_of(page)}: a block is not closed"
    return [block for block in found if not languages or block.language in languages]


def files() -> dict[str, str]:
    """Return the files that pages show, by name; a name on two pages is the same file."""
    found: dict[str, str] = {}
    for page in PAGES:
        for block in blocks(page):
            if block.file:
                assert found.setdefault(block.file, block.text) == block.text, block.where
    return found


def runs_in_order(page: Path) -> bool:
    """Return whether the page's commands need what those before them wrote."""
    return _IN_ORDER in page.read_text(encoding="utf-8").splitlines()
