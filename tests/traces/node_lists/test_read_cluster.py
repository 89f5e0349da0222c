"""Node lists: every kind, what is left out, what is guessed, and the published lists' totals."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from tests.shared_traces import SHARED_TRACES

from berthline.errors import BerthlineError, ConfigError, TraceError
from berthline.model.cluster_presets import PRESETS
from berthline.traces.load import load_trace
from berthline.traces.node_lists.node_list_formats import NODE_LIST_KINDS, node_list_kind
from berthline.traces.node_lists.read_cluster import read_cluster, read_node_list

TRACES = SHARED_TRACES

OPENB = """\
sn,cpu_milli,memory_mib,gpu,model
n0,64500,262144,2,P100
n1,64000,262144,2,P100
n2,32000,262144,0,
n3,64000,262144,2,P100
n4,96000,786432,8,V100M32
n5,64000,262144,2,P100
"""
PAI = """\
7399a758eb02bae1a3621236,CPU,96,512,0
75c536d5ba60528b3ef3ae40,V100,96,512,8
6265a99de1a50cc6f1b03602,V100M32,96,384,8
"""
SPOT = """\
gpu_model,gpu_capacity_num,cpu_num,node_name
GPU-series-1,4,192,0
A10,1,128,2
A10,1,128,3
A100-SXM4-80GB,8,128,4
"""
PHILLY = "machineId,number of GPUs,single GPU mem\nm1,8, 24GB\nm2,2, 12GB\nm3,2, 12GB\n"
REVISED = ",machineId,number of GPUs\n0,m0,8\n1,m1,8\n2,m100,0\n"
TIRESIAS = "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n2,32,4,40,256\n"
HELIOS = "date,vcA,vcB,vcC,total\n2020-04-01,8,8,8,24\n2020-04-02,24,0,12,36\n"
GOOGLE = """\
0,5,0,HofLGzk1Or/8Ildj2+Lqv0UGGvY82NLoni8+J/Yy0RU=,0.5,0.2493
0,7,0,HofLGzk1Or/8Ildj2+Lqv0UGGvY82NLoni8+J/Yy0RU=,0.5,0.2493
0,8,0,HofLGzk1Or/8Ildj2+Lqv0UGGvY82NLoni8+J/Yy0RU=,0.1,0.2493
835050829,9,0,70ZOvysYGtB6j9MUHMPzA2Iy7GRzWeJTdX0YCLRKGVg=,0.25,0.2498
900000000,9,2,70ZOvysYGtB6j9MUHMPzA2Iy7GRzWeJTdX0YCLRKGVg=,1,0.2498
2000000000,7,1,HofLGzk1Or/8Ildj2+Lqv0UGGvY82NLoni8+J/Yy0RU=,,
"""
LISTS = {
    "openb": OPENB,
    "pai": PAI,
    "spot": SPOT,
    "philly": PHILLY,
    "tiresias": TIRESIAS,
    "helios": HELIOS,
    "google": GOOGLE,
}


@pytest.fixture
def write(tmp_path):
    def write_text(text, name="nodes.csv"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    return write_text


def shape(cluster):
    """Return (GPUs, type, CPUs, memory) of every node."""
    return [
        (gpus, cluster.types[kind].name, cpus, memory)
        for gpus, kind, cpus, memory in zip(
            cluster.gpus.tolist(),
            cluster.gpu_type.tolist(),
            cluster.cpus.tolist(),
            cluster.memory_mib.tolist(),
            strict=True,
        )
    ]


def test_openb_keeps_the_order_and_leaves_cpu_nodes_out(write):
    path = write(OPENB)
    small, large = (2, "P100", 64, 262_144), (8, "V100-32", 96, 786_432)
    assert shape(read_cluster(path)) == [small, small, small, large, small]
    nodes = read_node_list(path)
    assert (nodes.kind, nodes.nodes, nodes.left_out) == ("openb", 6, {"no GPUs": 1})
    assert [(group.count, group.gpus) for group in nodes.groups] == [(3, 2), (1, 8), (1, 2)]
    assert nodes.assumed == ""
    assert read_cluster(path).name == "nodes"


def test_pai_has_no_header_and_its_v100_is_the_small_one(write):
    path = write(PAI)
    assert shape(read_cluster(path)) == [
        (8, "V100-16", 96, 524_288),
        (8, "V100-32", 96, 393_216),
    ]
    assert read_node_list(path).left_out == {"no GPUs": 1}


def test_spot(write):
    assert shape(read_cluster(write(SPOT))) == [
        (4, "GPU-series-1", 192, 0),
        (1, "A10", 128, 0),
        (1, "A10", 128, 0),
        (8, "A100-80", 128, 0),
    ]


def test_philly_gets_a_stated_guess_or_what_the_caller_says(write):
    path = write(PHILLY)
    assert shape(read_cluster(path)) == [(8, "P100", 0, 0), (2, "P100", 0, 0), (2, "P100", 0, 0)]
    assert read_node_list(path).assumed == "GPU type P100"
    assert {kind.name for kind in read_cluster(path, gpu_type="V100M16").types} == {"V100-16"}
    revised = write(REVISED)
    assert read_cluster(revised).total_gpus == 16
    assert read_node_list(revised).left_out == {"no GPUs": 1}


def test_tiresias_counts_nodes_of_all_switches(write):
    cluster = read_cluster(write(TIRESIAS))
    assert (cluster.num_nodes, cluster.total_gpus) == (64, 256)
    assert shape(cluster)[0] == (4, "P100", 40, 262_144)


def test_helios_quotas_are_pools_of_eight_gpu_nodes_on_the_last_day(write):
    path = write(HELIOS)
    cluster = read_cluster(path)
    assert cluster.pool_names == ("vcA", "vcC")
    assert cluster.pool.tolist() == [0, 0, 0, 1, 1]
    assert set(cluster.gpus.tolist()) == {8}
    assert "2020-04-02" in read_node_list(path).assumed


@pytest.mark.parametrize("name", ["nodes.csv", "machine_events/part-00000-of-00001.csv"])
def test_google_machines_are_a_stated_assumption(write, name):
    path = write(GOOGLE, name)
    assert shape(read_cluster(path)) == [(4, "V100-32", 0, 0)] * 2 + [(8, "V100-32", 0, 0)]
    nodes = read_node_list(path)
    assert (nodes.nodes, nodes.left_out) == (4, {"too small for a GPU": 1})
    assert "8 GPUs in the largest machine" in nodes.assumed
    assert read_cluster(path, gpus_per_machine=2).gpus.tolist() == [1, 1, 2]
    if "/" in name:
        assert read_cluster(path.parent).total_gpus == 16
        assert read_cluster(path.parent.parent).total_gpus == 16


def test_an_unknown_gpu_model_is_named_with_its_line(write):
    with pytest.raises(ConfigError) as caught:
        read_cluster(write(OPENB.replace("V100M32", "Z9")))
    assert caught.value.what == "unknown GPU type 'Z9'"
    assert caught.value.where.endswith("nodes.csv, line 6")
    with pytest.raises(ConfigError) as caught:
        read_cluster(write(OPENB.replace("V100M32", "")))
    assert caught.value.what == "a node has 8 GPUs and no GPU model"
    cluster = read_cluster(write(OPENB.replace("V100M32", "")), gpu_type="T4")
    assert [kind.name for kind in cluster.types] == ["P100", "T4"]
    with pytest.raises(ConfigError):
        read_cluster(write(PHILLY), gpu_type="Z9")


def test_a_list_without_gpus_is_refused(write):
    with pytest.raises(ConfigError) as caught:
        read_cluster(write("machineId,number of GPUs\nm1,0\n"))
    assert caught.value.what == "none of the 1 nodes has GPUs"


@pytest.mark.parametrize("kind", LISTS)
def test_a_wrong_number_is_told_with_its_line(write, kind):
    lines = LISTS[kind].splitlines()
    cells = lines[1].split(",")
    number = {"openb": 3, "pai": 4, "spot": 1, "philly": 1, "helios": 2, "tiresias": 2, "google": 4}
    cells[number[kind]] = "many"
    lines[1] = ",".join(cells)
    with pytest.raises(TraceError) as caught:
        read_cluster(write("\n".join(lines) + "\n"))
    assert "'many'" in caught.value.what
    assert "line 2" in caught.value.where


@pytest.mark.parametrize("kind", LISTS)
def test_a_node_list_is_no_trace_and_the_error_says_what_it_is(write, kind):
    path = write(LISTS[kind])
    assert node_list_kind(path.read_bytes()) == kind
    with pytest.raises(TraceError) as caught:
        load_trace(path)
    assert f"list of nodes ({kind})" in caught.value.what
    assert "read_cluster" in caught.value.hint


def test_all_kinds_are_tested_here():
    assert set(LISTS) == set(NODE_LIST_KINDS)


@pytest.mark.parametrize(
    "content", [b"", b"\0\1\2", b"a,b\n1,2\n", b"\n\n", b"sn,cpu_milli,memory_mib,gpu,model\n"]
)
def test_what_is_no_node_list_is_refused(tmp_path, content):
    path = tmp_path / "nodes.csv"
    path.write_bytes(content)
    for where in (path, tmp_path, tmp_path / "missing", tmp_path / ("x" * 300)):
        with pytest.raises(BerthlineError) as caught:
            read_cluster(where)
        assert str(where) in caught.value.where


def test_what_cannot_be_read_is_not_called_a_trace(tmp_path):
    (tmp_path / "empty.csv").touch()
    for path, what in (
        (tmp_path / "empty.csv", "the node list is empty"),
        (tmp_path / "none.csv", "no such node list"),
        (tmp_path, "this is a directory"),
    ):
        with pytest.raises(TraceError, match=what) as caught:
            read_cluster(path)
        assert "jobs" not in str(caught.value)


def test_what_is_left_out_or_made_up_is_remarked(write):
    remarks = []
    read_cluster(write(REVISED), remark=remarks.append)
    read_cluster(write(SPOT), remark=remarks.append)
    assert len(remarks) == 1
    assert remarks[0].endswith("1 of 3 nodes left out: no GPUs; assumed: GPU type P100")


# nodes in the list, nodes with GPUs, GPUs
TOTALS = {
    "alibaba_gpu_v2023/openb_node_list_all_node.csv.gz": (1_523, 1_213, 6_212),
    "alibaba_gpu_v2023/openb_node_list_gpu_node.csv.gz": (1_213, 1_213, 6_212),
    "alibaba_pai_v2020/pai_machine_spec.csv.gz": (1_897, 1_814, 6_742),
    "alibaba_spot_v2026/node_info_df.csv.gz": (4_278, 4_278, 10_412),
    "philly/revised_machine_list.csv": (552, 539, 3_205),
    "format_samples/philly/cluster_machine_list.csv": (1, 1, 8),
    "format_samples/tiresias/cluster_n32g4.csv": (32, 32, 128),
    "format_samples/google_2011/machine_events.csv": (3, 3, 10),
}

# (GPU type, GPUs on a node): nodes
MIX = {
    "alibaba_gpu_v2023/openb_node_list_all_node.csv.gz": {
        ("G2", 8): 549,
        ("T4", 2): 387,
        ("T4", 4): 17,
        ("P100", 2): 131,
        ("P100", 1): 3,
        ("G3", 8): 39,
        ("V100-16", 4): 28,
        ("V100-16", 1): 19,
        ("V100-16", 8): 8,
        ("V100-32", 8): 21,
        ("V100-32", 4): 9,
        ("A10", 1): 2,
    },
    "alibaba_pai_v2020/pai_machine_spec.csv.gz": {
        ("P100", 2): 798,
        ("T4", 2): 497,
        ("MISC", 8): 280,
        ("V100-32", 8): 135,
        ("V100-16", 8): 104,
    },
    "alibaba_spot_v2026/node_info_df.csv.gz": {
        ("A10", 1): 2_494,
        ("A100-80", 8): 432,
        ("A800", 8): 22,
        ("GPU-series-1", 1): 902,
        ("GPU-series-1", 4): 10,
        ("GPU-series-1", 8): 77,
        ("GPU-series-2", 8): 122,
        ("H800", 8): 219,
    },
    "philly/revised_machine_list.csv": {
        ("P100", 8): 264,
        ("P100", 4): 271,
        ("P100", 2): 3,
        ("P100", 3): 1,
    },
}


@pytest.mark.skipif(not TRACES.is_dir(), reason="shared trace files are not here")
class TestPublishedLists:
    @pytest.mark.parametrize("name", TOTALS)
    def test_totals_are_those_of_the_readme(self, name):
        cluster, nodes = read_cluster(TRACES / name), read_node_list(TRACES / name)
        assert (nodes.nodes, cluster.num_nodes, cluster.total_gpus) == TOTALS[name]
        assert sum(nodes.left_out.values()) == nodes.nodes - cluster.num_nodes

    @pytest.mark.parametrize("name", MIX)
    def test_the_mix_of_nodes_is_that_of_the_readme(self, name):
        nodes = Counter((kind, gpus) for gpus, kind, _, _ in shape(read_cluster(TRACES / name)))
        assert nodes == MIX[name]

    @pytest.mark.parametrize(
        ("name", "preset"),
        [
            ("alibaba_gpu_v2023/openb_node_list_gpu_node.csv.gz", "openb-2023"),
            ("alibaba_pai_v2020/pai_machine_spec.csv.gz", "alibaba-pai"),
            ("alibaba_spot_v2026/node_info_df.csv.gz", "spot-2026"),
        ],
    )
    def test_presets_have_the_nodes_of_the_lists(self, name, preset):
        assert Counter(shape(read_cluster(TRACES / name))) == Counter(
            shape(PRESETS[preset].cluster())
        )

    def test_every_gpu_of_a_constrained_pod_list_has_nodes(self):
        cluster = read_cluster(TRACES / "alibaba_gpu_v2023" / "openb_node_list_gpu_node.csv.gz")
        workload = load_trace(TRACES / "alibaba_gpu_v2023" / "openb_pod_list_gpuspec10.csv.gz")
        present = {kind.name for kind in cluster.types}
        assert all(present & set(names.split("|")) for names in workload.gpu_type_sets)
        assert np.unique(workload.gpu_types).tolist() == list(range(-1, 15))
