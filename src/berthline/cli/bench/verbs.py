"""`berthline bench verbs`: CPU time of whole commands, each in processes of its own.

It includes starting Python and importing what the command needs, which is most of a short command.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np

from berthline.cli.output import new_table, print_table
from berthline.errors import SimulationError

SEED = 1
ROUNDS, QUICK_ROUNDS = 11, 2
RUN_JOBS, QUICK_RUN_JOBS = 100_000, 2_000
CLUSTER = "uniform:64x8"
RUN = "RUN"
"""Stands for the directory of a run of `RUN_JOBS` jobs."""

COMMANDS: dict[str, float | None] = {
    "--help": None,
    "sim --help": None,
    "policies orders": None,
    "traces list": None,
    "sim synthetic --jobs 1000": None,
    f"explain longest {RUN} --quick": 0.5,
}
"""Commands, and how many seconds of CPU time they may take."""


class VerbSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """CPU time of a command, user and system, in seconds."""

    command: str
    jobs: int | None
    """Jobs of the run that it reads; None = it reads none."""
    least_seconds: float
    p50_seconds: float
    target_seconds: float | None
    meets_target: bool | None
    """By the median; None = there is no target, or the run is too short to tell."""


class VerbsReport(msgspec.Struct, frozen=True, kw_only=True):
    """Results of the benchmark of whole commands."""

    machine: str
    quick: bool
    speeds: list[VerbSpeed]


def measure_verbs(
    *, quick: bool, report: Callable[[int, int, str], None] = lambda *_: None
) -> Iterator[VerbSpeed]:
    """Yield the CPU time of each of the `COMMANDS`."""
    jobs = QUICK_RUN_JOBS if quick else RUN_JOBS
    with tempfile.TemporaryDirectory(prefix="berthline-bench-") as folder:
        run = str(Path(folder) / "run")
        make = f"sim synthetic --cluster {CLUSTER} --jobs {jobs} --seed {SEED} --out"
        _seconds_of([*make.split(), run], folder)
        for done, (command, target) in enumerate(COMMANDS.items()):
            report(done, len(COMMANDS), command)
            words = [run if word == RUN else word for word in command.split()]
            _seconds_of(words, folder)  # it compiles modules that were never imported before
            rounds = QUICK_ROUNDS if quick else ROUNDS
            seconds = [_seconds_of(words, folder) for _ in range(rounds)]
            p50 = float(np.median(seconds))
            yield VerbSpeed(
                command=f"berthline {command}",
                jobs=jobs if RUN in command.split() else None,
                least_seconds=min(seconds),
                p50_seconds=p50,
                target_seconds=target,
                meets_target=None if quick or target is None else p50 <= target,
            )


def _seconds_of(words: list[str], folder: str) -> float:
    """Run a command in a new process, and return its CPU time.

    Args:
        words: the verb and its options.
        folder: where compiled modules are kept if this process may not keep any: an installed
            package has them.

    Raises:
        SimulationError: it failed.
    """
    environment = dict(os.environ)
    if sys.dont_write_bytecode:
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        environment["PYTHONPYCACHEPREFIX"] = str(Path(folder) / "compiled")
    before = os.times()
    done = subprocess.run(  # our own code in our own interpreter
        [sys.executable, "-m", "berthline", *words],
        capture_output=True,
        check=False,
        env=environment,
    )
    after = os.times()
    if done.returncode:
        last = (done.stderr.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
        raise SimulationError(f"a measured command failed: berthline {shlex.join(words)}: {last}")
    user = after.children_user - before.children_user
    return user + after.children_system - before.children_system


def show_verbs(speeds: list[VerbSpeed]) -> None:
    """Print the measurements as text."""
    print("\nseconds of CPU time of whole commands, Python and imports included:\n")
    table = new_table("command", "jobs", "least", "median", "target")
    for one in speeds:
        met = {None: "", True: " (met)", False: " (missed)"}[one.meets_target]
        table.add_row(
            one.command,
            "-" if one.jobs is None else f"{one.jobs:,}",
            f"{one.least_seconds:.2f}",
            f"{one.p50_seconds:.2f}",
            "-" if one.target_seconds is None else f"{one.target_seconds:g}{met}",
        )
    print_table(table)
