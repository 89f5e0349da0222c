"""Replays a log and derives from it what was free and which jobs waited at each time.

Written from docs and the vocabulary, not from the simulators: gangs are split over nodes in
proportion to GPUs, CPUs and memory are rounded up on every node, 0 = no limit. A part of a GPU
and a job without GPUs are one piece. A shared GPU has a number while a job uses it.
"""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from math import ceil, floor
from typing import TYPE_CHECKING

import numpy as np

from berthline.model.gpu_types import canonical_name
from berthline.model.schedule import (
    FINISH,
    NODE_DOWN,
    NODE_UP,
    PREEMPT,
    REJECT,
    SUBMIT,
    WHOLE_GPUS,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from berthline.model.cluster import Cluster
    from berthline.model.schedule import Schedule
    from berthline.model.workload import Workload


@dataclasses.dataclass
class Running:
    """A job that runs."""

    start: float
    allocation: dict[int, int]
    slot: int = WHOLE_GPUS


class ReplayedLog:
    """What is free on every node, and which jobs wait and run, after the rows seen so far."""

    def __init__(self, log: Schedule, workload: Workload, cluster: Cluster) -> None:
        self.log, self.workload, self.cluster = log, workload, cluster
        self.total = {
            "gpus": cluster.gpus.tolist(),
            "cpus": cluster.cpus.tolist(),
            "memory_mib": cluster.memory_mib.tolist(),
        }
        self.free = {name: list(amounts) for name, amounts in self.total.items()}
        self.wants = {name: getattr(workload, name).tolist() for name in self.free}
        self.waiting: list[int] = []
        self.running: dict[int, Running] = {}
        self.over: set[int] = set()
        self.down: set[int] = set()
        self.shared: list[dict[int, int]] = [{} for _ in self.total["gpus"]]
        """Thousandths in use of every shared GPU, by node and number."""
        self.allowed = [self._allowed(job) for job in range(len(workload))]

    def _allowed(self, job: int) -> list[int]:
        """Nodes of the job's pool (or of none) whose GPU type is in its set."""
        jobs, nodes = self.workload, self.cluster
        found = []
        for node in range(nodes.num_nodes):
            if jobs.pool[job] >= 0 and nodes.pool[node] >= 0:
                pool = nodes.pool_names[nodes.pool[node]]
                if pool != jobs.pool_names[jobs.pool[job]]:
                    continue
            if jobs.gpu_types[job] >= 0:
                wanted = jobs.gpu_type_sets[jobs.gpu_types[job]].split("|")
                kind = nodes.types[nodes.gpu_type[node]].name
                if kind not in {*wanted, *map(canonical_name, wanted)}:
                    continue
            found.append(node)
        return found

    def share(self, job: int, what: str, gpus: int) -> int:
        """What a node gives up of a resource when it takes that many GPUs of the gang."""
        if what == "gpus":
            return 0 if self.is_part(job) else gpus
        return ceil(Fraction(self.wants[what][job] * max(gpus, 1), self.pieces(job)))

    def is_part(self, job: int) -> bool:
        """Whether the job runs on part of a GPU."""
        return bool(self.workload.gpu_milli[job] < 1000)

    def pieces(self, job: int) -> int:
        """In how many pieces the job can be spread over nodes."""
        return max(self.wants["gpus"][job], 1)

    def capacity(self, job: int, node: int, free: dict[str, list[int]]) -> int:
        """How many GPUs of the gang (or pieces of another job) the node can take."""
        if node in self.down and free is not self.total:
            return 0
        most = free["gpus"][node]
        if self.wants["gpus"][job] == 0:
            most = 1
        elif self.is_part(job):
            milli = int(self.workload.gpu_milli[job])
            has_room = free is not self.total and any(
                used + milli <= 1000 for used in self.shared[node].values()
            )
            most = int(most > 0 or has_room)
        for what in ("cpus", "memory_mib"):
            if self.total[what][node] and self.wants[what][job]:
                most = min(
                    most,
                    floor(Fraction(free[what][node] * self.pieces(job), self.wants[what][job])),
                )
        return most

    def capacities(self, job: int, free: dict[str, list[int]]) -> list[int]:
        """Capacities of the nodes the job may use, largest first."""
        found = [self.capacity(job, node, free) for node in self.allowed[job]]
        return sorted(found, reverse=True)

    def nodes_min(self, job: int) -> int | None:
        """Fewest nodes that hold the job on an empty cluster; None = it can never run."""
        held = np.cumsum(self.capacities(job, self.total))
        enough = np.flatnonzero(held >= self.pieces(job))
        return int(enough[0]) + 1 if enough.size else None

    def fits(self, job: int, free: dict[str, list[int]], *, scatter: bool = False) -> bool:
        """Whether the job could be placed in what is free."""
        found = self.capacities(job, free)
        used = len(found) if scatter else (self.nodes_min(job) or 0)
        return sum(found[:used]) >= self.pieces(job)

    def change(self, free: dict[str, list[int]], job: int, allocation: dict[int, int]) -> None:
        """Take an allocation away."""
        for node, gpus in allocation.items():
            for what, amounts in free.items():
                amounts[node] -= self.share(job, what, gpus)

    def give_back(self, free: dict[str, list[int]], job: int, allocation: dict[int, int]) -> None:
        """Put an allocation back."""
        for node, gpus in allocation.items():
            for what, amounts in free.items():
                amounts[node] += self.share(job, what, gpus)

    def rows(self) -> Iterator[int]:
        """Apply the rows one after another; yields each row's number after it was applied."""
        log = self.log
        for row in range(len(log)):
            job = int(log.job[row])
            if log.kind[row] == SUBMIT:
                self.waiting.append(job)
            elif log.kind[row] == REJECT:
                self.waiting.remove(job)
                self.over.add(job)
            elif log.is_start[row]:
                self.waiting.remove(job)
                slot = int(log.alloc_slot[log.detail[row]])
                started = Running(float(log.time[row]), log.allocation(row), slot)
                self.running[job] = started
                self.change(self.free, job, started.allocation)
                self._share_gpu(job, started, +1)
            elif log.kind[row] in (FINISH, PREEMPT):
                stopped = self.running.pop(job)
                self.give_back(self.free, job, stopped.allocation)
                self._share_gpu(job, stopped, -1)
                if log.kind[row] == FINISH:
                    self.over.add(job)
                else:
                    self.waiting.append(job)
            elif log.kind[row] == NODE_DOWN:
                self.down.add(int(log.detail[row]))
            elif log.kind[row] == NODE_UP:
                self.down.remove(int(log.detail[row]))
            yield row

    def _share_gpu(self, job: int, running: Running, sign: int) -> None:
        """Book a job on part of a GPU, which is a shared one from its first job to its last."""
        assert (running.slot != WHOLE_GPUS) == self.is_part(job)
        if running.slot == WHOLE_GPUS:
            return
        (node,) = running.allocation
        used = self.shared[node]
        if running.slot not in used:
            self.free["gpus"][node] -= 1
        used[running.slot] = used.get(running.slot, 0) + sign * int(self.workload.gpu_milli[job])
        assert 0 <= used[running.slot] <= 1000
        if used[running.slot] == 0:
            del used[running.slot]
            self.free["gpus"][node] += 1

    def instants(self) -> Iterator[float]:
        """Apply the rows; yields the time after the last row of every instant."""
        time = self.log.time
        for row in self.rows():
            if row + 1 == len(time) or time[row + 1] != time[row]:
                yield float(time[row])
