"""Compare two checkouts by the instructions that environments and simulations take.

Usage: python -m benchmarks.bench_check BEFORE AFTER [--case CASE ...] [--most 1.02] [--out FILE.md]

Each checkout has its own `.venv` (`make build`). Valgrind counts instructions, which do not depend
on how busy the machine is, so one run of each tells; it fails if a case takes more than `--most`
times the instructions of before. Speed is not instructions alone: `benchmarks.core_before_after`
compares CPU time.

Environments take steps with random legal actions, which are chosen before and are the same in both
checkouts unless their semantics differ; the table says so then. A step includes its share of the
Python around a batch.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

from berthline.atomic_write import write_atomically
from berthline.errors import BerthlineError, ConfigError, SimulationError

ENVS, STEPS, JOBS = 64, 150, 3000
_JOBS_ONLY: dict[str, Any] = {"nodes": [], "running": [], "globals": []}
_NARROW: dict[str, Any] = {
    "workload": "synthetic",
    "semantics": "mask",
    "no_op": "always",
    "window": 64,
    "reward": "mean-jct-hours",
}
_SHORT: dict[str, Any] = {**_NARROW, "cluster": "uniform:64x8:V100", "load": 0.9}
_FULL: dict[str, Any] = {**_NARROW, "cluster": "uniform:8x8:V100", "load": 3.0}
ENV_CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "Pick": ("Pick", {}),
    "Pick, jobs only": ("Pick", {"features": _JOBS_ONLY}),
    "Pick, short queues": ("Pick", _SHORT),
    "Pick, short queues, jobs only": ("Pick", {**_SHORT, "features": _JOBS_ONLY}),
    "Pick, full windows": ("Pick", _FULL),
    "Pick, full windows, jobs only": ("Pick", {**_FULL, "features": _JOBS_ONLY}),
    **{
        name: case
        for seat in ("Place", "Gate", "Meta", "Backfill", "Preempt")
        for name, case in {
            seat: (seat, {}),
            f"{seat}, jobs only": (
                seat,
                {"features": {"globals": []} if seat == "Gate" else _JOBS_ONLY},
            ),
        }.items()
    },
}
"""Environments with their default tables, and with the table of waiting jobs alone."""
SIM_CASES: dict[str, tuple[str, str]] = {
    "simulate fcfs+skip, pool": ("fcfs+skip", "1x512:V100"),
    "simulate sjf+easy, nodes": ("sjf+easy", "64x8:V100"),
    "simulate las, nodes": ("las", "64x8:V100"),
}
CASES = (*ENV_CASES, *SIM_CASES)

Counts = dict[str, tuple[float, str]]
"""For each case, instructions per step or job, and what shows whether the work is the same."""


def mark() -> None:
    """Let callgrind write what it has counted since the last mark."""
    os.getppid()


def measure_env(seat: str, options: dict[str, Any]) -> tuple[int, str]:
    """Step environments between two marks; return the steps and a checksum of the actions."""
    import gymnasium
    import numpy as np

    env = gymnasium.make_vec(
        f"berthline/{seat}-v0", num_envs=ENVS, episode_jobs=256, copy=False, **options
    )
    _, infos = env.reset(seed=1)
    random = np.random.default_rng(1)
    actions = []
    for _ in range(STEPS):
        allowed = infos["action_mask"].cumsum(axis=1)
        chosen = (random.random(ENVS) * allowed[:, -1]).astype(np.int64)
        actions.append((allowed <= chosen[:, None]).sum(axis=1))
        infos = env.step(actions[-1])[-1]
    env.reset(seed=1)
    mark()
    for action in actions:
        env.step(action)
    mark()
    return ENVS * STEPS, f"{zlib.crc32(np.array(actions).tobytes()):08x}"


def measure_sim(scheduler: str, cluster: str) -> tuple[int, str]:
    """Simulate between two marks; return the jobs and a checksum of the times in the log."""
    import berthline

    mark()
    result = berthline.simulate("synthetic", f"uniform:{cluster}", scheduler, jobs=JOBS, load=1.2)
    mark()
    return JOBS, f"{zlib.crc32(result.log.time.tobytes()):08x}"


def run_cases(names: list[str]) -> None:
    """Measure cases in this process, under callgrind, and print what each did."""
    for name in names:
        size, work = (
            measure_env(*ENV_CASES[name]) if name in ENV_CASES else measure_sim(*SIM_CASES[name])
        )
        print(f"{size}\t{work}\t{name}", flush=True)


def totals(directory: Path) -> list[int]:
    """Return what callgrind wrote at each mark, in order."""
    found = {}
    for file in directory.glob("counts.[0-9]*"):
        match = re.search(r"^totals: (\d+)", file.read_text(), re.MULTILINE)
        if match:
            found[int(file.suffix[1:])] = int(match[1])
    return [found[number] for number in sorted(found)]


def count(tree: Path, names: list[str]) -> Counts:
    """Count the instructions of cases in a checkout."""
    python = tree.resolve() / ".venv" / "bin" / "python"
    if not python.exists():
        raise ConfigError(
            f"{tree} has no .venv",
            expected="a checkout with its own environment",
            hint=f"make -C {tree} build",
        )
    with tempfile.TemporaryDirectory(prefix="berthline-bench-check-") as directory:
        command = [
            *("valgrind", "--tool=callgrind", "--dump-before=getppid"),
            f"--callgrind-out-file={directory}/counts",
            *(str(python), __file__, "--here"),
            *(part for name in names for part in ("--case", name)),
        ]
        done = subprocess.run(
            command,
            cwd=tree,
            env={**os.environ, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            said = [line for line in done.stderr.splitlines() if not line.startswith("==")]
            raise SimulationError(f"the cases do not run in {tree}", hint="\n".join(said[-1:]))
        rows = [line.split("\t") for line in done.stdout.splitlines()]
        # The first mark ends what came before a case, the second the case itself.
        counted = totals(Path(directory))[1::2]
    return {
        name: (instructions / int(size), work)
        for (size, work, name), instructions in zip(rows, counted, strict=True)
    }


def table(before: Counts, after: Counts, most: float) -> tuple[list[str], list[str]]:
    """Write the counts as a table; also return the cases that take too many."""
    lines = ["| Case | Before | After | After / before | |", "|---|---:|---:|---:|---|"]
    lost = []
    for name, (was, work) in before.items():
        now, same_work = after[name]
        ratio = now / was
        remark = "" if work == same_work else "other decisions: not comparable"
        if not remark and ratio > most:
            remark = "loss"
            lost.append(name)
        lines.append(f"| {name} | {was:,.0f} | {now:,.0f} | {ratio:.2f} | {remark} |")
    return lines, lost


def main() -> None:
    """Measure two checkouts and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trees", type=Path, nargs="*", metavar="BEFORE AFTER")
    parser.add_argument("--case", action="append", choices=CASES, help="only this; repeatable")
    parser.add_argument("--most", type=float, default=1.02, help="default: 1.02")
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = options.case or list(CASES)
    if options.here:
        return run_cases(names)
    if len(options.trees) != 2:
        parser.error("expected two checkouts, BEFORE and AFTER")
    if shutil.which("valgrind") is None:
        parser.error("valgrind is not installed; on Debian and Ubuntu: apt install valgrind")
    try:
        before, after = (count(tree, names) for tree in options.trees)
    except BerthlineError as error:
        sys.exit(f"error: {error}")
    lines, lost = table(before, after, options.most)
    text = "\n".join(["Instructions per step of an environment, or per job:", "", *lines]) + "\n"
    print(text, end="")
    if options.out:
        write_atomically(options.out, text.encode())
    if lost:
        sys.exit(f"{len(lost)} of {len(names)} cases take more than {options.most:g} x as many")


if __name__ == "__main__":
    main()
