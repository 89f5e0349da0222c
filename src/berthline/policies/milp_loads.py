"""What the mixed-integer program of `milp.py` is made of: demands of jobs, and loads of nodes.

Equal nodes form a class, equal jobs a demand. A load is what one node of a class could get: jobs of
some demands, shares of some gangs. Feasibility of a load is decided before the solver runs, so the
limits hold exactly, including rounding.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

MOST_LOADS = 5_000
"""Most loads in one program; a larger one would not be solved in time."""


class Gangs:
    """Jobs in the order in which they wait.

    Args:
        gpus: GPUs of each job, at least one.
        nodes_min: fewest nodes that hold the job on an empty cluster.
        capacity: [job][node], GPUs of the job that the node can take now; 0 if it may not use it.
        cpus: of the whole job; a share takes its part, rounded up. 0 = none.
        memory_mib: as `cpus`.
    """

    def __init__(
        self,
        gpus: ArrayLike,
        nodes_min: ArrayLike,
        capacity: ArrayLike,
        cpus: ArrayLike = 0,
        memory_mib: ArrayLike = 0,
    ) -> None:
        self.gpus: Ints = np.asarray(gpus, np.int64)
        self.nodes_min: Ints = np.asarray(nodes_min, np.int64)
        self.capacity: Ints = np.asarray(capacity, np.int64)
        self.cpus: Ints = np.broadcast_to(np.asarray(cpus, np.int64), self.gpus.shape)
        self.memory_mib: Ints = np.broadcast_to(np.asarray(memory_mib, np.int64), self.gpus.shape)

    def demand(self, job: int) -> JobDemand:
        """Return the request of this job."""
        return JobDemand(
            gpus=int(self.gpus[job]),
            cpus=int(self.cpus[job]),
            memory_mib=int(self.memory_mib[job]),
            nodes=int(self.nodes_min[job]),
            capacity=self.capacity[job],
            jobs=[job],
        )


class FreeNodes:
    """What is free on every node.

    Args:
        gpus: whole GPUs that are free.
        total: GPUs of the node.
        cpus: free CPUs; infinity = not limited.
        memory_mib: free memory; infinity = not limited.
    """

    def __init__(
        self,
        gpus: ArrayLike,
        total: ArrayLike,
        cpus: ArrayLike = math.inf,
        memory_mib: ArrayLike = math.inf,
    ) -> None:
        self.gpus: Ints = np.asarray(gpus, np.int64)
        self.total: Ints = np.asarray(total, np.int64)
        self.cpus: Floats = np.broadcast_to(np.asarray(cpus, np.float64), self.gpus.shape)
        self.memory_mib: Floats = np.broadcast_to(
            np.asarray(memory_mib, np.float64), self.gpus.shape
        )


@dataclasses.dataclass
class JobDemand:
    """The request of one job, or of several jobs with equal requests."""

    gpus: int
    cpus: int
    memory_mib: int
    nodes: int
    capacity: Ints
    jobs: list[int]
    counted: bool = False  # loads hold a number of these jobs, not a share of a single one
    least: Ints = dataclasses.field(init=False)  # [node]: smallest share, if the node is used
    most: Ints = dataclasses.field(init=False)  # [node]: largest share; 0 = it cannot be used

    def __post_init__(self) -> None:
        """Bound the shares: the largest other nodes must be able to hold the rest."""
        largest = np.sort(np.append(self.capacity, np.zeros(self.nodes, np.int64)))[::-1]
        # If a node is among the largest, the others of them hold the rest; if not, all but the
        # last.
        others = largest[: self.nodes].sum() - np.maximum(self.capacity, largest[self.nodes - 1])
        self.least = np.maximum(1, self.gpus - others)
        self.most = np.minimum(self.capacity, self.gpus - (self.nodes - 1))
        usable = (self.least <= self.most) & ((self.capacity > 0).sum() >= self.nodes)
        self.least, self.most = self.least * usable, self.most * usable

    def is_rigid(self, max_free: int) -> bool:
        """Whether all shares are equal and no node can take two shares of a gang's size.

        Equal jobs of this kind can be counted together; others must stay separate, because a node
        must not hold two shares of one of them, and the shares of each must add up.
        """
        usable = self.most > 0
        share = self.most.max()
        alike = (self.least[usable] == share).all() and (self.most[usable] == share).all()
        return bool(alike and (self.nodes == 1 or 2 * share > max_free))

    def part(self, amount: int, share: int) -> int:
        """Return the part of `amount` that goes with a share of the GPUs."""
        return -(-amount * share // self.gpus)


def demands_of(jobs: Gangs, count: int, max_free: int) -> list[JobDemand]:
    """Return the demands of the first jobs that could start now, equal ones merged.

    Args:
        jobs: jobs, in order.
        count: how many of them.
        max_free: most free GPUs on a node; 0 = merge gangs even if their shares vary.
    """
    demands: dict[object, JobDemand] = {}
    for job in range(count):
        demand = jobs.demand(job)
        if not demand.most.any():
            continue
        demand.counted = demand.is_rigid(max_free)
        alike = (demand.gpus, demand.cpus, demand.memory_mib, demand.nodes, demand.most.tobytes())
        known = demands.setdefault(alike if demand.counted or not max_free else job, demand)
        if known is not demand:
            known.jobs.append(job)
    return list(demands.values())


class TooManyLoadsError(Exception):
    """The program would be too large."""


class Loads:
    """Every load that a node of some class could get, the empty one included.

    Attributes:
        class_of: [node], its class.
        class_size: [class], its nodes.
        first_node: [class], the first of them.
        node_class: [load], the class of the nodes that could get it.
        amounts: [load][demand], jobs of the demand; for a gang by itself, the GPUs of its share.
        gpus, cpus, memory_mib: [load], what it leaves free.
        total: [load], GPUs of the node.
    """

    def __init__(
        self, nodes: FreeNodes, demands: Sequence[JobDemand], later: Sequence[JobDemand]
    ) -> None:
        everything = (*demands, *later)
        kinds = [nodes.gpus, nodes.total]
        for free, name in ((nodes.cpus, "cpus"), (nodes.memory_mib, "memory_mib")):
            # A resource that no load can use up is not a limit and does not distinguish nodes.
            a_gpu = max((demand.part(getattr(demand, name), 1) for demand in everything), default=0)
            kinds.append(np.where(nodes.gpus * a_gpu <= free, math.inf, free))
        kinds += [bound for demand in everything for bound in (demand.least, demand.most)]
        kinds_of_nodes, self.first_node, self.class_of, self.class_size = np.unique(
            np.array(kinds, np.float64).T,
            axis=0,
            return_index=True,
            return_inverse=True,
            return_counts=True,
        )
        self.class_of = self.class_of.reshape(-1)  # numpy 2.0 gives it another axis
        self.node_class: Ints = np.arange(len(self.class_size))
        self.amounts: Ints = np.zeros((len(self.class_size), len(demands)), np.int64)
        self.gpus, total, self.cpus, self.memory_mib = kinds_of_nodes[:, :4].T
        for d, demand in enumerate(demands):
            self.add(d, demand)
        self.total: Floats = total[self.node_class]

    def add(self, d: int, demand: JobDemand) -> None:
        """Add the loads that contain part of a demand to those without it."""
        least, most = demand.least[self.first_node], demand.most[self.first_node]
        rows, amounts = [np.arange(len(self.node_class))], [0]
        needs = [(0, 0, 0)]
        for amount in range(1, 1 + (len(demand.jobs) if demand.counted else int(most.max()))):
            if demand.counted:  # all its shares are of one size
                jobs, share = amount, int(most.max())
                allowed = most > 0
            else:
                jobs, share = 1, amount
                allowed = (least <= share) & (share <= most)
            gpus = jobs * share
            cpus = jobs * demand.part(demand.cpus, share)
            memory_mib = jobs * demand.part(demand.memory_mib, share)
            fitting = np.flatnonzero(
                allowed[self.node_class]
                & (self.gpus >= gpus)
                & (self.cpus >= cpus)
                & (self.memory_mib >= memory_mib)
            )
            if len(fitting):
                rows.append(fitting)
                amounts.append(amount)
                needs.append((gpus, cpus, memory_mib))
        lengths = [len(row) for row in rows]
        if sum(lengths) > MOST_LOADS:
            raise TooManyLoadsError
        row = np.concatenate(rows)
        gpus_taken, cpus_taken, memory_taken = np.repeat(needs, lengths, axis=0).T
        self.node_class = self.node_class[row]
        self.amounts = self.amounts[row]
        self.amounts[:, d] = np.repeat(amounts, lengths)
        self.gpus = self.gpus[row] - gpus_taken
        self.cpus = self.cpus[row] - cpus_taken
        self.memory_mib = self.memory_mib[row] - memory_taken

    def uses_at_most(self, demands: Sequence[JobDemand]) -> Ints:
        """Return, for each load, how many nodes can get it, by its class and its demands."""
        most = self.class_size[self.node_class]
        for d, demand in enumerate(demands):
            shares = demand.nodes * len(demand.jobs)
            amounts = self.amounts[:, d] if demand.counted else self.amounts[:, d] > 0
            most = np.where(amounts, np.minimum(most, shares // np.maximum(amounts, 1)), most)
        return most

    def room(self, demand: JobDemand) -> Floats:
        """Return, for each load, the largest share of the demand that still fits beside it."""
        room: Floats = np.minimum(demand.most[self.first_node][self.node_class], self.gpus)
        for free, needed in ((self.cpus, demand.cpus), (self.memory_mib, demand.memory_mib)):
            if needed:
                room = np.minimum(room, np.floor(free * demand.gpus / needed))
        return room
