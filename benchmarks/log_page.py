"""The program for a page of docs/results that is computed from logs: rows go into a CSV file,
and from there into the page and its figure."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.result_files import RESULTS, fill_page, read_rows, write_rows
from benchmarks.winning_settings import TRACES

from berthline.errors import BerthlineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from benchmarks.result_files import Row


def run_page(
    page: str,
    doc: str | None,
    *,
    measure: Callable[[Path], Iterable[Row]],
    parts: Callable[[Sequence[Row]], Mapping[str, Sequence[str]]],
    draw: Callable[[Sequence[Row], Path], None] | None = None,
    argv: Sequence[str] | None = None,
) -> int:
    """Read the command line, compute what it asks for, and return the exit code.

    Args:
        page: its name without `.md`; the CSV file and the figure have the same name.
        doc: what the program is about.
        measure: yields the rows, given the folder of the logs.
        parts: computed parts of the page, by name.
        draw: draws the figure, if there is one.
        argv: words of the command line.
    """
    parser = argparse.ArgumentParser(prog=page.replace("-", "_"), description=doc)
    parser.add_argument("traces", type=Path, nargs="?", default=TRACES, help="where the logs are")
    parser.add_argument("--from-csv", action="store_true", help="write the page; run nothing")
    options = parser.parse_args(argv)
    table = RESULTS / f"{page}.csv"
    try:
        if not options.from_csv:
            write_rows(table, measure(options.traces))
        rows = read_rows(table)
        fill_page(page, parts(rows))
        if draw is not None:
            draw(rows, RESULTS / f"{page}.png")
    except BerthlineError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(f"written: {page}.csv{'' if draw is None else ', .png'} and .md")
    return 0
