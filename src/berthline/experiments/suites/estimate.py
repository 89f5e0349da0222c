"""What a suite will take: runs, messages, CPU time and disk, from a small timed sample of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec

from berthline.evaluate.compare.protocol import VAL
from berthline.experiments.suites.planned_runs import PlannedRuns, training_seeds
from berthline.experiments.suites.suite_cells import USUAL_JOBS
from berthline.experiments.suites.suite_work import TASK_SECONDS
from berthline.experiments.suites.unit_worker import (
    SuiteAnswer,
    SuiteRecord,
    SuiteSetup,
    UnitTask,
    answers_of,
)
from berthline.policies.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from berthline.experiments.suites.planned_runs import RunId, Unit


class SuiteEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """What a suite will take.

    Attributes:
        suite: its name.
        cells: number of cells.
        runs: number of runs, those on VAL included.
        tasks: about how many messages they are sent in.
        job_starts: number of jobs in all runs together.
        cpu_seconds: estimated from a sample, without training; None = the sample failed.
        disk_mb: estimated from the sample: finished runs, and the tables made of them.
        sample: number of runs in the sample.
        trainings: number of policies that are trained first.
        training_steps: steps of the environment in all trainings together.
    """

    suite: str
    cells: int
    runs: int
    tasks: int
    job_starts: int
    cpu_seconds: float | None
    disk_mb: float | None
    sample: int
    trainings: int
    training_steps: int


def estimate_of(planned: PlannedRuns, *, seconds: float = 0.5) -> SuiteEstimate:
    """Return what the chosen runs of a plan will take.

    Args:
        planned: the runs.
        seconds: how long the sample may take.
    """
    plan = planned.plan
    trained = [part for part in plan.parts if part.train is not None]
    trainings = sum(training_seeds(plan, part) for part in trained)
    steps = sum(
        training_seeds(plan, part) * int({**plan.train, **(part.train or {})}.get("steps") or 0)
        for part in trained
    )
    untrained = max(0, planned.number_of_schedulers - len(planned.schedulers))
    runs = work = starts = 0.0
    for unit in planned.units:
        own = sum(1 for _ in planned.runs_of(unit))
        own += untrained * len(unit.cells) if unit.part != VAL else 0
        runs += own
        work += unit.work(own)
        starts += own * (unit.clean.jobs or USUAL_JOBS)
    sample = list(_sampled(planned, seconds)) if planned.schedulers else []
    whole = sum(unit.work(1) for unit, *_ in sample)
    cpu = sum(one[1] for one in sample) * work / whole if whole else None
    return SuiteEstimate(
        suite=plan.name,
        cells=len(planned.cells),
        runs=round(runs),
        tasks=max(1, min(len(planned.units), round((cpu or 0) / TASK_SECONDS))),
        job_starts=round(starts),
        cpu_seconds=cpu,
        disk_mb=sum(one[2] for one in sample) * runs / len(sample) / 2**20 if sample else None,
        sample=len(sample),
        trainings=trainings,
        training_steps=steps,
    )


def _sampled(planned: PlannedRuns, seconds: float) -> Iterator[tuple[Unit, float, int]]:
    """Make some runs; yield the unit of each, its CPU time and its bytes."""
    setup = SuiteSetup(
        tuple(Scheduler.parse(one.text) for one in planned.schedulers),
        planned.plan.jobs_table,
        planned.plan.costs,
    )
    answer = answers_of(setup)
    # The first one pays for imports.
    list(answer([next(_tasks(planned, [0]))]))
    began = time.process_time()
    step = max(1, len(planned.units) // 16)
    places = [p for first in range(step) for p in range(first, len(planned.units), step)]
    for task in _tasks(planned, places):
        before = time.process_time()
        answers = [one for one in answer([task]) if isinstance(one, SuiteAnswer)]
        spent = (time.process_time() - before) / max(1, len(answers))
        for one in answers:
            if one.error is None:
                yield task.unit, spent, _bytes(one)
        if time.process_time() - began > seconds:
            return


def _tasks(planned: PlannedRuns, places: Sequence[int]) -> Iterator[UnitTask]:
    for place in places:
        unit = planned.units[place]
        runs: list[RunId] = list(planned.runs_of(unit))
        if runs:
            clean = [run for run in runs if run.cell == 0]
            perturbed = [run for run in runs if run.cell == 1]
            yield UnitTask(unit, tuple(clean + perturbed) or tuple(runs[:1]))


def _bytes(answer: SuiteAnswer) -> int:
    """Return the size of a run in the file of finished runs, and in the tables."""
    record = msgspec.msgpack.decode(answer.record, type=SuiteRecord)
    line: Any = msgspec.structs.asdict(record.metrics)
    return len(answer.record) + 2 * len(answer.jobs or b"") + len(msgspec.json.encode(line))
