"""Cluster: from groups, from a TOML file, from a CLUSTER argument; and what is refused."""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from berthline.errors import ConfigError
from berthline.model.cluster import Cluster, NodeGroup
from berthline.model.gpu_types import GPU_TYPES, GpuType

if TYPE_CHECKING:
    from pathlib import Path

FILE = """
    name = "lab"

    [[nodes]]
    count = 2
    gpus = 8
    gpu_type = "T4"
    cpus = 96
    memory_mib = 1_048_576
    pool = "vision"

    [[nodes]]
    count = 3
    gpus = 4
    gpu_type = "H100"

    [[nodes]]
    count = 1
    gpus = 16
    gpu_type = "B200"
    pool = "language"

    [[nodes]]
    count = 1
    gpus = 2
    gpu_type = "T4"
    pool = "vision"

    [gpu_types.B200]
    tflops = 2250.0
    memory_mib = 196_608
    idle_w = 120
    peak_w = 1000
"""


@pytest.fixture
def write(tmp_path: Path):
    def write(text: str) -> Path:
        path = tmp_path / "lab.toml"
        path.write_text(dedent(text), encoding="utf-8")
        return path

    return write


def test_uniform__equal_nodes_without_limits() -> None:
    cluster = Cluster.uniform(nodes=3, gpus_per_node=8, gpu_type="H100")
    assert cluster.name == "uniform:3x8:H100"
    assert cluster.num_nodes == 3
    assert cluster.total_gpus == 24
    assert cluster.gpus.tolist() == [8, 8, 8]
    assert cluster.cpus.tolist() == cluster.memory_mib.tolist() == [0, 0, 0]
    assert cluster.types == (GPU_TYPES["H100"],)
    assert cluster.gpu_type.tolist() == [0, 0, 0]
    assert cluster.pool.tolist() == [-1, -1, -1]
    assert cluster.pool_names == ()


def test_from_groups__node_ids_follow_the_order_of_the_groups() -> None:
    cluster = Cluster.from_groups(
        [
            NodeGroup(count=2, gpus=4, gpu_type="T4", cpus=32, memory_mib=64, pool="b"),
            NodeGroup(count=1, gpus=8, gpu_type="H100", pool="a"),
            NodeGroup(count=2, gpus=1, gpu_type="T4"),
        ],
        name="mixed",
    )
    assert cluster.gpus.tolist() == [4, 4, 8, 1, 1]
    assert cluster.cpus.tolist() == [32, 32, 0, 0, 0]
    assert cluster.memory_mib.tolist() == [64, 64, 0, 0, 0]
    assert [kind.name for kind in cluster.types] == ["T4", "H100"]
    assert cluster.gpu_type.tolist() == [0, 0, 1, 0, 0]
    assert cluster.pool_names == ("b", "a")
    assert cluster.pool.tolist() == [0, 0, 1, -1, -1]
    with pytest.raises(ValueError, match="read-only"):
        cluster.gpus[0] = 5


@pytest.mark.parametrize(
    ("group", "what", "expected"),
    [
        (NodeGroup(count=0, gpus=8), "count is 0", "1 or more"),
        (NodeGroup(count=-2, gpus=8), "count is -2", "1 or more"),
        (NodeGroup(count=1, gpus=0), "gpus is 0", "1 or more"),
        (NodeGroup(count=1, gpus=1, cpus=-1), "cpus is -1", "0 (no limit) or more"),
        (NodeGroup(count=1, gpus=1, memory_mib=-5), "memory_mib is -5", "0 (no limit) or more"),
    ],
)
def test_from_groups__value_out_of_range(group: NodeGroup, what: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Cluster.from_groups([NodeGroup(count=1, gpus=1), group], name="mine")
    assert caught.value.what == what
    assert caught.value.where == "mine, node group 2"
    assert caught.value.expected == expected


def test_from_groups__unknown_gpu_type_names_the_nearest() -> None:
    with pytest.raises(ConfigError) as caught:
        Cluster.from_groups([NodeGroup(count=1, gpus=1, gpu_type="H10")])
    assert caught.value.what == "unknown GPU type 'H10'"
    assert caught.value.where == "cluster, node group 1"
    assert "P100" in caught.value.expected
    assert caught.value.hint == "did you mean 'H100'?"


def test_from_groups__no_groups() -> None:
    with pytest.raises(ConfigError, match="a cluster needs at least one node: empty"):
        Cluster.from_groups([], name="empty")


@pytest.mark.parametrize(
    "group", [NodeGroup(count=1_000_001, gpus=1), NodeGroup(count=1_000_000, gpus=2148)]
)
def test_from_groups__too_large(group: NodeGroup) -> None:
    with pytest.raises(ConfigError, match="the cluster is too large"):
        Cluster.from_groups([group])


@pytest.mark.parametrize(("field", "value"), [("cpus", 2**31), ("memory_mib", 2**63)])
def test_from_groups__limits_beyond_the_columns_are_refused(field: str, value: int) -> None:
    with pytest.raises(ConfigError, match=f"{field} is {value}"):
        Cluster.from_groups([NodeGroup(count=1, gpus=1, **{field: value})])


def test_from_groups__extra_types_win_over_known_ones() -> None:
    mine = GpuType("H100", tflops=1.0, memory_mib=2, idle_w=3.0, peak_w=4.0)
    cluster = Cluster.from_groups([NodeGroup(count=1, gpus=1, gpu_type="H100")], extra_types=[mine])
    assert cluster.types == (mine,)


def test_toml__pools_types_limits_and_types_of_its_own(write) -> None:
    cluster = Cluster.from_toml(write(FILE))
    assert cluster.name == "lab"
    assert cluster.gpus.tolist() == [8, 8, 4, 4, 4, 16, 2]
    assert cluster.cpus.tolist() == [96, 96, 0, 0, 0, 0, 0]
    assert cluster.memory_mib.tolist() == [1_048_576, 1_048_576, 0, 0, 0, 0, 0]
    assert cluster.pool_names == ("vision", "language")
    assert cluster.pool.tolist() == [0, 0, -1, -1, -1, 1, 0]
    assert cluster.types[:2] == (GPU_TYPES["T4"], GPU_TYPES["H100"])
    b200 = cluster.types[2]
    assert (b200.name, b200.tflops, b200.memory_mib) == ("B200", 2250.0, 196_608)
    assert (b200.idle_w, b200.peak_w) == (120.0, 1000.0)
    assert cluster.gpu_type.tolist() == [0, 0, 1, 1, 1, 2, 0]
    assert isinstance(b200.memory_mib, int)


def test_toml__name_defaults_to_that_of_the_file(write) -> None:
    assert Cluster.from_toml(str(write("[[nodes]]\ncount = 1\ngpus = 1"))).name == "lab"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "not a cluster file: nodes is missing"),
        ("nodes = 3", "not a cluster file: nodes is a whole number"),
        ("[[nodes]]\ngpus = 1", "not a cluster file: count is missing"),
        ("[[nodes]]\ncount = 1", "not a cluster file: gpus is missing"),
        ("[[nodes]]\ncount = 1\ngpus = 1.5", "not a cluster file: gpus is a number with"),
        ("[[nodes]]\ncount = 1\ngpus = 1\ncpu = 4", "not a cluster file: unknown key 'cpu'"),
        ("[[nodes]]\ncount = 1\ngpus = 1\n[node]", "not a cluster file: unknown key 'node'"),
        ("[[nodes]\ncount = 1", "not a cluster file: "),
        ("[[nodes]]\ncount = 0\ngpus = 1", "count is 0"),
        ("nodes = []", "a cluster needs at least one node"),
        ('[[nodes]]\ncount = 1\ngpus = 1\ngpu_type = "B200"', "unknown GPU type 'B200'"),
        (
            "[[nodes]]\ncount = 1\ngpus = 1\n[gpu_types.X]\ntflops = 1.0",
            "not a cluster file: memory_mib is missing",
        ),
        (
            '[[nodes]]\ncount = 1\ngpus = 1\n[gpu_types.X]\ntflops = "fast"',
            "not a cluster file: tflops is a text",
        ),
        (
            "[[nodes]]\ncount = 1\ngpus = 1\n[gpu_types.X]\ntflops = 1\nmemory_mib = 1.5\n"
            "idle_w = 1\npeak_w = 1",
            "not a cluster file: memory_mib is a number with",
        ),
    ],
)
def test_toml__errors_say_what_and_which_file(write, text: str, what: str) -> None:
    path = write(text)
    with pytest.raises(ConfigError) as caught:
        Cluster.from_toml(path)
    assert caught.value.what.startswith(what)
    assert "lab" in caught.value.where


def test_toml__an_unknown_field_of_a_gpu_type_is_refused(write) -> None:
    text = (
        "[[nodes]]\ncount = 1\ngpus = 1\n[gpu_types.X]\n"
        "tflops = 1\nmemory_mib = 1\nidle_w = 1\npeak_w = 1\nswiftness = 3"
    )
    with pytest.raises(ConfigError, match="swiftness"):
        Cluster.from_toml(write(text))


def test_toml__not_text(tmp_path: Path) -> None:
    path = tmp_path / "binary.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError) as caught:
        Cluster.from_toml(path)
    assert caught.value.what.startswith("not a cluster file: ")
    assert caught.value.where == f"{path}, byte 1"
    assert caught.value.expected == "text in UTF-8"
    assert caught.value.hint == "see docs/reference/cluster.md"


@pytest.mark.parametrize(
    ("text", "where", "expected"),
    [
        ("[[nodes]]\ncount = 1\ngpus = '8'", "node group 1, gpus", "a whole number"),
        ("nodes = [{count=1, gpus=1}, {gpus=1}]", "node group 2", "[[nodes]] groups"),
        ("nodes = [3]", "node group 1", "a table"),
        ("[nodes]\ncount = 1", "nodes", "a list, written [[nodes]]"),
        ("x = = 1", "line 1", "valid TOML"),
        (
            "[[nodes]]\ncount=1\ngpus=1\n[gpu_types.X]\ntflops=0\nmemory_mib=1\nidle_w=1\npeak_w=1",
            "[gpu_types.X], tflops",
            "a number, more than 0",
        ),
        (
            "[[nodes]]\ncount=1\ngpus=1\n"
            "[gpu_types.X]\ntflops=1\nmemory_mib=-1\nidle_w=1\npeak_w=1",
            "[gpu_types.X], memory_mib",
            "a whole number, 0 or more",
        ),
        (
            "[[nodes]]\ncount=1\ngpus=1\n[gpu_types.X]\nspeed=2",
            "[gpu_types.X]",
            "tflops, memory_mib, idle_w, peak_w",
        ),
        ("[[nodes]]\ncount=1\ngpus=1\n[gpu_types]\nX = 3", "[gpu_types.X]", "a table"),
        (
            "[[nodes]]\ncount=1\ngpus=1\n[pools.a]\nlend=true\n[pools.b]\nlent=true",
            "[pools.b]",
            "borrow or lend",
        ),
    ],
)
def test_toml__a_misfit_is_told_in_our_own_words(write, text: str, where: str, expected: str):
    path = write(text)
    with pytest.raises(ConfigError) as caught:
        Cluster.from_toml(path)
    assert caught.value.where == f"{path}, {where}"
    assert caught.value.expected.startswith(expected)
    assert not {"`", "$"} & set(str(caught.value))


def test_toml__no_such_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        Cluster.parse(str(tmp_path / "none.toml"))
    assert caught.value.what == "cannot read the cluster file: No such file or directory"
    assert caught.value.where == str(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("text", "name", "total"),
    [
        ("uniform:64x8:V100", "uniform:64x8:V100", 512),
        ("uniform:1x512", "uniform:1x512:V100", 512),
        ("uniform:2x4:H100", "uniform:2x4:H100", 8),
    ],
)
def test_parse__uniform(text: str, name: str, total: int) -> None:
    cluster = Cluster.parse(text)
    assert cluster.name == name
    assert cluster.total_gpus == total


def test_parse__a_file(write) -> None:
    assert Cluster.parse(str(write(FILE))).name == "lab"


def test_parse__a_file_of_any_name(tmp_path: Path) -> None:
    path = tmp_path / "cluster"
    path.write_text("[[nodes]]\ncount = 1\ngpus = 3", encoding="utf-8")
    assert Cluster.parse(str(path)).total_gpus == 3


@pytest.mark.parametrize(
    "text", ["", "uniform", "uniform:8", "uniform:8x", "uniform:-1x8", "uniform:8x8:", "nowhere"]
)
def test_parse__unknown(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Cluster.parse(text)
    assert caught.value.what == f"unknown cluster {text!r}"
    assert caught.value.expected.startswith("uniform:NODESxGPUS[:TYPE]")
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("uniform:0x8", "count is 0"),
        ("uniform:8x0", "gpus is 0"),
        ("uniform:8x8:H1000", "unknown GPU type 'H1000'"),
        ("uniform:9999999x1", "the cluster is too large"),
    ],
)
def test_parse__impossible_uniform(text: str, what: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Cluster.parse(text)
    assert caught.value.what == what
