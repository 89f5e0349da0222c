"""Works out from a log how much of each job was done: speeds, delays, checkpoints, neighbours.

Written from the meanings of the conditions, not from the simulators, and by another method: the
time between two instants of the log is gone through job by job, with the rate that the jobs on the
nodes then call for.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from tests.properties.replayed_log import ReplayedLog

from berthline.model.gpu_types import GPU_TYPES, canonical_name
from berthline.model.schedule import END_OF_ROUND, FINISH, NODE_UP, PREEMPT, WHOLE_GPUS

if TYPE_CHECKING:
    from berthline.model.cluster import Cluster
    from berthline.model.schedule import Schedule
    from berthline.model.workload import Workload

CLOSE = 1e-6


@dataclasses.dataclass
class Done:
    """What a job has done.

    Attributes:
        seconds: of its run time, so far.
        safe: seconds of its run time that it had when a round ended last.
        is_clear: False once it was stopped so near a checkpoint that rounding decides.
        held: seconds in which it had its allocation.
        slices: (seconds of its run time, seconds they took) of what is done and kept, in order.
    """

    seconds: float = 0.0
    safe: float = 0.0
    is_clear: bool = True
    held: float = 0.0
    slices: list[tuple[float, float]] = dataclasses.field(default_factory=list)

    @property
    def useful(self) -> float:
        """Seconds in which something was done that is kept."""
        return sum(took for _, took in self.slices)

    def keep(self, seconds: float) -> None:
        """Keep the first `seconds` of what was done."""
        left, kept = seconds, []
        for done, took in self.slices:
            share = min(left / done, 1.0) if done > 0 else 1.0
            kept.append((done * share, took * share if done > 0 or left > 0 else 0.0))
            left = max(left - done, 0.0)
        self.seconds, self.slices = seconds, kept


def rate(replay: ReplayedLog, job: int) -> float:
    """Return how fast a running job makes progress, given who else runs."""
    running = replay.running[job]
    found = rate_alone(replay.workload, replay.cluster, job, list(running.allocation))
    if running.slot != WHOLE_GPUS:
        neighbours = sum(
            other.slot == running.slot and other.allocation.keys() == running.allocation.keys()
            for other in replay.running.values()
        )
        found /= 1 + replay.cluster.conditions.interference * (neighbours - 1)
    return found


def rate_alone(workload: Workload, cluster: Cluster, job: int, nodes: list[int]) -> float:
    """Return how fast a job makes progress on these nodes if it shares no GPU."""
    conditions = cluster.conditions
    if workload.gpus[job] == 0:
        return 1.0
    found = 1.0
    if conditions.gpu_speeds:
        speeds = {kind.name: kind.speed for kind in (*GPU_TYPES.values(), *cluster.types)}
        ran_on = workload.reference_type
        if workload.ran_on[job] >= 0:
            ran_on = canonical_name(workload.ran_on_types[workload.ran_on[job]])
        elif workload.gpu_types[job] >= 0:
            wanted = workload.gpu_type_sets[workload.gpu_types[job]].split("|")
            if len(wanted) == 1:
                ran_on = canonical_name(wanted[0])
        if ran_on in speeds:  # else the run time holds on every type
            slowest = min(cluster.types[cluster.gpu_type[node]].speed for node in nodes)
            found = slowest / speeds[ran_on]
    if len(nodes) > 1:
        found *= conditions.across_nodes
    if len({int(cluster.rack[node]) for node in nodes}) > 1:
        found *= conditions.across_racks
    return found


class Progress:
    """What every job has done, after `finished` has been called for all rows."""

    def __init__(self, log: Schedule, workload: Workload, cluster: Cluster) -> None:
        self.log, self.replay = log, ReplayedLog(log, workload, cluster)
        self.conditions = cluster.conditions
        self.done = [Done() for _ in range(len(workload))]
        self.finished: dict[int, Done] = {}
        self._stopped: set[int] = set()
        self._begins: dict[int, float] = {}  # first progress of each running job
        self._idle_since = [0.0] * cluster.num_nodes
        self._go_through()

    def _go_through(self) -> None:
        rates: dict[int, float] = {}
        before = 0.0
        rows = self.replay.rows()
        for row in range(len(self.log)):
            now = float(self.log.time[row])
            if now != before:
                for job, at in rates.items():
                    took = max(now - max(before, self._begins[job]), 0.0)
                    self.done[job].seconds += took * at
                    self.done[job].held += now - before
                    self.done[job].slices.append((took * at, took))
            job = int(self.log.job[row])
            stops = self.log.kind[row] in (FINISH, PREEMPT)
            nodes = list(self.replay.running[job].allocation) if stops else []
            occupied = self._occupied()
            assert next(rows) == row
            if self.log.is_start[row]:
                self._begins[job] = now + self._delay(job, now, occupied)
            elif stops:
                self._stop(job, row, nodes, now)
            elif self.log.kind[row] == NODE_UP:
                self._idle_since[self.log.detail[row]] = now
            is_last = row + 1 == len(self.log) or self.log.time[row + 1] != now
            rates = {j: rate(self.replay, j) for j in self.replay.running} if is_last else {}
            before = now

    def _occupied(self) -> set[int]:
        return {node for running in self.replay.running.values() for node in running.allocation}

    def _delay(self, job: int, now: float, occupied: set[int]) -> float:
        delay = self.conditions.start_delay
        if job in self._stopped:
            delay += self.conditions.restart
        asleep = any(
            node not in occupied and now - self._idle_since[node] >= self.conditions.sleep_after
            for node in self.replay.running[job].allocation
        )
        return delay + (self.conditions.wake_delay if asleep else 0.0)

    def _stop(self, job: int, row: int, nodes: list[int], now: float) -> None:
        occupied = self._occupied()
        for node in nodes:
            if node not in occupied:
                self._idle_since[node] = now
        del self._begins[job]
        done = self.done[job]
        if self.log.kind[row] == FINISH:
            self.finished[job] = done
            return
        self._stopped.add(job)
        every = self.conditions.checkpoint
        if self.log.detail[row] == END_OF_ROUND:
            done.safe = done.seconds  # when a round ends is known before, and all is saved
        elif every == math.inf:
            done.keep(done.safe)
        elif every > 0:
            saved = math.floor(done.seconds / every)
            away = done.seconds / every - round(done.seconds / every)
            done.is_clear &= round(done.seconds / every) == 0 or abs(away) * every > CLOSE
            done.keep(max(saved * every, done.safe))
