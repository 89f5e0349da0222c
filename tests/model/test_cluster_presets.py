"""Clusters by name and by file."""

from __future__ import annotations

import csv
import gzip
import io
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.shared_traces import SHARED_TRACES

from berthline.errors import ConfigError
from berthline.model.cluster import Cluster
from berthline.model.cluster_presets import PRESETS
from berthline.model.gpu_types import canonical_name

if TYPE_CHECKING:
    from pathlib import Path

TRACES = SHARED_TRACES
needs_traces = pytest.mark.skipif(not TRACES.is_dir(), reason=f"no traces at {TRACES}")

TOTALS = {
    "philly": (552, 2490),
    "philly-rltune": (36, 192),
    "helios-venus": (133, 1064),
    "helios-rltune": (17, 136),
    "alibaba-pai": (1814, 6742),
    "alibaba-pai-rltune": (49, 254),
    "openb-2023": (1213, 6212),
    "openb-small": (11, 58),
    "spot-2026": (4278, 10_412),
    "acme-seren": (286, 2288),
    "acme-kalos": (302, 2416),
    "drl-scheduler": (14, 56),
    "drl-scheduler-types": (4, 56),
    "four-types": (8, 32),
    "thrifty-types": (6, 24),
    "lsf": (50, 1200),
    "lsf-15": (15, 360),
}


def test_every_preset_has_the_published_totals():
    assert {name: (p.num_nodes, p.total_gpus) for name, p in PRESETS.items()} == TOTALS


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_a_cluster_by_its_name(name):
    preset = PRESETS[name]
    cluster = Cluster.parse(name)
    assert cluster.name == name
    assert (cluster.num_nodes, cluster.total_gpus) == TOTALS[name]
    assert preset.description
    assert preset.source
    assert all(group.gpu_type == canonical_name(group.gpu_type) for group in preset.groups)


def gpus_by_type(cluster: Cluster) -> dict[str, int]:
    totals = np.bincount(cluster.gpu_type, weights=cluster.gpus)
    return {kind.name: int(n) for kind, n in zip(cluster.types, totals, strict=True)}


def test_gpus_by_type():
    for name in ("drl-scheduler", "drl-scheduler-types"):
        assert gpus_by_type(Cluster.parse(name)) == {
            "A100-80": 16,
            "V100-32": 16,
            "T4": 12,
            "RTX4090": 12,
        }
    assert gpus_by_type(Cluster.parse("alibaba-pai-rltune")) == {
        "T4": 16,
        "MISC": 64,
        "P100": 30,
        "V100-16": 80,
        "V100-32": 64,
    }


def test_virtual_clusters_own_the_nodes_of_helios():
    venus = Cluster.parse("helios-venus")
    assert len(venus.pool_names) == 17
    assert (venus.pool >= 0).all()
    small = Cluster.parse("helios-rltune")
    assert small.pool_names == ("0", "1", "2", "3", "4")
    assert np.bincount(small.pool).tolist() == [6, 4, 3, 2, 2]


def rows_of(path: Path, header: bool = True) -> list[list[str]]:
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    rows = list(csv.reader(io.StringIO(text)))
    return rows[1:] if header else rows


def shapes(cluster: Cluster) -> Counter[tuple[str, int, int]]:
    names = [kind.name for kind in cluster.types]
    return Counter(
        (names[kind], int(gpus), int(cpus))
        for kind, gpus, cpus in zip(cluster.gpu_type, cluster.gpus, cluster.cpus, strict=True)
    )


@needs_traces
def test_openb_is_its_node_list():
    rows = rows_of(TRACES / "alibaba_gpu_v2023" / "openb_node_list_gpu_node.csv.gz")
    listed = Counter((canonical_name(r[4]), int(r[3]), int(r[1]) // 1000) for r in rows)
    cluster = Cluster.parse("openb-2023")
    assert shapes(cluster) == listed
    assert Counter(cluster.memory_mib.tolist()) == Counter(int(r[2]) for r in rows)


@needs_traces
def test_spot_is_its_node_list():
    rows = rows_of(TRACES / "alibaba_spot_v2026" / "node_info_df.csv.gz")
    listed = Counter((canonical_name(r[0]), int(float(r[1])), int(float(r[2]))) for r in rows)
    assert shapes(Cluster.parse("spot-2026")) == listed


@needs_traces
def test_pai_is_its_machine_table():
    rows = rows_of(TRACES / "alibaba_pai_v2020" / "pai_machine_spec.csv.gz", header=False)
    own_names = {"V100": "V100-16"}
    listed = Counter(
        (own_names.get(r[1], canonical_name(r[1])), int(float(r[4])), int(float(r[2])))
        for r in rows
        if float(r[4]) > 0
    )
    assert shapes(Cluster.parse("alibaba-pai")) == listed


@needs_traces
def test_venus_is_its_quota_table_of_one_day():
    path = TRACES / "helios_venus" / "cluster_gpu_number.csv"
    header, *rows = rows_of(path, header=False)
    (day,) = [row for row in rows if row[0] == "2020-07-07"]
    quota = {vc: int(n) for vc, n in zip(header[1:-1], day[1:-1], strict=True) if int(n)}
    cluster = Cluster.parse("helios-venus")
    owned = np.bincount(cluster.pool, weights=cluster.gpus)
    assert dict(zip(cluster.pool_names, owned.astype(int).tolist(), strict=True)) == quota


def test_an_unknown_name_gets_the_nearest_and_all_ways():
    with pytest.raises(ConfigError) as caught:
        Cluster.parse("phily")
    assert caught.value.hint == "did you mean 'philly'?"
    assert "uniform:NODESxGPUS" in caught.value.expected
    assert "TOML" in caught.value.expected
    assert "acme-kalos" in caught.value.expected
    with pytest.raises(ConfigError) as caught:
        Cluster.parse("uniform:2x4:Q7")
    assert caught.value.what == "unknown GPU type 'Q7'"
    assert caught.value.where == "uniform:2x4:Q7, node group 1"


OWN_TYPE = """
[[nodes]]
count = 2
gpus = 4
gpu_type = "mine"

[[nodes]]
count = 1
gpus = 8
gpu_type = "V100M32"

[gpu_types.mine]
tflops = 100
memory_mib = 2048
idle_w = 5
peak_w = 99.5
"""


def test_a_file_may_define_gpu_types(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(OWN_TYPE)
    cluster = Cluster.parse(str(path))
    mine, other = cluster.types
    assert (mine.name, mine.tflops, mine.memory_mib, mine.peak_w) == ("mine", 100.0, 2048, 99.5)
    assert other.name == "V100-32"
    path.write_text(OWN_TYPE.replace("mine", "V100") + "tflops_fp32 = 7\nis_guess = true\n")
    redefined = Cluster.parse(str(path)).types[0]
    assert (redefined.name, redefined.tflops, redefined.tflops_fp32) == ("V100", 100.0, 7.0)
    assert redefined.is_guess


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("tflops = 100\n", "", "tflops"),
        ("tflops = 100", "tflops = -1", "tflops"),
        ("memory_mib = 2048", "memory_mib = 0.5", "memory_mib"),
        ("idle_w = 5", 'idle_w = "low"', "idle_w"),
        ("idle_w = 5", "idle = 5", "idle"),
        ('gpu_type = "mine"', 'gpu_type = "mime"', "mime"),
    ],
)
def test_a_wrong_type_in_a_file_is_refused(tmp_path, old, new, said):
    path = tmp_path / "own.toml"
    path.write_text(OWN_TYPE.replace(old, new))
    with pytest.raises(ConfigError) as caught:
        Cluster.parse(str(path))
    assert said in str(caught.value)
    assert "own" in caught.value.where
