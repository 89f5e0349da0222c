"""GPU numbers: which GPUs of its nodes each stretch of a job held.

The log says how many GPUs a job took on a node, but not which, because they are equal. Figures and
other tools need to know which: here a stretch takes the lowest free numbers, and so does a shared
GPU with its first job. On a shared GPU each job has a *part* with the lowest free number; jobs
without GPUs are in parts of GPU -1.
"""

from __future__ import annotations

import dataclasses
import heapq
from typing import TYPE_CHECKING

import numpy as np

from berthline.model.schedule import FINISH, PREEMPT, WHOLE_GPUS
from berthline.model.workload import IntColumn

if TYPE_CHECKING:
    from berthline.model.cluster import Cluster
    from berthline.model.schedule import Schedule

NO_GPU = -1
WHOLE = -1
"""The part of a job that has a whole GPU."""


@dataclasses.dataclass(frozen=True, eq=False)
class GpuNumbers:
    """One row for each GPU of each stretch, in the order of the stretches.

    Attributes:
        stretch: which start of the log, counted from 0.
        node: node id.
        gpu: number of the GPU on its node; NO_GPU = the job holds CPUs or memory only.
        part: number of the part of a shared GPU; WHOLE = all of it.
    """

    stretch: IntColumn
    node: IntColumn
    gpu: IntColumn
    part: IntColumn


class _Numbers:
    """The lowest unused numbers, from 0."""

    def __init__(self) -> None:
        self.given_back: list[int] = []
        self.next = 0

    def take(self) -> int:
        if self.given_back:
            return heapq.heappop(self.given_back)
        self.next += 1
        return self.next - 1

    def give_back(self, number: int) -> None:
        heapq.heappush(self.given_back, number)


@dataclasses.dataclass
class _SharedGpu:
    gpu: int
    parts: _Numbers
    jobs: int = 0


def gpu_numbers(log: Schedule, cluster: Cluster) -> GpuNumbers:
    """Return which GPUs each stretch held."""
    whole = [_Numbers() for _ in range(cluster.num_nodes)]
    without = [_Numbers() for _ in range(cluster.num_nodes)]
    shared: dict[tuple[int, int], _SharedGpu] = {}
    rows: list[tuple[int, int, int, int]] = []
    held: dict[int, list[tuple[int, int, int, int]]] = {}  # job -> (node, slot, gpu, part)
    bounds = [*log.detail[log.is_start].tolist(), len(log.alloc_node)]
    nodes, counts = log.alloc_node.tolist(), log.alloc_gpus.tolist()
    slots = log.alloc_slot.tolist()
    stretch = 0
    kinds = np.where(log.is_start, -1, log.kind.astype(np.int16)).tolist()
    for kind, job in zip(kinds, log.job.tolist(), strict=True):
        if kind == -1:
            mine: list[tuple[int, int, int, int]] = []
            for share in range(bounds[stretch], bounds[stretch + 1]):
                node, slot = nodes[share], slots[share]
                if slot != WHOLE_GPUS:
                    if (node, slot) not in shared:
                        shared[node, slot] = _SharedGpu(whole[node].take(), _Numbers())
                    on = shared[node, slot]
                    on.jobs += 1
                    mine.append((node, slot, on.gpu, on.parts.take()))
                elif counts[share] == 0:
                    mine.append((node, slot, NO_GPU, without[node].take()))
                else:
                    takes = range(counts[share])
                    mine += [(node, slot, whole[node].take(), WHOLE) for _ in takes]
            held[job] = mine
            rows += [(stretch, node, gpu, part) for node, _, gpu, part in mine]
            stretch += 1
        elif kind in (FINISH, PREEMPT):
            for node, slot, gpu, part in held.pop(job):
                if gpu == NO_GPU:
                    without[node].give_back(part)
                elif part == WHOLE:
                    whole[node].give_back(gpu)
                else:
                    on = shared[node, slot]
                    on.parts.give_back(part)
                    on.jobs -= 1
                    if not on.jobs:
                        whole[node].give_back(gpu)
                        del shared[node, slot]
    columns = np.array(rows, np.int32).reshape(-1, 4).T
    return GpuNumbers(*columns)
