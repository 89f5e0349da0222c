"""A journal as a run: what really happened, as a schedule log with its jobs and nodes.

Looks show that a job has ended, not always when. If the system did not say, the end is put between
the last look that showed the job and the first that did not, as early as the next start on its GPUs
needs.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from berthline.deploy.journal.journal_file import JournalReader
from berthline.deploy.looks.known_jobs import KnownJobs
from berthline.deploy.looks.live_cluster import LiveCluster
from berthline.deploy.looks.seen import jobs_of
from berthline.deploy.systems.contract import FINISHED, RUNNING, JobRecord
from berthline.errors import ConfigError
from berthline.model.cluster import Cluster
from berthline.model.gpu_types import RECORDED
from berthline.model.history import History
from berthline.model.schedule import (
    FINISH,
    FOR_ANOTHER,
    PREEMPT,
    RESUME,
    START,
    SUBMIT,
    WHOLE_GPUS,
    Schedule,
)
from berthline.model.workload import Workload

if TYPE_CHECKING:
    import os

    from berthline.deploy.journal.journal_file import Entry

UNKNOWN_RUN = 3600.0
"""Stands for the run time of a job that never started and stated none."""


@dataclasses.dataclass
class Stretch:
    """A time in which a job ran.

    Attributes:
        start: when it began.
        nodes: its GPUs on each node, by node id.
        low: it ran at this time still.
        end: when it ended; infinity = it did not.
        is_exact: the system said when it ended.
        has_finished: it ended for good.
    """

    start: float
    nodes: Mapping[int, int]
    low: float
    end: float = math.inf
    is_exact: bool = False
    has_finished: bool = False


@dataclasses.dataclass
class ToldJob:
    """A job as a journal tells it.

    Attributes:
        number: its number.
        submit: its first submission.
        record: the last look's.
        stretches: when it ran.
        is_withdrawn: it vanished and never started.
    """

    number: int
    submit: float
    record: JobRecord
    stretches: list[Stretch] = dataclasses.field(default_factory=list)
    is_withdrawn: bool = False


@dataclasses.dataclass(frozen=True, eq=False)
class JournalRun:
    """A journal as a run.

    Attributes:
        log: what really happened.
        workload: the jobs, with their history.
        cluster: the nodes.
        names: the name of each known job, by number.
        origin: the time of the system's clock that is 0 in the log.
        first: the time of the first look, in the log.
        scheduler: the scheduler that acted last; empty = none did.
        decides: the text of the scheduler of the last cycle.
        knowledge: what it knew.
        withdrawn: jobs that vanished before they started.
    """

    log: Schedule
    workload: Workload
    cluster: Cluster
    names: Mapping[int, str]
    origin: float
    first: float
    scheduler: str
    decides: str
    knowledge: str
    withdrawn: int


def journal_run(directory: str | os.PathLike[str]) -> JournalRun:
    """Return a journal as a run.

    Raises:
        ConfigError: there is no journal, it is damaged, or it shows no job.
    """
    reader = JournalReader(directory)
    told = _Told(reader)
    jobs = [
        job for job in told.jobs.values() if not job.is_withdrawn and (job.record.gpus or 0) > 0
    ]
    if not jobs or told.cluster is None:
        raise ConfigError("the journal shows no job", where=str(directory))
    jobs.sort(key=lambda job: (job.submit, job.number))
    end = told.last_time
    _settle([stretch for job in jobs for stretch in job.stretches], told.cluster.gpus)
    names = _names(told.jobs)
    return JournalRun(
        log=_log_of(jobs, end),
        workload=_workload_of(jobs, names, end, str(directory)),
        cluster=told.cluster,
        names=names,
        origin=told.origin,
        first=told.first,
        scheduler=told.acted,
        decides=told.decides,
        knowledge=told.knowledge,
        withdrawn=sum(job.is_withdrawn for job in told.jobs.values()),
    )


class _Told:
    """Reads a journal from its beginning to its end."""

    def __init__(self, reader: JournalReader) -> None:
        start = reader.start()
        self.origin = start.origin
        self.jobs: dict[int, ToldJob] = {}
        self.cluster: Cluster | None = None
        self.last_time, self.first = 0.0, -1.0
        self.acted = self.decides = ""
        self.knowledge = "estimate"
        self._shown: dict[int, float] = {}
        self._nodes = LiveCluster(start.system, start.nodes)
        for part in reader.parts:
            begin = reader.start(part)
            known = KnownJobs(begin.jobs, begin.next_number)
            for entry in reader.entries(part):
                self._read(entry, known)

    def _read(self, entry: Entry, known: KnownJobs) -> None:
        cycle, look = entry.cycle, entry.look
        self.decides, self.knowledge = cycle.scheduler, cycle.knowledge
        self.acted = cycle.scheduler if cycle.mode == "act" else self.acted
        if look is None or not cycle.snapshot:
            return
        self.cluster = self._nodes.follow(look)
        found = jobs_of(look, known)
        now = self.last_time = look.time - self.origin
        self.first = now if self.first < 0 else self.first
        for number, live in found.items():
            submit = max(live.known.submitted - self.origin, 0.0)
            job = self.jobs.setdefault(number, ToldJob(number, submit, live.record))
            job.record = live.record
        for one in cycle.seen:
            self._apply(one.kind, one.job, one.time - self.origin, one.nodes)
        for number, live in found.items():
            if live.record.state == RUNNING:
                self._shown[number] = now

    def _apply(self, kind: str, number: int, time: float, nodes: Mapping[str, int]) -> None:
        job = self.jobs.get(number)
        if job is None:
            return
        runs = bool(job.stretches) and math.isinf(job.stretches[-1].end)
        if kind == "start":
            if runs:
                self._end(job, time, has_finished=False)
            ids = {self._nodes.ids[name]: gpus for name, gpus in nodes.items() if gpus}
            if sum(ids.values()) == job.record.gpus:
                start = max(time, job.submit)
                job.stretches.append(Stretch(start, ids, low=start))
        elif runs:
            self._end(job, time, has_finished=kind != "stop")
        elif kind == "vanish" and not job.stretches:
            job.is_withdrawn = True

    def _end(self, job: ToldJob, time: float, *, has_finished: bool) -> None:
        stretch = job.stretches[-1]
        said = job.record.finished if job.record.state == FINISHED and has_finished else None
        stretch.is_exact = said is not None
        stretch.low = max(stretch.start, self._shown.get(job.number, stretch.start))
        stretch.end = max(time, math.nextafter(stretch.start, math.inf))
        stretch.has_finished = has_finished


def _settle(stretches: list[Stretch], sizes: object) -> None:
    """Let uncertain ends be early enough for the starts that followed on the same GPUs."""
    gpus = np.asarray(sizes).tolist()
    on_node: dict[int, list[Stretch]] = {}
    for new in sorted(stretches, key=lambda one: one.start):
        for node, wanted in new.nodes.items():
            there = [one for one in on_node.get(node, []) if one.end > new.start]
            used = sum(one.nodes[node] for one in there)
            for one in sorted(there, key=lambda one: (one.is_exact, one.low)):
                if used + wanted <= gpus[node]:
                    break
                one.end = max(new.start, math.nextafter(one.start, math.inf))
                used -= one.nodes[node]
            on_node[node] = [one for one in there if one.end > new.start] + [new]


def _log_of(jobs: list[ToldJob], end: float) -> Schedule:
    """Return the log of the jobs, by their place in the list."""
    rows: list[tuple[float, int, int, int, Mapping[int, int]]] = []
    for at, job in enumerate(jobs):
        rows.append((job.submit, 1, SUBMIT, at, {}))
        for number, stretch in enumerate(job.stretches):
            rows.append((stretch.start, 2, RESUME if number else START, at, stretch.nodes))
            if math.isfinite(stretch.end):
                is_last = stretch is job.stretches[-1] and stretch.has_finished
                rows.append((stretch.end, 0, FINISH if is_last else PREEMPT, at, {}))
    rows = [row for row in rows if row[0] <= end]
    rows.sort(key=lambda row: row[:2])
    details, first = [], 0
    for _, _, kind, _, nodes in rows:
        details.append(first if nodes else FOR_ANOTHER if kind == PREEMPT else -1)
        first += len(nodes)
    shares = [share for row in rows for share in row[4].items()]
    return Schedule(
        time=np.array([row[0] for row in rows]),
        kind=np.array([row[2] for row in rows], np.uint8),
        job=np.array([row[3] for row in rows], np.int32),
        detail=np.array(details, np.int32),
        alloc_node=np.array([node for node, _ in shares], np.int32),
        alloc_gpus=np.array([gpus for _, gpus in shares], np.int32),
        alloc_slot=np.full(len(shares), WHOLE_GPUS, np.int32),
        horizon=end,
        decisions=0,
    )


def _names(jobs: Mapping[int, ToldJob]) -> dict[int, str]:
    """Return the id of each job; one that was used again has the job's number behind it."""
    count: dict[str, int] = {}
    for job in jobs.values():
        count[job.record.id] = count.get(job.record.id, 0) + 1
    return {
        number: job.record.id if count[job.record.id] == 1 else f"{job.record.id}#{number}"
        for number, job in jobs.items()
    }


def _workload_of(
    jobs: list[ToldJob], names: Mapping[int, str], end: float, origin: str
) -> Workload:
    """Return the jobs with what was recorded about them."""
    users: dict[str, int] = {}
    pools: dict[str, int] = {}
    types: dict[str, int] = {}
    runs, starts, running = [], [], []
    for job in jobs:
        spent = sum(min(one.end, end) - one.start for one in job.stretches)
        estimate = job.record.estimate or UNKNOWN_RUN
        runs.append(spent if spent > 0 else estimate)
        starts.append(job.stretches[0].start if job.stretches else math.nan)
        running.append(bool(job.stretches) and math.isinf(job.stretches[-1].end))
    records = [job.record for job in jobs]
    return Workload.from_columns(
        submit=[job.submit for job in jobs],
        run=runs,
        gpus=[record.gpus or 0 for record in records],
        estimate=[math.nan if r.estimate is None else r.estimate for r in records],
        priority=[record.priority for record in records],
        user=[users.setdefault(record.user, len(users)) for record in records],
        pool=[pools.setdefault(r.pool, len(pools)) if r.pool else -1 for r in records],
        gpu_types=[
            types.setdefault(r.gpu_types, len(types)) if r.gpu_types else -1 for r in records
        ],
        user_names=tuple(users),
        pool_names=tuple(pools),
        gpu_type_sets=tuple(types),
        reference_type=RECORDED,
        names=[names[job.number] for job in jobs],
        name="journal",
        provenance={"format": "journal", "path": origin},
        history=History(start=np.array(starts), running=np.array(running)),
        rebase=False,
    )
