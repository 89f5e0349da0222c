"""`berthline bench load`: how fast trace files load, and how much memory that takes.

It writes a file of a million rows in every format that is a text table, and loads each several
times, every time in a new process. The results are the lowest CPU seconds, of the call of
`load_trace` alone, and the highest peak memory, Python and its libraries included.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from berthline.cli.bench.load_samples import SAMPLES, write_sample
from berthline.cli.bench.sample_jobs import Sample
from berthline.cli.bench.speed import peak_memory_mb
from berthline.cli.output import new_table, print_table
from berthline.errors import SimulationError

ROWS, QUICK_ROWS = 1_000_000, 50_000
MOST_SECONDS, MOST_MB = 1.0, 500.0
"""Limits for a million rows: CPU seconds, and memory in MB."""
_ROUNDS = 3


class LoadSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """Cost of loading one file."""

    file: str
    """The format, and after a comma what is special about the file."""
    rows: int
    jobs: int
    file_mb: float
    cpu_seconds: float
    rows_per_cpu_second: float
    max_rss_mb: float | None
    within_limits: bool | None
    """None = the file is too short to tell."""


def measure_loads(
    *, quick: bool, report: Callable[[int, int, str], None] = lambda *_: None
) -> Iterator[LoadSpeed]:
    """Yield the cost of loading, file by file."""
    for done, name in enumerate(SAMPLES):
        report(done, len(SAMPLES), name)
        with tempfile.TemporaryDirectory(prefix="berthline-bench-") as folder:
            yield measure_sample(name, QUICK_ROWS if quick else ROWS, Path(folder))


def measure_sample(name: str, rows: int, directory: Path) -> LoadSpeed:
    """Write one of the `SAMPLES` to a directory, and return the cost of loading it."""
    sample = write_sample(name, rows, directory)
    is_long = rows >= ROWS
    runs = [_load_in_new_process(name, sample) for _ in range(_ROUNDS if is_long else 1)]
    seconds = min(seconds for _, seconds, _ in runs)
    memory = max(memory for _, _, memory in runs) or None
    files = [sample.path] if sample.path.is_file() else list(sample.path.iterdir())
    return LoadSpeed(
        file=name,
        rows=sample.rows,
        jobs=runs[0][0],
        file_mb=sum(file.stat().st_size for file in files) / 1e6,
        cpu_seconds=seconds,
        rows_per_cpu_second=sample.rows / seconds,
        max_rss_mb=memory,
        within_limits=seconds < MOST_SECONDS and (memory or 0) < MOST_MB if is_long else None,
    )


def _load_in_new_process(name: str, sample: Sample) -> tuple[int, float, float]:
    """Return jobs, CPU seconds and MB of loading a file.

    Raises:
        SimulationError: the process failed.
    """
    task = msgspec.json.encode([name.partition(",")[0], str(sample.path), sample.options])
    code = "from berthline.cli.bench.load import load_and_print; load_and_print()"
    child = subprocess.run(  # our own code in our own interpreter
        [sys.executable, "-c", code], input=task, capture_output=True, check=False
    )
    if child.returncode:
        last = (child.stderr.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
        raise SimulationError(f"loading a file for the measurement failed: {name}: {last}")
    jobs, seconds, memory = child.stdout.split()
    return int(jobs), float(seconds), float(memory)


def load_and_print() -> None:
    """Load the file that standard input names; print jobs, CPU seconds and MB (0 = unknown)."""
    import polars as pl

    from berthline.traces.load import load_trace

    pl.read_csv(b"a\n1\n")  # one-time work of polars counts as part of its import
    format_name, path, options = msgspec.json.decode(
        sys.stdin.buffer.read(), type=tuple[str, str, dict[str, str]]
    )
    started = time.process_time()
    workload = load_trace(path, format_name, **options)
    print(len(workload), time.process_time() - started, peak_memory_mb() or 0.0)


def show_loads(loads: list[LoadSpeed]) -> None:
    """Print the measurements as text."""
    print("\nloading, only the call of load_trace, each file in new processes:\n")
    table = new_table("file", "rows", "file, MB", "CPU s", "rows per CPU-second", "peak MB")
    for load in loads:
        table.add_row(
            load.file,
            f"{load.rows:,}",
            f"{load.file_mb:,.0f}",
            f"{load.cpu_seconds:.2f}",
            f"{load.rows_per_cpu_second:,.0f}",
            "-" if load.max_rss_mb is None else f"{load.max_rss_mb:,.0f}",
        )
    print_table(table)
    beyond = [load.file for load in loads if load.within_limits is False]
    if beyond:
        limits = f"{MOST_SECONDS:g} CPU-second and {MOST_MB:g} MB"
        print(f"\nover {limits} for a million rows: " + "; ".join(beyond))
