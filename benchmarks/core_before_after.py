"""Compare the speed of the native core in two source trees: benchmarks sim, env and model.

Usage: python -m benchmarks.core_before_after BEFORE AFTER [--rounds 5] [--quick] [--out FILE.md]

Each tree needs a core built with the same compiler and flags in `src/berthline`. The trees take
turns, round by round, and each case counts with its best round, because other processes can only
make a measurement of CPU time slower.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from berthline.atomic_write import write_atomically

BENCHMARKS = ("sim", "env", "model")
RUN = """
import sys
# The hook of an editable install would take the package from its own tree, whatever sys.path says.
hooks = [one for one in sys.meta_path if type(one).__name__.startswith("ScikitBuild")]
sys.meta_path[:] = [one for one in sys.meta_path if one not in hooks]
sys.path.insert(0, sys.argv.pop(1))
from berthline.cli.main import main
import berthline
assert berthline.__file__.startswith(sys.path[0]), berthline.__file__
sys.exit(main(sys.argv[1:]))
"""
FIGURES = ("jobs_per_cpu_second", "steps_per_cpu_second", "figure")
Speeds = dict[tuple[str, str], float]


def case_of(row: dict[str, Any]) -> str:
    """Name a row of a benchmark by what was simulated."""
    parts = [str(row.get("case") or row.get("configuration"))]
    if "cluster" in row:
        parts += [f"`{row['scheduler']}`", str(row["cluster"]), f"load {row['load']}"]
    elif "gpus" in row:
        parts.append(f"{row['gpus']:,} GPUs")
    if "jobs" in row:
        parts.append(f"{row['jobs']:,} jobs")
    return ", ".join(parts)


def measure(tree: Path, benchmark: str, options: list[str]) -> Speeds:
    """Run one benchmark with the package and the core of a tree."""
    source = str((tree / "src").resolve())
    command = [sys.executable, "-c", RUN, source, "bench", benchmark, "--json", *options]
    done = subprocess.run(command, cwd="/", capture_output=True, check=True)
    speeds: Speeds = {}
    for row in json.loads(done.stdout)["speeds"]:
        if "second" in str(row.get("unit", "jobs per CPU-second")).split(" per ")[0]:
            continue  # a duration that does not measure the core
        speeds[benchmark, case_of(row)] = next(row[name] for name in FIGURES if name in row)
    return speeds


def best_of(trees: list[Path], rounds: int, options: list[str]) -> list[Speeds]:
    """Measure the trees in turns; return each tree's best figures."""
    best: list[Speeds] = [{} for _ in trees]
    for number in range(rounds):
        for benchmark in BENCHMARKS:
            order = range(len(trees)) if number % 2 == 0 else reversed(range(len(trees)))
            for i in order:
                for case, speed in measure(trees[i], benchmark, options).items():
                    best[i][case] = max(speed, best[i].get(case, 0.0))
        print(f"round {number + 1} of {rounds} done", file=sys.stderr)
    return best


def table(before: Speeds, after: Speeds) -> str:
    """Write the figures as a table, with the geometric mean of the ratios per benchmark."""
    lines = ["| Benchmark | Case | Before | After | After / before |", "|---|---|---:|---:|---:|"]
    for benchmark in BENCHMARKS:
        cases = [case for case in before if case[0] == benchmark and case in after]
        for case in cases:
            ratio = after[case] / before[case]
            lines.append(
                f"| {benchmark} | {case[1]} | {before[case]:,.0f} | {after[case]:,.0f} "
                f"| {ratio:.2f} |"
            )
        mean = geometric_mean(after[case] / before[case] for case in cases)
        lines.append(f"| **{benchmark}** | **geometric mean** | | | **{mean:.2f}** |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure two trees and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="pass --quick to the benchmarks")
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    options = parser.parse_args()
    quick = ["--quick"] if options.quick else []
    before, after = best_of([options.before, options.after], options.rounds, quick)
    text = table(before, after)
    print(text, end="")
    if options.out:
        write_atomically(options.out, text.encode())


if __name__ == "__main__":
    main()
