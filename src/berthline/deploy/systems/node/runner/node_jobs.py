"""The jobs of a runner: what is known of each, and what an event changes.

The same function applies an event when it happens and when the log is read again, so a runner that
replaces a killed one has the same state.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from berthline.deploy.systems.node.runner.processes import ProcessKey

FUTURE, WAITING, HELD, RUNNING, STOPPING, FINISHED = (
    "not submitted",
    "waiting",
    "held",
    "running",
    "stopping",
    "finished",
)

DONE, FAILED, KILLED, OUT_OF_MEMORY, LOST, NOT_STARTED = (
    "done",
    "failed",
    "killed by a signal",
    "out of memory",
    "lost",
    "could not be started",
)
"""How a job can end."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Command:
    """What a trace says of a job. Times are Unix times.

    Attributes:
        id: its number in the trace, from 1.
        name: what its user called it: any text.
        arguments: the program and its arguments.
        submitted: when it is submitted.
        estimate: the stated run time in seconds.
        deadline: by when it should be finished; None = none.
        priority: larger is more important.
        gpus: GPUs that it needs.
        memory_mib: its memory limit; 0 = none.
    """

    id: str
    name: str
    arguments: list[str]
    submitted: float
    estimate: float
    deadline: float | None
    priority: float
    gpus: int
    memory_mib: int


@dataclasses.dataclass
class RunnerJob:
    """A job and its state.

    Attributes:
        command: what the trace says.
        state: one of the states above.
        rank: its place in our order; None = none.
        run: the number of its last run; -1 = it never ran.
        restarts: how often it ran again, or was thawed.
        frozen: it waits or is held with its processes frozen.
        gpu_ids: the GPUs that it holds, or held when it was frozen.
        started: when it last started.
        keeper: the process that keeps it.
        native: it was started by the runner's own order.
        finished: when it ended.
        end: one of the ends above.
        exit_code: of its program; 128 + the number of a signal; None = not known.
        reason: how it ended, in words.
    """

    command: Command
    state: str = FUTURE
    rank: int | None = None
    run: int = -1
    restarts: int = 0
    frozen: bool = False
    gpu_ids: tuple[int, ...] = ()
    started: float | None = None
    keeper: ProcessKey | None = None
    native: bool = False
    finished: float | None = None
    end: str = ""
    exit_code: int | None = None
    reason: str = ""

    @property
    def holds_gpus(self) -> bool:
        """Whether its GPUs are in use."""
        return self.state in (RUNNING, STOPPING)

    @property
    def has_process(self) -> bool:
        """Whether it has processes."""
        return self.holds_gpus or self.frozen

    def apply(self, event: dict[str, Any]) -> None:
        """Change the state as an event says."""
        what, time = event["what"], float(event["time"])
        if what == "submit":
            self.state = HELD if event["held"] else WAITING
        elif what == "hold":
            self.state = HELD
        elif what == "release":
            self.rank = None
            self.state = WAITING if self.state == HELD else self.state
        elif what == "rank":
            self.rank = event["rank"]
        elif what == "start":
            self.run, self.state, self.started = int(event["run"]), RUNNING, time
            self.gpu_ids, self.native = tuple(event["gpus"]), bool(event["native"])
            self.keeper = ProcessKey(*event["keeper"])
            self.restarts += int(self.run > 0)
        elif what == "preempt":
            self.state = STOPPING
        elif what == "frozen":
            self.state, self.frozen, self.started = HELD, True, None
        elif what == "thawed":
            self.state, self.frozen, self.started = RUNNING, False, time
            self.gpu_ids, self.native = tuple(event["gpus"]), bool(event["native"])
            self.restarts += 1
        elif what == "stopped":
            self._leave(HELD)
        elif what == "not begun":
            self._leave(WAITING)
            self.restarts -= int(self.run > 0)
            self.run -= 1
        elif what == "finish":
            self._leave(FINISHED)
            self.finished, self.end = event["at"], event["end"]
            self.exit_code, self.reason = event["exit_code"], event["reason"]

    def _leave(self, state: str) -> None:
        self.state, self.started, self.keeper, self.gpu_ids = state, None, None, ()
        self.frozen = False


def end_of(ended: dict[str, Any]) -> tuple[str, int | None, str]:
    """Return (end, exit code, words) of what a keeper wrote."""
    from signal import Signals

    if ended["error"]:
        return NOT_STARTED, 127, ended["error"]
    if ended["signal"] is not None:
        number = int(ended["signal"])
        try:
            name = Signals(number).name
        except ValueError:
            name = f"signal {number}"
        if ended["out_of_memory"]:
            return OUT_OF_MEMORY, 128 + number, "the kernel killed it at its memory limit"
        return KILLED, 128 + number, f"killed by {name}"
    code = int(ended["code"])
    if code and ended["out_of_memory"]:
        return OUT_OF_MEMORY, code, f"exit code {code}, a part was killed at its memory limit"
    return (FAILED, code, f"exit code {code}") if code else (DONE, 0, "exit code 0")
