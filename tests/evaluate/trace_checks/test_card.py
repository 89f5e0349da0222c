"""Trace cards: figures that can be checked by hand, and those in the README of the real traces."""

from __future__ import annotations

import dataclasses
import math

import msgspec
import numpy as np
import pytest
from tests.shared_traces import SHARED_TRACES

from berthline.evaluate.trace_checks.card import ANY, OWN_CLUSTER, trace_card
from berthline.evaluate.trace_checks.cluster_fit import impossible_jobs, usable_gpus
from berthline.model.cluster import Cluster, NodeGroup
from berthline.model.schedule import REJECT, REJECT_REASONS
from berthline.model.workload import Workload
from berthline.sim.simulate import simulate
from berthline.traces.inspect.arrival_pattern import DAY, local_clock
from berthline.traces.inspect.demand import Demand
from berthline.traces.load import load_trace

SHARED = SHARED_TRACES
real = pytest.mark.skipif(not SHARED.is_dir(), reason="shared trace files are not here")

MONDAY = 1_704_067_200  # 2024-01-01 00:00:00 UTC


def small(**columns):
    """Four jobs over 100 s.

    GPUs   0    20    40    60    80   100   s
      8    .    [C..............]            C: 8 GPUs
      2    [A.........]          .     D     A: 2, D: 1 at 100
      4    .    [B....]                      B: 4
    """
    given = {"submit": [0, 20, 20, 100], "run": [40, 20, 50, 10], "gpus": [2, 4, 8, 1]} | columns
    return Workload.from_columns(**given)


class TestPartsAndNone:
    """A quarter of a GPU for 40 s, half of one for 20 s, no GPU for 50 s, 3 GPUs for 10 s."""

    WORKLOAD = small(gpus=[1, 1, 0, 3], gpu_milli=[250, 500, 1000, 1000], cpus=[1, 1, 4, 1])

    def test_work_and_demand_count_parts(self):
        card = trace_card(self.WORKLOAD, Cluster.uniform(nodes=1, gpus_per_node=4))
        assert card.gpu_hours == pytest.approx((0.25 * 40 + 0.5 * 20 + 3 * 10) / 3600)
        assert card.demand_mean == pytest.approx((0.25 * 40 + 0.5 * 20) / 100)
        assert card.cluster is not None
        assert card.cluster.load == pytest.approx(50 / (4 * 100))

    def test_sizes(self):
        card = trace_card(self.WORKLOAD)
        assert [(size.gpus, size.is_part, size.jobs) for size in card.sizes] == [
            (0, False, 1),
            (1, True, 2),
            (3, False, 1),
        ]
        assert [size.work_share for size in card.sizes] == pytest.approx([0, 0.4, 0.6])
        assert (card.jobs_on_parts, card.jobs_without_gpus) == (2, 1)

    def test_whole_gpus_only(self):
        card = trace_card(small())
        assert (card.jobs_on_parts, card.jobs_without_gpus) == (0, 0)


class TestImpossible:
    CLUSTER = Cluster.from_groups(
        [
            NodeGroup(count=2, gpus=4, gpu_type="T4", cpus=8, memory_mib=1000, pool="a"),
            NodeGroup(count=1, gpus=8, gpu_type="A10", pool="b"),
            NodeGroup(count=1, gpus=2, gpu_type="T4"),
        ]
    )

    def workload(self):
        return Workload.from_columns(
            submit=[0] * 8,
            run=[1] * 8,
            gpus=[1, 19, 9, 4, 12, 2, 1, 4],
            cpus=[0, 0, 0, 0, 0, 100, 0, 8],
            memory_mib=[0, 0, 0, 0, 0, 0, 9999, 0],
            pool=[-1, -1, -1, 2, 1, 0, 0, -1],
            gpu_types=[-1, -1, 0, -1, -1, 0, 0, 1],
            pool_names=("a", "b", "c"),
            gpu_type_sets=("T4", "H100|A10"),
        )

    def test_reasons_are_the_simulators(self):
        workload = self.workload()
        reasons = impossible_jobs(workload, self.CLUSTER)
        log = simulate(workload, self.CLUSTER, "fcfs+skip").log
        rejected = log.kind == REJECT
        expected = np.full(len(workload), -1)
        expected[log.job[rejected]] = log.detail[rejected]
        assert reasons.tolist() == expected.tolist()
        assert 0 < (reasons >= 0).sum() < len(workload)

    def test_usable_gpus(self):
        workload = self.workload()
        assert usable_gpus(workload, self.CLUSTER) == 18
        assert usable_gpus(workload, self.CLUSTER, pool=0) == 10  # its own, and the open node
        assert usable_gpus(workload, self.CLUSTER, pool=2) == 2
        assert usable_gpus(workload, self.CLUSTER, gpu_types=1) == 8

    def test_card_counts_reasons_and_pressure(self):
        card = trace_card(self.workload(), self.CLUSTER)
        assert card.cluster is not None
        assert set(card.cluster.impossible) <= set(REJECT_REASONS)
        assert sum(card.cluster.impossible.values()) > 0
        pools = {entry.name: entry for entry in card.cluster.by_pool}
        assert set(pools) == {ANY, "a", "b", "c"}
        assert pools["c"].gpus == 2
        assert pools["b"].oversubscription == pytest.approx(12 / 10)
        ratios = [entry.oversubscription for entry in card.cluster.by_pool]
        assert ratios == sorted(ratios, reverse=True)


class TestCard:
    def test_by_hand(self):
        workload = small(
            estimate=[80, 10, np.nan, 10],
            user=[0, 1, 1, 1],
            provenance={"format": "x", "rows": 7, "dropped": {"no GPUs": 3}, "max_procs": 10},
        )
        card = trace_card(workload)
        assert (card.jobs, card.users, card.pools, card.rows) == (4, 2, 0, 7)
        assert card.dropped == {"no GPUs": 3}
        assert card.span_seconds == 100
        assert card.gpu_hours == pytest.approx((80 + 80 + 400 + 10) / 3600)
        assert [(size.gpus, size.jobs) for size in card.sizes] == [(1, 1), (2, 1), (4, 1), (8, 1)]
        assert card.sizes[-1].work_share == pytest.approx(400 / 570)
        assert (card.run.min, card.run.p50, card.run.max) == (10, 30, 50)
        assert card.estimates.jobs == 3
        assert card.estimates.too_short == 1
        assert card.estimates.factor is not None
        assert card.estimates.factor.p50 == 1
        assert card.arrivals.most_at_once == 2
        assert card.arrivals.by_weekday == []
        assert "estimates" not in card.missing
        assert {"dates", "pools", "GPU types", "job ids"} <= set(card.missing)
        assert card.cluster is not None
        assert (card.cluster.name, card.cluster.gpus) == (OWN_CLUSTER, 10)
        assert card.cluster.load == pytest.approx(570 / 1000)

    @pytest.mark.parametrize(
        ("names", "users"), [(("alice",), 1), (("unknown",), 0), (("all",), 0), (None, 0)]
    )
    def test_one_user_is_no_missing_one(self, names, users):
        card = trace_card(small(user_names=names))
        assert card.users == users
        assert ("users" in card.missing) == (users == 0)

    def test_counts_of_the_origin_are_not_those_of_the_copy(self):
        first = {"format": "swf", "path": "a.swf", "rows": 9, "used": 4, "dropped": {"no GPUs": 5}}
        card = trace_card(small(provenance={"rows": 4, "dropped": {}, "origin": first}))
        assert (card.rows, card.dropped) == (4, {})
        assert card.origin is not None
        assert (card.origin.path, card.origin.rows) == ("a.swf", 9)
        assert card.origin.dropped == {"no GPUs": 5}
        assert trace_card(small(provenance=first)).origin is None

    def test_of_a_single_job(self):
        card = trace_card(
            Workload.from_columns(submit=[5], run=[10], gpus=[2]),
            Cluster.uniform(nodes=1, gpus_per_node=4),
        )
        assert card.cluster is not None
        assert card.cluster.load is None
        assert card.arrivals.gap_cv is None
        assert card.arrivals.per_day == 1

    def test_is_plain_data(self):
        card = trace_card(small(), Cluster.uniform(nodes=1, gpus_per_node=8))
        assert msgspec.json.decode(msgspec.json.encode(card), type=type(card)) == card

    def test_without_a_cluster(self):
        assert trace_card(small()).cluster is None


@real
class TestRealTraces:
    def test_philly(self):
        workload = load_trace(SHARED / "philly/philly_2017-09-04_2017-11-14.csv.gz")
        card = trace_card(workload)
        assert card.jobs == 64_483
        assert (round(card.run.p50), round(card.run.mean)) == (1_278, 13_298)
        assert (round(card.run.p90), round(card.run.p99)) == (10_715, 266_626)
        sizes = {size.gpus: size.jobs for size in card.sizes}
        assert {1: 60_522, 4: 1_461, 2: 1_217, 8: 1_136, 16: 106, 32: 30}.items() <= sizes.items()
        assert round(card.gpu_hours) == 774_589
        assert card.demand_max == 1_243
        assert round(card.span_seconds / DAY, 1) == 71.6
        assert (card.first[:10], card.last[:10]) == ("2017-09-04", "2017-11-14")

    def test_philly_from_october(self):
        workload = load_trace(SHARED / "philly/philly_2017-09-04_2017-11-14.csv.gz")
        demand = Demand.of(workload)
        clock = local_clock(workload)
        first = int(np.argmax(clock.seconds >= np.datetime64("2017-10-01", "s").astype(float)))
        # The README's window begins at midnight, not at the first job after it.
        start = workload.submit[first] - (clock.seconds[first] % DAY)
        busy = demand.time >= start
        window = dataclasses.replace(
            demand,
            time=np.append(start, demand.time[busy]),
            gpus=np.append(demand.gpus[np.argmax(busy) - 1], demand.gpus[busy]),
        )
        assert round(window.mean) == 580
        assert round(window.quantile(0.95)) == 786

    def test_venus(self):
        path = SHARED / "helios_venus/venus_gpu_jobs_2020-03-18_2020-08-31.csv.gz"
        card = trace_card(load_trace(path), Cluster.uniform(nodes=133, gpus_per_node=8))
        assert card.jobs == 99_707
        assert (round(card.run.p50), round(card.run.mean)) == (205, 9_311)
        assert card.demand_max == 1_214
        assert card.largest == 200
        assert card.cluster is not None
        assert card.cluster.impossible == {}

    @pytest.mark.parametrize(
        ("name", "processors", "load"),
        [("HPC2N-2002-2.2-cln", 240, 0.60), ("NASA-iPSC-1993-3.1-cln", 128, 0.47)],
    )
    def test_swf_against_its_own_machine(self, name, processors, load):
        card = trace_card(load_trace(SHARED / f"swf/{name}.swf.gz"))
        assert card.cluster is not None
        assert card.cluster.gpus == processors
        assert round(card.cluster.load or math.nan, 2) == load

    def test_oversubscribed_gpu_types_of_openb(self):
        path = SHARED / "alibaba_gpu_v2023/openb_pod_list_gpuspec10.csv.gz"
        card = trace_card(load_trace(path), Cluster.parse("openb-2023"))
        assert card.cluster is not None
        gpus = {entry.name: entry.gpus for entry in card.cluster.by_gpu_type}
        assert (gpus["T4"], gpus["G2"], gpus[ANY]) == (842, 4_392, 6_212)
        assert sum(entry.jobs for entry in card.cluster.by_gpu_type) == card.jobs
