"""The CLUSTER argument: presets, shapes and files, and what is none of them."""

from __future__ import annotations

import json

import pytest

import berthline as bl
from berthline.cli.main import main
from berthline.errors import BerthlineError
from berthline.traces.cluster_argument import resolve_cluster
from berthline.traces.load import load_trace

MACHINES = "0,1,0,platform,0.5,0.5\n0,2,0,platform,1,1\n"


def refused(text) -> str:
    with pytest.raises(BerthlineError) as caught:
        resolve_cluster(str(text))
    assert str(text) in str(caught.value)
    return str(caught.value)


def test_a_preset_wins_over_a_directory_of_its_name(tmp_path, monkeypatch):
    (tmp_path / "philly").mkdir()
    monkeypatch.chdir(tmp_path)
    assert resolve_cluster("philly").total_gpus == 2490


def test_a_directory_is_told_as_one(tmp_path):
    assert refused(tmp_path).startswith("this is a directory")
    (tmp_path / "machine_events.csv").write_text(MACHINES)
    assert resolve_cluster(str(tmp_path)).num_nodes == 2


def test_an_empty_file_is_an_empty_node_list(tmp_path):
    (tmp_path / "empty.csv").touch()
    text = refused(tmp_path / "empty.csv")
    assert text.startswith("the node list is empty")
    assert "jobs" not in text


def test_a_missing_file_is_not_called_an_unknown_cluster(tmp_path):
    assert refused(tmp_path / "nodes.csv.gz").startswith("no such node list")
    assert refused("phily").startswith("unknown cluster")
    with pytest.raises(BerthlineError, match="unknown cluster"):
        resolve_cluster("x" * 5000)


SACCT = """JobID|Submit|Start|End|AllocTRES|NodeList|Partition|User
1|2024-03-04T00:00:00|2024-03-04T00:00:00|2024-03-04T01:00:00|gres/gpu:a100=4|g1|long|ann
2|2024-03-04T00:00:10|2024-03-04T00:00:10|2024-03-04T01:00:00|gres/gpu:a100=8|g[2-3]|{other}|ann
3|2024-03-04T00:00:20|2024-03-04T01:00:00|2024-03-04T02:00:00|gres/gpu:a100=4|g{shared}|{other}|bob
"""


@pytest.fixture
def log(tmp_path):
    def write(shared, other="short"):
        path = tmp_path / "week.txt"
        path.write_text(SACCT.format(shared=shared, other=other))
        return path

    return write


def test_a_log_with_lists_of_nodes_is_the_cluster_it_was_recorded_on(log):
    told = []
    cluster = resolve_cluster(log(shared=2), told.append)
    assert cluster.gpus.tolist() == [4, 4, 4]
    assert cluster.pool_names == ("long", "short")
    assert told == [
        "week.txt: 12 GPUs on 3 nodes, as its jobs used them; GPUs that no job used are missing"
    ]


def test_partitions_that_shared_nodes_leave_no_pools(log):
    assert resolve_cluster(log(shared=1)).pool_names == ()


def test_a_run_on_a_log_with_lists_of_nodes_needs_no_cluster(log, capsys):
    """No job is rejected, and each runs as long as it was recorded, although V100 are not A100."""
    path = log(shared=2)
    assert main(["sim", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["jobs"]["rejected"] == 0
    assert told["makespan"] == 7200

    workload = load_trace(path)
    result = bl.simulate(workload, None, "fcfs")
    assert result.cluster.gpus.tolist() == [4, 4, 4]
    assert result.metrics().makespan == 7200
