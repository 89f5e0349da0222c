"""Columns: what an agent sees, computed by hand, and every way to give columns."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import pytest
from tests.env.by_hand import make, play
from tests.sim.scenarios import jobs, nodes

from berthline.env.columns import COLUMN_SETS, TABLES, Columns, resolve_columns
from berthline.errors import ConfigError, PolicyError

# Two GPUs: A runs on one from 0 to 100, B waits for both, C could start beside A at 30.
THREE = jobs(
    (0, 100, 1),
    (10, 50, 2),
    (30, 20, 1),
    estimate=[200, 60, 30],
    priority=[1, 0, 4],
    user=[0, 1, 0],
)
CLUSTER = "uniform:1x2:V100"


class TestSets:
    @pytest.mark.parametrize("name", COLUMN_SETS)
    def test_formulas_can_be_read(self, name):
        """Of each table, also the LSF system's columns of nodes without a job at hand."""
        tables = [COLUMN_SETS[name].formulas(table) for table in TABLES]
        assert sum(map(len, tables)) >= 4

    def test_blind_columns_need_no_run_times(self):
        blind = COLUMN_SETS["blind"]
        assert not any(f.uses_estimate for table in TABLES for f in blind.formulas(table))

    @pytest.mark.parametrize("knowledge", ["none", "estimate", "exact", "predicted"])
    def test_default(self, knowledge):
        expected = COLUMN_SETS["blind" if knowledge == "none" else "default"]
        assert make("pick", knowledge=knowledge).plan.columns == expected

    def test_values_of_the_default(self):
        env = make("pick", THREE, cluster=CLUSTER)
        env.reset(seed=0)
        seen, *_ = env.step(0)
        assert env.question()["now"] == 30
        b, c = seen["jobs"][:2]
        assert b == pytest.approx(
            [
                20 / 3620,
                math.log10(61) / 6,
                math.log2(3) / 10,
                math.log10(121) / 9,
                0,
                0,
                2 / (2 + 1),
                20 / 80,
            ]
        )
        assert c[[0, 1, 4, 5, 6, 7]] == pytest.approx([0, math.log10(31) / 6, 1, 1, 1 / 2, 0])
        assert not seen["jobs"][2:].any()
        assert seen["nodes"] == pytest.approx(np.array([[1 / 2, 1, 1]]))
        assert seen["running"][0] == pytest.approx([170 / 3770, 1 / 10, 30 / 36030, 0])
        assert not seen["running"][1:].any()
        assert seen["globals"] == pytest.approx([1 / 2, 1, 2 / 34, 1 / 33, 3 / 60])

    def test_values_of_the_blind(self):
        env = make("pick", THREE, cluster=CLUSTER, knowledge="none")
        env.reset(seed=0)
        seen, *_ = env.step(0)
        b, c = seen["jobs"][:2]
        one = math.log2(2) / 10
        assert b == pytest.approx([20 / 3620, 20 / 80, math.log2(3) / 10, 0, 0, 0, 2 / 3, 1 / 9])
        assert c == pytest.approx([0, 0, one, 0, 1, 1, 1 / 2, 2 / 10])
        assert seen["running"][0] == pytest.approx([30 / 36030, one, 1 / 4, 0])


class TestKnowledge:
    @pytest.mark.parametrize(
        ("knowledge", "expected"), [("estimate", [60, 30]), ("exact", [50, 20])]
    )
    def test_estimates_are_what_is_known(self, knowledge, expected):
        env = make("pick", THREE, cluster=CLUSTER, knowledge=knowledge, features=["estimate"])
        assert play(env, 0, 1, 0).seen[1]["jobs"][:2, 0].tolist() == expected

    def test_none_refuses_run_times(self):
        for table, formula in (
            ("jobs", "work"),
            ("running", "remaining"),
            ("globals", "queued_work"),
        ):
            with pytest.raises(PolicyError, match="knowledge is 'none'"):
                make("pick", knowledge="none", features={table: [formula]})


class TestGiving:
    def test_a_list_is_about_waiting_jobs(self):
        env = make("pick", THREE, cluster=CLUSTER, features=["wait", "gpus", "gpus * wait"])
        assert env.observation_space["jobs"].shape == (64, 3)
        assert env.observation_space["nodes"].shape == (1, 3)  # of the default
        assert play(env, 0, 1, 0).seen[1]["jobs"][0].tolist() == [20, 2, 40]

    def test_a_mapping_names_tables(self):
        features = {"globals": ["now", "free_gpus"], "nodes": [], "running": []}
        env = make("pick", THREE, cluster=CLUSTER, features=features)
        assert set(env.observation_space) == {"jobs", "globals", "action_mask"}
        assert play(env, 0, 1, 0).seen[1]["globals"].tolist() == [30, 1]

    def test_an_object_is_all_there_is(self):
        env = make("pick", THREE, cluster=CLUSTER, features=Columns(globals=("queue_len",)))
        assert set(env.observation_space) == {"globals", "action_mask"}

    def test_flat_has_the_tables_one_after_another(self):
        features = Columns(jobs=("gpus", "wait"), nodes=("node_free_gpus",), globals=("now",))
        options = {"cluster": nodes(1, 2), "features": features, "window": 2, "knowledge": "exact"}
        workload = jobs((0, 10, 1), (0, 10, 2), (0, 10, 2))
        seen, _ = make("pick", workload, observation="flat", **options).reset(seed=0)
        assert seen.tolist() == [1, 0, 2, 0, 1, 2, 0]

    def test_columns_of_nodes_about_the_job_at_hand(self):
        features = Columns(nodes=("node_free_gpus - gpus",))
        env = make("place", jobs((0, 10, 2)), cluster=nodes(2, 4), features=features)
        seen, _ = env.reset(seed=0)
        assert seen["nodes"].ravel().tolist() == [0, 2]
        with pytest.raises(PolicyError, match="gpus"):
            make("pick", features=features)

    def test_what_is_no_number_is_0_and_what_is_large_is_cut(self):
        features = Columns(globals=("0 / 0", "1 / 0", "-1 / 0", "1e9", "-3"))
        seen, _ = make("pick", features=features).reset(seed=0)
        assert seen["globals"].tolist() == [0, 1e6, -1e6, 1e6, -3]

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ("defualt", "did you mean 'default'"),
            ({"job": ["wait"]}, "did you mean 'jobs'"),
            ({"jobs": "wait"}, "a list of formulas"),
            ([1.0], "a list of formulas"),
        ],
    )
    def test_what_is_refused(self, given, message):
        with pytest.raises(ConfigError) as raised:
            resolve_columns(given, knowledge="exact")
        assert message in str(raised.value)

    def test_nothing_at_all_is_refused(self):
        with pytest.raises(ConfigError, match="without columns"):
            make("pick", features=Columns())

    @pytest.mark.parametrize(
        ("table", "formula"),
        [("jobs", "node_free_gpus"), ("globals", "wait"), ("nodes", "wait"), ("jobs", "waiting")],
    )
    def test_words_that_a_table_has_no_value_for(self, table, formula):
        with pytest.raises(PolicyError):
            make("pick", features={table: [formula]})


class TestLogarithms:
    """The native core computes most of them by a fast method: results must equal libm's."""

    FORMULAS: ClassVar = {
        "log10(1 + estimate) / 6": lambda x: math.log10(1 + x) / 6,
        "log2(estimate) / -10": lambda x: math.log2(x) / -10,
        "ln(estimate) / 0.003": lambda x: math.log(x) / 0.003,
    }

    def seen(self, estimates):
        """Return the columns of jobs with these estimates, all waiting at once."""
        workload = jobs(*((0, 1, 1) for _ in estimates), estimate=estimates)
        options = {"cluster": nodes(1), "window": len(estimates), "knowledge": "estimate"}
        features = Columns(jobs=tuple(self.FORMULAS))
        seen, _ = make("pick", workload, features=features, **options).reset(seed=0)
        return seen["jobs"]

    def expected(self, estimates):
        values = [[formula(x) for formula in self.FORMULAS.values()] for x in estimates]
        return np.array(values).clip(-1e6, 1e6).astype(np.float32)

    def test_any_number(self):
        random = np.random.default_rng(3)
        estimates = np.exp(random.uniform(-20, 40, 4096))
        assert (self.seen(estimates) == self.expected(estimates)).all()

    def test_halfway_between_two_floats(self):
        """There the fast method cannot tell which one is nearer."""
        low = np.random.default_rng(4).uniform(0.2, 0.9, 4096).astype(np.float32)
        halfway = (low.astype(np.float64) + np.nextafter(low, np.float32(1))) / 2
        estimates = 10 ** (6 * halfway) - 1
        expected = self.expected(estimates)
        goes_up = expected[:, 0] > low
        assert 0.2 < goes_up.mean() < 0.8, "not near enough to distinguish the methods"
        assert (self.seen(estimates) == expected).all()

    def test_one_that_has_none_among_many(self):
        """Estimates are positive, but the value of a formula need not be."""
        estimates = np.linspace(1, 200, 200)
        workload = jobs(*((0, 1, 1) for _ in estimates), estimate=estimates)
        features = Columns(jobs=("log2(estimate - 100) / 3",))
        options = {"cluster": nodes(1), "window": 200, "knowledge": "estimate"}
        seen, _ = make("pick", workload, features=features, **options).reset(seed=0)
        above = [np.float32(math.log2(x - 100) / 3) for x in estimates if x > 100]
        assert seen["jobs"][:, 0].tolist() == [0.0] * 99 + [-1e6, *above]
