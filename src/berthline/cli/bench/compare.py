"""`berthline bench compare`: the time of a whole comparison, with command line, workers and files.

The command runs as a user would run it, in its own process, with and without a run directory, with
one worker and with one per core. It measures wall-clock seconds and the CPU seconds of all
processes together; on a busy machine, wall-clock time says little.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from berthline.cli.output import new_table, print_table
from berthline.errors import SimulationError

SCHEDULERS = (
    "fcfs",
    "random+skip",
    "fcfs+easy",
    "largest-first+easy",
    "smallest-first+easy",
    "f1+easy",
    "wfp3+easy",
    "sjf+easy",
    "sqrt-area+easy",
    "smallest-area+easy",
    "smallest-area+easy@best-fit?express-lane",
    "las+skip!las",
)
WINDOWS, JOBS = 30, 5_000
QUICK_WINDOWS, QUICK_JOBS = 4, 1_000
SEED = 0
MOST_SECONDS = 10.0
"""Limit of wall-clock seconds, on two idle cores, with a run directory."""

_COMPARE = ("synthetic", "--cluster", "uniform:16x8:V100", "--set", "users=20", "estimate_error=1")


class CompareSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """Time of a comparison."""

    workers: int
    writes: bool
    """Whether it wrote a run directory."""
    runs: int
    jobs: int
    """Jobs placed in all runs together."""
    wall_seconds: float
    cpu_seconds: float
    load_average: float | None
    within_limit: bool | None
    """None = the limit does not apply to this size or these options."""


class CompareReport(msgspec.Struct, frozen=True, kw_only=True):
    """Results of the comparison benchmark."""

    machine: str
    quick: bool
    speeds: list[CompareSpeed]
    agrees: bool
    """Whether all comparisons made the same schedules."""


def measure_compare(
    *, quick: bool, report: Callable[[int, int, str], None] = lambda *_: None
) -> tuple[list[CompareSpeed], bool]:
    """Return the times of comparisons, and whether all of them made the same schedules."""
    from berthline.worker_pool import usable_cores

    cores = max(2, usable_cores())
    ways = [(1, False), (cores, False), (cores, True)]
    speeds, hashes = [], []
    for done, (workers, writes) in enumerate(ways):
        report(done, len(ways), f"{workers} workers")
        speed, found = _measure(workers, writes=writes, quick=quick)
        speeds.append(speed)
        hashes.append(found)
    return speeds, all(found == hashes[0] for found in hashes)


def _measure(workers: int, *, writes: bool, quick: bool) -> tuple[CompareSpeed, list[list[str]]]:
    windows, jobs = (QUICK_WINDOWS, QUICK_JOBS) if quick else (WINDOWS, JOBS)
    with tempfile.TemporaryDirectory(prefix="berthline-bench-") as folder:
        size = ("--windows", str(windows), "--jobs", str(jobs), "--seed", str(SEED))
        out = ("--out", str(Path(folder) / "run")) if writes else ()
        command = (*_COMPARE, "--schedulers", ",".join(SCHEDULERS), *size, *out, "--json")
        before, started = os.times(), time.perf_counter()
        child = subprocess.run(  # our own code in our own interpreter
            [sys.executable, "-m", "berthline", "compare", *command, "--workers", str(workers)],
            capture_output=True,
            check=False,
        )
        wall, after = time.perf_counter() - started, os.times()
    if child.returncode:
        last = (child.stderr.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
        raise SimulationError(f"the measured comparison failed: {last}")
    found = json.loads(child.stdout)["schedulers"]
    runs = len(SCHEDULERS) * windows
    return CompareSpeed(
        workers=workers,
        writes=writes,
        runs=runs,
        jobs=runs * jobs,
        wall_seconds=wall,
        cpu_seconds=after.children_user
        + after.children_system
        - before.children_user
        - before.children_system,
        load_average=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        within_limit=wall < MOST_SECONDS if writes and not quick else None,
    ), [result["log_sha256"] for result in found]


def show_compare(speeds: list[CompareSpeed], *, agrees: bool) -> None:
    """Print the measurements as text."""
    first = speeds[0]
    print(f"\ncomparisons of {first.runs:,} runs, {first.jobs:,} jobs in total, as commands:\n")
    table = new_table("workers", "seconds", "CPU s", "jobs per CPU-second", "load average")
    for speed in speeds:
        table.add_row(
            f"{speed.workers}{', with --out' if speed.writes else ''}",
            f"{speed.wall_seconds:.2f}",
            f"{speed.cpu_seconds:.2f}",
            f"{speed.jobs / speed.cpu_seconds:,.0f}",
            "-" if speed.load_average is None else f"{speed.load_average:.1f}",
        )
    print_table(table)
    print(
        "\nall made the same schedules"
        if agrees
        else "\nWRONG: they did not all make the same schedules"
    )
    if any(speed.within_limit is False for speed in speeds):
        print(f"over the limit of {MOST_SECONDS:g} seconds on two idle cores")
