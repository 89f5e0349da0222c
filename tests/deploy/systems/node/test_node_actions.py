"""Holds, starts, ranks, heartbeats, the guard, and the three ways to preempt."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time

import pytest
from tests.deploy.systems.node.node_tools import (
    PATIENCE,
    act,
    events_of,
    job,
    kill,
    node_of,
    output,
    run_of,
    until,
    wait_for,
)

from berthline.deploy.systems.contract import Action, ActionKind
from berthline.deploy.systems.node.lift_node import call
from berthline.deploy.systems.node.node_adapter import NodeAdapter
from berthline.deploy.systems.node.runner.processes import is_alive, key_of
from berthline.testing import adapter_check

HOLD, START, PREEMPT, RELEASE, RANK = (
    ActionKind.HOLD,
    ActionKind.START,
    ActionKind.PREEMPT,
    ActionKind.RELEASE,
    ActionKind.RANK,
)
LONG = {"command": "sleep 300"}
ONE_AFTER_ANOTHER = [{"command": "true", "submit_time": 0.4 * number} for number in range(100)]
COUNTS = """
import json, os, signal, sys, time
file = os.environ["BERTHLINE_JOB_DIR"] + "/saved"
count = int(open(file).read()) if os.path.exists(file) else 0
def save(*_):
    open(file, "w").write(str(count))
    sys.exit(0)
signal.signal(signal.SIGUSR1, save)
print(count, os.environ["BERTHLINE_RESTARTS"], flush=True)
while True:
    count += 1
    time.sleep(0.01)
"""


def test_held_jobs_start_only_by_an_action_and_on_the_gpus_that_are_free(tmp_path):
    rows = [LONG, {**LONG, "gpus": 2}, LONG]
    with node_of(tmp_path, rows) as node:
        run_of(node, 1)
        assert job(node, 2).state == "waiting"
        assert act(node, HOLD, 2) == ("done", "")
        assert (job(node, 2).state, job(node, 2).held_by) == ("held", "us")
        third = wait_for(node, 3, "running")  # the second no longer blocks it
        assert third.gpu_ids == {node.look().nodes[0].name: (1,)}
        status, words = act(node, START, 2)
        assert status == "refused"
        assert "0 of 2 GPUs are free" in words
        assert act(node, HOLD, 3)[0] == "refused"
        assert act(node, START, 3) == ("done", ""), "it runs already"
        assert act(node, HOLD, 2) == ("done", "")
        assert act(node, RELEASE, 2) == ("done", "")
        assert job(node, 2).state == "waiting"


def test_actions_that_do_not_fit_are_refused(tmp_path):
    with node_of(tmp_path, [LONG, {**LONG, "submit_time": 999}], preempt="kill") as started:
        run_of(started, 1)
        node = NodeAdapter(started.directory, heartbeat_limit=600.0)
        node.beat()
        record = job(node, 1)
        name = node.look().nodes[0].name
        wrong = [
            Action(kind=HOLD, job="77", submitted=record.submitted),
            Action(kind=HOLD, job="2", submitted=record.submitted + 999),
            Action(kind=RELEASE, job="1", submitted=record.submitted - 50),
        ]
        assert [one.status for one in node.do(wrong)] == ["refused"] * 3
        assert act(node, PREEMPT, 1)[0] == "done"
        wait_for(node, 1, "held")
        assert act(node, START, 1, nodes={"elsewhere": 1})[0] == "refused"
        assert act(node, START, 1, nodes={name: 2})[0] == "refused"
        assert act(node, START, 1, nodes={name: 1}, slots=(0,))[0] == "refused"
        assert act(node, START, 1, nodes={name: 1})[0] == "done"


def test_ranks_order_the_jobs_that_wait(tmp_path):
    rows = [LONG, {"command": "true"}, {"command": "true"}]
    with node_of(tmp_path, rows, slots=1) as node:
        process = run_of(node, 1)
        assert act(node, RANK, 3, rank=0, of=2)[0] == "done"
        assert act(node, RANK, 2, rank=1, of=2)[0] == "done"
        kill(process)
        until(lambda: node.is_over)
        assert [one["job"] for one in events_of(node.directory, "start")] == ["1", "3", "2"]
        assert job(node, 1).words == "killed by a signal"


def test_new_jobs_are_held_while_a_controller_lives_and_lifted_when_it_does_not(tmp_path):
    with node_of(tmp_path, ONE_AFTER_ANOTHER) as first:
        node = NodeAdapter(first.directory, heartbeat_limit=1.0)

        def held() -> list[str]:
            return [one.id for one in node.look().jobs if one.held_by == "us"]

        def beat_until_held() -> list[str]:
            node.beat()
            return held()

        seen = until(beat_until_held, "a new job is held")
        until(lambda: not held(), "holds are lifted without heartbeats")
        released = [one["job"] for one in events_of(node.directory, "release")]
        assert set(seen) <= set(released)
        for number in seen:
            assert wait_for(node, int(number), "finished").words == "done"


@pytest.mark.parametrize("runner_is_killed", [False, True])
def test_the_guard_lifts_holds_with_the_standard_library_alone(tmp_path, runner_is_killed):
    with node_of(tmp_path, [LONG, LONG], slots=1) as node:
        run_of(node, 1)
        act(node, HOLD, 2)
        if runner_is_killed:
            key = key_of(call(node.directory, {"call": "status"})["pid"])
            kill(key)
            until(lambda: not is_alive(key))
        orders = node.guard()
        code = (
            "import importlib, json, sys; m = importlib.import_module(sys.argv[1]);"
            "print(m.lift(json.loads(sys.argv[2])));"
            "print([n for n in ('numpy', 'msgspec', 'polars') if n in sys.modules])"
        )
        guard = [sys.executable, "-c", code, orders.module, json.dumps(orders.arguments)]
        said = subprocess.run(guard, capture_output=True, timeout=PATIENCE, check=True)
        assert said.stdout.decode().splitlines() == ["(1, 0)", "[]"]
        assert job(node, 2).state == "waiting"


def test_preemption_by_checkpoint_keeps_what_was_saved(tmp_path):
    rows = [{"command": [sys.executable, "-S", "-c", COUNTS]}]
    with node_of(tmp_path, rows, signal="SIGUSR1") as node:
        until(lambda: output(node, 1), "it counts")
        assert act(node, PREEMPT, 1) == ("done", "")
        record = wait_for(node, 1, "held")
        assert (record.held_by, record.nodes, record.restarts) == ("us", {}, 0)
        assert act(node, START, 1) == ("done", "")
        count, restarts = until(lambda: output(node, 1, run=1), "it counts again").split()
        assert int(count) > 0
        assert restarts == "1"
        assert job(node, 1).restarts == 1


def test_a_job_that_ignores_the_signal_is_killed_after_the_grace_time(tmp_path):
    rows = [{"command": ["sh", "-c", "trap '' TERM; echo on; while :; do sleep 0.05; done"]}]
    with node_of(tmp_path, rows, grace=0.4) as node:
        until(lambda: output(node, 1), "it runs")
        process = run_of(node, 1)
        assert act(node, PREEMPT, 1)[0] == "done"
        assert job(node, 1).state == "running", "it holds its GPUs while it stops"
        assert act(node, PREEMPT, 1)[0] == "done"
        wait_for(node, 1, "held")
        assert not is_alive(process)
    (stopped,), (asked,) = (events_of(node.directory, name) for name in ("stopped", "preempt"))
    assert stopped["at"] - asked["time"] >= 0.4


def test_preemption_by_kill(tmp_path):
    with node_of(tmp_path, [LONG], preempt="kill") as node:
        process = run_of(node, 1)
        assert act(node, PREEMPT, 1)[0] == "done"
        wait_for(node, 1, "held")
        assert not is_alive(process)
        assert act(node, RELEASE, 1)[0] == "done"
        assert wait_for(node, 1, "running").restarts == 1


@pytest.mark.parametrize("cgroups", ["v2", "v1", "none"])
def test_a_frozen_job_stands_still_and_goes_on(tmp_path, cgroups):
    code = "import time, sys\nwhile True:\n  print(1, flush=True)\n  time.sleep(0.01)"
    rows = [{"command": [sys.executable, "-S", "-c", code]}, LONG]
    with node_of(tmp_path, rows, slots=1, preempt="freeze", cgroups=cgroups) as node:
        if cgroups != "none" and f"freezing by cgroup {cgroups}" not in node.words:
            pytest.skip(f"nothing can be frozen by cgroup {cgroups} here")
        until(lambda: output(node, 1), "it runs")
        process = run_of(node, 1)
        assert act(node, PREEMPT, 1) == ("done", "")
        record = job(node, 1)
        assert (record.state, record.held_by, record.words) == ("held", "us", "held, frozen")
        wait_for(node, 2, "running")
        until(lambda: _is_still(node), "it stands still")
        kill(run_of(node, 2))
        wait_for(node, 2, "finished")
        length = len(output(node, 1))
        assert act(node, START, 1) == ("done", "")
        until(lambda: len(output(node, 1)) > length, "it goes on")
        assert run_of(node, 1) == process, "it is the same process"
        assert job(node, 1).restarts == 1


def _is_still(node: NodeAdapter) -> bool:
    length = len(output(node, 1))
    time.sleep(0.2)
    return len(output(node, 1)) == length


def test_requests_that_cannot_be_read_are_answered(tmp_path):
    with node_of(tmp_path, [LONG]) as node:
        for request in ({}, {"call": "fly"}, {"call": "do", "actions": [{}]}, {"call": "beat"}, []):
            assert re.match("not a request", call(node.directory, request)["error"])
        assert job(node, 1).state == "running"


@pytest.mark.parametrize(
    ("slots", "gpus", "left_out"),
    [
        (3, [2, 2, 2, 1], "a start too many is refused"),
        (1, [1, 1, 1], "a start happens, and only once"),
    ],
)
def test_the_adapter_keeps_the_contract(tmp_path, slots, gpus, left_out):
    with node_of(tmp_path, [{**LONG, "gpus": one} for one in gpus], slots=slots) as node:
        run_of(node, 1)
        checked = adapter_check(node)
    assert checked.left_out == (left_out,), "with or without a free slot"
    assert len(checked.done) == 9


def test_new_jobs_start_natively_after_the_controller_has_left(tmp_path):
    with node_of(tmp_path, ONE_AFTER_ANOTHER) as node:
        node.beat()
        node.leave()
        left = time.time()

        def submitted() -> list[dict]:
            return [one for one in events_of(node.directory, "submit") if one["time"] > left]

        first = until(submitted, "a job is submitted later")[0]
        assert not first["held"]
