"""Packing pods until the cluster is full: the draw, the counts, and the published result of FGD."""

from __future__ import annotations

import numpy as np
import pytest
from tests.shared_traces import REPOSITORY

from berthline.errors import ConfigError, TraceError
from berthline.experiments.openb_pods import (
    SHAPES,
    Pods,
    generate_pods,
    packing_cluster,
    read_pods,
)
from berthline.experiments.packing import (
    ARRIVES,
    LEVELS,
    NODE_ORDERS,
    PLACEMENTS,
    PUBLISHED,
    PUBLISHED_ONLY,
    arrivals,
    gain_of_fgd,
    in_node_order,
    markdown_table,
    orders_table,
    pack,
    run_packing,
)
from berthline.model.cluster import Cluster, NodeGroup

ROOT = REPOSITORY
TRACE = ROOT.parent / "shared" / "traces" / "alibaba_gpu_v2023" / "openb_pod_list_default.csv.gz"
PAGE = ROOT / "docs" / "results" / "packing.md"

needs_trace = pytest.mark.skipif(not TRACE.exists(), reason=f"{TRACE.name} is not here")


def pods_of(*shapes: tuple[int, int, int, int]) -> Pods:
    """Return pods of (gpus, gpu_milli, cpu_milli, memory_mib)."""
    gpus, gpu_milli, cpu_milli, memory_mib = np.array(shapes, np.int64).T
    any_type = np.full(len(shapes), -1, np.int32)
    return Pods(gpus, gpu_milli, cpu_milli, memory_mib, any_type, (), "by hand")


def in_order(pods: Pods):
    return pods.workload(np.arange(len(pods)))


@pytest.fixture
def small():
    """Twenty nodes with CPUs in thousandths, as `packing_cluster` has them."""
    groups = [
        NodeGroup(count=12, gpus=2, cpus=32_000, memory_mib=131_072),
        NodeGroup(count=8, gpus=8, cpus=96_000, memory_mib=393_216),
    ]
    return Cluster.from_groups(groups)


class TestArrivals:
    def test_the_list_comes_once_then_draws_until_the_cluster_would_overflow(self):
        pods = generate_pods(200, seed=1)
        rows = arrivals(pods, 400, seed=0)
        assert sorted(rows[:200]) == list(range(200))
        assert len(set(rows[200:].tolist())) < len(rows[200:])
        asked = pods.gpu_amount[rows].sum()
        assert ARRIVES * 400 - 8 < asked <= ARRIVES * 400

    def test_a_long_list_is_cut(self):
        pods = generate_pods(500, seed=1)
        rows = arrivals(pods, 100, seed=0)
        assert len(set(rows.tolist())) == len(rows) < 500

    def test_the_seed_decides(self):
        pods = generate_pods(50, seed=1)
        assert (arrivals(pods, 40, seed=3) == arrivals(pods, 40, seed=3)).all()
        one, other = arrivals(pods, 40, seed=3), arrivals(pods, 40, seed=4)
        assert len(one) != len(other) or (one != other).any()

    def test_pods_without_gpus_would_never_fill_it(self):
        with pytest.raises(ConfigError, match="no pod of by hand asks for a GPU"):
            arrivals(pods_of((0, 1000, 4000, 8)), 10, seed=0)


class TestPack:
    def test_unallocated_shares_by_hand(self):
        cluster = Cluster.uniform(nodes=1, gpus_per_node=4)
        pods = pods_of((1, 500, 0, 0), (2, 1000, 0, 0), (2, 1000, 0, 0), (1, 1000, 0, 0))
        curve, failed = pack(in_order(pods), cluster, "first-fit", 0)
        assert failed == 1  # the second of two GPUs: half of one and a whole one are left
        assert curve[0] == 100.0
        assert curve[12] == 100.0  # half a GPU is 12.5 % of four
        assert curve[13] == 87.5
        assert curve[62] == 87.5
        assert curve[63] == 37.5
        assert curve[-1] == 12.5

    def test_cpus_and_memory_are_limits(self):
        groups = [NodeGroup(count=1, gpus=4, cpus=10_000, memory_mib=100)]
        cluster = Cluster.from_groups(groups)
        pods = pods_of((1, 1000, 6_000, 10), (1, 1000, 4_001, 10), (1, 1000, 100, 91))
        assert pack(in_order(pods), cluster, "first-fit", 0)[1] == 2
        pods = pods_of((1, 1000, 6_000, 10), (1, 1000, 4_000, 10), (1, 1000, 0, 80))
        assert pack(in_order(pods), cluster, "first-fit", 0)[1] == 0

    def test_fgd_shares_a_gpu_that_is_shared_already(self):
        cluster = Cluster.uniform(nodes=2, gpus_per_node=1)
        pods = pods_of((1, 500, 0, 0), (1, 500, 0, 0), (1, 1000, 0, 0))
        assert pack(in_order(pods), cluster, "fgd", 0)[1] == 0
        assert pack(in_order(pods), cluster, "worst-fit", 0)[1] == 1


class TestRun:
    def test_every_placement_and_the_ranking(self, small):
        asked = []
        pods = generate_pods(300, seed=2)
        found = run_packing(pods, seeds=2, cluster=small, report=lambda *state: asked.append(state))
        assert {packed.placement for packed in found.placements} == set(PLACEMENTS)
        ends = [packed.at_end for packed in found.placements]
        assert ends == sorted(ends)
        assert all(0 <= end < 100 for end in ends)
        assert [done for done, _, _ in asked] == list(range(2 * len(PLACEMENTS)))
        assert found.fgd.of_fgd.ratio == 1.0
        for packed in found.placements:
            assert len(packed.curve) == len(LEVELS)
            assert packed.curve[-1] == packed.at_end <= packed.at_100 == packed.curve[100]
            assert (np.diff(packed.curve) <= 1e-9).all()  # what is allocated stays allocated
            assert packed.low <= packed.at_end * 1.001
            assert packed.high >= packed.at_end * 0.999

    def test_what_fgd_saves(self, small):
        found = run_packing(generate_pods(300, seed=2), seeds=1, cluster=small)
        worst = found.placements[-1]
        fewer, more = found.against(worst)
        assert gain_of_fgd(found).startswith("fgd leaves ")
        assert fewer == pytest.approx(1 - found.fgd.at_end / worst.at_end)
        assert more == pytest.approx((worst.at_end - found.fgd.at_end) * 88 / 100)
        assert {rival.placement for rival in found.published_rivals} == {
            "best-fit, GPUs + CPUs",
            "dot-product, smallest",
        }


class TestNodeOrders:
    def test_the_nodes_stay_the_same(self, small):
        orders = [in_node_order(small, order, seed=3) for order in NODE_ORDERS]
        for cluster in orders:
            nodes = zip(cluster.gpus, cluster.cpus, cluster.memory_mib, strict=True)
            assert sorted(nodes) == sorted(
                zip(small.gpus, small.cpus, small.memory_mib, strict=True)
            )
        listed, large_first, shuffled = (cluster.gpus.tolist() for cluster in orders)
        assert listed == small.gpus.tolist()
        assert large_first == [8] * 8 + [2] * 12
        assert shuffled not in (listed, large_first)
        assert in_node_order(small, "shuffled", seed=4).gpus.tolist() != shuffled

    def test_ties_go_to_the_first_node(self):
        cluster = Cluster.from_groups([NodeGroup(count=1, gpus=2), NodeGroup(count=1, gpus=8)])
        pods = pods_of((1, 1000, 0, 0), (8, 1000, 0, 0))
        for order, failures in (("listed", 0), ("large-first", 1)):
            nodes = in_node_order(cluster, order, seed=0)
            assert pack(in_order(pods), nodes, "first-fit", 0)[1] == failures, order

    def test_tables(self, small):
        chosen = {name: PLACEMENTS[name] for name in ("fgd", "first-fit")}
        pods = generate_pods(200, seed=2)
        found = [
            run_packing(pods, seeds=2, cluster=small, placements=chosen, node_order=order)
            for order in NODE_ORDERS
        ]
        head, _, *rows = orders_table(found)
        assert head == "| placement | listed | large-first | shuffled |"
        assert len(rows) == len(chosen)
        text = "\n".join(markdown_table(found[0]))
        for name, share in PUBLISHED_ONLY.items():
            assert f"| {name} | - | - | - | {share:.2f} |" in text

    def test_all_published_shares_at_130_percent(self):
        shares = sorted((PUBLISHED | PUBLISHED_ONLY).values())
        assert shares == [4.61, 6.92, 8.00, 8.12, 9.15, 12.53]


class TestPods:
    def test_a_list_is_read_with_parts_of_cores_and_gpus(self, tmp_path):
        path = tmp_path / "pods.csv"
        path.write_text(
            "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
            "a,11908,47104,1,470,\n"
            "b,4000,8,0,0,\n"
            "c,88000,327680,8,1000,V100M16|V100M32\n"
        )
        pods = read_pods(path)
        assert pods.gpu_amount.tolist() == [0.47, 0.0, 8.0]
        assert pods.cpu_milli.tolist() == [11908, 4000, 88000]
        assert pods.gpu_types.tolist() == [-1, -1, 0]
        workload = in_order(pods)
        assert workload.cpus.tolist() == [11908, 4000, 88000]
        assert workload.gpu_milli.tolist() == [470, 1000, 1000]

    def test_another_table_is_refused(self, tmp_path):
        path = tmp_path / "jobs.csv"
        path.write_text("job,gpus\n1,2\n")
        with pytest.raises(TraceError, match="num_gpu"):
            read_pods(path)

    def test_generated_ones_have_the_shapes(self):
        pods = generate_pods(20_000, seed=5)
        weight, gpus, milli = np.array(SHAPES).T[:3]
        expected = (weight * gpus * milli / 1000).sum() / weight.sum()
        assert pods.gpu_amount.mean() == pytest.approx(expected, rel=0.05)
        assert (pods.cpu_milli == generate_pods(20_000, seed=5).cpu_milli).all()
        kinds = np.stack([pods.gpus, pods.gpu_milli, pods.cpu_milli, pods.memory_mib])
        assert 60 < np.unique(kinds, axis=1).shape[1] <= 4 * len(SHAPES)

    def test_the_cluster_counts_thousandths_of_cores(self):
        cluster = packing_cluster()
        assert (cluster.num_nodes, cluster.total_gpus) == (1213, 6212)
        assert cluster.cpus.max() == 128_000
        assert cluster.cpus.sum() == 107_018_000


@pytest.fixture(scope="module")
def pods():
    return read_pods(TRACE)


@needs_trace
class TestPublished:
    def test_the_trace(self, pods):
        assert len(pods) == 8152
        assert pods.gpu_amount.sum() == pytest.approx(6086.8)

    def test_fgd_leaves_fewer_than_those_it_was_published_against(self, pods):
        rivals = ("fgd", "best-fit", "best-fit, GPUs + CPUs", "dot-product, smallest", "random")
        chosen = {name: PLACEMENTS[name] for name in rivals}
        found = run_packing(pods, seeds=2, placements=chosen)
        assert [packed.placement for packed in found.placements] == list(rivals)
        assert found.fgd_wins
        for packed in found.placements:
            if packed.published is not None:
                assert packed.at_end == pytest.approx(packed.published, rel=0.25)

    def test_fgd_wins_by_the_order_of_nodes_too(self, pods):
        """With large nodes first, best-fit leaves fewer than fgd."""
        chosen = {name: PLACEMENTS[name] for name in ("fgd", "fgd-gangs", "best-fit")}
        for order in NODE_ORDERS:
            found = run_packing(pods, seeds=2, placements=chosen, node_order=order)
            assert found.fgd_wins == (order != "large-first")

    @pytest.mark.slow
    def test_the_page_shows_what_is_computed(self, pods):
        found = [run_packing(pods, seeds=10, node_order=order) for order in NODE_ORDERS]
        page = PAGE.read_text(encoding="utf-8")
        assert "\n".join(markdown_table(found[0])) in page
        assert gain_of_fgd(found[0]) in page
        assert "\n".join(orders_table(found)) in page
