"""`berthline bench`: how fast the simulator is on this machine, and whether it is still right."""

from __future__ import annotations

import shlex
from typing import Annotated

import msgspec
from tyro.conf import Positional, arg

from berthline.cli.machine import machine_line
from berthline.cli.options import Force, Json, Out, check_choice, parse_options
from berthline.cli.output import new_table, number, print_facts, print_json, print_table, progress
from berthline.cli.run_directory import open_directory
from berthline.cli.speed import (
    CONFIGURATIONS,
    MEMORY_GPUS,
    MEMORY_JOBS,
    SEED,
    YARDSTICK,
    YARDSTICK_CONFIGURATION,
    Speed,
    Yardstick,
    max_rss_mb,
    measure_speeds,
    measure_yardsticks,
)


class Bench(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Measure the simulator: jobs per CPU-second over numbers of jobs and GPUs.

    Takes about a minute. Mean waits are checked against published ones on the way.

    Examples:
      berthline bench sim
      berthline bench sim --quick --json
    """

    what: Annotated[Positional[str], arg(metavar="[WHAT]")] = "sim"
    """What to measure: sim, the simulator."""
    quick: Annotated[bool, arg(help_behavior_hint="")] = False
    """Leave out the runs of a million jobs."""
    json: Json = False
    out: Out = None
    force: Force = False


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What the benchmark found."""

    machine: str
    quick: bool
    speeds: list[Speed]
    yardsticks: list[Yardstick]
    max_rss_mb: float | None
    agrees: bool


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(Bench, argv, verb="bench")
    check_choice("WHAT", options.what, ("sim",))
    directory = open_directory(options.out, verb="bench", force=options.force)
    machine = machine_line()
    if not options.json:
        print(machine)
    # First, while this process is small: a new process inherits its parent's high-water mark.
    max_rss = None if options.quick else max_rss_mb(MEMORY_JOBS, MEMORY_GPUS)
    with progress("bench") as report_progress:
        speeds = list(measure_speeds(quick=options.quick, report=report_progress))
    yardsticks = measure_yardsticks()
    report = Report(
        machine=machine,
        quick=options.quick,
        speeds=speeds,
        yardsticks=yardsticks,
        max_rss_mb=max_rss,
        agrees=all(speed.agrees is not False for speed in speeds)
        and all(stick.agrees for stick in yardsticks),
    )
    if directory is not None:
        directory.write(
            command=shlex.join(["berthline", "bench", *argv]),
            config=msgspec.structs.asdict(options),
            seed=SEED,
            summary=report,
            metrics=speeds,
        )
    if options.json:
        print_json(report)
    else:
        show(report)
        print_facts({"results": str(directory.path) if directory else ""})
    return 0 if report.agrees else 1


def show(report: Report) -> None:
    """Print the report for people."""
    print("\nmillion jobs per CPU-second, the call of simulate alone:\n")
    names = list(CONFIGURATIONS)
    table = new_table("jobs, GPUs", *(name.replace(",", "").replace(" ", "\n") for name in names))
    cells: dict[tuple[int, int], dict[str, float]] = {}
    for speed in report.speeds:
        row = cells.setdefault((speed.jobs, speed.gpus), {})
        row[speed.configuration] = speed.jobs_per_cpu_second
    for (jobs, gpus), speeds in cells.items():
        table.add_row(f"{jobs:,}, {gpus:,}", *(f"{speeds[name] / 1e6:.2f}" for name in names))
    print_table(table)
    jobs, gpus = YARDSTICK
    print(f"\nyardsticks: {YARDSTICK_CONFIGURATION}, {jobs:,} jobs, {gpus:,} GPUs:\n")
    table = new_table("program", "jobs per CPU-second", "mean wait, s", "native is faster by")
    native = report.yardsticks[0].jobs_per_cpu_second
    for stick in report.yardsticks:
        table.add_row(
            stick.program,
            number(stick.jobs_per_cpu_second),
            number(stick.mean_wait, 3),
            f"{native / stick.jobs_per_cpu_second:,.1f} x",
        )
    print_table(table)
    print()
    checked = [speed for speed in report.speeds if speed.agrees is not None]
    wrong = [speed for speed in checked if not speed.agrees]
    for speed in wrong:
        print(
            f"WRONG: {speed.configuration}, {speed.jobs:,} jobs, {speed.gpus:,} GPUs: mean wait "
            f"{speed.mean_wait:.3f} s, published {speed.published_mean_wait} s"
        )
    if not wrong:
        print(f"mean waits equal the published ones in all {len(checked)} cases that have one")
    if report.max_rss_mb is not None:
        print(f"{MEMORY_JOBS:,} jobs took {report.max_rss_mb:,.0f} MB at most, Python included")
