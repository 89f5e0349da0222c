"""Default options of each seat: a task in which decisions matter.

They are the same in `gym.make`, `gym.make_vec` and `berthline train`. What a seat does not name is
the plain default of `Options`. A preset describes a task completely, so with one the plain defaults
apply to what it leaves out.

Loads are above 1, so that jobs wait. The reward is the wait, which shows the cost of a decision at
once: without preemption and with GPUs of one speed, JCT = wait + a constant. Where a no-op could
end a decision point early, it is allowed only if nothing can start: with a discount per step,
waiting would pay.

Pick is the order that EASY works with, on a cluster small enough for 256 jobs to queue, and with
estimates that are wrong, so that estimates are not run times. The gate is different. With a
well-ordered queue, the common workload has almost no reason to hold jobs; jobs like Lublin and
Feitelson's, many of them very short, have. A held job is not asked about again for a while, because
the effect of a single answer would otherwise be lost in the noise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from berthline.model.snapshot import Snapshot
from berthline.traces.workload_argument import is_generator

if TYPE_CHECKING:
    from collections.abc import Mapping

_QUEUES: dict[str, Any] = {"load": 1.1, "reward": "mean-wait-hours"}

SEAT_DEFAULTS: dict[str, Mapping[str, Any]] = {
    "pick": {
        "cluster": "uniform:4x8:V100",
        "load": 1.2,
        "dials": {"estimate_error": 1.0},
        "window": 32,
        "reward": "mean-wait-hours",
        "semantics": "rank",
        "no_op": "when_blocked",
    },
    "place": _QUEUES,
    "pickplace": {**_QUEUES, "no_op": "when_blocked"},
    # The effect of a choice that lasts only until the next event would be too small to be noticed.
    "meta": {**_QUEUES, "every_seconds": 1800.0},
    "backfill": {**_QUEUES, "no_op": "when_blocked"},
    "gate": {
        "workload": "lublin",
        "load": 1.0,
        "order": "sqrt-area",
        "features": "gate",
        "window": 1,
        "hold_seconds": 1800.0,
        "max_holds": 8,
        "reward": "wait-and-slowdown",
    },
    "preempt": _QUEUES,
}

_OF_WORKLOAD = ("workload", "load", "dials")
"""Defaults that describe the seat's own workload; another one has its own load."""

_NEED_RUN_TIMES = ("order", "features")
"""Defaults that use run times, left out where there are none."""


def with_defaults(seat: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of an environment: those given, and the seat's defaults for others."""
    if given.get("preset") is not None:
        return dict(given)
    left_out: set[str] = set()
    if "workload" in given:
        left_out.update(_OF_WORKLOAD)
        workload = given["workload"]
        if not isinstance(workload, str) or not is_generator(workload):
            left_out.add("cluster")  # a trace may state its own
    if isinstance(given.get("start"), Snapshot):
        left_out.add("cluster")  # it has its own
    if given.get("knowledge") == "none":
        left_out.update(_NEED_RUN_TIMES)
    own = SEAT_DEFAULTS[seat]
    if {**own, **given}.get("semantics") == "rank":
        left_out.add("no_op")  # there is none
    return {name: value for name, value in own.items() if name not in left_out} | dict(given)
