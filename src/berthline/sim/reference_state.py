"""The state of the reference simulator: free resources, running jobs, GPU-seconds used and more."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from berthline.model.schedule import WHOLE_GPUS
from berthline.sim.gittins import GittinsTable

if TYPE_CHECKING:
    from berthline.sim.inputs import Inputs

NEW_SLOT = -2
"""Placement: a part of an unused GPU; the start assigns its number."""


class Share(NamedTuple):
    """What a job holds on one node: whole GPUs, or a part of the shared GPU `slot`."""

    node: int
    gpus: int
    slot: int = WHOLE_GPUS


Allocation = list[Share]


@dataclasses.dataclass
class Free:
    """What is free on every node.

    Attributes:
        gpus: unused GPUs.
        shared: for each node, thousandths left of each GPU that jobs use in parts, by its number.
        cpus: CPU cores.
        memory_mib: memory.
    """

    gpus: list[int]
    shared: list[dict[int, int]]
    cpus: list[int]
    memory_mib: list[int]

    def copy(self) -> Free:
        """Return an independent copy."""
        return Free(
            self.gpus.copy(),
            [slots.copy() for slots in self.shared],
            self.cpus.copy(),
            self.memory_mib.copy(),
        )

    def smaller(self, other: Free) -> Free:
        """Return what is free in both, node by node; shared GPUs only where both share them."""
        return Free(
            list(map(min, self.gpus, other.gpus)),
            [
                {slot: min(mine[slot], yours[slot]) for slot in mine if slot in yours}
                for mine, yours in zip(self.shared, other.shared, strict=True)
            ],
            list(map(min, self.cpus, other.cpus)),
            list(map(min, self.memory_mib, other.memory_mib)),
        )

    def milli(self, node: int) -> int:
        """Return the thousandths of GPUs that are free on a node."""
        return 1000 * self.gpus[node] + sum(self.shared[node].values())


@dataclasses.dataclass
class Usage:
    """GPU-seconds used, of one user or of all: a sum up to `since`, then a constant rate."""

    gpu_seconds: float = 0.0
    since: float = 0.0
    milli: int = 0

    def at(self, now: float) -> float:
        """Return the GPU-seconds used until `now`."""
        return self.gpu_seconds + self.milli / 1000 * (now - self.since)

    def change(self, now: float, milli: int) -> None:
        """Use `milli` thousandths of a GPU more (or fewer) from now on."""
        self.gpu_seconds = self.at(now)
        self.since = now
        self.milli += milli


@dataclasses.dataclass
class Running:
    """One uninterrupted run of a job.

    Attributes:
        start: when it began.
        allocation: what it holds.
        since: when progress at `rate` begins; later than `start` by its delays.
        rate: seconds of run time done per second.
        planned: when its end was planned,
        delay: and the seconds from then until `since`.
        expected_end: when it is expected to end, by its estimate.
    """

    start: float
    allocation: Allocation
    since: float
    rate: float
    planned: float = 0.0
    delay: float = 0.0
    expected_end: float = 0.0


class State:
    """Everything that a run knows at an instant, except future events."""

    def __init__(self, inputs: Inputs) -> None:
        self.inputs: Inputs = inputs
        self.scheduler = inputs.scheduler
        self.conditions = inputs.cluster.conditions
        workload, cluster = inputs.workload, inputs.cluster
        self.submit: list[float] = workload.submit.tolist()
        self.run_time: list[float] = workload.run.tolist()
        self.estimate: list[float] = inputs.estimate.tolist()
        self.gpus: list[int] = workload.gpus.tolist()
        self.gpu_milli: list[int] = workload.gpu_milli.tolist()
        self.cpus: list[int] = workload.cpus.tolist()
        self.memory_mib: list[int] = workload.memory_mib.tolist()
        self.user: list[int] = workload.user.tolist()
        self.job_class: list[int] = inputs.job_class.tolist()
        self.total: Free = Free(
            cluster.gpus.tolist(),
            [{} for _ in range(cluster.num_nodes)],
            cluster.cpus.tolist(),
            cluster.memory_mib.tolist(),
        )
        self.node_type: list[int] = cluster.gpu_type.tolist()
        self.rack: list[int] = cluster.rack.tolist()
        self.nodes_of_class = [np.flatnonzero(row).tolist() for row in inputs.may_use]

        self.free: Free = self.total.copy()
        self.up: list[bool] = [True] * cluster.num_nodes
        self.idle_since = [0.0] * cluster.num_nodes
        self.queue: list[int] = []  # waiting jobs, by id
        self.held: set[int] = set()  # waiting jobs that are out of this decision
        self.held_until: dict[int, float] = {}  # waiting jobs that are out of decisions until then
        self.ranked: list[int] = []  # jobs that an agent has put first and that could not start
        self.away: set[int] = set()  # unfinished jobs that neither wait nor run: they will return
        self.running: dict[int, Running] = {}
        self.nodes_min: dict[tuple[int, int], int] = {}  # (job, class) -> fewest nodes
        self.quota_used = [0] * len(inputs.quotas.limit)

        jobs = len(workload)
        self.progress = [0.0] * jobs  # seconds of run time done before `Running.since`
        self.kept = [0.0] * jobs  # what of it no preemption can take away
        self.version = [0] * jobs  # of the job's planned finish; other versions are void
        self.restarts: list[int] = [0] * jobs
        self.attempts = [0] * jobs
        self.ran = [0.0] * jobs  # seconds, in runs that have ended
        self.attained = [0.0] * jobs  # GPU-seconds, in the same runs
        self.predicted: list[float] = [math.nan] * jobs

        self.usage = Usage()
        self.user_usage: dict[int, Usage] = {}
        self.finished_runs: dict[int | None, list[float]] = {}  # by user; None = all users
        self.gittins: GittinsTable = GittinsTable()
        self.arrived = 0
        # A run that begins in the middle knows about jobs that it does not have.
        self.submissions: list[float] = (
            self.submit
        )  # when jobs are submitted, with those that are left out
        self.left_out = 0
        self.max_priority = 1.0  # of jobs that are left out
        self.carried: set[int] = set()  # jobs whose GPUs were touched at the instant of its start
        self.outages_left = len(inputs.outages.time)
        self.decisions = 0
        self.preemptions = 0
        self.log: list[tuple[float, int, int, int]] = []
        self.allocated: list[Share] = []

    def milli(self, job: int) -> int:
        """Thousandths of GPUs of a job."""
        return self.gpus[job] * self.gpu_milli[job]

    def jobs_on(self, node: int) -> list[int]:
        """Return the jobs that run on a node, by id."""
        return [
            job
            for job in sorted(self.running)
            if any(share.node == node for share in self.running[job].allocation)
        ]

    def next_gpus(self, job: int) -> int:
        """Return the GPUs of the longest-waiting other job; 0 = there is none."""
        others = [other for other in self.queue if other != job]
        return self.gpus[others[0]] if others else 0

    def count_quota(self, job: int, allocation: Allocation, sign: int) -> None:
        """Add an allocation to the quota counters, or subtract it."""
        for counter in self.inputs.quotas.of_job(job):
            kind = self.inputs.quotas.gpu_type[counter]
            for node, gpus, _ in allocation:
                if kind in (-1, self.node_type[node]):
                    self.quota_used[counter] += sign * gpus * self.gpu_milli[job]
