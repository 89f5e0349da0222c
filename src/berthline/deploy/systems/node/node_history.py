"""What really happened on a node, as a workload and a log, from the runner's own events."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from berthline.deploy.systems.node.runner.event_log import read_events
from berthline.deploy.systems.node.runner.runner import EVENTS, KILL, SETTINGS
from berthline.deploy.systems.node.runner.telemetry import TELEMETRY, read_samples
from berthline.errors import ConfigError
from berthline.model.cluster import Cluster
from berthline.model.gpu_types import GPU_TYPES, RECORDED
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
    from pathlib import Path

_ASSUMED_TYPE = "V100"
_SHORTEST = 1e-3


class NodeHistory(NamedTuple):
    """What really happened on a node.

    Attributes:
        workload: the jobs; run times are those of their processes.
        log: when they held GPUs.
        cluster: the node.
        begin: the Unix time that is 0 in the log.
        is_over: every job has ended.
        natively: starts by the runner's own order.
        ends: how many jobs ended in which way.
        start_delays: seconds between a start and its process, of each start.
        stop_delays: seconds between the end of a process and free GPUs, of each end.
        keeps_progress: a preempted job goes on where it was.
        samples: of telemetry: the time since the beginning, and what each GPU did.
        telemetry: where they are from; `none` = there are none.
    """

    workload: Workload
    log: Schedule
    cluster: Cluster
    begin: float
    is_over: bool
    natively: int
    ends: dict[str, int]
    start_delays: list[float]
    stop_delays: list[float]
    keeps_progress: bool
    samples: list[tuple[float, list[dict[str, float | None]]]]
    telemetry: str


def read_node_history(directory: Path) -> NodeHistory:
    """Return what really happened, from the directory of a runner.

    Raises:
        ConfigError: no runner was there, or nothing has happened yet.
    """
    try:
        settings = json.loads((directory / SETTINGS).read_bytes())
    except (OSError, ValueError):
        raise ConfigError(
            "no node was scheduled here",
            where=str(directory),
            expected="the journal of berthline deploy node",
        ) from None
    try:
        events = [event for event in read_events(directory / EVENTS) if event["what"] != "begin"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"the events of the node cannot be read: {error}",
            where=str(directory / EVENTS),
            expected="the file as it was written",
        ) from None
    begin, jobs = float(settings["begin"]), settings["jobs"]
    if not any(event["what"] == "start" for event in events):
        raise ConfigError(
            "no job has started yet", where=str(directory), expected="a node that has run jobs"
        )
    runs = _Runs(jobs, begin, keeps_progress=settings["preempt"] != KILL)
    for event in events:
        runs.take(event)
    submit = np.array([job["submitted"] - begin for job in jobs])
    ran = runs.run > 0
    kind = settings["gpu_type"] if settings["gpu_type"] in GPU_TYPES else _ASSUMED_TYPE
    workload = Workload.from_columns(
        submit=submit,
        # Of a job that has not ended only the estimate is known.
        run=np.where(ran, np.maximum(runs.run, _SHORTEST), [job["estimate"] for job in jobs]),
        estimate=[job["estimate"] for job in jobs],
        gpus=[job["gpus"] for job in jobs],
        priority=[job["priority"] for job in jobs],
        deadline=[np.inf if job["deadline"] is None else job["deadline"] - begin for job in jobs],
        reference_type=RECORDED,
        names=[job["name"] for job in jobs],
        name=settings["name"].removesuffix(".csv"),
        history=History(start=runs.first),
        rebase=False,
    )
    samples = read_samples(directory / TELEMETRY)
    return NodeHistory(
        workload=workload,
        log=runs.log(submit),
        cluster=Cluster.parse(f"uniform:1x{settings['gpus']}:{kind}"),
        begin=begin,
        is_over=bool((runs.ended > 0).all()),
        natively=runs.natively,
        ends=runs.ends,
        start_delays=runs.start_delays,
        stop_delays=runs.stop_delays,
        keeps_progress=runs.keeps_progress,
        samples=[(time - begin, sample) for time, sample in samples],
        telemetry=settings["telemetry"],
    )


class _Runs:
    """Collects the runs of jobs from events."""

    def __init__(self, jobs: list[dict[str, Any]], begin: float, *, keeps_progress: bool) -> None:
        self._begin, self.keeps_progress = begin, keeps_progress
        self._gpus = [int(job["gpus"]) for job in jobs]
        self.run = np.zeros(len(jobs))
        self.ended = np.zeros(len(jobs), np.int8)
        self.first = np.full(len(jobs), np.nan)
        self._thawed: dict[int, float] = {}
        self._rows: list[tuple[float, int, int]] = []
        self.natively = 0
        self.ends: dict[str, int] = {}
        self.start_delays: list[float] = []
        self.stop_delays: list[float] = []

    def take(self, event: dict[str, Any]) -> None:
        """Take an event."""
        what, job = event["what"], int(event["job"]) - 1
        time = float(event["time"]) - self._begin
        if what in ("start", "thawed"):
            first = np.isnan(self.first[job])
            self._rows.append((time, START if first else RESUME, job))
            self.first[job] = time if first else self.first[job]
            self.natively += int(event["native"])
            self._thawed[job] = time
        elif what == "not begun":
            place = max(i for i, row in enumerate(self._rows) if row[2] == job)
            if self._rows.pop(place)[1] == START:
                self.first[job] = np.nan
        elif what in ("frozen", "stopped"):
            self._rows.append((time, PREEMPT, job))
            self._add(job, event, time)
        elif what == "finish":
            self._rows.append((time, FINISH, job))
            self._add(job, event, time)
            self.ended[job] = 1
            self.ends[event["end"]] = self.ends.get(event["end"], 0) + 1

    def _add(self, job: int, event: dict[str, Any], time: float) -> None:
        """Add the run time of a process that ended, or was frozen."""
        since = self._thawed.pop(job, time)
        stop = float(event["at"]) - self._begin if event.get("at") else time
        began = float(event["began"]) - self._begin if event.get("began") else since
        if began >= since:  # not of a run before it was frozen
            self.start_delays.append(began - since)
            since = began
        if "at" in event:
            self.stop_delays.append(max(0.0, time - stop))
        before = self.run[job] if self.keeps_progress else 0.0
        self.run[job] = before + max(0.0, stop - since)

    def log(self, submit: np.ndarray[Any, np.dtype[np.float64]]) -> Schedule:
        """Return the schedule log."""
        rows = [(float(time), SUBMIT, job) for job, time in enumerate(submit)]
        rows = sorted([*rows, *self._rows], key=lambda row: row[0])
        detail: list[int] = []
        gpus: list[int] = []
        for _, kind, job in rows:
            if kind in (START, RESUME):
                detail.append(len(gpus))
                gpus.append(self._gpus[job])
            else:
                detail.append(FOR_ANOTHER if kind == PREEMPT else -1)
        return Schedule(
            time=np.array([row[0] for row in rows]),
            kind=np.array([row[1] for row in rows], np.uint8),
            job=np.array([row[2] for row in rows], np.int32),
            detail=np.array(detail, np.int32),
            alloc_node=np.zeros(len(gpus), np.int32),
            alloc_gpus=np.array(gpus, np.int32),
            alloc_slot=np.full(len(gpus), WHOLE_GPUS, np.int32),
            horizon=np.inf,
            decisions=0,
        )
