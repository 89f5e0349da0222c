"""Default options of each seat: a task in which decisions matter.

They are the same in `gym.make`, `gym.make_vec` and `berthline train`. What a seat does not name is
the plain default of `Options`. A preset describes a task completely, so with one the plain defaults
apply to what it leaves out.

Loads are so high that jobs wait. The reward is the wait, which shows the cost of a decision at
once: without preemption and with GPUs of one speed, JCT = wait + a constant. Where the agent may
end a decision point early, it may do so only if nothing can start: with a discount per step,
waiting would pay. docs/tasks.md has what is to be gained in each.

Pick is the order that EASY works with, on a cluster small enough for 256 jobs to queue, and with
estimates that are wrong, so that estimates are not run times; Backfill and Preempt have the same
jobs. In Place and PickPlace, GPU types differ in speed. In Meta, jobs of two kinds come by turns:
for one kind, GPUs held free for short jobs help, for the other they cost. The gate has jobs like
Lublin and Feitelson's, many of them very short: the common workload has almost no reason to hold
jobs. A held job is not asked about again for a while, because the effect of a single answer would
otherwise be lost in the noise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from berthline.model.snapshot import Snapshot
from berthline.traces.workload_argument import is_generator

if TYPE_CHECKING:
    from collections.abc import Mapping

_SMALL: dict[str, Any] = {
    "cluster": "uniform:4x8:V100",
    "load": 1.2,
    "dials": {"estimate_error": 1.0},
    "reward": "mean-wait-hours",
}
# Where all nodes are alike, best-fit leaves nothing to gain. Fast types do more than their GPUs
# count for in a load.
_TYPES: dict[str, Any] = {
    "workload": "poisson",
    "cluster": "four-types",
    "load": 2.0,
    "dials": {"gpu_mix": "1:0.6,2:0.2,4:0.2", "estimate_error": 0.5},
    "order": "sjf",
    "placement": "fastest-type",
}

SEAT_DEFAULTS: dict[str, Mapping[str, Any]] = {
    "pick": {**_SMALL, "window": 32, "semantics": "rank", "no_op": "when_blocked"},
    "place": {**_TYPES, "window": 8},
    "pickplace": {**_TYPES, "window": 32, "no_op": "when_blocked"},
    "meta": {
        "workload": "drift",
        "load": 1.0,
        "dials": {"phase_jobs": 128},
        "episode_jobs": 512,
        "schedulers": (
            "fcfs+easy",
            "sjf+easy",
            "smallest-area+easy",
            "sjf+easy?express-lane:T=1200:r=0.1",
            "sjf+easy?express-lane:T=1200:r=0.3",
        ),
        # The effect of a choice that lasts only until the next event would be too small.
        "every_seconds": 600.0,
        "reward": "wait-and-slowdown",
    },
    "backfill": {**_SMALL, "no_op": "when_blocked"},
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
    # A job that may yield without end, before it has saved anything, never finishes.
    "preempt": {
        **{name: value for name, value in _SMALL.items() if name != "reward"},
        "min_run": 1800.0,
        "max_restarts": 3.0,
    },
}

_OF_WORKLOAD = ("workload", "load", "dials", "episode_jobs")
"""Defaults that describe the seat's own workload; another one has its own load."""

_NEED_RUN_TIMES = ("order", "features", "schedulers")
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
