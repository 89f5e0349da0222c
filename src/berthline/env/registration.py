"""Gymnasium's names of the environments. Imports little: entry points are text until used."""

from __future__ import annotations

from berthline.env.tasks import TASKS

SEATS = {
    "Pick": "pick",
    "Place": "place",
    "PickPlace": "pickplace",
    "Meta": "meta",
    "Backfill": "backfill",
    "Gate": "gate",
    "Preempt": "preempt",
}
"""Seats by the name of their environment, `berthline/NAME-v0`."""


def env_id(name: str) -> str:
    """Return Gymnasium's id of an environment."""
    return f"berthline/{name}-v0"


def task_id(name: str) -> str:
    """Return Gymnasium's id of a frozen task."""
    return f"berthline/{name}"


def register_environments() -> None:
    """Register every environment and task; those already registered stay unchanged."""
    from gymnasium.envs.registration import register, registry

    for name, seat in SEATS.items():
        if env_id(name) not in registry:
            register(
                env_id(name),
                entry_point="berthline.env.single:SchedulingEnv",
                vector_entry_point="berthline.env.vector:SchedulingVectorEnv",
                kwargs={"seat": seat},
                disable_env_checker=True,  # it costs more than a step; tests run it
                order_enforce=False,  # the environment checks it itself
            )
    for task in TASKS:
        if task_id(task) not in registry:
            register(
                task_id(task),
                entry_point="berthline.env.make_task:make_task",
                vector_entry_point="berthline.env.make_task:make_task_vec",
                kwargs={"task": task},
                disable_env_checker=True,
                order_enforce=False,
            )
