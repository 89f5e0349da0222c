"""Gymnasium's names of the environments. Imports little: entry points are text until used."""

from __future__ import annotations

from berthline.errors import ConfigError, unknown_name

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


def seat_of(env: str) -> str:
    """Return the seat of an environment, by its name or id: `Pick`, `berthline/Pick-v0`.

    Raises:
        ConfigError: there is no such environment.
    """
    name = env.removeprefix("berthline/").partition("-v")[0].lower()
    seats = {known.lower(): seat for known, seat in SEATS.items()}
    if name not in seats:
        what, expected, hint = unknown_name("environment", env, SEATS)
        raise ConfigError(what, where="`env`", expected=expected, hint=hint)
    return seats[name]


def register_environments() -> None:
    """Register every environment; those already registered stay unchanged."""
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
