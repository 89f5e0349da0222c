"""What happened on a node, from real runs and from events by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.deploy.systems.node.node_tools import act, node_of, run_of, until, wait_for

from berthline.deploy.systems.contract import ActionKind
from berthline.deploy.systems.node.node_history import read_node_history
from berthline.deploy.systems.node.runner.keeper import write_whole
from berthline.errors import ConfigError
from berthline.model.schedule import FINISH, PREEMPT, RESUME, START, SUBMIT

KEEPER = [1, 1, "boot"]


def by_hand(directory, events, *, preempt="checkpoint"):
    """Write the files of a runner with two jobs on one slot, which began at 100."""
    jobs = [
        {
            "id": str(number),
            "name": f"j{number}",
            "arguments": ["true"],
            "submitted": 100.0 + number - 1,
            "estimate": 5.0,
            "deadline": None,
            "priority": 0.0,
            "gpus": 1,
            "memory_mib": 0,
        }
        for number in (1, 2)
    ]
    settings = {
        "begin": 100.0,
        "jobs": jobs,
        "gpus": 1,
        "gpu_type": "",
        "name": "x.csv",
        "preempt": preempt,
        "telemetry": "none",
    }
    write_whole(directory / "settings.json", settings)
    text = "".join(json.dumps(event) + "\n" for event in events)
    (directory / "events.jsonl").write_text(text)
    return read_node_history(directory)


def event(time, what, job="1", **facts):
    """Return an event."""
    if what == "start":
        facts = {"run": 0, "gpus": [0], "keeper": KEEPER, "native": True, **facts}
    return {"time": 100.0 + time, "what": what, "job": job, **facts}


def ended(time, at, began, **facts):
    """Return what a runner writes at an end."""
    end = {"end": "done", "exit_code": 0, "reason": ""}
    return event(time, "finish", at=100.0 + at, began=100.0 + began, **end, **facts)


def test_a_preempted_job_by_hand(tmp_path):
    events = [
        event(0, "begin", ""),
        event(0, "submit", held=False),
        event(1, "start"),
        event(3, "preempt", how="checkpoint"),
        event(4, "stopped", at=103.5, began=101.5),
        event(5, "start", native=False),
        ended(9, 8.75, 5.25),
    ]
    found = by_hand(tmp_path, events)
    log, workload = found.log, found.workload
    kinds = [SUBMIT, SUBMIT, START, PREEMPT, RESUME, FINISH]
    assert log.kind.tolist() == kinds
    assert log.time.tolist() == [0, 1, 1, 4, 5, 9]
    assert workload.run.tolist() == [2 + 3.5, 5], "the second has not run: its estimate"
    assert found.start_delays == [0.5, 0.25]
    assert found.stop_delays == [0.5, 0.25]
    assert (found.natively, found.is_over, found.ends) == (1, False, {"done": 1})
    lost = by_hand(tmp_path, events, preempt="kill")
    assert lost.workload.run[0] == 3.5, "what was done before was lost"


def test_a_frozen_job_by_hand(tmp_path):
    events = [
        event(0, "submit", held=False),
        event(1, "start"),
        event(3, "frozen"),
        event(6, "thawed", gpus=[0], native=False),
        ended(10, 10, 1.5),
    ]
    found = by_hand(tmp_path, events, preempt="freeze")
    assert found.workload.run[0] == pytest.approx(2 + 4), "frozen before its beginning was known"
    assert found.log.kind.tolist() == [SUBMIT, SUBMIT, START, PREEMPT, RESUME, FINISH]


def test_a_start_that_did_not_happen_is_none(tmp_path):
    events = [
        event(0, "submit", held=False),
        event(1, "start"),
        event(2, "not begun"),
        event(3, "start"),
        ended(5, 5, 3),
    ]
    found = by_hand(tmp_path, events)
    assert found.log.time[found.log.kind == START].tolist() == [3]
    assert found.workload.history.start[0] == 3
    assert np.isnan(found.workload.history.start[1])


def test_a_real_node(tmp_path):
    rows = [{"command": "sleep 300"}, {"command": "sleep 0.2", "gpus": 2}, {"command": "false"}]
    with node_of(tmp_path, rows, preempt="kill") as node:
        run_of(node, 1)
        act(node, ActionKind.PREEMPT, 1)
        wait_for(node, 1, "held")
        until(lambda: wait_for(node, 3, "finished"))
        found = read_node_history(node.directory)
    assert found.ends == {"done": 1, "failed": 1}
    assert not found.is_over
    assert 0.2 <= found.workload.run[1] < 5
    assert found.cluster.total_gpus == 2
    assert all(delay >= 0 for delay in (*found.start_delays, *found.stop_delays))


@pytest.mark.parametrize("is_there", [False, True])
def test_nothing_has_happened(tmp_path, is_there):
    words = "no job has started" if is_there else "no node was scheduled"
    with pytest.raises(ConfigError, match=words):
        by_hand(tmp_path, []) if is_there else read_node_history(tmp_path)
