"""Tasks: environments with names, frozen for comparisons between papers.

A task that was released never changes: `berthline/NAME-v1` spells out every option and inherits no
default, and a test holds the rewards and observations of an episode of each. A better version gets
another number. docs/tasks.md has what is to be gained in each.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any


@dataclasses.dataclass(frozen=True, eq=False)
class Task:
    """A frozen environment.

    Attributes:
        name: with its version; `berthline/NAME` is its id in Gymnasium.
        seat: of the agent.
        meaning: what the agent decides, and where.
        lesson: what there is to learn.
        unit: what minus the return is.
        options: every option of the environment.
    """

    name: str
    seat: str
    meaning: str
    lesson: str
    unit: str
    options: Mapping[str, Any]


_EVERY_OPTION: dict[str, Any] = {
    "workload": "poisson",
    "cluster": "uniform:4x8:V100",
    "episode_jobs": 256,
    "start": "empty",
    "warm_rule": None,
    "load": 1.2,
    "dials": {},
    "slice": None,
    "split": None,
    "split_gap": 86_400.0,
    "split_fractions": (0.5, 0.15, 0.35),
    "missing_types": "reject",
    "knowledge": "estimate",
    "order": "fcfs",
    "discipline": "easy",
    "placement": "best-fit",
    "gate": None,
    "conditions": None,
    "window": 64,
    "window_policy": "head",
    "window_formulas": ("gpus", "-wait"),
    "running_window": 32,
    "running_order": "remaining",
    "lookahead": None,
    "lookahead_size": None,
    "lookahead_seconds": 10_000.0,
    "reward": {"wait": ("second", "-queue_len / num_jobs / 3600")},
    "reward_weights": None,
    "baseline": "fcfs+easy",
    "horizon_factor": None,
    "max_steps": None,
    "preset": None,
}
"""Every option that all seats have, for tasks of version 1 that do not name another value."""

_JOBS = (
    "wait / (wait + 3600)",
    "log10(1 + estimate) / 6",
    "log2(1 + gpus) / 10",
    "log10(1 + work) / 9",
    "can_start",
    "gpus / (gpus + free_gpus)",
    "wait / (wait + estimate)",
)
_RANKED_JOBS = (*_JOBS, "ranked > 0")
_RUNNING = (
    "remaining / (remaining + 3600)",
    "log2(1 + gpus) / 10",
    "attained / (attained + 36000)",
)
_GLOBALS = (
    "utilization",
    "fragmentation",
    "queue_len / (queue_len + 32)",
    "running_jobs / (running_jobs + 32)",
    "arrival_rate * 60",
)
_NODES = (
    "node_free_gpus / node_total_gpus",
    "node_total_gpus / max_node_gpus",
    "node_speed",
)
_TYPED_NODES = (
    "node_free_gpus / node_total_gpus",
    "node_free_gpus / max_node_gpus",
    "node_speed / 6",
    "node_running / (node_running + 4)",
)
_JCT = {"jct": ("second", "-jobs_in_system / num_jobs / 3600")}
_USERS = {"users": 16, "user_skew": 1.0}
_PEOPLE = {**_USERS, "priorities": 4, "deadline_low": 1.2, "deadline_high": 2.0}
_RUN_TIMES = {
    "run_times": "lognormal",
    "run_median": 1200.0,
    "run_sigma": 1.5,
    "run_mean": 3000.0,
    "run_std": 2500.0,
    "run_low": 10.0,
    "run_high": 604_800.0,
}
_POISSON = {
    **_RUN_TIMES,
    **_PEOPLE,
    "gpu_mix": "1:0.6,2:0.15,4:0.1,8:0.15",
    "gpu_correlation": 0.0,
    "priority_correlation": 0.0,
    "estimates": "over",
    "estimate_error": 1.0,
    "estimate_factor": 2.0,
}
_LUBLIN = {
    **_PEOPLE,
    "serial_share": 0.244,
    "power_share": 0.576,
    "daily_cycle": "on",
    "estimates": "human",
    "estimate_error": 1.0,
    "estimate_factor": 2.0,
}
_NARROW = {"gpu_mix": "1:0.6,2:0.2,4:0.2"}
_HOURS_OF_WAIT, _HOURS_OF_JCT = "mean wait, hours", "mean JCT, hours"

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task(
            "PickSmall-v1",
            "pick",
            "the order of the queue of 32 GPUs, under EASY",
            "short and small jobs first, but not so that large ones never start; estimates are "
            "too long by a factor of two on average",
            _HOURS_OF_WAIT,
            _EVERY_OPTION
            | {
                "dials": _POISSON,
                "semantics": "rank",
                "rerank": False,
                "features": {
                    "jobs": _RANKED_JOBS,
                    "nodes": (),
                    "running": _RUNNING,
                    "globals": _GLOBALS,
                },
            },
        ),
        Task(
            "PickLarge-v1",
            "pick",
            "the order of the queue of 512 GPUs, under EASY, for jobs of a real system's model",
            "jobs differ in size by three orders of magnitude, estimates are round numbers that "
            "people request, and the window does not show the whole queue",
            _HOURS_OF_WAIT,
            _EVERY_OPTION
            | {
                "workload": "lublin",
                "cluster": "uniform:64x8:V100",
                "episode_jobs": 1024,
                "load": 1.1,
                "dials": _LUBLIN,
                "window": 128,
                "window_policy": "top",
                "window_formulas": ("work", "estimate"),
                "semantics": "rank",
                "rerank": False,
                "features": {
                    "jobs": _RANKED_JOBS,
                    "nodes": (),
                    "running": _RUNNING,
                    "globals": _GLOBALS,
                },
            },
        ),
        Task(
            "GateLublin-v1",
            "gate",
            "whether the next job of a well-ordered queue starts now, on 64 GPUs",
            "holding a long job back while short ones are about to come pays, and idle GPUs cost",
            "3 x mean wait in hours + mean log2 of the bounded slowdown",
            _EVERY_OPTION
            | {
                "workload": "lublin",
                "cluster": "uniform:8x8:V100",
                "episode_jobs": 512,
                "load": 0.9,
                "dials": {**_LUBLIN, "estimates": "exact", "estimate_error": 0.0},
                "order": "sqrt-area",
                "window": 1,
                "hold_seconds": 1800.0,
                "max_holds": 8,
                "recheck": 0.0,
                "reward": {
                    "wait": ("second", "-queue_len / num_jobs / 3600"),
                    "slowdown": ("finish", "-log2(bounded_slowdown) / num_jobs"),
                },
                "reward_weights": {"wait": 3.0, "slowdown": 1.0},
                "features": {
                    "jobs": (
                        "log10(1 + estimate) / 6",
                        "log2(1 + gpus) / 10",
                        "(pool_free_gpus - gpus) / pool_total_gpus",
                        "wait / (wait + estimate)",
                        "wait / (wait + 3600)",
                    ),
                    "nodes": (),
                    "running": (),
                    "globals": (
                        "utilization",
                        "queue_len / (queue_len + 32)",
                        "log2(1 + queued_work / total_gpus / 60) / 12",
                        "arrival_rate * 60",
                    ),
                },
            },
        ),
        Task(
            "PlaceFrag-v1",
            "place",
            "the node of each pod: parts of GPUs, cores and memory on 11 nodes like openb's",
            "pods that leave a GPU, or the cores beside it, in pieces keep later ones waiting",
            _HOURS_OF_WAIT,
            _EVERY_OPTION
            | {
                "workload": "openb",
                "cluster": "openb-small",
                "episode_jobs": 512,
                "load": 1.2,
                "dials": {
                    **_RUN_TIMES,
                    **_PEOPLE,
                    "estimates": "exact",
                    "estimate_error": 0.0,
                    "estimate_factor": 2.0,
                },
                "conditions": {"gpu_speeds": 0.0},
                "discipline": "skip",
                "window": 8,
                "placements": (),
                "features": {
                    "jobs": (
                        "gpus / max_node_gpus",
                        "min(gpus, 1)",
                        "cpus / max_node_cpus",
                        "memory_mib / max_node_memory_mib",
                        "log10(1 + estimate) / 6",
                        "wait / (wait + 3600)",
                    ),
                    "nodes": (
                        "node_free_gpus / max_node_gpus",
                        "node_free_gpus - floor(node_free_gpus)",
                        "node_free_cpus / max_node_cpus",
                        "node_free_memory_mib / max_node_memory_mib",
                        "node_total_gpus / max_node_gpus",
                        "(node_free_gpus - gpus) / max_node_gpus",
                        "node_free_gpus - gpus - floor(node_free_gpus - gpus)",
                        "(node_free_cpus - cpus) / max_node_cpus",
                        "(node_free_memory_mib - memory_mib) / max_node_memory_mib",
                        "node_free_gpus / (node_free_gpus + node_free_cpus / 8 + 0.1)",
                    ),
                    "running": (),
                    "globals": _GLOBALS,
                },
            },
        ),
        Task(
            "PlaceTypes-v1",
            "place",
            "the node of each job, on 32 GPUs of four types whose speeds differ by ten times",
            "fast GPUs at once or for the jobs that need them most; a gang is as fast as its "
            "slowest GPU",
            _HOURS_OF_JCT,
            _EVERY_OPTION
            | {
                "cluster": "four-types",
                "load": 2.0,
                "dials": {**_POISSON, **_NARROW, "estimate_error": 0.5},
                "order": "sjf",
                "placement": "fastest-type",
                "window": 8,
                "placements": (),
                "reward": _JCT,
                "features": {
                    "jobs": _JOBS,
                    "nodes": (
                        *_TYPED_NODES,
                        "gpus / node_total_gpus",
                        "(node_free_gpus - gpus) / node_total_gpus",
                        "log10(1 + estimate / node_speed) / 6",
                        "log10(1 + work) / 9 * node_speed / 6",
                    ),
                    "running": _RUNNING,
                    "globals": _GLOBALS,
                },
            },
        ),
        Task(
            "PickPlaceTypes-v1",
            "pickplace",
            "which job starts next and on which node, on 32 GPUs of four types",
            "both questions at once: a long job may wait for a fast node that a short one is on",
            _HOURS_OF_JCT,
            _EVERY_OPTION
            | {
                "cluster": "four-types",
                "load": 2.0,
                "dials": {**_POISSON, **_NARROW, "estimate_error": 0.5},
                "discipline": "strict",
                "placement": "fastest-type",
                "window": 16,
                "no_op": "never",
                "reward": _JCT,
                "features": {
                    "jobs": _JOBS,
                    "nodes": _TYPED_NODES,
                    "running": (),
                    "globals": _GLOBALS,
                },
            },
        ),
        Task(
            "MetaDrift-v1",
            "meta",
            "which of five schedulers runs 64 GPUs for the next ten minutes",
            "phases of short and of long jobs, by turns: GPUs held free for short jobs help in "
            "one and cost in the other",
            "3 x mean wait in hours + mean log2 of the bounded slowdown",
            _EVERY_OPTION
            | {
                "workload": "drift",
                "cluster": "uniform:8x8:V100",
                "episode_jobs": 512,
                "load": 1.0,
                "dials": {
                    **_POISSON,
                    "estimates": "exact",
                    "estimate_error": 0.0,
                    "phase_jobs": 128,
                    "short_factor": 0.05,
                    "long_share": 0.1,
                },
                "schedulers": (
                    "fcfs+easy@best-fit",
                    "sjf+easy@best-fit",
                    "smallest-area+easy@best-fit",
                    "sjf+easy@best-fit?express-lane:T=1200:r=0.1",
                    "sjf+easy@best-fit?express-lane:T=1200:r=0.3",
                ),
                "every_events": 1,
                "every_seconds": 600.0,
                "window": 16,
                "reward": {
                    "wait": ("second", "-queue_len / num_jobs / 3600"),
                    "slowdown": ("finish", "-log2(bounded_slowdown) / num_jobs"),
                },
                "reward_weights": {"wait": 3.0, "slowdown": 1.0},
                "features": {
                    "jobs": _JOBS,
                    "nodes": (),
                    "running": _RUNNING,
                    "globals": (
                        *_GLOBALS,
                        "log2(1 + queued_work / total_gpus / 60) / 12",
                        "tanh(arrival_burstiness / 4)",
                    ),
                },
            },
        ),
        Task(
            "BackfillEstimates-v1",
            "backfill",
            "which job passes the blocked first one, on 32 GPUs, with estimates that people make",
            "estimates are round and too long: jobs end early, so who passes matters, and the "
            "first job is never delayed beyond its reservation",
            _HOURS_OF_WAIT,
            _EVERY_OPTION
            | {
                "load": 1.3,
                "dials": {**_POISSON, "estimates": "human"},
                "protect_head": True,
                "no_op": "always",
                "features": {
                    "jobs": _JOBS,
                    "nodes": (),
                    "running": _RUNNING,
                    "globals": _GLOBALS,
                },
            },
        ),
        Task(
            "PreemptUnknown-v1",
            "preempt",
            "which running job yields to the first that cannot start, on 32 GPUs, when no run "
            "time is known",
            "jobs that have run for long go on for long, and every preemption costs what was not "
            "saved",
            _HOURS_OF_JCT,
            _EVERY_OPTION
            | {
                "load": 1.3,
                "dials": _POISSON,
                "knowledge": "none",
                "order": "las",
                "discipline": "skip",
                "conditions": {"checkpoint": 600.0, "restart": 30.0},
                "min_run": 1800.0,
                "max_restarts": 3.0,
                "no_op": "always",
                "running_order": "-attained",
                "reward": _JCT,
                "features": {
                    "jobs": (
                        "wait / (wait + 3600)",
                        "wait / (wait + 60)",
                        "log2(1 + gpus) / 10",
                        "attained / (attained + 36000)",
                        "can_start",
                        "gpus / (gpus + free_gpus)",
                    ),
                    "nodes": (),
                    "running": (
                        "attained / (attained + 3600)",
                        "attained / (attained + 36000)",
                        "log10(1 + attained / gpus) / 6",
                        "log2(1 + gpus) / 10",
                        "restarts / (restarts + 1)",
                        "wait / (wait + 3600)",
                    ),
                    "globals": _GLOBALS,
                },
            },
        ),
        Task(
            "Deadlines-v1",
            "pick",
            "the order of the queue of 32 GPUs, where jobs have deadlines",
            "a job that is already late, or cannot be in time, need not be first",
            "share of jobs that end after their deadline",
            _EVERY_OPTION
            | {
                "dials": {
                    **_POISSON,
                    "estimate_error": 0.5,
                    "deadline_low": 2.0,
                    "deadline_high": 10.0,
                },
                "reward": {"missed": ("finish", "-missed / num_jobs")},
                "semantics": "rank",
                "rerank": False,
                "features": {
                    "jobs": (
                        *_RANKED_JOBS,
                        "slack / (abs(slack) + 3600)",
                        "(slack - estimate) / (abs(slack - estimate) + 3600)",
                        "clip(slack / estimate, -4, 8) / 8",
                    ),
                    "nodes": (),
                    "running": _RUNNING,
                    "globals": _GLOBALS,
                },
            },
        ),
        Task(
            "Energy-v1",
            "place",
            "the node of each job, on 24 GPUs of three types, of which idle nodes sleep",
            "the slowest type does most work per watt, so energy and time pull apart: wide jobs "
            "waste most on fast GPUs, and nodes that are kept empty sleep",
            "mean JCT in hours + 4 x kWh per job",
            _EVERY_OPTION
            | {
                "cluster": "thrifty-types",
                "load": 0.8,
                "dials": {**_POISSON, **_NARROW, "estimate_error": 0.5},
                "conditions": {"sleep_after": 300.0, "wake_delay": 120.0, "sleep_w": 40.0},
                "order": "sjf",
                "placement": "fastest-type",
                "window": 8,
                "placements": (),
                "reward": {
                    **_JCT,
                    "energy": ("second", "-power_w / 3.6e6 / num_jobs"),
                },
                "reward_weights": {"jct": 1.0, "energy": 4.0},
                "features": {
                    "jobs": _JOBS,
                    "nodes": (
                        *_TYPED_NODES,
                        "gpus / node_total_gpus",
                        "(node_free_gpus - gpus) / node_total_gpus",
                        "log10(1 + estimate / node_speed) / 6",
                        "log10(1 + work) / 9 * node_speed / 6",
                    ),
                    "running": _RUNNING,
                    "globals": _GLOBALS,
                },
            },
        ),
    )
}
"""Every task by its name."""


def task_id(name: str) -> str:
    """Return Gymnasium's id of a task."""
    return f"berthline/{name}"
