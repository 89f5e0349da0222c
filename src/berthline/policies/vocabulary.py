"""The words of formulas: one table, used by checks, errors and docs.

A word's value belongs to a job (`job`), to the whole cluster (`cluster`) or, in formulas of
placements only, to a node (`node`). Orders and gates ask about waiting jobs, preemption rules also
about running ones. `changes` says when it may change while the job waits, which decides how often
a formula is evaluated:

    never   fixed from the job's submission on
    time    changes with the clock, but not when other jobs start at the same instant
    state   may change with every start

Words marked `estimate` are refused when the scheduler knows no run times (knowledge `none`).
Words of rewards, with scopes of their own, are in reward_words.py.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

Changes = Literal["never", "time", "state"]
CHANGES: tuple[Changes, ...] = ("never", "time", "state")


@dataclasses.dataclass(frozen=True)
class Word:
    """One named quantity."""

    name: str
    scope: Literal["job", "cluster", "node", "system", "decision", "finish", "end"]
    unit: str
    meaning: str
    changes: Changes = "never"
    estimate: bool = False


_MAY_USE = "the nodes this job may use (its pool, its GPU types)"

VOCABULARY: dict[str, Word] = {
    word.name: word
    for word in (
        Word("submit", "job", "s", "when the job was submitted"),
        Word("wait", "job", "s", "how long it has waited: now - submit - time running", "time"),
        Word("estimate", "job", "s", "its run time, as far as the scheduler knows", estimate=True),
        Word("gpus", "job", "GPUs", "GPUs of its gang; less than 1 for a part of a GPU"),
        Word("cpus", "job", "cores", "CPU cores of its gang; 0 = no limit"),
        Word("memory_mib", "job", "MiB", "memory of its gang; 0 = no limit"),
        Word("work", "job", "GPU s", "estimate * gpus", estimate=True),
        Word("priority", "job", "", "its priority; larger is more important"),
        Word("deadline", "job", "s", "when it should be finished; infinity = no deadline"),
        Word("slack", "job", "s", "time left to its deadline: deadline - now", "time"),
        Word("attained", "job", "GPU s", "GPU-seconds it has held so far"),
        Word(
            "remaining",
            "job",
            "s",
            "remaining run time: max(estimate - progress, 0)",
            estimate=True,
        ),
        Word("restarts", "job", "", "how often it has been preempted"),
        Word("running", "job", "0 or 1", "1 if it is running, not waiting"),
        Word(
            "predicted",
            "job",
            "s",
            "mean run time of its user's last two finished jobs when it was submitted",
        ),
        Word(
            "gittins",
            "job",
            "1/GPU s",
            "its Gittins index: how likely it is to end soon, given what it has attained, "
            "estimated from finished jobs",
            "state",
        ),
        Word("random", "job", "", "uniform in [0, 1), fixed for the job by the run's seed"),
        Word("nodes_min", "job", "nodes", "fewest nodes that can hold it on an empty cluster"),
        Word("user_usage", "job", "GPU s", "GPU-seconds its user has used so far", "state"),
        Word("user_share", "job", "", "its user's share of all GPU-seconds used so far", "state"),
        Word("user_jobs", "job", "jobs", "its user's jobs that wait or run now", "state"),
        Word("user_gpus", "job", "GPUs", "GPUs its user's jobs hold now", "state"),
        Word("borrowed_gpus", "job", "GPUs", "GPUs it holds outside its own pool"),
        Word("pool_free_gpus", "job", "GPUs", f"free GPUs on {_MAY_USE}", "state"),
        Word("pool_total_gpus", "job", "GPUs", f"all GPUs on {_MAY_USE}"),
        Word(
            "pool_queued_gpus",
            "job",
            "GPUs",
            "GPUs requested by waiting jobs with the same pool and GPU types, itself included",
            "state",
        ),
        Word(
            "pool_fragmentation",
            "job",
            "",
            f"fragmentation of {_MAY_USE}",
            "state",
        ),
        Word("rack_free_gpus", "job", "GPUs", f"most GPUs free in one rack of {_MAY_USE}", "state"),
        Word("can_start", "job", "0 or 1", "1 if it could be placed right now", "state"),
        Word(
            "ways_tier1",
            "job",
            "0, 1 or 2",
            "ways to place it on the fewest nodes: none, one, several",
            "state",
        ),
        Word(
            "ways_tier2",
            "job",
            "0, 1 or 2",
            "ways to place it on one more node without more nodes partly in use",
            "state",
        ),
        Word(
            "ranked",
            "job",
            "",
            "its place among the jobs that an agent has put first and that could not start, from "
            "1; 0 = none. Only in Pick with `semantics='rank'`",
            "state",
        ),
        Word("now", "cluster", "s", "the clock", "time"),
        Word("queue_len", "cluster", "jobs", "jobs waiting", "state"),
        Word("queued_gpus", "cluster", "GPUs", "GPUs requested by all waiting jobs", "state"),
        Word("queued_work", "cluster", "GPU s", "work of all waiting jobs", "state", estimate=True),
        Word("running_jobs", "cluster", "jobs", "jobs running", "state"),
        Word("busy_gpus", "cluster", "GPUs", "GPUs in use", "state"),
        Word("free_gpus", "cluster", "GPUs", "GPUs not in use", "state"),
        Word("total_gpus", "cluster", "GPUs", "all GPUs"),
        Word("down_gpus", "cluster", "GPUs", "GPUs on nodes that are down", "state"),
        Word("utilization", "cluster", "", "busy_gpus / total_gpus", "state"),
        Word(
            "fragmentation",
            "cluster",
            "",
            "nodes partly in use / nodes with a free GPU; 0 when no GPU is free",
            "state",
        ),
        Word(
            "arrival_rate", "cluster", "jobs/s", "jobs submitted in the last 3600 s / 3600", "time"
        ),
        Word(
            "arrival_burstiness",
            "cluster",
            "",
            "variance of the last 32 gaps between submissions / their squared mean; Poisson: 1",
            "time",
        ),
        Word("num_users", "cluster", "users", "users who have submitted a job so far", "time"),
        Word("max_node_gpus", "cluster", "GPUs", "GPUs of the largest node"),
        Word("max_node_cpus", "cluster", "cores", "CPU cores of the largest node"),
        Word("max_node_memory_mib", "cluster", "MiB", "memory of the largest node"),
        Word(
            "max_priority",
            "cluster",
            "",
            "highest priority of the jobs submitted so far, at least 1",
            "time",
        ),
        Word("node_id", "node", "", "the node's number"),
        Word("node_free_gpus", "node", "GPUs", "free GPUs on the node", "state"),
        Word("node_total_gpus", "node", "GPUs", "all GPUs of the node"),
        Word("node_free_cpus", "node", "cores", "free CPU cores; 0 = not limited", "state"),
        Word("node_total_cpus", "node", "cores", "all CPU cores; 0 = not limited"),
        Word("node_free_memory_mib", "node", "MiB", "free memory; 0 = not limited", "state"),
        Word("node_total_memory_mib", "node", "MiB", "all memory; 0 = not limited"),
        Word("node_speed", "node", "", "speed of its GPU type; V100 = 1"),
        Word("node_running", "node", "jobs", "jobs running on the node", "state"),
        Word("node_rack", "node", "", "the number of its rack"),
    )
}
