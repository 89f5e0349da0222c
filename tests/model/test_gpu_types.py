"""GPU types: figures with sources, and one GPU under all its spellings."""

from __future__ import annotations

import pytest

from berthline.errors import ConfigError
from berthline.model.cluster import Cluster, NodeGroup
from berthline.model.gpu_types import (
    ALIASES,
    GPU_TYPES,
    GpuType,
    canonical_name,
    gpu_type,
    type_names,
)

GUESSES = {"G2", "G3", "MISC", "GPU-series-1", "GPU-series-2"}


def test_every_type_has_figures_and_says_where_they_are_from():
    for name, kind in GPU_TYPES.items():
        assert kind.name == name
        assert kind.tflops >= kind.tflops_fp32 > 0
        assert 0 < kind.idle_w < kind.peak_w
        assert kind.memory_mib % 1024 == 0
        assert kind.source
        assert kind.is_guess == (name in GUESSES)
        assert kind.source.startswith("guess: ") == kind.is_guess


def test_the_types_that_traces_need_are_there():
    known = {
        "T4",
        "P100",
        "V100-16",
        "V100-32",
        "A10",
        "A100-40",
        "A100-80",
        "A800",
        "H800",
        "H100",
    }
    assert known | {"RTX4090"} | GUESSES == set(GPU_TYPES)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("V100", "V100-32"),
        ("A100", "A100-80"),
        ("V100M16", "V100-16"),
        ("V100M32", "V100-32"),
        ("A100-SXM4-80GB", "A100-80"),
        ("A100-SXM4-40GB", "A100-40"),
        ("A800-SXM4-80GB", "A800"),
        ("NVIDIA A100-SXM4-80GB", "A100-80"),
        ("Tesla V100-SXM2-32GB", "V100-32"),
        ("NVIDIA GeForce RTX 4090", "RTX4090"),
        ("h800", "H800"),
        ("t4", "T4"),
        ("misc", "MISC"),
        ("GPU-series-1", "GPU-series-1"),
    ],
)
def test_spellings(written, name):
    assert gpu_type(written).name == name
    assert canonical_name(written) == name


def test_aliases_lead_to_types_and_are_not_types():
    assert set(ALIASES.values()) <= set(GPU_TYPES)
    assert not set(ALIASES) & set(GPU_TYPES)


def test_an_unknown_type_gets_the_nearest():
    assert canonical_name("B200") == "B200"
    with pytest.raises(ConfigError) as caught:
        gpu_type("V10")
    assert caught.value.what == "unknown GPU type 'V10'"
    assert "V100" in caught.value.hint


def test_a_set_is_read_as_written_and_by_name():
    assert type_names("A100|V100M32") == {"A100", "A100-80", "V100M32", "V100-32"}
    assert type_names(" T4 | mine ") == {"T4", "mine"}


def test_clusters_have_types_by_their_names():
    groups = [NodeGroup(count=1, gpus=8, gpu_type=name) for name in ("V100", "V100M32", "A100-40")]
    cluster = Cluster.from_groups(groups)
    assert [kind.name for kind in cluster.types] == ["V100-32", "A100-40"]
    assert cluster.gpu_type.tolist() == [0, 0, 1]
    assert Cluster.parse("uniform:2x4:A100").types == (GPU_TYPES["A100-80"],)


def test_five_figures_make_a_type():
    kind = GpuType("mine", 100.0, 1024, 10.0, 200.0)
    assert kind.tflops_fp32 is None
    assert not kind.is_guess
