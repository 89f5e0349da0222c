"""The files of a page of docs/results: rows in a CSV file, and computed parts of the page."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import TYPE_CHECKING

from berthline.atomic_write import write_atomically
from berthline.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

RESULTS = Path(__file__).parents[1] / "docs" / "results"
Row = dict[str, str]

_PART = r"(<!-- computed: {name} -->\n).*?(<!-- end computed: {name} -->)"


def filled(text: str, computed: Mapping[str, Sequence[str]]) -> str:
    """Return a page with new computed parts.

    Raises:
        ConfigError: the page has no place for a part.
    """
    for name, lines in computed.items():
        pattern = re.compile(_PART.format(name=name), re.DOTALL)
        if not pattern.search(text):
            raise ConfigError(f"the page has no part {name!r}")
        body = "\n" + "\n".join(lines) + "\n\n"
        text = pattern.sub(lambda match, body=body: match[1] + body + match[2], text)
    return text


def fill_page(page: str, computed: Mapping[str, Sequence[str]]) -> None:
    """Replace the computed parts of a page, which is named without `.md`."""
    path = RESULTS / f"{page}.md"
    write_atomically(path, filled(path.read_text(encoding="utf-8"), computed).encode())


def to_csv(rows: Sequence[Row]) -> str:
    """Return the rows as CSV."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write the rows as a CSV file."""
    write_atomically(path, to_csv(list(rows)).encode())


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
