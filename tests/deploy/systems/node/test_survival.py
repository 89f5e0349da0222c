"""Controllers, runners and keepers are killed: jobs run on, and their ends are not lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.deploy.systems.node.node_tools import (
    PATIENCE,
    end_all,
    events_of,
    job,
    kill,
    node_of,
    run_of,
    until,
    wait_for,
    write_list,
)

from berthline.deploy.systems.node.lift_node import call
from berthline.deploy.systems.node.node_adapter import NodeAdapter
from berthline.deploy.systems.node.runner.event_log import EventLog, read_events
from berthline.deploy.systems.node.runner.processes import (
    ProcessKey,
    boot_id,
    is_alive,
    key_of,
    open_living,
    open_process,
    signal_group,
)

UNTIL_FILE = "while [ ! -e {} ]; do sleep 0.02; done; exit 5"
CONTROLLER = """
import sys, time
from pathlib import Path
from berthline.deploy.systems.node.connect_node import NodeOptions, connect
node = connect(NodeOptions(workload=sys.argv[1], slots=2, telemetry="none"), Path(sys.argv[2]))
print(len(node.look().jobs), flush=True)
time.sleep(600)
"""

KEEPER = """
import os, sys
from berthline.deploy.systems.node.runner.control_groups import ControlGroups
from berthline.deploy.systems.node.runner.keeper import RunOrders, fork_keeper
command = ["touch", sys.argv[1] + "/made"]
pid, go = fork_keeper(RunOrders(command, sys.argv[1], 0, "/", {}, 0, ControlGroups(), "x"))
os.close(go)  # as when the runner is killed before it has written down who the keeper is
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def kill_runner(node: NodeAdapter) -> None:
    """Kill the runner of a node, and wait until it is gone."""
    key = key_of(call(node.directory, {"call": "status"})["pid"])
    assert key is not None
    kill(key)
    until(lambda: not is_alive(key), "the runner is gone")


def test_jobs_outlive_the_controller(tmp_path):
    go = tmp_path / "go"
    path = write_list(tmp_path / "jobs.csv", [{"command": ["sh", "-c", UNTIL_FILE.format(go)]}])
    journal = tmp_path / "journal"
    controller = subprocess.Popen(
        [sys.executable, "-c", CONTROLLER, str(path), str(journal)], stdout=subprocess.PIPE
    )
    try:
        assert controller.stdout.readline().strip() == b"1"
        controller.kill()
        controller.wait(PATIENCE)
        node = NodeAdapter(journal / "node")
        process = run_of(node, 1)
        assert is_alive(process)
        go.touch()
        assert wait_for(node, 1, "finished").exit_code == 5
    finally:
        controller.kill()
        controller.wait(PATIENCE)
        controller.stdout.close()
        end_all(journal / "node")


def test_a_new_runner_adopts_jobs_that_run_and_reads_ends_that_no_runner_saw(tmp_path):
    go = [tmp_path / "go1", tmp_path / "go2"]
    rows = [{"command": ["sh", "-c", UNTIL_FILE.format(one)]} for one in go]
    with node_of(tmp_path, rows) as node:
        processes = [run_of(node, number) for number in (1, 2)]
        keepers = [ProcessKey(*one["keeper"]) for one in events_of(node.directory, "start")]
        kill_runner(node)
        go[0].touch()
        until(lambda: not is_alive(keepers[0]), "the first job ends while there is no runner")
        assert is_alive(processes[1])
        assert wait_for(node, 1, "finished").exit_code == 5
        assert job(node, 2).state == "running"
        assert run_of(node, 2) == processes[1]
        go[1].touch()
        assert wait_for(node, 2, "finished").exit_code == 5
        assert len(events_of(node.directory, "start")) == 2, "nothing was started twice"
        assert len(events_of(node.directory, "begin")) == 2


def test_a_job_whose_keeper_was_killed_is_watched_and_then_lost(tmp_path):
    go = tmp_path / "go"
    with node_of(tmp_path, [{"command": ["sh", "-c", UNTIL_FILE.format(go)]}]) as node:
        process = run_of(node, 1)
        kill(ProcessKey(*events_of(node.directory, "start")[0]["keeper"]))
        assert job(node, 1).state == "running"
        assert is_alive(process)
        go.touch()
        record = wait_for(node, 1, "finished")
        assert (record.words, record.exit_code) == ("lost", None)


def test_a_process_with_the_id_but_another_start_time_is_not_adopted(tmp_path):
    rows = [{"command": "sleep 300"}]
    with node_of(tmp_path, rows) as node:
        run_of(node, 1)
        keeper = ProcessKey(*events_of(node.directory, "start")[0]["keeper"])
        kill_runner(node)
        kill(keeper)
        until(lambda: not is_alive(keeper))
        # As if the ids had come to belong to other processes: here to this one.
        other = key_of(os.getpid())
        file = node.directory / "jobs/1/run-0.began.json"
        facts = json.loads(file.read_bytes())
        signal_group(ProcessKey(*facts["process"]), signal.SIGKILL)
        facts["process"] = [other.pid, other.start - 1, other.boot]
        file.write_text(json.dumps(facts))
        assert wait_for(node, 1, "finished").words == "lost"
        assert is_alive(other)


@pytest.mark.parametrize("change", ["start", "boot"])
def test_a_key_is_more_than_an_id(change):
    own = key_of(os.getpid())
    other = own._replace(start=own.start + 1) if change == "start" else own._replace(boot="x")
    assert is_alive(own)
    assert not is_alive(other)
    assert open_process(other) is None
    assert not signal_group(other, signal.SIGKILL)
    assert own.boot == boot_id() != ""


def test_a_keeper_that_is_not_told_to_go_starts_nothing(tmp_path):
    # In a process of its own: it forks, and this one has threads.
    ended = subprocess.run(
        [sys.executable, "-c", KEEPER, str(tmp_path)], timeout=PATIENCE, check=False
    )
    assert ended.returncode == 0
    assert not list(tmp_path.iterdir())


def test_a_job_that_did_not_begin_waits_again(tmp_path):
    rows = [{"command": "sleep 300"}, {"command": "true", "submit_time": 999}]
    with node_of(tmp_path, rows) as node:
        run_of(node, 1)
        call(node.directory, {"call": "stop"})
        until(lambda: not (node.directory / "runner.socket").exists() or _is_refused(node))
        # A runner that was killed after it wrote down the keeper, before it let it go.
        log = EventLog(node.directory / "events.jsonl")
        key = [os.getpid(), 1, boot_id()]
        start = {"run": 0, "gpus": [1], "keeper": key, "native": True}
        log.write({"time": 1.0, "what": "submit", "job": "2", "held": False})
        log.write({"time": 2.0, "what": "start", "job": "2", **start})
        log.close()
        record = wait_for(node, 2, "finished")
        assert (record.words, record.restarts) == ("done", 0)
        assert len(events_of(node.directory, "not begun")) == 1


def _is_refused(node: NodeAdapter) -> bool:
    try:
        call(node.directory, {"call": "status"})
    except OSError:
        return True
    return False


def test_one_runner_for_a_directory(tmp_path):
    with node_of(tmp_path, [{"command": "sleep 300"}]) as node:
        module = "berthline.deploy.systems.node.runner.runner_server"
        second = subprocess.run(
            [sys.executable, "-m", module, str(node.directory)], timeout=PATIENCE, check=False
        )
        assert second.returncode == 0
        assert job(node, 1).state == "running"
        assert len(events_of(node.directory, "begin")) == 1


def test_a_line_that_was_cut_off_is_no_event(tmp_path):
    path = tmp_path / "events.jsonl"
    log = EventLog(path)
    log.write({"what": "a"})
    log.close()
    with path.open("ab") as file:
        file.write(b'{"what": "b"')
    assert read_events(path) == [{"what": "a"}]
    log = EventLog(path)
    log.write({"what": "c"})
    log.close()
    assert read_events(path) == [{"what": "a"}, {"what": "c"}]


def test_the_directory_of_a_journal_may_have_a_long_name(tmp_path):
    long = Path(tmp_path, "x" * 120, "y" * 120)
    long.mkdir(parents=True)
    with node_of(long, [{"command": "true"}]) as node:
        assert wait_for(node, 1, "finished").words == "done"


def test_a_process_that_has_ended_and_is_not_reaped_is_not_watched():
    child = subprocess.Popen(["true"])
    try:
        until(lambda: b") Z " in Path(f"/proc/{child.pid}/stat").read_bytes(), "it has ended")
        key = key_of(child.pid)
        assert key is not None
        assert open_living(key) is None
        assert not is_alive(key)
    finally:
        child.wait(PATIENCE)
