"""Paths are accepted wherever a text may name a file, and mean the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import berthline as bl
from berthline.errors import ConfigError
from berthline.policies.scheduler import Scheduler
from berthline.traces.formats.swf_writer import write_swf
from berthline.traces.workload_argument import resolve_workload

CLUSTER = "uniform:2x4"
JOBS = bl.generate("synthetic", cluster=CLUSTER, jobs=20, seed=1)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the path of a cluster file."""
    path = tmp_path / "lab.toml"
    path.write_text("[[nodes]]\ncount = 2\ngpus = 4\n")
    return path


def test_simulate__a_cluster_by_its_path(file: Path) -> None:
    found, same = (bl.simulate(JOBS, cluster, "sjf").metrics() for cluster in (file, str(file)))
    assert found == same


def test_compare__a_cluster_and_schedulers_by_paths(file: Path) -> None:
    found = bl.compare(JOBS, file, [Path("fcfs"), "sjf"], baseline=Path("f1"))
    assert [one.scheduler for one in found.schedulers] == ["f1", "fcfs", "sjf"]


def test_generate__a_cluster_by_its_path(file: Path) -> None:
    assert len(bl.generate("synthetic", cluster=file, jobs=5)) == 5


def test_parse__a_path_is_its_text() -> None:
    assert Scheduler.parse(Path("sjf")) == Scheduler.parse("sjf")
    assert bl.Cluster.parse(Path("philly")).total_gpus == bl.Cluster.parse("philly").total_gpus


def test_resolve_workload__a_trace_by_its_path(tmp_path: Path) -> None:
    write_swf(JOBS, tmp_path / "trace.swf")
    cluster = bl.Cluster.parse(CLUSTER)
    assert len(resolve_workload(tmp_path / "trace.swf", cluster=cluster)) == len(JOBS)


@pytest.mark.parametrize("given", [None, 5, b"sjf"])
def test_neither_a_text_nor_a_path__is_refused(given: Any) -> None:
    with pytest.raises(ConfigError, match="scheduler is"):
        bl.simulate(JOBS, CLUSTER, given)
    if given is not None:  # no cluster is the one that the trace states
        with pytest.raises(ConfigError, match="cluster is"):
            bl.simulate(JOBS, given, "sjf")
    with pytest.raises(ConfigError, match="workload is"):
        bl.simulate(given, CLUSTER, "sjf")
    with pytest.raises(ConfigError, match="scheduler is"):
        bl.compare(JOBS, CLUSTER, [given])


def test_compare__one_path_is_no_list_of_schedulers() -> None:
    with pytest.raises(ConfigError, match="schedulers is"):
        bl.compare(JOBS, CLUSTER, Path("sjf"))  # type: ignore[arg-type]


def test_without_a_cluster__the_trace_states_it(tmp_path: Path) -> None:
    write_swf(JOBS, tmp_path / "trace.swf", max_procs=96)
    assert bl.simulate(tmp_path / "trace.swf", None, "fcfs").cluster.total_gpus == 96
    found = bl.compare(tmp_path / "trace.swf", None, ["fcfs"])
    assert found.cluster == "uniform:1x96:V100"
    assert bl.simulate(JOBS, None, "fcfs").cluster.name == "uniform:8x8:V100"
