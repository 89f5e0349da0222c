"""What is trained on, and how, unless something else is asked for; by seat.

Most seats have the common workload at a load of 1.1, where jobs wait and there is something to
decide, and decisions are paid for at once: with no preemption and GPUs of one speed, waits add up
to JCTs but for a constant.

The gate is another matter. Behind a well-ordered queue the common workload has next to nothing to
hold jobs back for; jobs like Lublin and Feitelson's, many of them very short, have. A job that is
held is left alone for a while, because a single answer would otherwise change so little that its
worth is lost in the noise; what idle GPUs cost shows late, so rewards fade slowly.
"""

from __future__ import annotations

from typing import Any

from berthline.env.options import Options
from berthline.errors import ConfigError
from berthline.learn.algorithms.algorithm_table import ALGORITHMS
from berthline.traces.workload_argument import is_generator

_OPTIONS: dict[str, Any] = {"load": 1.1, "reward": "mean-wait-hours"}

# A choice that only rules until the next event would be worth too little to be noticed.
_META_OPTIONS: dict[str, Any] = {**_OPTIONS, "every_seconds": 1800.0}

_GATE_OPTIONS: dict[str, Any] = {
    "workload": "lublin",
    "load": 1.0,
    "order": "sqrt-area",
    "features": "gate",
    "window": 1,
    "hold_seconds": 1800.0,
    "max_holds": 8,
    "reward": "wait-and-slowdown",
}

_NEED_RUN_TIMES = ("order", "features")

_STEPS = {("ppo", "gate"): 800_000}
"""By algorithm and seat, where they differ from the algorithm's own."""

_SETTINGS: dict[tuple[str, str], dict[str, Any]] = {
    ("ppo", "gate"): {
        "minibatches": 32,
        "learning_rate": 3e-3,
        # What holding is good for is found out late; a falling rate comes to rest before.
        "learning_rate_schedule": "constant",
        "horizon": 43_200.0,
        "trace_horizon": 3_600.0,
        "no_op": -1.0,
        "entropy": 0.03,
        "entropy_schedule": "constant",
    }
}


def default_options(seat: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a seat's environments: those given, and what is not given."""
    options = dict({"gate": _GATE_OPTIONS, "meta": _META_OPTIONS}.get(seat, _OPTIONS))
    if "workload" in given:
        del options["load"]  # a trace is taken as it is
    if given.get("knowledge") == "none":
        options = {key: value for key, value in options.items() if key not in _NEED_RUN_TIMES}
    return options | given


def on_training_part(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of environments with the part of a trace that may be learned from.

    Raises:
        ConfigError: another part is asked for: VAL and REPORT are cut from those.
    """
    workload = options.get("workload", Options.workload)
    if isinstance(workload, str) and is_generator(workload):
        return options
    if options.get("split", "train") != "train":
        raise ConfigError(
            f"training on split {options['split']!r} of a trace",
            expected="train: its other parts are to choose policies and to evaluate them",
            hint="omit split",
        )
    return {**options, "split": "train"}


def default_settings(algorithm: str, seat: str) -> dict[str, Any]:
    """Return the settings of an algorithm that a seat has other defaults for."""
    return dict(_SETTINGS.get((algorithm, seat), {}))


def default_steps(algorithm: str, seat: str) -> int:
    """Return how many steps an algorithm makes in a seat: some minutes of one core."""
    return _STEPS.get((algorithm, seat), ALGORITHMS[algorithm].steps)
