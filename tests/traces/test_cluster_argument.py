"""The CLUSTER argument: presets, shapes and files, and what is none of them."""

from __future__ import annotations

import pytest

from berthline.errors import BerthlineError
from berthline.traces.cluster_argument import resolve_cluster

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
