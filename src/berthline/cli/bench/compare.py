"""`berthline bench compare`: what a whole comparison takes, command line, workers and files too.

The command is run as a user would, in a process of its own, with and without a run directory, in
one process and in as many as there are cores. Measured are the seconds on the clock and the CPU
seconds of all processes together; on a machine with other work, the clock says little.
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
"""What it may take on the clock, on two idle cores, with its run directory."""

_COMPARE = ("synthetic", "--cluster", "uniform:16x8:V100", "--set", "users=20", "estimate_error=1")


class CompareSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """What a comparison took."""

    workers: int
    writes: bool
    """Whether it wrote a run directory."""
    runs: int
    jobs: int
    """Placed in all runs together."""
    wall_seconds: float
    cpu_seconds: float
    load_average: float | None
    within_limit: bool | None
    """None = not the size, or not the way, that the limit is about."""


class CompareReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the benchmark of comparisons found."""

    machine: str
    quick: bool
    speeds: list[CompareSpeed]
    agrees: bool
    """Whether all ways have given the same schedules."""


def measure_compare(
    *, quick: bool, report: Callable[[int, int, str], None] = lambda *_: None
) -> tuple[list[CompareSpeed], bool]:
    """Return what comparisons take, and whether all of them have made the same schedules."""
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
        raise SimulationError(f"the comparison to be measured failed: {last}")
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
    """Print what was measured, for people."""
    first = speeds[0]
    print(f"\ncomparisons of {first.runs:,} runs, {first.jobs:,} jobs in all, as commands:\n")
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
        "\nall have made the same schedules"
        if agrees
        else "\nWRONG: they have not all made the same schedules"
    )
    if any(speed.within_limit is False for speed in speeds):
        print(f"beyond {MOST_SECONDS:g} seconds, which it may take on two idle cores")
