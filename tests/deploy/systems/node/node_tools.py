"""Nodes for tests: real runners and jobs in a directory of their own, ended by process id."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from typing import TYPE_CHECKING, Any

from berthline.deploy.systems.contract import Action, ActionKind
from berthline.deploy.systems.node.connect_node import NodeOptions, connect
from berthline.deploy.systems.node.lift_node import call
from berthline.deploy.systems.node.runner.control_groups import ControlGroups, JobGroup
from berthline.deploy.systems.node.runner.event_log import read_events
from berthline.deploy.systems.node.runner.processes import ProcessKey, open_process, signal_group

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from berthline.deploy.systems.contract import JobRecord
    from berthline.deploy.systems.node.node_adapter import NodeAdapter

COLUMNS = ("name", "command", "est_runtime_s", "submit_time", "gpus", "memory_mib")
PATIENCE = 60.0


def write_list(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """Write a list of commands; a command may be a list of arguments."""
    lines = [",".join(COLUMNS)]
    for number, row in enumerate(rows):
        defaults = {
            "name": f"job{number}",
            "est_runtime_s": 1,
            "submit_time": 0,
            "gpus": 1,
            "memory_mib": 0,
        }
        cells = defaults | row
        if not isinstance(cells["command"], str):
            cells["command"] = json.dumps(cells["command"])
        quoted = ['"' + str(cells[name]).replace('"', '""') + '"' for name in COLUMNS]
        lines.append(",".join(quoted))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@contextlib.contextmanager
def node_of(
    directory: Path, rows: Sequence[dict[str, Any]], **options: Any
) -> Iterator[NodeAdapter]:
    """Yield the adapter of a node with these jobs; end all that it started."""
    options = {"slots": 2, "telemetry": "none", **options}
    path = write_list(directory / "jobs.csv", rows)
    try:
        yield connect(NodeOptions(workload=str(path), **options), directory / "journal")
    finally:
        end_all(directory / "journal" / "node")


def end_all(directory: Path) -> None:
    """End the runner of a directory, and every process that it started, by id and start time."""
    if not (directory / "settings.json").exists():
        return
    with contextlib.suppress(OSError):
        call(directory, {"call": "stop"})
    keys = [ProcessKey(*event["keeper"]) for event in events_of(directory, "start")]
    for key in keys:
        kill(key)
    for file in directory.glob("jobs/*/run-*.began.json"):
        signal_group(ProcessKey(*json.loads(file.read_bytes())["process"]), signal.SIGKILL)
    groups = ControlGroups(*json.loads((directory / "settings.json").read_bytes())["groups"])
    for event in events_of(directory, "start"):
        group = JobGroup(groups, f"job-{event['job']}-{event['run']}")
        group.kill()
        group.remove()
    groups.remove()


def kill(key: ProcessKey, number: int = signal.SIGKILL) -> None:
    """Send a signal to exactly this process, if it is there."""
    if (descriptor := open_process(key)) is not None:
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(descriptor, number)
        os.close(descriptor)


def events_of(directory: Path, what: str) -> list[dict[str, Any]]:
    """Return the events of a kind."""
    return [event for event in read_events(directory / "events.jsonl") if event["what"] == what]


def until(condition: Callable[[], Any], what: str = "") -> Any:
    """Wait until a condition holds, and return its value."""
    limit = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < limit, f"it did not happen: {what}"
        time.sleep(0.01)
    return value


def job(node: NodeAdapter, number: int) -> JobRecord:
    """Return the record of a job, by its number from 1."""
    return next(one for one in node.look().jobs if one.id == str(number))


def wait_for(node: NodeAdapter, number: int, *states: str) -> JobRecord:
    """Wait until a job is in one of these states, or in its own words is."""

    def found() -> JobRecord | None:
        record = job(node, number)
        return record if record.state in states or record.words in states else None

    record: JobRecord = until(found, f"job {number} {states}")
    return record


def output(node: NodeAdapter, number: int, run: int = 0) -> str:
    """Return what a run of a job wrote."""
    path = node.directory / "jobs" / str(number) / f"run-{run}.out"
    return path.read_text() if path.exists() else ""


def act(node: NodeAdapter, kind: ActionKind, number: int, **more: Any) -> tuple[str, str]:
    """Do one thing to a job, and return (status, words)."""
    record = job(node, number)
    if kind == ActionKind.START and "nodes" not in more:
        more["nodes"] = {node.look().nodes[0].name: record.gpus}
    (outcome,) = node.do([Action(kind=kind, job=record.id, submitted=record.submitted, **more)])
    return outcome.status, outcome.words


def run_of(node: NodeAdapter, number: int, run: int = 0) -> ProcessKey:
    """Wait until a run of a job has begun, and return its first process."""
    file = node.directory / "jobs" / str(number) / f"run-{run}.began.json"
    until(file.exists, f"job {number} begins")
    return ProcessKey(*json.loads(file.read_bytes())["process"])
