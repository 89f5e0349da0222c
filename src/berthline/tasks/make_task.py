"""Environments of the frozen tasks, as `gym.make` and `gym.make_vec` make them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from berthline.env.options import Options
from berthline.errors import ConfigError, unknown_name
from berthline.tasks.task_table import TASKS, Task, task_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from berthline.env.single import SchedulingEnv
    from berthline.env.vector import SchedulingVectorEnv

FREE = ("observation", "experts", "credit")
"""Options of a task that may be chosen: they change the form of what is seen, how a reward is
credited while one learns, or nothing."""


def task_of(name: str) -> Task:
    """Return a frozen task.

    Args:
        name: such as `PickSmall-v1` or `berthline/PickSmall-v1`.

    Raises:
        ConfigError: there is no such task.
    """
    short = name.removeprefix("berthline/")
    if short not in TASKS:
        what, expected, hint = unknown_name("task", short, TASKS)
        raise ConfigError(what, expected=expected, hint=hint)
    return TASKS[short]


def make_task(task: str, **given: Any) -> SchedulingEnv:
    """Return one environment of a task.

    Args:
        task: its name.
        given: FREE options, and what is not an option of the environment.

    Raises:
        ConfigError: an option of the task was given.
    """
    from berthline.env.single import SchedulingEnv

    found = task_of(task)
    return SchedulingEnv(found.seat, **{**found.options, **_checked(task, given)})


def make_task_vec(num_envs: int, task: str, **given: Any) -> SchedulingVectorEnv:
    """Return a batch of environments of a task; see `make_task`."""
    from berthline.env.vector import SchedulingVectorEnv

    found = task_of(task)
    return SchedulingVectorEnv(num_envs, found.seat, **{**found.options, **_checked(task, given)})


def _checked(task: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what was given beside a task.

    Raises:
        ConfigError: an option of the task is among it.
    """
    for field in dataclasses.fields(Options):
        if field.name in given and field.name not in FREE:
            found = TASKS[task]
            other = f"gym.make({task_id(task)!r}).unwrapped.plan.options"
            raise ConfigError(
                f"{field.name} is {given[field.name]!r}",
                where=task_id(task),
                expected=f"no such option: a task never changes ({', '.join(FREE)} may)",
                hint=f"begin from the options of the task, {other}, in the seat {found.seat!r}",
            )
    return given
