"""Lists of commands: columns, order, what a command is, and every error with its line."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berthline.errors import TraceError
from berthline.traces.formats.command_list import arguments_of, read_commands
from berthline.traces.load import load_trace

HEADER = "name,command,est_runtime_s,deadline_s,priority,submit_time,gpus,memory_mib\n"


def test_columns_and_order(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(
        HEADER + 'late,"sleep 2",2,9,1,7.5,2,64\nfirst,"sh -c ""a, b""",1.5,,0,2.5,1,0\n'
    )
    found = read_commands(path)
    workload = found.workload
    assert found.commands == ['sh -c "a, b"', "sleep 2"]
    assert found.lines == [3, 2]
    assert workload.names.tolist() == ["first", "late"]
    assert workload.submit.tolist() == [0, 5]
    assert workload.run.tolist() == workload.estimate.tolist() == [1.5, 2]
    assert workload.deadline.tolist() == [np.inf, 14]
    assert workload.gpus.tolist() == [1, 2]
    assert workload.memory_mib.tolist() == [0, 64]
    assert workload.priority.tolist() == [0, 1]


def test_the_published_columns_are_enough(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(
        "name,command,est_runtime_s,deadline_s,priority,submit_time\na,sleep 1,60,90,2,0\n"
    )
    workload = load_trace(path)
    assert workload.provenance["format"] == "commands"
    assert (workload.gpus.tolist(), workload.deadline.tolist()) == ([1], [90])


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("a,sleep 1,0,,0,0,1,0", "est_runtime_s' holds"),
        ("a,sleep 1,nan,,0,0,1,0", "est_runtime_s' holds"),
        ("a,sleep 1,1,,0,-1,1,0", "submit_time' holds"),
        ("a,sleep 1,1,-2,0,0,1,0", "deadline_s' holds"),
        ("a,sleep 1,1,,x,0,1,0", "priority' holds"),
        ("a,sleep 1,1,,0,0,1.5,0", "gpus' holds"),
        ("a,sleep 1,1,,0,0,1,-1", "memory_mib' holds"),
        ("a,,1,,0,0,1,0", "command' holds"),
        ("a" * 201 + ",sleep 1,1,,0,0,1,0", "name' holds"),
    ],
)
def test_a_wrong_cell_is_named_with_its_line(tmp_path, row, words):
    path = tmp_path / "jobs.csv"
    path.write_text(HEADER + "b,sleep 1,1,,0,0,1,0\n" + row + "\n")
    with pytest.raises(TraceError, match=words) as error:
        read_commands(path)
    assert "line 3" in error.value.where


def test_an_unknown_column_is_refused(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("name,command,est_runtime_s,submit_time,prioritty\na,sleep 1,1,0,9\n")
    with pytest.raises(TraceError, match="prioritty") as error:
        read_commands(path)
    assert "'priority'" in error.value.hint


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("echo a b", ["echo", "a", "b"]),
        ("echo '$HOME' ; rm *", ["echo", "$HOME", ";", "rm", "*"]),
        ('["a b", "", "c"]', ["a b", "", "c"]),
        ("a\\ b", ["a b"]),
    ],
)
def test_commands_are_lists_of_arguments(command, arguments):
    assert arguments_of(command, shell=False) == arguments


@pytest.mark.parametrize("command", ["'open", "[1]", "[", "[]", "''", '["", "x"]', '["a\\u0000"]'])
def test_what_is_not_a_command(command):
    with pytest.raises(ValueError):  # noqa: PT011 - of several kinds
        arguments_of(command, shell=False)


def test_a_shell_gets_the_whole_text():
    assert arguments_of("a; b", shell=True) == ["/bin/sh", "-c", "a; b"]


@given(st.text(max_size=60))
def test_any_text_is_a_command_or_refused(text):
    try:
        arguments = arguments_of(text, shell=False)
    except ValueError:
        return
    assert arguments
    assert arguments[0]
    assert not any("\0" in one for one in arguments)
