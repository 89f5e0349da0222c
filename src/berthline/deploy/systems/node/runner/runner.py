"""The runner: which jobs run on which GPUs, by actions from outside or by its plain order.

Its plain order is first come, first served: a job that is not held starts as soon as its GPUs
are free and no earlier job waits. While a controller says that it lives, new jobs are held for it.
When its heartbeats stop, all holds are lifted.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from typing import TYPE_CHECKING, Any

from berthline.deploy.systems.node.runner.control_groups import ControlGroups, JobGroup
from berthline.deploy.systems.node.runner.event_log import EventLog
from berthline.deploy.systems.node.runner.keeper import RunOrders, file_of_run, fork_keeper
from berthline.deploy.systems.node.runner.node_jobs import (
    FINISHED,
    FUTURE,
    HELD,
    LOST,
    RUNNING,
    STOPPING,
    WAITING,
    Command,
    RunnerJob,
    end_of,
)
from berthline.deploy.systems.node.runner.processes import (
    ProcessKey,
    key_of,
    open_living,
    signal_group,
)

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS, EVENTS, JOBS = "settings.json", "events.jsonl", "jobs"
CHECKPOINT, FREEZE, KILL = "checkpoint", "freeze", "kill"
PREEMPTIONS = {
    CHECKPOINT: "send a signal, wait for the grace time, then kill",
    FREEZE: "freeze all processes, and thaw them when it starts again",
    KILL: "kill at once",
}
"""How a running job can be preempted."""

DONE, REFUSED = "done", "refused"
SAME_TIME = 1e-3
"""Submissions closer than this are one: times were written as text and read again."""

Answer = tuple[str, str]
"""Of an action: `done` or `refused`, and words."""


class Runner:
    """The jobs of one trace on one node.

    Args:
        directory: where its settings are and its files go.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        settings = json.loads((directory / SETTINGS).read_bytes())
        self.settings: dict[str, Any] = settings
        self.gpus = int(settings["gpus"])
        self.groups = ControlGroups(*settings["groups"])
        self.jobs = [RunnerJob(Command(**one)) for one in settings["jobs"]]
        self._by_id = {job.command.id: job for job in self.jobs}
        self._future = sorted(self.jobs, key=_place_in_order, reverse=True)
        self._queue: dict[str, RunnerJob] = {}
        self._running: dict[str, RunnerJob] = {}
        self._waits: dict[str, int] = {}
        self._kill_at: dict[str, float] = {}
        self.controlled_until: float | None = None
        """On the monotonic clock; None = no controller acts."""
        self.log = EventLog(directory / EVENTS)
        for event in self.log.events:
            if event["what"] != "begin":
                self._by_id[event["job"]].apply(event)
        self._future = [job for job in self._future if job.state == FUTURE]
        for job in self.jobs:
            self._sort(job)
        self._write(None, "begin", pid=os.getpid())
        for job in list(self._running.values()):
            self._adopt(job)

    # What is known of jobs.

    def _sort(self, job: RunnerJob) -> None:
        """Put a job into the collections that its state belongs to."""
        number, state = job.command.id, job.state
        self._queue.pop(number, None)
        self._running.pop(number, None)
        if state in (WAITING, HELD):
            self._queue[number] = job
        if job.has_process:
            self._running[number] = job

    def _write(self, job: RunnerJob | None, what: str, **facts: Any) -> None:
        event = {"time": time.time(), "what": what, "job": job.command.id if job else "", **facts}
        self.log.write(event)
        if job is not None:
            job.apply(event)
            self._sort(job)

    @property
    def free(self) -> list[int]:
        """The GPUs that no job holds, ascending."""
        taken = {gpu for job in self._running.values() if job.holds_gpus for gpu in job.gpu_ids}
        return [gpu for gpu in range(self.gpus) if gpu not in taken]

    @property
    def is_over(self) -> bool:
        """Whether every job has ended."""
        return not (self._future or self._queue or self._running)

    @property
    def is_idle(self) -> bool:
        """Whether nothing will happen by itself."""
        return self.is_over and self.controlled_until is None

    @property
    def waits(self) -> dict[str, int]:
        """A descriptor for each job with a process, readable when its keeper has ended."""
        return self._waits

    def next_time(self) -> float:
        """Return in how many seconds something is due; infinity = nothing is."""
        soon = [kill - time.monotonic() for kill in self._kill_at.values()]
        if self._future:
            soon.append(self._future[-1].command.submitted - time.time())
        if self.controlled_until is not None:
            soon.append(self.controlled_until - time.monotonic())
        return max(0.0, min(soon, default=float("inf")))

    # What happens by itself.

    def advance(self) -> None:
        """Do what is due now."""
        now = time.monotonic()
        if self.controlled_until is not None and now >= self.controlled_until:
            self.controlled_until = None
            self.lift()
        while self._future and self._future[-1].command.submitted <= time.time():
            job = self._future.pop()
            self._write(job, "submit", held=self.controlled_until is not None)
        for number, at in list(self._kill_at.items()):
            if now >= at:
                del self._kill_at[number]
                self._kill(self._by_id[number])
        self._start_in_order()

    def _start_in_order(self) -> None:
        """Start jobs that are not held, first come, first served."""
        waiting = [job for job in self._queue.values() if job.state == WAITING]
        waiting.sort(key=lambda job: (job.rank is None, job.rank or 0, *_place_in_order(job)))
        for job in waiting:
            if self._start(job, native=True):
                break

    def ended(self, number: str) -> None:
        """Take note that the keeper of a job, or what is left of it, has ended."""
        job = self._by_id[number]
        os.close(self._waits.pop(number))
        self._kill_at.pop(number, None)
        if job.keeper is not None:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(job.keeper.pid, os.WNOHANG)  # it is our child, or was an earlier one's
        self._look_after(job)

    def _adopt(self, job: RunnerJob) -> None:
        """Watch a job of an earlier runner again."""
        self._look_after(job)
        if job.state == STOPPING:
            self._kill_at[job.command.id] = time.monotonic() + float(self.settings["grace"])

    def _look_after(self, job: RunnerJob) -> None:
        """Find out what became of a job whose keeper may have ended, and watch what is left."""
        was_stopping = job.state == STOPPING
        ended = self._read(job, "ended.json")
        began = self._read(job, "began.json")
        if ended is None:
            for process in (job.keeper, _process_of(began)):
                if process and (watched := open_living(process)) is not None:
                    self._waits[job.command.id] = watched
                    return
            # Written between the two looks, unless it was killed.
            ended, began = self._read(job, "ended.json"), self._read(job, "began.json")
        if ended is not None:
            times = {"at": ended["time"], "began": began["time"] if began else None}
            if was_stopping and not ended["error"]:
                self._write(job, "stopped", **times)
                return
            end, code, reason = end_of(ended)
            more = {name: ended.get(name) for name in ("cpu_seconds", "max_rss_mib")}
            self._write(job, "finish", end=end, exit_code=code, reason=reason, **times, **more)
            return
        group = self._group(job)
        group.kill()
        if began is None:
            self._write(job, "not begun")
        elif was_stopping:
            self._write(job, "stopped", at=time.time(), began=began["time"])
        else:
            facts = {"end": LOST, "exit_code": None, "at": time.time(), "began": began["time"]}
            self._write(job, "finish", reason="its end was not seen", **facts)
        group.remove()

    def _read(self, job: RunnerJob, ending: str) -> dict[str, Any] | None:
        """Return what a keeper wrote; None = nothing."""
        path = file_of_run(self.directory / JOBS / job.command.id, job.run, ending)
        try:
            facts: dict[str, Any] = json.loads(path.read_bytes())
        except (OSError, ValueError):
            return None
        return facts

    def _group(self, job: RunnerJob) -> JobGroup:
        return JobGroup(self.groups, f"job-{job.command.id}-{job.run}")

    # What is done to jobs.

    def _start(self, job: RunnerJob, *, native: bool) -> str:
        """Start or thaw a job; return why not, or an empty text."""
        free = self.free
        if len(free) < job.command.gpus:
            return f"{len(free)} of {self.gpus} GPUs are free, and it needs {job.command.gpus}"
        if job.frozen:
            return self._thaw(job, free, native=native)
        gpus = free[: job.command.gpus]
        run = job.run + 1
        directory = self.directory / JOBS / job.command.id
        directory.mkdir(parents=True, exist_ok=True)
        orders = RunOrders(
            arguments=job.command.arguments,
            directory=str(directory),
            run=run,
            working_directory=self.settings["working_directory"],
            environment=self._environment(job, gpus, run, directory),
            memory_mib=job.command.memory_mib,
            groups=self.groups,
            group=f"job-{job.command.id}-{run}",
        )
        for ending in ("began.json", "ended.json"):  # of a run that did not begin
            orders.file(ending).unlink(missing_ok=True)
        try:
            pid, go = fork_keeper(orders)
        except OSError as error:
            return f"no process can be made: {error.strerror}"
        keeper = key_of(pid) or ProcessKey(pid, 0, "")
        self._write(job, "start", run=run, gpus=gpus, keeper=keeper, native=native)
        self._waits[job.command.id] = os.pidfd_open(pid)  # our child: its id is its own till reaped
        with contextlib.suppress(OSError):
            os.write(go, b"g")
        os.close(go)
        return ""

    def _environment(
        self, job: RunnerJob, gpus: list[int], run: int, directory: Path
    ) -> dict[str, str]:
        return {
            **os.environ,
            "CUDA_VISIBLE_DEVICES": ",".join(self.settings["gpu_names"][gpu] for gpu in gpus),
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # the numbers of NVML
            "BERTHLINE_JOB_ID": job.command.id,
            "BERTHLINE_JOB_DIR": str(directory),
            "BERTHLINE_RESTARTS": str(run),
            "BERTHLINE_TIME_SCALE": repr(float(self.settings["time_scale"])),
        }

    def _thaw(self, job: RunnerJob, free: list[int], *, native: bool) -> str:
        gpus = list(job.gpu_ids)
        if not set(gpus) <= set(free):
            if self.settings["are_real"]:  # its memory is on these
                return f"it is frozen on GPUs {gpus}, and some of them are in use"
            gpus = free[: len(gpus)]
        self._write(job, "thawed", gpus=gpus, native=native)
        self._set_frozen(job, frozen=False)
        return ""

    def _set_frozen(self, job: RunnerJob, *, frozen: bool) -> bool:
        if self._group(job).freeze(frozen=frozen):
            return True
        leader = _process_of(self._read(job, "began.json"))
        number = signal.SIGSTOP if frozen else signal.SIGCONT
        return leader is not None and signal_group(leader, number)

    def _preempt(self, job: RunnerJob) -> str:
        how = self.settings["preempt"]
        leader = _process_of(self._read(job, "began.json"))
        if leader is None:
            return "it is just starting"
        if self._read(job, "ended.json") is not None:
            return "it has just ended"
        if how == FREEZE:
            if not self._set_frozen(job, frozen=True):
                return "it cannot be frozen"
            self._write(job, "frozen")
            return ""
        self._write(job, "preempt", how=how)
        if how == KILL:
            self._kill(job)
        elif signal_group(leader, signal.Signals[self.settings["signal"]]):
            self._kill_at[job.command.id] = time.monotonic() + float(self.settings["grace"])
        return ""

    def _kill(self, job: RunnerJob) -> None:
        if leader := _process_of(self._read(job, "began.json")):
            signal_group(leader, signal.SIGKILL)
        self._group(job).kill()

    # What a controller says.

    def beat(self, seconds: float) -> None:
        """Hold new jobs for so long."""
        self.controlled_until = time.monotonic() + seconds

    def lift(self) -> tuple[int, int]:
        """Lift all holds and forget the controller; return how many were lifted, and are left."""
        self.controlled_until = None
        held = [job for job in self._queue.values() if job.state == HELD]
        for job in [*held, *(job for job in self._queue.values() if job.rank is not None)]:
            self._release(job)
        return len(held), 0

    def _release(self, job: RunnerJob) -> None:
        if job.state == HELD or job.rank is not None:
            self._write(job, "release")

    def act(self, action: dict[str, Any]) -> Answer:
        """Do one thing to one job."""
        job = self._by_id.get(str(action["job"]))
        if job is None or job.state == FUTURE:
            return REFUSED, f"there is no job {action['job']}"
        if abs(job.command.submitted - float(action["submitted"])) > SAME_TIME:
            return REFUSED, f"job {job.command.id} was submitted at another time"
        if job.state == FINISHED:
            return REFUSED, f"job {job.command.id} is over: {job.reason}"
        words = self._act(job, action)
        return (REFUSED, f"job {job.command.id}: {words}") if words else (DONE, "")

    def _act(self, job: RunnerJob, action: dict[str, Any]) -> str:
        kind, waits = action["kind"], job.state in (WAITING, HELD)
        if kind == "start":
            if not waits:
                return "" if job.state == RUNNING else "it is stopping"
            if action.get("slots"):
                return "GPUs are not shared here"
            if dict(action.get("nodes") or {}) != {self.settings["node"]: job.command.gpus}:
                return f"it takes {job.command.gpus} GPUs on {self.settings['node']}"
            return self._start(job, native=False)
        if kind == "preempt":
            if job.state == RUNNING:
                return self._preempt(job)
            return "it does not run" if job.state == WAITING else ""
        if kind == "hold":
            if job.state == WAITING:
                self._write(job, "hold")
            return "" if waits else "it runs"
        if kind == "release":
            self._release(job)
            return ""
        if kind == "rank":
            if waits and job.rank != action.get("rank", 0):
                self._write(job, "rank", rank=int(action.get("rank", 0)))
            return "" if waits else "it runs"
        return f"nothing is known of {kind!r}"

    def look(self) -> list[dict[str, Any]]:
        """Return what is known of each job that was submitted."""
        return [
            {
                "id": job.command.id,
                "submitted": job.command.submitted,
                "state": job.state,
                "frozen": job.frozen,
                "gpu_ids": job.gpu_ids if job.holds_gpus else (),
                "started": job.started,
                "finished": job.finished,
                "end": job.end,
                "exit_code": job.exit_code,
                "reason": job.reason,
                "restarts": job.restarts,
                "rank": job.rank,
            }
            for job in self.jobs
            if job.state != FUTURE
        ]

    def close(self) -> None:
        """Close all files. Jobs run on."""
        if self.is_over:
            self.groups.remove()
        for descriptor in self._waits.values():
            os.close(descriptor)
        self.log.close()


def _place_in_order(job: RunnerJob) -> tuple[float, int]:
    """First come, first served."""
    return job.command.submitted, int(job.command.id)


def _process_of(began: dict[str, Any] | None) -> ProcessKey | None:
    return ProcessKey(*began["process"]) if began else None
