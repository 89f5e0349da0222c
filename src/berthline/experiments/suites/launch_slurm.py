"""A suite as an array job of Slurm: every array task makes a share of the units.

    suite.sbatch            the job; its tasks run `berthline suite ... --share I/N`
    shares/I-of-N.partial   what a task has finished; --resume collects them

A task writes a file of its own, so that none waits for another, and a task that was killed goes on
from its file when it is submitted again.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING

from berthline.atomic_write import write_atomically
from berthline.engines.engine import Engine
from berthline.errors import ConfigError, OutputError, RefusedError
from berthline.experiments.suites.planned_runs import PlannedRuns, asked_of
from berthline.experiments.suites.run_suite import check_policies, make_runs
from berthline.experiments.suites.suite_work import SuiteWork
from berthline.runs.directory_lock import locked
from berthline.runs.kept_runs import KeptRuns
from berthline.runs.run_layout import SHARES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from berthline.experiments.suites.suite_plan import SuitePlan

SCRIPT = "suite.sbatch"
_NUMBER = '"$SLURM_ARRAY_TASK_ID"'
TASKS = 16
"""Tasks of an array job, unless the user says otherwise."""


def share_file(directory: Path, number: int, of: int) -> Path:
    """Return the file of what a share has finished."""
    return directory / SHARES / f"{number}-of-{of}.partial"


def read_share(text: str) -> tuple[int, int]:
    """Return the number and the count in a text such as `3/16`.

    Raises:
        ConfigError: it has another form.
    """
    number, slash, of = text.partition("/")
    if not (slash and number.isdigit() and of.isdigit() and int(number) < int(of)):
        raise ConfigError(f"the share is {text!r}", expected="I/N, such as 0/16, 15/16")
    return int(number), int(of)


def make_share(
    plan: SuitePlan,
    directory: Path,
    share: tuple[int, int],
    *,
    workers: int | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> SuiteWork:
    """Make one share of the runs of a plan; what an earlier attempt has finished stays.

    Args:
        plan: the suite.
        directory: the run directory that all shares have.
        share: its number, and how many there are.
        workers: how many workers; None = as many as are worth starting.
        progress: called after each run.

    Raises:
        ConfigError: the file of the share is of another plan.
        RefusedError: another process makes the same share.
        BerthlineError: the results cannot be kept.
    """
    _check_untrained(plan)
    planned = PlannedRuns(plan)
    check_policies(planned)
    file = share_file(directory, *share)
    with locked(file.with_suffix(".lock")):
        kept = KeptRuns(file, asked_of(plan))
        try:
            kept.begin()
            work = SuiteWork(planned, kept, share=share)
            make_runs(work, None, engine=Engine(), workers=workers, progress=progress)
        finally:
            kept.close()
    return work


def collect(plan: SuitePlan, directory: Path, into: KeptRuns) -> int:
    """Add what all shares have finished to the finished runs of a suite; return how many.

    Raises:
        ConfigError: a share is of another plan.
        OutputError: the runs cannot be kept.
    """
    count = 0
    for file in sorted((directory / SHARES).glob("*.partial")):
        share = KeptRuns(file, asked_of(plan))
        try:
            for key in share:
                if key not in into and (found := share.find(key)) is not None:
                    into.add(found)
                    count += 1
        finally:
            share.close()
    return count


def write_script(
    plan: SuitePlan, directory: Path, command: Callable[[str], str], *, numbers: Sequence[int]
) -> Path:
    """Write the array job, and return its file.

    Args:
        plan: the suite.
        directory: the run directory.
        command: returns the command that makes a share, given the text of its number.
        numbers: the shares to be made.

    Raises:
        ConfigError: the suite trains policies.
        OutputError: the file cannot be written.
    """
    _check_untrained(plan)
    text = (
        "#!/bin/sh\n"
        f"# Suite {plan.name}: every task makes a share of the runs; see suite.toml.\n"
        f"#SBATCH --job-name=suite-{plan.name}\n"
        f"#SBATCH --array={_ranges(numbers)}\n"
        "#SBATCH --ntasks=1\n"
        "#SBATCH --cpus-per-task=1\n"
        f"#SBATCH --output={shlex.quote(str(directory.resolve() / SHARES / 'task-%a.log'))}\n"
        f"exec {command(_NUMBER)}\n"
    )
    try:
        (directory / SHARES).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"cannot write the output directory: {error.strerror}", where=str(directory)
        ) from None
    return write_atomically(directory / SHARES / SCRIPT, text.encode())


def missing_shares(plan: SuitePlan, directory: Path, tasks: int) -> list[int]:
    """Return the shares with runs that are not finished.

    Raises:
        ConfigError: a share is of another plan.
    """
    planned = PlannedRuns(plan)
    missing = []
    for number in range(tasks):
        kept = KeptRuns(share_file(directory, number, tasks), asked_of(plan))
        try:
            work = SuiteWork(planned, kept, share=(number, tasks))
        finally:
            kept.close()
        if work.done < work.total:
            missing.append(number)
    return missing


def submit(script: Path) -> str:
    """Submit the array job, and return what Slurm says.

    Raises:
        ConfigError: there is no Slurm.
        RefusedError: Slurm refuses it.
    """
    if shutil.which("sbatch") is None:
        raise ConfigError(
            "there is no `sbatch` on this machine",
            expected="a machine that can submit to Slurm",
            hint=f"to submit it elsewhere: sbatch {shlex.quote(str(script))}",
        )
    found = subprocess.run(["sbatch", str(script)], capture_output=True, text=True, check=False)
    if found.returncode:
        raise RefusedError(
            f"Slurm refuses the job: {(found.stderr or found.stdout).strip()}", where=str(script)
        )
    return found.stdout.strip()


def _check_untrained(plan: SuitePlan) -> None:
    if any(part.train is not None for part in plan.parts):
        raise ConfigError(
            "the suite trains policies, which an array job does not",
            where=plan.name,
            expected="a suite without trained parts",
            hint="the engine ray trains on several machines",
        )


def _ranges(numbers: Sequence[int]) -> str:
    """Return numbers as Slurm writes them.

    Example:
        >>> _ranges([0, 1, 2, 5])
        '0-2,5'
    """
    return ",".join(
        str(first) if first == last else f"{first}-{last}" for first, last in _runs_in(numbers)
    )


def _runs_in(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    ordered = sorted(numbers)
    first = last = ordered[0]
    for number in ordered[1:]:
        if number != last + 1:
            yield first, last
            first = number
        last = number
    yield first, last
