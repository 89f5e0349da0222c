"""Registers the frozen tasks with Gymnasium. Imports little: entry points are text until used."""

from __future__ import annotations

from berthline.tasks.task_table import TASKS, task_id


def register_tasks() -> None:
    """Register every task with Gymnasium; those already registered stay unchanged."""
    from gymnasium.envs.registration import register, registry

    for task in TASKS:
        if task_id(task) not in registry:
            register(
                task_id(task),
                entry_point="berthline.tasks.make_task:make_task",
                vector_entry_point="berthline.tasks.make_task:make_task_vec",
                kwargs={"task": task},
                disable_env_checker=True,
                order_enforce=False,
            )
