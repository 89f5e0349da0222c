"""What every verb prints: tables, numbers, JSON, notes and progress.

Results go to stdout, everything else (notes, progress, errors) to stderr, so that a pipe gets only
the results. Tables are designed for 80 columns.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from berthline.cli.visible_output import styled, visible, visible_json
from berthline.counted import counted as counted

if TYPE_CHECKING:
    from rich.table import Table

    from berthline.evaluate.metrics.measure import JobCounts
    from berthline.model.workload import Workload

NARROWEST = 80
PIPE_WIDTH = 110
"""Columns of a table when the width of the output is unknown (a pipe or a file)."""

PROGRESS_AFTER = 2.0
"""Seconds of work before a progress bar appears."""

BEST = "*"
"""Marks the best value of a column."""


def print_json(value: object) -> None:
    """Print a Struct or plain data as one JSON object; NaN and infinity become null."""
    import msgspec

    print(visible_json(msgspec.json.format(msgspec.json.encode(value), indent=2).decode()))


def note(text: str) -> None:
    """Print a remark to stderr."""
    print(f"note: {text}", file=sys.stderr)


def new_table(*columns: str, title: str = "") -> Table:
    """Return an empty table: the first column is text, the others are numbers."""
    from rich import box
    from rich.table import Table

    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        title=title or None,
        title_justify="left",
        title_style="bold",
        header_style="",
    )
    table.add_column(columns[0], overflow="fold")
    for column in columns[1:]:
        table.add_column(column, justify="right", no_wrap=True, vertical="bottom")
    return table


def print_table(table: Table) -> None:
    """Print a table as wide as the terminal, or `PIPE_WIDTH` columns if there is none.

    A terminal narrower than 80 columns wraps the lines: cut to fit, rows would lose their names.
    """
    from rich.console import Console

    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    if isinstance(table.title, str):
        table.title = visible(table.title)
    for column in table.columns:
        texts = (column.header, *column._cells)
        column.header, *column._cells = (visible(t) if isinstance(t, str) else t for t in texts)
    console = Console(
        file=styled(sys.stdout),
        width=None if known else PIPE_WIDTH,
        highlight=False,
        markup=False,
    )
    console.width = max(console.width, NARROWEST)
    try:
        console.print(table)
    except SystemExit:  # rich exits this way when the reader closes the pipe
        raise BrokenPipeError from None


def number(value: float | None, digits: int = 0) -> str:
    """Return a number with separators and `digits` decimals; `-` for None and NaN."""
    if value is None or value != value:
        return "-"
    return f"{value:,.{digits}f}"


def seconds(value: float) -> str:
    """Return seconds for a table, with a decimal below 1000."""
    return number(value, 0 if abs(value) >= 1000 else 1)


def percent(value: float) -> str:
    """Return a share as a percentage."""
    return f"{number(100 * value, 1)} %"


def clock(value: float) -> str:
    """Return a duration as batch systems print it, `D-HH:MM:SS`.

    Example:
        >>> clock(93784.4)
        '1-02:03:04'
    """
    if not value < float("inf"):
        return "-"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"{days}-{hours:02}:{minutes:02}:{rest:02}"


def print_facts(facts: Mapping[str, str], width: int = 10) -> None:
    """Print a line for each fact: its name, as wide as that, and its text, if it has one."""
    for name, text in facts.items():
        if text:
            print(f"{name:<{width}} {text}")


def job_counts(jobs: JobCounts) -> str:
    """Return the number of jobs by outcome, in words."""
    return (
        f"{number(jobs.submitted)} submitted, {number(jobs.completed)} completed, "
        f"{number(jobs.rejected)} rejected, {number(jobs.unfinished)} unfinished"
    )


def fold_scheduler(text: str, width: int = 27) -> str:
    """Return a scheduler's text, wrapped between its seats.

    Example:
        >>> print(fold_scheduler("smallest-area+easy@best-fit?express-lane"))
        smallest-area+easy@best-fit
          ?express-lane
    """
    lines = [""]
    for part in re.split(r"(?=[+@?!](?![^\[]*\]))", text):
        if lines[-1] and len(lines[-1] + part) > width:
            lines.append("  ")
        lines[-1] += part
    return "\n".join(lines)


def dropped_rows(workload: Workload) -> str:
    """Return which rows of this file were left out, in words; empty if none were."""
    provenance = workload.provenance
    return _left_out(provenance.get("rows"), provenance.get("dropped") or {})


def dropped_from_origin(workload: Workload) -> str:
    """Return which rows were left out of the file, or whole file, that the jobs came from."""
    from berthline.model.provenance import origin_of

    provenance = workload.provenance
    origin = origin_of(provenance)
    left_out = "" if origin is None else _left_out(origin.rows, origin.dropped)
    if origin is None or not left_out:
        return ""
    of_itself = origin.path == provenance.get("path")
    whole = "the part of the file that was read" if "part_read" in provenance else "the whole file"
    place = whole if of_itself else origin.path or f"a file of format {origin.format}"
    return f"{place}: {left_out}"


def _left_out(rows: int | None, dropped: Mapping[str, int]) -> str:
    total = sum(dropped.values())
    if not total:
        return ""
    reasons = "; ".join(f"{count:,} {why}" for why, count in dropped.items())
    of_all = "" if rows is None else f" of {rows:,}"
    return f"{total:,}{of_all} {'row' if (rows or total) == 1 else 'rows'} left out: {reasons}"


def note_dropped_rows(workload: Workload) -> None:
    """Print to stderr which rows were left out, for verbs whose stdout is JSON."""
    for name, text in trace_facts(workload).items():
        if text:
            note(f"{name}: {text}")


def trace_facts(workload: Workload) -> dict[str, str]:
    """Return which rows of a trace were left out, as facts for `print_facts`."""
    part = workload.provenance.get("part_read")
    whole = workload.provenance.get("read_whole")
    return {
        "all read": ""
        if whole is None
        else f"the whole file, for its first jobs: {whole}; berthline traces import makes a"
        " copy that is read in part",
        "part read": ""
        if part is None
        else f"the first {part / 2**20:,.0f} MiB of the file; jobs there are by submission",
        "trace": dropped_rows(workload),
        "origin": dropped_from_origin(workload),
    }


@contextlib.contextmanager
def progress(what: str) -> Iterator[Callable[[int, int, str], None]]:
    """Yield a function (done, total, label) that shows a bar when the work takes a while.

    The bar is drawn on stderr, only if that is a terminal, and removed at the end.
    """
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    started = time.monotonic()
    bar: Any = None
    task: Any = None

    def update(done: int, total: int, label: str) -> None:
        nonlocal bar, task
        if bar is None:
            if time.monotonic() - started < PROGRESS_AFTER:
                return
            from rich.console import Console
            from rich.progress import Progress

            bar = Progress(console=Console(file=styled(sys.stderr)), transient=True)
            bar.start()
            task = bar.add_task(what, total=total)
        bar.update(task, completed=done, description=visible(f"{what}: {label}")[:60])

    try:
        yield update
    finally:
        if bar is not None:
            bar.stop()
