"""Snapshot: the state of a run at an instant, as a value.

It holds the jobs known at that instant, the rows of the log about them, and what no row says. From
it a run continues (`bl.resume`), one decision is made (`bl.decide`), or start times are forecast
(`bl.forecast`). It comes from a run (`Result.snapshot`), from a run directory, or from the records
of a live system (`Snapshot.from_records`).

The events of the instant have happened, its decision has not. Jobs that were over before the
instant may be left out: what decisions still need of them is in `Memory`.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import numpy.typing as npt

from berthline.changed_copy import changed_copy
from berthline.counted import counted
from berthline.model.cluster import Cluster
from berthline.model.schedule import KINDS, NODE_DOWN, NODE_UP, PREEMPT, REFUSE, RESUME, Schedule
from berthline.model.workload import Workload

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


PROGRESS_COLUMNS = ("progress", "kept", "since", "rate", "planned", "delay")
"""Seconds done until `since`, the part of it that no preemption can take away, when progress at
`rate` begins, and when and with which delay the end of the run was planned."""
USAGE_COLUMNS = ("gpu_seconds", "since", "num_runs", "run_before_last", "last_run")
"""GPU-seconds used until `since`, and the run times of the last two jobs that finished."""
KIND_COLUMNS = (
    "gpus",
    "gpu_milli",
    "cpus",
    "memory_mib",
    "pool",
    "gpu_types",
    "count",
    "count_in_mix",
)
"""A kind of job, how many were submitted, and how many of them the mix in use counts."""
RECENT_SECONDS = 3600.0
"""Submissions of this time are remembered, for the word `arrival_rate`,"""
RECENT_JOBS = 33
"""and of this many last jobs, for `arrival_burstiness`."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Memory:
    """What no row of a snapshot says, because it is about jobs that are left out.

    An empty array means that nothing is left out: then it follows from the rows.

    Attributes:
        jobs: how many jobs are left out.
        submissions: when the jobs were submitted, those that are left out included; the recent
            ones only.
        stated: the estimate that stands for each job's own, which it may not have stated.
        largest_estimate: the largest that was ever stated; NaN = none was.
        max_priority: the highest priority of any job, at least 1.
        predicted: the run time predicted for each job at its submission.
        progress: PROGRESS_COLUMNS of each job.
        idle_since: when each node became idle.
        users: index of each user who has submitted a job; the last entry is -1, for all users.
        usage: USAGE_COLUMNS of these users.
        gittins: for each bucket, finished jobs, their GPU-seconds, and the index of a job there.
        gittins_finished: how many jobs are counted there.
        gittins_next_update: the indices are computed again at this number of finished jobs.
        kinds: KIND_COLUMNS of the jobs submitted so far.
        failures_until: no node fails at random after this time; NaN = as a new run has it.
        wake: when a learned policy decides next even if nothing happens.
        committed: the job that a policy of the seat Pick with `semantics="wait"` starts next; -1 =
            none.
        ruler: who rules under a policy of the seat Meta, as an index into its schedulers,
        decisions_left: for how many decisions more,
        ask_again: and the earliest time at which the policy chooses again.
        holds: how often a policy of the seat Gate held each job,
        held_until: until when each job is held,
        checked_again: and when it is checked again.
        gpu_holders: for a policy with the look-ahead `per_gpu`, of each GPU just before this
            instant: the job that holds it; -1 = none, -2 - slot = a shared GPU of its node.
    """

    jobs: int = 0
    submissions: Floats = dataclasses.field(default_factory=lambda: np.zeros(0))
    stated: Floats = dataclasses.field(default_factory=lambda: np.zeros(0))  # (num_jobs,)
    largest_estimate: float = math.nan
    max_priority: float = 1.0
    predicted: Floats = dataclasses.field(default_factory=lambda: np.zeros(0))  # (num_jobs,)
    progress: Floats = dataclasses.field(default_factory=lambda: np.zeros((0, 6)))
    idle_since: Floats = dataclasses.field(default_factory=lambda: np.zeros(0))  # (num_nodes,)
    users: npt.NDArray[np.int32] = dataclasses.field(default_factory=lambda: np.zeros(0, np.int32))
    usage: Floats = dataclasses.field(default_factory=lambda: np.zeros((0, 5)))
    gittins: Floats = dataclasses.field(default_factory=lambda: np.zeros((3, 0)))
    gittins_finished: int = 0
    gittins_next_update: int = 1
    kinds: Ints = dataclasses.field(default_factory=lambda: np.zeros((0, 8), np.int64))
    failures_until: float = math.nan
    wake: float = math.inf
    committed: int = -1
    ruler: int = 0
    decisions_left: int = 0
    ask_again: float = 0.0
    holds: npt.NDArray[np.int32] = dataclasses.field(default_factory=lambda: np.zeros(0, np.int32))
    held_until: Floats = dataclasses.field(default_factory=lambda: np.zeros(0))  # (num_jobs,)
    checked_again: Floats = dataclasses.field(default_factory=lambda: np.zeros(0))  # (num_jobs,)
    gpu_holders: npt.NDArray[np.int32] = dataclasses.field(
        default_factory=lambda: np.zeros(0, np.int32)
    )

    def __repr__(self) -> str:
        return f"<Memory of {counted(self.jobs, 'job')} left out>"


OF_SEAT = (
    "wake",
    "committed",
    "ruler",
    "decisions_left",
    "ask_again",
    "holds",
    "held_until",
    "checked_again",
    "gpu_holders",
)
"""What the seat of a learned policy remembers."""

NOTHING = Memory()
"""Of a run that begins with an empty cluster."""

_NEW_SEAT = {name: getattr(NOTHING, name) for name in OF_SEAT}


def forget_seat(memory: Memory) -> Memory:
    """Return a memory without what a learned policy's seat remembers."""
    return changed_copy(memory, **_NEW_SEAT)


_INTERRUPTS = np.isin(np.arange(len(KINDS)), (PREEMPT, RESUME, REFUSE, NODE_DOWN, NODE_UP))


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Snapshot:
    """The state of a run at an instant.

    Attributes:
        workload: the jobs known now, by submission, on the clock of their run.
        cluster: the nodes.
        log: rows about these jobs and nodes, until now.
        now: the instant.
        number: each job's number in its run: its id there, or any number that identifies it. It
            decides draws of jobs without names.
        decides: whether the scheduler of the run decides at this instant.
        timer: when that scheduler decides next without any other event.
        scheduler: the text of that scheduler; empty = not known.
        knowledge: what it knows about run times.
        seed: of the run.
        memory: what no row says.
    """

    workload: Workload
    cluster: Cluster
    log: Schedule
    now: float
    number: Ints  # (num_jobs,)
    decides: bool = True
    timer: float = math.inf
    scheduler: str = ""
    knowledge: str = "estimate"
    seed: int = 0
    memory: Memory = NOTHING

    def __repr__(self) -> str:
        of = f" of {self.scheduler}" if self.scheduler else ""
        jobs = counted(self.num_jobs, "job")
        return f"<Snapshot{of} at {self.now:,.10g} s: {jobs} on {self.cluster.name}>"

    @property
    def num_jobs(self) -> int:
        """How many jobs are known, without those left out."""
        return len(self.workload)

    @property
    def was_interrupted(self) -> bool:
        """Whether jobs have stopped and nodes have failed, or jobs ran at speeds no row tells."""
        return bool(len(self.memory.progress)) or bool(_INTERRUPTS[self.log.kind].any())
