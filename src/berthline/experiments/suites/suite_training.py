"""The trained parts of a suite: policies that are trained before the runs, each several times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from berthline.errors import BerthlineError, ConfigError
from berthline.experiments.suites.planned_runs import PlannedScheduler, training_seeds
from berthline.learn.training.train import train_config
from berthline.learn.training.training_workers import TrainingTask, train_in_workers
from berthline.policies.scheduler import Scheduler
from berthline.runs.run_layout import SEED_PREFIX, TRAINING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from berthline.engines.engine import Engine
    from berthline.experiments.suites.suite_plan import SuitePart, SuitePlan
    from berthline.learn.training.trainer import TrainConfig

_MERGED = ("env_options", "config")
"""Tables of a part that are merged over those that all parts share."""


def train_parts(
    plan: SuitePlan,
    directory: Path,
    engine: Engine,
    workers: int | None,
    remark: Callable[[str], None] | None,
    progress: Callable[[int, int, str], None] | None = None,
) -> list[PlannedScheduler]:
    """Train the policies of a plan, and return them as schedulers.

    A training that is complete is kept; one that was interrupted goes on from its last checkpoint.

    Args:
        plan: the suite.
        directory: its run directory.
        engine: where they are trained.
        workers: how many at once; None = as many as cores.
        remark: called with sentences about their settings.
        progress: called with (steps done, steps in total, what is trained).

    Raises:
        BerthlineError: a setting is wrong, or a training failed.
    """
    tasks: dict[tuple[str, int], TrainingTask] = {}
    for part, config in trained_parts(plan):
        for number in range(training_seeds(plan, part)):
            path = (directory / TRAINING / part.name / f"{SEED_PREFIX}{number}").resolve()
            own = msgspec.structs.replace(config, seed=config.seed + number)
            tasks[part.name, number] = TrainingTask(str(path), own)
    steps = dict.fromkeys((task.path for task in tasks.values()), 0)
    total = sum(task.config.steps for task in tasks.values())

    def report(task: TrainingTask, told: Any) -> None:
        steps[task.path] = told.step
        if progress is not None:
            progress(sum(steps.values()), total, f"training {task.name}")

    train_in_workers(
        list(tasks.values()),
        parent=directory / TRAINING,
        engine=engine,
        workers=engine.count(workers, most=len(tasks)),
        command=f"berthline suite {plan.name}",
        report=report,
        remark=remark or (lambda _: None),
    )
    found = []
    for (name, number), task in tasks.items():
        learned = Scheduler.parse(task.path).learned
        assert learned is not None  # its training is complete
        identity = f"{name}#{number}: {learned.sha256}"
        found.append(PlannedScheduler(name, name, number, task.path, identity))
    return found


def trained_parts(plan: SuitePlan) -> list[tuple[SuitePart, TrainConfig]]:
    """Return the parts that are trained, and the settings of each.

    Raises:
        ConfigError: a parameter of `berthline.train` is unknown, or has a wrong value.
    """
    found = []
    for part in plan.parts:
        if part.train is None:
            continue
        given = {**plan.train, **part.train}
        for table in _MERGED:
            given[table] = {**plan.train.get(table, {}), **part.train.get(table, {})}
        algorithm = given.pop("algorithm", None)
        if not isinstance(algorithm, str):
            raise ConfigError(
                "the part has no algorithm",
                where=f"{plan.name}, part {part.name!r}",
                expected="`algorithm` in `train`, or in [train]",
            )
        try:
            found.append((part, train_config(algorithm, **given)))
        except TypeError as error:
            raise ConfigError(
                f"its training cannot be read: {str(error).partition(') ')[2] or error}",
                where=f"{plan.name}, part {part.name!r}",
                expected="parameters of berthline.train",
            ) from None
        except BerthlineError as error:
            error.where = f"{plan.name}, part {part.name!r}" + (
                f": {error.where}" if error.where else ""
            )
            raise
    return found
