"""Defaults of training, by seat: environments and settings.

Most seats train on the common workload at a load of 1.1, where jobs wait and decisions matter. The
reward is the wait, which shows the cost of a decision at once: without preemption and with GPUs of
one speed, JCT = wait + a constant.

The gate is different. With a well-ordered queue, the common workload has almost no reason to hold
jobs; jobs like Lublin and Feitelson's, many of them very short, have. A held job is not asked about
again for a while, because the effect of a single answer would otherwise be lost in the noise. The
cost of idle GPUs shows late, so rewards are discounted slowly.
"""

from __future__ import annotations

from typing import Any

from berthline.env.options import Options
from berthline.errors import ConfigError
from berthline.learn.algorithms.algorithm_table import ALGORITHMS
from berthline.traces.workload_argument import is_generator

_OPTIONS: dict[str, Any] = {"load": 1.1, "reward": "mean-wait-hours"}

# The effect of a choice that lasts only until the next event would be too small to be noticed.
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
"""Steps by algorithm and seat, where they differ from the algorithm's default."""

_SETTINGS: dict[tuple[str, str], dict[str, Any]] = {
    ("ppo", "gate"): {
        "minibatches": 32,
        "learning_rate": 3e-3,
        # The benefit of holding is learned late; a decreasing rate would be too low by then.
        "learning_rate_schedule": "constant",
        "horizon": 43_200.0,
        "trace_horizon": 3_600.0,
        "no_op": -1.0,
        "entropy": 0.03,
        "entropy_schedule": "constant",
    }
}


def default_options(seat: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a seat's environments: those given, and defaults for the others."""
    options = dict({"gate": _GATE_OPTIONS, "meta": _META_OPTIONS}.get(seat, _OPTIONS))
    if "workload" in given:
        del options["load"]  # a trace keeps its own load
    if given.get("knowledge") == "none":
        options = {key: value for key, value in options.items() if key not in _NEED_RUN_TIMES}
    return options | given


def on_training_part(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of environments, restricted to the training part of a trace.

    Raises:
        ConfigError: the options name another part, which VAL or REPORT is cut from.
    """
    workload = options.get("workload", Options.workload)
    if isinstance(workload, str) and is_generator(workload):
        return options
    if options.get("split", "train") != "train":
        raise ConfigError(
            f"training on split {options['split']!r} of a trace",
            expected="train: the other parts are for choosing and evaluating policies",
            hint="omit split",
        )
    return {**options, "split": "train"}


def default_settings(algorithm: str, seat: str) -> dict[str, Any]:
    """Return the settings of an algorithm whose defaults differ for a seat."""
    return dict(_SETTINGS.get((algorithm, seat), {}))


def default_steps(algorithm: str, seat: str) -> int:
    """Return the default number of steps of an algorithm in a seat: some minutes on one core."""
    return _STEPS.get((algorithm, seat), ALGORITHMS[algorithm].steps)
