"""`berthline suite NAME --launch slurm` and `--share I/N`: a suite as an array job."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from berthline.cli.options import check_choice
from berthline.cli.output import counted, note, print_facts, print_json, progress
from berthline.errors import ConfigError

if TYPE_CHECKING:
    from berthline.cli.suite.command import Suite
    from berthline.experiments.suites.suite_plan import SuitePlan

SYSTEMS = ("slurm",)


def run(plan: SuitePlan, options: Suite) -> int:
    """Write an array job, or make one share of its runs."""
    if options.out is None:
        raise ConfigError("--out is missing", expected="the run directory of the suite")
    return _launch(plan, options) if options.launch is not None else _share(plan, options)


def _launch(plan: SuitePlan, options: Suite) -> int:
    from berthline.experiments.suites import launch_slurm

    check_choice("--launch", options.launch or "", SYSTEMS)
    directory, tasks = Path(str(options.out)), options.array or launch_slurm.TASKS
    missing = launch_slurm.missing_shares(plan, directory, tasks)
    collecting = [*_whole_command(options), "--out", str(options.out), "--resume"]
    if not missing:
        note(f"all {tasks} shares are finished; to collect them: {shlex.join(collecting)}")
        return 0
    words = [sys.executable, "-m", *_whole_command(options), "--out", str(directory.resolve())]
    command = f"{shlex.join(words)} --workers 1 --share"
    script = launch_slurm.write_script(
        plan, directory, lambda number: f"{command} {number}/{tasks}", numbers=missing
    )
    said = launch_slurm.submit(script) if options.submit else ""
    facts = {
        "script": str(script),
        "tasks": f"{len(missing)} of {counted(tasks, 'share')}",
        "submitted": said,
        "submit": "" if said else f"sbatch {script}",
        "then": shlex.join(collecting),
    }
    if options.json:
        print_json({**facts, "missing": missing})
    else:
        print_facts(facts)
    return 0


def _whole_command(options: Suite) -> list[str]:
    """Return the words of a command that makes exactly these runs."""
    from berthline.cli.suite.command import command_of

    words = command_of(options)
    for name in ("only", "limit"):
        value = getattr(options, name)
        words += [] if value is None else [f"--{name}", str(value)]
    return words


def _share(plan: SuitePlan, options: Suite) -> int:
    from berthline.experiments.suites.launch_slurm import make_share, read_share

    share = read_share(str(options.share))
    with progress(f"suite {plan.name}, share {options.share}") as report:
        work = make_share(
            plan, Path(str(options.out)), share, workers=options.workers, progress=report
        )
    facts = {"total": work.total, "done": work.done, "failed": len(work.failures)}
    if options.json:
        print_json(facts)
    else:
        print_facts({name: f"{value:,} runs" for name, value in facts.items()})
    return 1 if work.failures else 0
