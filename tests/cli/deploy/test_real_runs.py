"""A node from the command line: generated lists, a run, and the run against its simulation."""

from __future__ import annotations

import json
import sys

import pytest
from tests.deploy.systems.node.node_tools import end_all, node_of, until

from berthline.cli.main import main


def test_lists_from_the_command_line(tmp_path, capsys):
    out = tmp_path / "lists"
    assert main(["traces", "commands", "--out", str(out), "--files", "2", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [path.rpartition("/")[2] for path in said["lists"]] == ["node-00.csv", "node-01.csv"]
    assert main(["traces", "commands", "--out", str(out)]) == 2
    assert "not empty" in capsys.readouterr().err
    assert main(["sim", str(out / "node-00.csv"), "--cluster", "uniform:1x4:V100", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["jobs"]["completed"] == 50


def test_a_run_against_its_simulation(tmp_path, capsys):
    code = "import time; time.sleep(0.3)"
    rows = [{"command": [sys.executable, "-S", "-c", code], "est_runtime_s": 0.3}] * 6
    with node_of(tmp_path, rows) as node:
        until(lambda: node.is_over)
    assert main(["deploy", "real", str(tmp_path / "journal"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["scheduler"] == "fcfs+strict"
    assert said["ends"] == {"done": 6}
    assert said["starts"] == said["starts_by_own_order"] == 6
    assert said["metrics"]["gpu_utilization"] is None
    assert said["metrics"]["jct_mean"] == said["sim_to_real"]["jct_real"] > 0.3
    assert said["sim_to_real"]["pairs"] == 15
    assert main(["deploy", "real", str(tmp_path / "journal")]) == 0
    lines = capsys.readouterr().out
    assert "not measured" in lines
    assert "in the same order" in lines


def test_there_was_no_node(tmp_path, capsys):
    assert main(["deploy", "real", str(tmp_path)]) == 2
    assert "no node was scheduled here" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    "scheduling",
    [["--scheduler", "fcfs"], ["--scheduler", "sjf", "--mode", "act", "--override", "a test"]],
)
def test_a_simulation_is_within_five_per_cent_of_a_generated_list(
    tmp_path, capsys, monkeypatch, scheduling
):
    monkeypatch.chdir(tmp_path)
    settings = ["--files", "1", "--jobs", "25", "--cpu", "0.05", "--slots", "2"]
    assert main(["traces", "commands", "--out", "lists", *settings]) == 0
    try:
        node = ["lists/node-00.csv", "--slots", "2", "--every", "0.5", "--time-scale", "0.4"]
        assert main(["deploy", "node", *node, *scheduling, "--journal", "j"]) == 0
        capsys.readouterr()
        assert main(["deploy", "real", "j", "--json"]) == 0
    finally:
        end_all(tmp_path / "j/node")
    said = json.loads(capsys.readouterr().out)
    assert said["ends"] == {"done": 25}
    assert abs(said["sim_to_real"]["error"]) < 0.05
    assert said["sim_to_real"]["pairs_in_order"] > 0.95 * said["sim_to_real"]["pairs"]
