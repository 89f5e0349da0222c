"""Cluster files that are written: read back, they are the same cluster."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest

from berthline.model.cluster import Cluster
from berthline.model.cluster_presets import PRESETS
from berthline.model.write_cluster_file import cluster_text, write_cluster_file

if TYPE_CHECKING:
    from pathlib import Path

RULES = """
name = 'mixed "one"'

[[nodes]]
count = 3
gpus = 8
gpu_type = "A100"
cpus = 96
memory_mib = 1048576
pool = "a"
nodes_per_rack = 2

[[nodes]]
count = 2
gpus = 4
gpu_type = "own"
pool = "b"
mtbf = 86400.5

[gpu_types.own]
tflops = 33.5
memory_mib = 24576
idle_w = 20
peak_w = 250
speed = 0.75

[conditions]
restart = 30
sleep_after = inf
checkpoint = inf

[[quotas]]
gpus = 6
user = "*"

[[quotas]]
gpus = 2.5
pool = "b"
gpu_type = "own"

[pools.a]
lend = true

[pools.b]
borrow = true

[[outages]]
down = 100
nodes = [0, 4]

[[outages]]
down = 5.5
up = 50
rack = "rack1"
"""


def same(one: Cluster, other: Cluster) -> None:
    for field in dataclasses.fields(Cluster):
        ours, theirs = getattr(one, field.name), getattr(other, field.name)
        if isinstance(ours, np.ndarray):
            assert ours.dtype == theirs.dtype
            assert ours.tolist() == theirs.tolist(), field.name
        else:
            assert ours == theirs, field.name


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_presets_read_back(name: str, tmp_path: Path) -> None:
    cluster = Cluster.parse(name)
    same(Cluster.parse(str(write_cluster_file(cluster, tmp_path / "cluster.toml"))), cluster)


def test_rules_read_back(tmp_path: Path) -> None:
    (tmp_path / "given.toml").write_text(RULES)
    cluster = Cluster.parse(str(tmp_path / "given.toml"))
    assert len(cluster.rack_names) == 3
    same(Cluster.parse(str(write_cluster_file(cluster, tmp_path / "cluster.toml"))), cluster)


def test_equal_nodes_are_one_group() -> None:
    assert cluster_text(Cluster.parse("uniform:64x8:A100")).count("[[nodes]]") == 1
