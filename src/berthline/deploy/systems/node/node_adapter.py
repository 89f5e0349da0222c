"""NodeAdapter: the runner of this node, behind the contract."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from typing import TYPE_CHECKING, Any

import msgspec

from berthline.deploy.systems.contract import (
    BY_US,
    FINISHED,
    HELD,
    NOT_KNOWN,
    RUNNING,
    UP,
    WAITING,
    Abilities,
    Action,
    AdapterError,
    GuardOrders,
    JobRecord,
    Look,
    NodeRecord,
    Outcome,
)
from berthline.deploy.systems.node.lift_node import call, call_or_begin
from berthline.deploy.systems.node.runner.control_groups import ControlGroups
from berthline.deploy.systems.node.runner.runner import PREEMPTIONS, SETTINGS
from berthline.model.gpu_types import RECORDED

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

HEARTBEAT_LIMIT = 5.0
"""Seconds without a heartbeat after which the runner lifts all holds."""
_STATES = {
    "waiting": WAITING,
    "held": HELD,
    "running": RUNNING,
    "stopping": RUNNING,
    "finished": FINISHED,
}


class NodeAdapter:
    """One node behind the contract.

    Args:
        directory: where its runner is.
        heartbeat_limit: seconds without a heartbeat after which the runner lifts all holds.
    """

    def __init__(self, directory: Path, *, heartbeat_limit: float = HEARTBEAT_LIMIT) -> None:
        self.directory = directory
        self._settings: dict[str, Any] = json.loads((directory / SETTINGS).read_bytes())
        self._jobs = {job["id"]: job for job in self._settings["jobs"]}
        self._node = str(self._settings["node"])
        self._limit = heartbeat_limit
        self._lock = threading.Lock()
        self.name = f"node {self._node}"
        self.abilities = Abilities(
            places=True,
            holds=True,
            ranks=True,
            preempts=True,
            spans_nodes=False,
            checks_capacity=True,
            identity="its line in the list of commands and its submission",
        )

    @property
    def words(self) -> str:
        """What this node has, in a line for people."""
        gpus, settings = self._settings["gpus"], self._settings
        kind = f"GPUs ({settings['gpu_type']})" if settings["are_real"] else "declared slots"
        telemetry = settings["telemetry"]
        telemetry = "no telemetry" if telemetry == "none" else f"telemetry by {telemetry}"
        how = settings["preempt"]
        return (
            f"{gpus} {kind}, {ControlGroups(*settings['groups']).words}, {telemetry}, "
            f"preemption: {PREEMPTIONS[how]}"
        )

    @property
    def is_over(self) -> bool:
        """Whether every job has ended."""
        return bool(self._ask({"call": "look"})["over"])

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            with self._lock:
                answer = call_or_begin(self.directory, request)
        except (OSError, ValueError) as error:
            raise AdapterError(
                f"the runner does not answer: {error}", where=str(self.directory)
            ) from None
        if not isinstance(answer, dict) or "error" in answer:
            raise AdapterError(f"the runner answers {answer}", where=str(self.directory))
        return answer

    def look(self) -> Look:
        """Return what the runner says now."""
        answer = self._ask({"call": "look"})
        jobs = tuple(self._record(job) for job in answer["jobs"])
        in_use = sum(sum(job.nodes.values()) for job in jobs)
        node = NodeRecord(
            name=self._node,
            gpus=int(self._settings["gpus"]),
            gpus_in_use=in_use,
            state=UP,
            gpu_type=self._settings["gpu_type"] or RECORDED,
        )
        return Look(time=float(answer["time"]), jobs=jobs, nodes=(node,))

    def _record(self, job: dict[str, Any]) -> JobRecord:
        command, state = self._jobs[job["id"]], _STATES[job["state"]]
        gpu_ids = tuple(job["gpu_ids"])
        is_running = state == RUNNING
        words = job["end"] or (f"{job['state']}, frozen" if job["frozen"] else job["state"])
        return JobRecord(
            id=job["id"],
            submitted=float(job["submitted"]),
            state=state,
            ours=True,
            gpus=int(command["gpus"]),
            memory_mib=int(command["memory_mib"]),
            estimate=float(command["estimate"]),
            priority=float(command["priority"]),
            deadline=command["deadline"],
            name=command["name"],
            held_by=BY_US if state == HELD else "",
            started=job["started"],
            nodes={self._node: len(gpu_ids)} if is_running else {},
            gpu_ids={self._node: gpu_ids} if is_running else {},
            finished=job["finished"],
            exit_code=job["exit_code"],
            restarts=int(job["restarts"]),
            words=words,
            reason=job["reason"],
        )

    def do(self, actions: Sequence[Action]) -> list[Outcome]:
        """Do these things now."""
        request = {"call": "do", "actions": msgspec.to_builtins(list(actions))}
        try:
            answer = self._ask(request)
            return [Outcome(str(status), str(words)) for status, words in answer["outcomes"]]
        except AdapterError as error:
            return [Outcome(NOT_KNOWN, error.what)] * len(actions)

    def clock(self) -> float:
        """Return Unix time."""
        return time.time()

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        time.sleep(max(0.0, seconds))

    def beat(self) -> None:
        """Let the runner hold new jobs for a while."""
        self._ask({"call": "beat", "seconds": self._limit})

    def leave(self) -> None:
        """Let new jobs start in the runner's own order from now on."""
        self._ask({"call": "leave"})

    def guard(self) -> GuardOrders:
        """Return how a guard reaches the runner."""
        return GuardOrders(
            module="berthline.deploy.systems.node.lift_node",
            arguments={"directory": str(self.directory)},
        )

    def close(self) -> None:
        """End the runner if all jobs are over; otherwise it and its jobs go on."""
        with contextlib.suppress(OSError, ValueError):
            call(self.directory, {"call": "close"})
