"""What `berthline deploy node` refuses before it starts anything, and what it says of the node."""

from __future__ import annotations

import pytest
from tests.deploy.systems.node.node_tools import job, kill, node_of, run_of, until, write_list

from berthline.deploy.systems.node.connect_node import NodeOptions, connect
from berthline.deploy.systems.node.lift_node import call
from berthline.deploy.systems.node.runner.processes import is_alive, key_of
from berthline.errors import BerthlineError, ConfigError, TraceError

TRUE = {"command": "true"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"preempt": "freze"}, "unknown value 'freze'"),
        ({"cgroups": "v3"}, "unknown value 'v3'"),
        ({"telemetry": "rocm"}, "unknown value 'rocm'"),
        ({"signal": "SIGTEM"}, "unknown signal 'SIGTEM'"),
        ({"grace": -1.0}, "`grace` is -1"),
        ({"grace": float("nan")}, "`grace` is nan"),
        ({"time_scale": 0.0}, "`time_scale` is 0"),
        ({"slots": 0}, "`slots` is 0"),
        ({"slots": 10**9}, "`slots` is 1000000000"),
    ],
)
def test_wrong_options_start_nothing(tmp_path, options, words):
    path = write_list(tmp_path / "jobs.csv", [TRUE])
    given = {"slots": 1, "telemetry": "none", **options}
    with pytest.raises(ConfigError, match=words) as error:
        connect(NodeOptions(workload=str(path), **given), tmp_path / "journal")
    assert error.value.expected
    assert not (tmp_path / "journal").exists()


@pytest.mark.parametrize(
    ("row", "words", "options"),
    [
        ({"command": "true", "gpus": 3}, "needs 3 GPUs", {}),
        ({"command": "echo 'open"}, "cannot be read: No closing quotation", {}),
        ({"command": "[1, 2]"}, "a list holds texts only", {}),
    ],
)
def test_wrong_commands_are_named_with_their_line(tmp_path, row, words, options):
    path = write_list(tmp_path / "jobs.csv", [TRUE, row])
    with pytest.raises(TraceError, match=words) as error:
        connect(
            NodeOptions(workload=str(path), slots=2, telemetry="none", **options),
            tmp_path / "journal",
        )
    assert "jobs.csv, line 3" in error.value.where
    assert not (tmp_path / "journal").exists()


def test_there_is_no_list(tmp_path):
    with pytest.raises(BerthlineError, match="no such trace file"):
        connect(NodeOptions(workload=str(tmp_path / "x.csv"), slots=1), tmp_path / "journal")


@pytest.mark.parametrize(
    ("change", "words"), [({"slots": 3}, "`slots`"), ({"preempt": "kill"}, "`preempt`")]
)
def test_a_journal_goes_on_with_the_same_list_and_options_only(tmp_path, change, words):
    with node_of(tmp_path, [TRUE]) as node:
        given = {"workload": str(tmp_path / "jobs.csv"), "slots": 2, "telemetry": "none"}
        again = connect(NodeOptions(**given), tmp_path / "journal")
        assert again.look().nodes == node.look().nodes
        with pytest.raises(ConfigError, match=words):
            connect(NodeOptions(**{**given, **change}), tmp_path / "journal")
        write_list(tmp_path / "jobs.csv", [TRUE, TRUE])
        with pytest.raises(ConfigError, match="the list of commands"):
            connect(NodeOptions(**given), tmp_path / "journal")


def test_the_node_says_what_it_has(tmp_path):
    with node_of(tmp_path, [TRUE], cgroups="none", preempt="freeze") as node:
        assert node.words == (
            "2 declared slots, memory limits by RLIMIT_AS (no cgroup for memory), "
            "freezing by SIGSTOP (no cgroup to freeze), no telemetry, "
            "preemption: freeze all processes, and thaw them when it starts again"
        )
        assert node.abilities.places
        assert not node.abilities.spans_nodes


def test_closing_ends_the_runner_only_if_all_jobs_are_over(tmp_path):
    with node_of(tmp_path, [TRUE, {"command": "sleep 300"}]) as node:
        process = run_of(node, 2)
        runner = key_of(call(node.directory, {"call": "status"})["pid"])
        node.close()
        assert job(node, 2).state == "running"
        assert is_alive(runner)
        kill(process)
        until(lambda: node.is_over)
        node.close()
        until(lambda: not is_alive(runner), "the runner ends")
        assert job(node, 2).words == "killed by a signal", "another one tells the same"


def test_damaged_settings_are_named(tmp_path):
    with node_of(tmp_path, [TRUE]) as node:
        call(node.directory, {"call": "stop"})
        kept = (node.directory / "settings.json").read_bytes()
        for damaged in (b"{", b"[]", b"{}"):
            (node.directory / "settings.json").write_bytes(damaged)
            given = {"workload": str(tmp_path / "jobs.csv"), "slots": 2, "telemetry": "none"}
            with pytest.raises(ConfigError, match="settings of the node cannot be read"):
                connect(NodeOptions(**given), tmp_path / "journal")
        (node.directory / "settings.json").write_bytes(kept)
