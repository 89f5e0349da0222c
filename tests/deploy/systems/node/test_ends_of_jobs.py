"""Real processes on declared slots: how jobs end, what they are told, and what is only text."""

from __future__ import annotations

import json
import sys

import pytest
from tests.deploy.systems.node.node_tools import job, node_of, output, run_of, until, wait_for

from berthline.deploy.systems.node.runner.processes import is_alive

PYTHON = sys.executable


def test_ends_are_told_apart(tmp_path):
    rows = [
        {"command": "true"},
        {"command": [PYTHON, "-S", "-c", "raise SystemExit(7)"]},
        {"command": ["sh", "-c", "kill -SEGV $$"]},
        {"command": "/does/not/exist --now"},
    ]
    with node_of(tmp_path, rows) as node:
        until(lambda: node.is_over, "all jobs end")
        records = node.look().jobs
    found = [(one.words, one.exit_code, one.reason) for one in records]
    assert found == [
        ("done", 0, "exit code 0"),
        ("failed", 7, "exit code 7"),
        ("killed by a signal", 139, "killed by SIGSEGV"),
        ("could not be started", 127, "'/does/not/exist': No such file or directory"),
    ]
    assert all(one.state == "finished" and not one.nodes for one in records)
    assert all(one.finished >= one.submitted for one in records)


def test_a_job_over_its_memory_limit_is_out_of_memory(tmp_path):
    rows = [{"command": [PYTHON, "-S", "-c", "x = bytearray(300 << 20)"], "memory_mib": 40}]
    with node_of(tmp_path, rows) as node:
        until(lambda: node.is_over)
        record = job(node, 1)
        words = node.words
    if "RLIMIT_AS" in words:
        pytest.skip("there is no cgroup for memory here")
    assert (record.words, record.exit_code) == ("out of memory", 137)


def test_without_a_cgroup_the_address_space_is_limited(tmp_path):
    code = "import sys\ntry:\n  x = bytearray(900 << 20)\nexcept MemoryError:\n  sys.exit(9)"
    rows = [{"command": [PYTHON, "-S", "-c", code], "memory_mib": 400}]
    with node_of(tmp_path, rows, cgroups="none") as node:
        until(lambda: node.is_over)
        assert job(node, 1).exit_code == 9
        assert "RLIMIT_AS" in node.words
        assert "SIGSTOP" in node.words


def test_commands_are_arguments_and_names_are_text(tmp_path):
    name = "x; rm -rf / \x1b[31m $(id) ../../../etc"
    rows = [
        {"name": name, "command": f"echo '$(touch {tmp_path}/made)' ; touch {tmp_path}/made *"},
        {"command": ["printf", "%s|", "a b", "", "*", "`id`", "\u202e"]},
    ]
    with node_of(tmp_path, rows) as node:
        until(lambda: node.is_over)
        assert output(node, 1) == f"$(touch {tmp_path}/made) ; touch {tmp_path}/made *\n"
        assert output(node, 2) == "a b||*|`id`|\u202e|"
        assert job(node, 1).name == name
        files = {path.name for path in (node.directory / "jobs").iterdir()}
    assert files == {"1", "2"}
    assert not (tmp_path / "made").exists()


def test_a_shell_is_used_only_if_asked_for(tmp_path):
    with node_of(tmp_path, [{"command": "echo a; echo $((1 + 1)) >&2"}], shell=True) as node:
        until(lambda: node.is_over)
        assert output(node, 1) == "a\n"
        assert (node.directory / "jobs/1/run-0.err").read_text() == "2\n"


def test_a_job_is_told_its_gpus_and_has_a_session_of_its_own(tmp_path):
    code = (
        "import json, os; e = os.environ; print(json.dumps([e['CUDA_VISIBLE_DEVICES'],"
        " os.getsid(0) == os.getpgrp() == os.getpid(), e['BERTHLINE_JOB_ID'], os.getcwd(),"
        " sorted(map(int, os.listdir('/proc/self/fd')))]))"
    )
    rows = [
        {"command": "sleep 0.4"},
        {"command": [PYTHON, "-S", "-c", code]},
        {"command": [PYTHON, "-S", "-c", code], "gpus": 3},
    ]
    with node_of(tmp_path, rows, slots=3) as node:
        until(lambda: node.is_over)
        told = [json.loads(output(node, number)) for number in (2, 3)]
    assert told[0][:4] == ["1", True, "2", str(tmp_path)]
    assert told[1][0] == "0,1,2"
    assert told[0][4][:3] == [0, 1, 2]
    assert len(told[0][4]) == 4, "only the three streams, and the directory that it lists"


def test_what_a_job_leaves_behind_ends_with_it(tmp_path):
    rows = [{"command": ["sh", "-c", "sleep 300 & echo $!"]}]
    with node_of(tmp_path, rows) as node:
        run_of(node, 1)
        wait_for(node, 1, "done")
        pid = int(output(node, 1))
        until(lambda: not _runs(pid), "the process that was left ends")


def test_first_come_first_served_without_a_controller(tmp_path):
    rows = [
        {"command": "sleep 0.3", "gpus": 1},
        {"command": "sleep 0.1", "gpus": 2},
        {"command": "true", "gpus": 1},
    ]
    with node_of(tmp_path, rows) as node:
        until(lambda: node.is_over)
        log = (node.directory / "events.jsonl").read_text().splitlines()
        first = run_of(node, 1)
    starts = [one for one in map(json.loads, log) if one["what"] == "start"]
    assert [one["job"] for one in starts] == ["1", "2", "3"], "the third does not pass the second"
    assert [one["gpus"] for one in starts] == [[0], [0, 1], [0]]
    assert not is_alive(first)


def _runs(pid: int) -> bool:
    from berthline.deploy.systems.node.runner.processes import key_of

    key = key_of(pid)
    return key is not None and is_alive(key)
