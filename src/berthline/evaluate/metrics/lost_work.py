"""Lost work: GPU-seconds that jobs held without lasting progress.

A job loses GPU-seconds in two ways. Delays (the start, the restart after a preemption, nodes that
wake up) come before the first progress of a stretch. And when a job is preempted, or its node goes
down, the progress since its last checkpoint is lost, and with it the seconds in which it was made.
Slow GPUs, gangs over several nodes and neighbours on a shared GPU do not count: there, a second
brings less progress, but none is lost.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.model.schedule import (
    END_OF_ROUND,
    FINISH,
    NODE_DOWN,
    NODE_UP,
    PREEMPT,
    RESUME,
    WHOLE_GPUS,
)
from berthline.model.speeds import relative_speed, speeds
from berthline.model.workload import WHOLE_GPU, FloatColumn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from berthline.evaluate.metrics.stretches import Stretches
    from berthline.model.cluster import Cluster
    from berthline.model.schedule import Schedule
    from berthline.model.workload import Workload

Rows = npt.NDArray[np.intp]


def lost_gpu_seconds(
    log: Schedule, workload: Workload, cluster: Cluster, ran: Stretches
) -> FloatColumn:
    """Return the lost GPU-seconds of each job, (num_jobs,); 3600 are a GPU-hour.

    Formula: GPU-seconds held - GPUs x seconds whose progress is kept, over all stretches. This
    equals GPUs x (seconds of delay + seconds whose progress a preemption discarded); the latest
    progress of a job is discarded first. A part of a GPU counts as that part, a job without GPUs as
    0. Unfinished jobs: what they have not saved is not lost yet. A job that finishes at rate 1
    throughout has held GPUs x run GPU-seconds more than it lost.

    Args:
        log: the run's log.
        workload: the jobs of that run.
        cluster: the nodes it ran on, with their conditions.
        ran: from `stretches`.
    """
    delay = _delays(log, cluster, ran)
    throws_away = np.flatnonzero(log.kind == PREEMPT)
    throws_away = throws_away[log.detail[throws_away] != END_OF_ROUND]
    if not (delay.any() or throws_away.size):
        return np.zeros(len(workload))
    seconds = np.bincount(
        ran.job, np.minimum(delay, ran.stop - ran.begin), minlength=len(workload)
    ).astype(np.float64)
    if cluster.conditions.checkpoint > 0 and throws_away.size:
        losers = np.zeros(len(workload), dtype=np.bool_)
        losers[log.job[throws_away]] = True
        for job, thrown_away in _thrown_away(log, workload, cluster, ran, delay, losers):
            seconds[job] += thrown_away
    gpus: FloatColumn = workload.gpus * workload.gpu_milli / WHOLE_GPU
    return gpus * seconds


def _delays(log: Schedule, cluster: Cluster, ran: Stretches) -> FloatColumn:
    """Return the seconds from the begin of each stretch to its first progress."""
    conditions = cluster.conditions
    delay = np.full(len(ran.job), conditions.start_delay)
    delay[log.kind[log.is_start] == RESUME] += conditions.restart
    if conditions.wake_delay > 0 and math.isfinite(conditions.sleep_after):
        delay[_on_sleeping_nodes(log, ran, conditions.sleep_after)] += conditions.wake_delay
    return delay


def _on_sleeping_nodes(log: Schedule, ran: Stretches, patience: float) -> npt.NDArray[np.bool_]:
    """Return which stretches began on a node that no job had used for `patience` seconds."""
    stretch = np.repeat(np.arange(len(ran.job)), np.diff(ran.first))
    begin_row = np.flatnonzero(log.is_start)[stretch]
    stop_row = _stop_rows(log)[stretch]
    about_nodes = np.flatnonzero((log.kind == NODE_DOWN) | (log.kind == NODE_UP))
    row = np.concatenate([begin_row, stop_row, about_nodes])
    node = np.concatenate([log.alloc_node, log.alloc_node, log.detail[about_nodes]])
    jobs = np.repeat([1, -1, 0], [len(stretch), len(stretch), len(about_nodes)])
    order = np.lexsort((row, node))
    # Jobs on the node before this row, and since when.
    before = np.append(0, jobs[order].cumsum()[:-1])
    since = np.append(0.0, log.time[np.minimum(row[order], len(log) - 1)][:-1])
    since[np.append(True, node[order][1:] != node[order][:-1])] = 0.0
    idle = (before == 0) & (log.time[np.minimum(row[order], len(log) - 1)] - since >= patience)
    found = np.zeros(len(ran.job), dtype=np.bool_)
    begins = order < len(stretch)
    found[stretch[order[begins & idle]]] = True
    return found


def _stop_rows(log: Schedule) -> Rows:
    """Return the row at which each stretch stopped; the number of rows = it did not stop."""
    rows = np.flatnonzero(log.is_start | (log.kind == PREEMPT) | (log.kind == FINISH))
    rows = rows[np.argsort(log.job[rows], kind="stable")]
    following = np.append(rows[1:], len(log))
    following[:-1][log.job[rows[1:]] != log.job[rows[:-1]]] = len(log)
    begins = log.is_start[rows]
    stops = np.full(len(log), len(log))
    stops[rows[begins]] = following[begins]
    return stops[log.is_start]


@dataclasses.dataclass
class _Done:
    """Progress of one job, and the seconds it took, as pieces in the order they were made."""

    progress: float = 0.0
    pieces: list[tuple[float, float]] = dataclasses.field(default_factory=list)

    def add(self, seconds: float, rate: float) -> None:
        self.progress += seconds * rate
        self.pieces.append((seconds * rate, seconds))

    def keep(self, progress: float) -> float:
        """Discard all progress beyond `progress`; return the seconds it had taken."""
        too_much = self.progress - progress
        self.progress = progress
        lost = 0.0
        while too_much > 0 and self.pieces:
            made, seconds = self.pieces.pop()
            part = min(too_much / made, 1.0) if made > 0 else 1.0
            lost += seconds * part
            too_much -= made
            if part < 1:
                self.pieces.append((made * (1 - part), seconds * (1 - part)))
        return lost


def _thrown_away(
    log: Schedule,
    workload: Workload,
    cluster: Cluster,
    ran: Stretches,
    delay: FloatColumn,
    losers: npt.NDArray[np.bool_],
) -> Iterator[tuple[int, float]]:
    """Yield these jobs with the seconds whose progress preemptions discarded."""
    every = cluster.conditions.checkpoint
    stop_rows = _stop_rows(log)
    rates = _Rates(log, workload, cluster, ran, stop_rows)
    chosen = np.flatnonzero(losers[ran.job])
    chosen = chosen[np.argsort(ran.job[chosen], kind="stable")]
    is_preempt, is_round = log.kind == PREEMPT, log.detail == END_OF_ROUND
    loses = np.append(is_preempt & ~is_round, False)[stop_rows].tolist()
    saves_all = np.append(is_preempt & is_round, False)[stop_rows].tolist()
    begins = (ran.begin + delay).tolist()
    jobs = ran.job.tolist()
    for job, group in itertools.groupby(chosen.tolist(), key=lambda stretch: jobs[stretch]):
        done, lost, kept = _Done(), 0.0, 0.0
        for stretch in group:
            since = begins[stretch]
            for until, rate in rates.of(stretch):
                done.add(max(until - since, 0.0), rate)
                since = max(since, until)
            if saves_all[stretch]:
                kept = done.progress
            elif loses[stretch]:
                saved = math.floor(done.progress / every) * every if math.isfinite(every) else 0.0
                kept = max(saved, kept)
                lost += done.keep(kept)
        yield job, lost


class _Rates:
    """How fast jobs made progress, computed for one stretch at a time."""

    def __init__(
        self,
        log: Schedule,
        workload: Workload,
        cluster: Cluster,
        ran: Stretches,
        stop_rows: Rows,
    ) -> None:
        self.log, self.ran = log, ran
        self.alone: list[float] = _rates_alone(log, workload, cluster, ran).tolist()
        self.stops: list[float] = ran.stop.tolist()
        self.begin_rows, self.stop_rows = np.flatnonzero(log.is_start), stop_rows
        self.interference = cluster.conditions.interference
        self.together: dict[int, list[int]] = {}
        """For stretches on shared GPUs: all stretches on the GPU since it was first used."""
        if self.interference > 0:
            self._find_neighbours()

    def of(self, stretch: int) -> Iterator[tuple[float, float]]:
        """Yield (until, rate) of a stretch up to its stop."""
        alone = self.alone[stretch]
        if stretch not in self.together:
            yield self.stops[stretch], alone
            return
        steps = [*self._others(stretch), (self.stops[stretch], 0)]
        for (_, others), (until, _) in itertools.pairwise(steps):
            yield until, alone / (1 + self.interference * others)

    def _find_neighbours(self) -> None:
        first = self.ran.first[:-1]
        users: dict[tuple[int, int], tuple[list[int], int]] = {}  # stretches, last row of them
        for stretch in np.flatnonzero(self.log.alloc_slot[first] != WHOLE_GPUS).tolist():
            row = first[stretch]
            gpu = int(self.log.alloc_node[row]), int(self.log.alloc_slot[row])
            together, last = users.get(gpu, ([], -1))
            if self.begin_rows[stretch] > last:
                together = []  # no job was left: it is another GPU with the same number
            together.append(stretch)
            users[gpu] = together, max(last, int(self.stop_rows[stretch]))
            self.together[stretch] = together

    def _others(self, stretch: int) -> list[tuple[float, int]]:
        """Return (since, other jobs on its GPU) of a stretch, after the rows of each instant."""
        begin, stop = float(self.ran.begin[stretch]), float(self.ran.stop[stretch])
        change = {begin: 0}
        for other in self.together.get(stretch, []):
            is_with_it = (
                self.begin_rows[other] < self.stop_rows[stretch]
                and self.stop_rows[other] > self.begin_rows[stretch]
            )
            if other == stretch or not is_with_it:
                continue
            for time, sign in ((self.ran.begin[other], 1), (self.ran.stop[other], -1)):
                if time < stop:
                    at = max(float(time), begin)
                    change[at] = change.get(at, 0) + sign
        times = sorted(change)
        counts = itertools.accumulate(change[time] for time in times)
        return [
            (time, others)
            for time, others in zip(times, counts, strict=True)
            if time == begin or change[time]
        ]


def _rates_alone(
    log: Schedule, workload: Workload, cluster: Cluster, ran: Stretches
) -> FloatColumn:
    """Return the rate of each stretch without neighbours, as in docs/concepts/semantics.md."""
    conditions = cluster.conditions
    first = ran.first[:-1]
    node_speed, reference_speed = speeds(workload, cluster)
    rack = cluster.rack[log.alloc_node]
    slowest = np.minimum.reduceat(node_speed[log.alloc_node], first)
    rate = relative_speed(slowest, reference_speed[ran.job])
    rate[np.diff(ran.first) > 1] *= conditions.across_nodes
    one_rack = np.minimum.reduceat(rack, first) == np.maximum.reduceat(rack, first)
    rate[~one_rack] *= conditions.across_racks
    rate[workload.gpus[ran.job] == 0] = 1.0
    return rate
