"""run_suite: make all runs of a plan, on any engine, and write its run directory."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from berthline.atomic_write import complete_file, write_atomically
from berthline.engines.engine import Engine
from berthline.errors import BerthlineError, ConfigError
from berthline.experiments.suites import unit_worker
from berthline.experiments.suites.planned_runs import PlannedRuns, asked_of
from berthline.experiments.suites.suite_progress import (
    FAILED,
    FINISHED,
    INTERRUPTED,
    SuiteProgress,
)
from berthline.experiments.suites.suite_summary import SuiteSummary, plain_summary, summary_of
from berthline.experiments.suites.suite_tables import SuiteResults
from berthline.experiments.suites.suite_work import Failure, MemoryStore, SuiteWork
from berthline.experiments.suites.unit_worker import SuiteSetup
from berthline.policies.scheduler import Scheduler
from berthline.runs.directory_lock import locked, refuse_if_held
from berthline.runs.kept_runs import KeptRuns
from berthline.runs.run_directory import RunDirectory, open_directory, to_toml
from berthline.runs.run_layout import CELLS, FAILURES, JOBS, LOCK, SHARES, SUITE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from berthline.experiments.suites.planned_runs import PlannedScheduler
    from berthline.experiments.suites.suite_plan import SuitePlan
    from berthline.experiments.suites.suite_work import Store
    from berthline.runs.run_directory import FileWriter

    Progress = Callable[[int, int, str], None]

VERB = "suite"
FEW_SECONDS = 1.5
"""Less work than this is done in this process: others take about a second to start."""


@dataclasses.dataclass(frozen=True)
class SuiteOutcome:
    """The result of a suite.

    Attributes:
        summary: the figures.
        failures: the runs that failed, in the order of the plan, as in failures.jsonl.
        results: the tables.
        directory: where they were written; None = nowhere.
    """

    summary: SuiteSummary
    failures: list[dict[str, Any]]
    results: SuiteResults
    directory: Path | None


def run_suite(
    plan: SuitePlan,
    *,
    out: str | Path | None = None,
    engine: Engine | None = None,
    workers: int | None = None,
    force: bool = False,
    resume: bool = False,
    yes: bool = False,
    command: str = "berthline.experiments.suites.run_suite(...)",
    again: Callable[[str], str] | None = None,
    progress: Progress | None = None,
    remark: Callable[[str], None] | None = None,
) -> SuiteOutcome:
    """Make all runs of a suite. The results do not depend on the engine or number of workers.

    Args:
        plan: the suite.
        out: the run directory. Finished runs survive an interruption there.
        engine: where the runs are made; None = on this machine.
        workers: how many workers; None = one for each core, or this process for little work.
        force: replace an earlier suite there.
        resume: resume an interrupted suite there, or repeat the runs that failed.
        yes: make even more runs than a suite usually has.
        command: the command line, for meta.json.
        again: returns the command that repeats a run, given its name, for failures.jsonl.
        progress: called after each run with (done, total, label).
        remark: called with sentences about the plan.

    Raises:
        ConfigError: the plan has a mistake, or the directory must not be written.
        RefusedError: another process writes there.
        BerthlineError: the engine cannot be reached, or results cannot be written.
    """
    engine = engine or Engine()
    # Mistakes are told before anything is written.
    planned = PlannedRuns(plan, yes=yes)
    check_policies(planned)
    if any(part.train is not None for part in plan.parts):
        from berthline.experiments.suites.suite_training import trained_parts

        trained_parts(plan)
    engine.connect()
    with _directory(out, force=force, resume=resume) as directory:
        trained = _trained(plan, directory, engine, workers, remark, progress)
        if trained:
            planned = PlannedRuns(plan, trained, yes=yes)
            check_policies(planned)
        path = None if directory is None else directory.path
        with _kept(plan, directory) as store:
            if isinstance(store, KeptRuns):
                from berthline.experiments.suites.launch_slurm import collect

                collect(plan, store.path.parent, store)
            if directory is not None:
                write_atomically(directory.path / SUITE, to_toml(plan.table()).encode())
            work = SuiteWork(planned, store)
            make_runs(work, path, engine=engine, workers=workers, progress=progress)
            results = SuiteResults(work)
            failures = [_failure_line(work, one, again) for one in _in_order(work)]
            summary = summary_of(results)
            if directory is not None:
                _write(directory, results, summary, failures, command)
        return SuiteOutcome(summary, failures, results, path)


def make_runs(
    work: SuiteWork,
    directory: Path | None,
    *,
    engine: Engine,
    workers: int | None,
    progress: Progress | None = None,
) -> None:
    """Make the runs that are left.

    Args:
        work: the runs.
        directory: where progress is written; None = nowhere.
        engine: where they are made.
        workers: how many workers; None = as many as are worth starting.
        progress: called after each run.

    Raises:
        BerthlineError: the engine cannot be reached, or results cannot be kept.
    """
    planned = work.planned
    setup = SuiteSetup(
        tuple(Scheduler.parse(one.text) for one in planned.schedulers),
        planned.plan.jobs_table,
        planned.plan.costs,
    )
    count = 1
    if work.done < work.total:
        is_little = engine.name == "local" and work.seconds_left < FEW_SECONDS
        count = 1 if workers is None and is_little else engine.count(workers)
    state = FAILED
    with engine.pool(unit_worker.__name__, setup, count) as pool:
        told = SuiteProgress(directory, work, engine.name, pool.names)
        told.tell()
        if progress is not None and work.done:
            progress(work.done, work.total, "finished before")
        try:
            answers = pool.answers(lambda worker: work.next_for(worker, count), work.lost)
            for worker, answer in answers:
                run = work.note(worker, answer)
                told.tell()
                if run is not None and progress is not None:
                    unit = planned.units[run.unit]
                    progress(work.done, work.total, planned.name_of(unit, run))
            state = FINISHED
        except KeyboardInterrupt:
            state = INTERRUPTED
            raise
        finally:
            told.tell(state)


@contextlib.contextmanager
def _directory(
    out: str | Path | None, *, force: bool, resume: bool
) -> Iterator[RunDirectory | None]:
    """Yield the run directory, with its lock."""
    if out is None:
        open_directory(None, verb=VERB, force=force, resume=resume)
        yield None
        return
    if force and resume:
        open_directory(str(out), verb=VERB, force=force, resume=resume)
    refuse_if_held(Path(out) / LOCK)
    directory = RunDirectory(out, verb=VERB, force=force, resume=resume, grows=True)
    with locked(directory.path / LOCK):
        if force:
            directory.clear()
        yield directory


@contextlib.contextmanager
def _kept(plan: SuitePlan, directory: RunDirectory | None) -> Iterator[Store]:
    """Yield the finished runs."""
    if directory is None:
        yield MemoryStore()
        return
    kept = KeptRuns(directory.unfinished, asked_of(plan))
    try:
        kept.begin()
        yield kept
    finally:
        kept.close()


def _trained(
    plan: SuitePlan,
    directory: RunDirectory | None,
    engine: Engine,
    workers: int | None,
    remark: Callable[[str], None] | None,
    progress: Progress | None,
) -> list[PlannedScheduler]:
    """Return the policies of the parts that are trained, which are trained now if need be."""
    if all(part.train is None for part in plan.parts):
        return []
    if directory is None:
        raise ConfigError(
            "the suite trains policies, and there is no directory for them",
            where=plan.name,
            expected="`out`, a run directory",
        )
    from berthline.experiments.suites.suite_training import train_parts

    return train_parts(plan, directory.path, engine, workers, remark, progress)


def check_policies(planned: PlannedRuns) -> None:
    """Raise if a learned policy does not fit all cells, before anything runs.

    Raises:
        ConfigError: it does not; the error names the cells.
    """
    for scheduler in planned.schedulers:
        learned = Scheduler.parse(scheduler.text).learned
        if learned is None:
            continue
        from berthline.deploy.run_policy import environment_of, load_policy

        wrong: dict[str, list[str]] = {}
        seen: dict[tuple[str, str], str] = {}
        for cell in planned.cells:
            key = (cell.cluster, cell.knowledge)
            if key not in seen:
                try:
                    environment = environment_of(learned, cell.nodes, cell.knowledge)
                    if learned.bandit is None:  # a bandit has nothing to load
                        load_policy(learned, environment.layout)
                    seen[key] = ""
                except BerthlineError as error:
                    seen[key] = error.what
            if seen[key]:
                wrong.setdefault(seen[key], []).append(cell.name)
        for what, cells in wrong.items():
            more = f" and {len(cells) - 3} more" if len(cells) > 3 else ""
            raise ConfigError(
                f"the policy does not fit {len(cells)} of {len(planned.cells)} cells: {what}",
                where=f"{scheduler.label} in {', '.join(cells[:3])}{more}",
                expected="a policy with the knowledge and the layout of the cells",
                hint="`only` chooses cells by name",
            )


def _in_order(work: SuiteWork) -> list[Failure]:
    return [failure for _, failure in sorted(work.failures.items())]


def _failure_line(
    work: SuiteWork, failure: Failure, again: Callable[[str], str] | None
) -> dict[str, Any]:
    """Return a line of failures.jsonl."""
    run = failure.run
    unit, scheduler = work.planned.units[run.unit], work.planned.schedulers[run.scheduler]
    name = work.planned.name_of(unit, run)
    usual = f"berthline suite {work.planned.plan.name} --only {shlex.quote(name)}"
    return {
        "suite": work.planned.plan.name,
        "cell": unit.cells[run.cell].name,
        "protocol": unit.part,
        "seed": unit.seed,
        "scheduler": scheduler.label,
        "part": scheduler.part,
        "attempts": failure.attempts,
        "error": dataclasses.asdict(failure.error),
        "command": usual if again is None else again(name),
    }


def _write(
    directory: RunDirectory,
    results: SuiteResults,
    summary: SuiteSummary,
    failures: Sequence[dict[str, Any]],
    command: str,
) -> None:
    """Write the tables and the summary; finished runs are forgotten if none failed."""
    plan = results.planned.plan
    files: dict[str, FileWriter] = {CELLS: results.write_cells}
    if plan.jobs_table:
        files[JOBS] = results.write_jobs
    failed = directory.path / FAILURES
    if failures:
        with complete_file(failed) as partial:
            lines = [json.dumps(line, ensure_ascii=False) + "\n" for line in failures]
            partial.write_text("".join(lines), encoding="utf-8")
    else:
        failed.unlink(missing_ok=True)
    directory.write(
        command=command,
        config=msgspec.to_builtins(plan.table()),
        seed=plan.seed,
        summary=plain_summary(summary),
        metrics=results.lines(),
        files=files,
    )
    if not failures:
        shutil.rmtree(directory.path / SHARES, ignore_errors=True)
        with contextlib.suppress(OSError):
            directory.unfinished.unlink()
