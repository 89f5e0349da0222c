"""The reference simulator: the definition of Berthline's semantics, in SimPy.

It is written to be read, not to be fast: every quantity is worked out afresh from the plain state
below, and after every start the decision begins again from the top. The native core must give the
same log, event for event. docs/concepts/semantics.md says the same in words.

One instant: jobs that finish release their GPUs (by job id), then jobs arrive (by job id), then
there is one decision point, at which jobs start one after another until none can.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

from berthline.errors import MissingExtraError
from berthline.model.schedule import FINISH, REJECT, START, SUBMIT, Schedule
from berthline.sim.inputs import FIRST_PREDICTION, Inputs
from berthline.sim.random import uniform
from berthline.sim.reference_words import WORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from berthline.policies.formulas import Formula

try:
    import simpy
except ImportError:
    raise MissingExtraError("simpy", "dev", "the reference simulator") from None

Allocation = dict[int, int]  # node -> GPUs


@dataclasses.dataclass
class Free:
    """What is free on every node."""

    gpus: list[int]
    cpus: list[int]
    memory_mib: list[int]

    def copy(self) -> Free:
        """Return an independent copy."""
        return Free(self.gpus.copy(), self.cpus.copy(), self.memory_mib.copy())

    def smaller(self, other: Free) -> Free:
        """Return what is free in both, node by node."""
        return Free(
            list(map(min, self.gpus, other.gpus)),
            list(map(min, self.cpus, other.cpus)),
            list(map(min, self.memory_mib, other.memory_mib)),
        )


@dataclasses.dataclass
class Usage:
    """GPU-seconds used, of one user or of all: a sum up to `since`, then a constant rate."""

    gpu_seconds: float = 0.0
    since: float = 0.0
    gpus: int = 0

    def at(self, now: float) -> float:
        """Return the GPU-seconds used until `now`."""
        return self.gpu_seconds + self.gpus * (now - self.since)

    def change(self, now: float, gpus: int) -> None:
        """Use `gpus` more (or fewer) GPUs from now on."""
        self.gpu_seconds = self.at(now)
        self.since = now
        self.gpus += gpus


def run(inputs: Inputs, progress: Callable[[int], None] | None = None) -> Schedule:
    """Simulate the inputs and return the log.

    Args:
        inputs: the run.
        progress: called after every event with the number of jobs that have arrived.
    """
    simulation = Simulation(inputs)
    return simulation.run(progress or (lambda _: None))


class Simulation:
    """The state of one run and everything that happens to it."""

    def __init__(self, inputs: Inputs) -> None:
        self.inputs: Inputs = inputs
        self.scheduler = inputs.scheduler
        workload, cluster = inputs.workload, inputs.cluster
        self.submit: list[float] = workload.submit.tolist()
        self.run_time: list[float] = workload.run.tolist()
        self.estimate: list[float] = inputs.estimate.tolist()
        self.gpus: list[int] = workload.gpus.tolist()
        self.cpus: list[int] = workload.cpus.tolist()
        self.memory_mib: list[int] = workload.memory_mib.tolist()
        self.user: list[int] = workload.user.tolist()
        self.job_class: list[int] = inputs.job_class.tolist()
        self.total: Free = Free(
            cluster.gpus.tolist(), cluster.cpus.tolist(), cluster.memory_mib.tolist()
        )
        self.nodes_of_class = [np.flatnonzero(row).tolist() for row in inputs.may_use]

        self.env = simpy.Environment()
        self.agenda: list[tuple[int, int]] = []  # (FINISH or SUBMIT, job) of this instant
        self.free: Free = self.total.copy()
        self.queue: list[int] = []  # waiting jobs, by id
        self.running: dict[int, tuple[float, Allocation]] = {}  # job -> (start, allocation)
        self.nodes_min: dict[int, int] = {}
        self.usage = Usage()
        self.user_usage: dict[int, Usage] = {}
        self.finished_runs: dict[int | None, list[float]] = {}  # by user; None = all users
        self.arrived = 0
        self.decisions = 0
        self.log: list[tuple[float, int, int, int]] = []
        self.allocated: list[tuple[int, int]] = []

    @property
    def now(self) -> float:
        """The clock."""
        return float(self.env.now)

    # --- events ----------------------------------------------------------------------------------

    def run(self, progress: Callable[[int], None]) -> Schedule:
        """Let everything happen, and return the log."""
        for job, submit in enumerate(self.submit):
            self.happen_after(submit, SUBMIT, job)
        while math.isfinite(self.env.peek()) and self.env.peek() <= self.inputs.horizon:
            self.env.step()
            progress(self.arrived)
        time, kind, job_ids, detail = zip(*self.log, strict=True) if self.log else ((),) * 4
        nodes, gpus = zip(*self.allocated, strict=True) if self.allocated else ((),) * 2
        return Schedule(
            time=np.array(time, np.float64),
            kind=np.array(kind, np.uint8),
            job=np.array(job_ids, np.int32),
            detail=np.array(detail, np.int32),
            alloc_node=np.array(nodes, np.int32),
            alloc_gpus=np.array(gpus, np.int32),
            horizon=self.inputs.horizon,
            decisions=self.decisions,
        )

    def happen_after(self, delay: float, kind: int, job: int) -> None:
        """Put an event on the agenda of the instant `delay` seconds from now."""

        def note(_: object) -> None:
            if not self.agenda:
                # A zero timeout comes after everything already due at this instant.
                settle = self.env.timeout(0)
                settle.callbacks.append(lambda _: self.settle())
            self.agenda.append((kind, job))

        self.env.timeout(delay).callbacks.append(note)

    def settle(self) -> None:
        """Do what is due at this instant, in its fixed order, then decide."""
        for job in sorted(job for kind, job in self.agenda if kind == FINISH):
            self.finish(job)
        for job in sorted(job for kind, job in self.agenda if kind == SUBMIT):
            self.arrive(job)
        self.agenda.clear()
        self.decisions += 1
        while (choice := self.choose()) is not None:
            self.start(*choice)

    def arrive(self, job: int) -> None:
        """A job is submitted: it joins the queue, or is rejected if it can never fit."""
        self.write(SUBMIT, job)
        self.arrived += 1
        self.user_usage.setdefault(self.user[job], Usage(since=self.now))
        if self.inputs.knowledge == "predicted":
            self.estimate[job] = self.predict(self.user[job])
        reason = self.never_fits(job)
        if reason is not None:
            self.write(REJECT, job, reason)
        else:
            self.queue.append(job)

    def start(self, job: int, allocation: Allocation) -> None:
        """A waiting job starts on its allocation."""
        self.write(START, job, len(self.allocated))
        self.allocated.extend(allocation.items())
        self.queue.remove(job)
        self.running[job] = (self.now, allocation)
        self.take(self.free, job, allocation)
        self.usage.change(self.now, self.gpus[job])
        self.user_usage[self.user[job]].change(self.now, self.gpus[job])
        self.happen_after(self.run_time[job], FINISH, job)

    def finish(self, job: int) -> None:
        """A running job ends and releases its allocation."""
        self.write(FINISH, job)
        _, allocation = self.running.pop(job)
        self.give_back(self.free, job, allocation)
        self.usage.change(self.now, -self.gpus[job])
        self.user_usage[self.user[job]].change(self.now, -self.gpus[job])
        for key in (self.user[job], None):
            self.finished_runs.setdefault(key, []).append(self.run_time[job])

    def write(self, kind: int, job: int, detail: int = -1) -> None:
        """Add a row to the log."""
        self.log.append((self.now, kind, job, detail))

    def predict(self, user: int) -> float:
        """Mean run time of the user's last two finished jobs; else of anybody's; else a constant.

        Tsafrir, Etsion and Feitelson, IEEE TPDS 2007. Made once, at submission.
        """
        runs = self.finished_runs.get(user) or self.finished_runs.get(None)
        if not runs:
            return FIRST_PREDICTION
        return runs[-1] if len(runs) == 1 else (runs[-2] + runs[-1]) / 2

    # --- one decision ----------------------------------------------------------------------------

    def choose(self) -> tuple[int, Allocation] | None:
        """Return the next job to start and its allocation; None = nothing more starts now."""
        keys = {job: self.value(self.scheduler.order, job) for job in self.queue}
        in_order = sorted(
            self.queue, key=lambda job: (math.inf if math.isnan(keys[job]) else keys[job], job)
        )
        candidates = [job for job in in_order if self.gate_is_open(job)]
        if not candidates:
            return None
        if self.scheduler.discipline == "strict":
            return self.first_placeable(candidates[:1])
        if self.scheduler.discipline == "skip":
            return self.first_placeable(candidates)
        if self.scheduler.discipline == "easy":
            return self.easy(candidates)
        return self.conservative(candidates)

    def gate_is_open(self, job: int) -> bool:
        """A closed gate takes the job out of this decision; on idle nodes it is always open."""
        if self.scheduler.gate is None:
            return True
        is_idle = all(self.free.gpus[node] == self.total.gpus[node] for node in self.nodes_of(job))
        return is_idle or self.value(self.scheduler.gate, job) >= 0

    def first_placeable(self, jobs: list[int]) -> tuple[int, Allocation] | None:
        """Return the first of the jobs that can be placed, with its allocation."""
        for job in jobs:
            allocation = self.place(job, self.free)
            if allocation:
                return job, allocation
        return None

    def easy(self, candidates: list[int]) -> tuple[int, Allocation] | None:
        """Start the head, or a job that cannot delay the head's reservation."""
        head, *others = candidates
        allocation = self.place(head, self.free)
        if allocation:
            return head, allocation
        reserved_time, shadow = self.reserve(head)
        spare = self.free.smaller(shadow)
        for job in others:
            ends_in_time = self.now + self.estimate[job] <= reserved_time
            allocation = self.place(job, self.free if ends_in_time else spare)
            if allocation:
                return job, allocation
        return None

    def reserve(self, head: int) -> tuple[float, Free]:
        """Return when the head can start as things look now, and what it leaves free then."""
        shadow = self.free.copy()
        for time, jobs in self.releases():
            for job in jobs:
                self.give_back(shadow, job, self.running[job][1])
            allocation = self.place(head, shadow)
            if allocation:
                self.take(shadow, head, allocation)
                return time, shadow
        raise AssertionError("a job that was not rejected fits on the empty cluster")

    def conservative(self, candidates: list[int]) -> tuple[int, Allocation] | None:
        """Give every job the earliest reservation in order; start the first that begins now."""
        # Step i of the profile says what is free from times[i] until times[i + 1].
        times, profile = [self.now], [self.free.copy()]
        for time, jobs in self.releases():
            times.append(time)
            profile.append(profile[-1].copy())
            for job in jobs:
                self.give_back(profile[-1], job, self.running[job][1])
        for job in candidates:
            for first, begin in enumerate(times):
                end = begin + self.estimate[job]
                free = profile[first]
                for later in range(first + 1, len(times)):
                    if times[later] < end:
                        free = free.smaller(profile[later])
                allocation = self.place(job, free)
                if allocation:
                    break
            assert allocation, "in the last step of the profile everything is free"
            if first == 0:
                return job, allocation
            if end not in times:
                after = sum(time < end for time in times)
                times.insert(after, end)
                profile.insert(after, profile[after - 1].copy())
            for step in range(first, len(times)):
                if times[step] < end:
                    self.take(profile[step], job, allocation)
        return None

    def releases(self) -> Iterator[tuple[float, list[int]]]:
        """When running jobs are expected to end: (time, jobs), soonest first; overdue = now."""
        due: dict[float, list[int]] = {}
        for job, (start, _) in self.running.items():
            due.setdefault(max(start + self.estimate[job], self.now), []).append(job)
        for time in sorted(due):
            yield time, sorted(due[time])

    # --- placement -------------------------------------------------------------------------------

    def nodes_of(self, job: int) -> list[int]:
        """Return the nodes the job may use, by id."""
        return self.nodes_of_class[self.job_class[job]]

    def capacity(self, job: int, node: int, free: Free) -> int:
        """How many GPUs of this gang the node can take; its CPUs and memory go along with them."""
        most = free.gpus[node]
        if self.cpus[job] and self.total.cpus[node]:
            most = min(most, free.cpus[node] * self.gpus[job] // self.cpus[job])
        if self.memory_mib[job] and self.total.memory_mib[node]:
            most = min(most, free.memory_mib[node] * self.gpus[job] // self.memory_mib[job])
        return most

    def never_fits(self, job: int) -> int | None:
        """Return why the job cannot run even on an empty cluster; None = it can."""
        if self.inputs.class_reason[self.job_class[job]] >= 0:
            return int(self.inputs.class_reason[self.job_class[job]])
        nodes = self.nodes_of(job)
        capacities = sorted((self.capacity(job, node, self.total) for node in nodes), reverse=True)
        if sum(capacities) < self.gpus[job]:
            if sum(self.total.gpus[node] for node in nodes) < self.gpus[job]:
                return 2
            needed, self.memory_mib[job] = self.memory_mib[job], 0
            without_memory = sum(self.capacity(job, node, self.total) for node in nodes)
            self.memory_mib[job] = needed
            return 3 if without_memory < self.gpus[job] else 4
        count, held = 0, 0
        while held < self.gpus[job]:
            held += capacities[count]
            count += 1
        self.nodes_min[job] = count
        return None

    def place(self, job: int, free: Free) -> Allocation | None:
        """Return an allocation of the job within what is free; None = it does not fit.

        Consolidated rules use exactly the fewest nodes the gang needs on an empty cluster. They
        take one node after another, each as full as possible; a node qualifies if the largest
        others can hold the rest.
        """
        left = self.gpus[job]
        capacity = {node: self.capacity(job, node, free) for node in self.nodes_of(job)}
        allocation: Allocation = {}
        if self.scheduler.placement == "scatter":
            for node, most in capacity.items():
                if left and most:
                    allocation[node] = min(most, left)
                    left -= allocation[node]
            return None if left else allocation
        largest = sorted(capacity.values(), reverse=True)
        if sum(largest[: self.nodes_min[job]]) < left:
            return None
        for others in reversed(range(self.nodes_min[job])):
            largest = sorted(capacity.values(), reverse=True)
            at_least = left - sum(largest[:others])
            nodes = [node for node, most in capacity.items() if most >= at_least]
            node = self.pick_node(nodes, free, job, len(allocation))
            allocation[node] = min(capacity.pop(node), left)
            left -= allocation[node]
        return allocation

    def pick_node(self, nodes: list[int], free: Free, job: int, step: int) -> int:
        """Choose among nodes (by id) by the placement rule; ties go to the lowest id."""
        rule = self.scheduler.placement
        if rule == "best-fit":
            return min(nodes, key=lambda node: free.gpus[node])
        if rule == "worst-fit":
            return max(nodes, key=lambda node: free.gpus[node])
        if rule == "random":
            return nodes[int(uniform(self.inputs.placement_key, job, step) * len(nodes))]
        return nodes[0]

    def take(self, free: Free, job: int, allocation: Allocation) -> None:
        """Remove an allocation from what is free."""
        self.change(free, job, allocation, -1)

    def give_back(self, free: Free, job: int, allocation: Allocation) -> None:
        """Add an allocation to what is free."""
        self.change(free, job, allocation, +1)

    def change(self, free: Free, job: int, allocation: Allocation, sign: int) -> None:
        """Add (+1) or remove (-1) an allocation."""
        for node, gpus in allocation.items():
            free.gpus[node] += sign * gpus
            # A node's part of the gang's CPUs and memory is in proportion, rounded up.
            free.cpus[node] += sign * -(-self.cpus[job] * gpus // self.gpus[job])
            free.memory_mib[node] += sign * -(-self.memory_mib[job] * gpus // self.gpus[job])

    def value(self, formula: Formula, job: int) -> float:
        """Return the value of a formula for a waiting job."""
        return formula.evaluate(lambda word: float(WORDS[word](self, job)))
