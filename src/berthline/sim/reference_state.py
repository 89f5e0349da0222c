"""What the reference simulator keeps: free resources, running jobs, GPU-seconds used."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from berthline.model.schedule import WHOLE_GPUS

NEW_SLOT = -2
"""Placement: a part of a GPU on one that nobody uses; its number is given at the start."""


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
        gpus: GPUs that nobody uses.
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
        """Use so many thousandths of a GPU more (or fewer) from now on."""
        self.gpu_seconds = self.at(now)
        self.since = now
        self.milli += milli


@dataclasses.dataclass
class Running:
    """One stretch of a running job.

    Attributes:
        start: when it began.
        allocation: what it holds.
        since: from when on it makes progress at `rate`; later than `start` by its delays.
        rate: seconds of run time done per second.
        expected_end: when it is expected to end, by its estimate.
    """

    start: float
    allocation: Allocation
    since: float
    rate: float
    expected_end: float = 0.0
