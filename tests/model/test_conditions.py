"""Conditions: names, ranges, defaults, and where they come from."""

import dataclasses
import math

import pytest

from berthline.errors import ConfigError
from berthline.model.cluster import Cluster
from berthline.model.conditions import MEANINGS, Conditions
from berthline.model.workload import Workload
from berthline.sim.simulate import simulate

NAMES = [field.name for field in dataclasses.fields(Conditions)]


def test_every_condition_has_a_meaning():
    assert list(MEANINGS) == NAMES
    assert all(len(meaning) > 10 for meaning in MEANINGS.values())
    assert MEANINGS["checkpoint"].endswith("0 = always saved, infinity = never.")


def test_defaults_are_an_ideal_cluster():
    assert Conditions().changed() == {}
    run = Workload.from_columns(submit=[0, 1], run=[10, 10], gpus=[8, 8])
    log = simulate(run, "uniform:1x8", "fcfs", simulator="reference").log
    assert log.time.tolist() == [0, 0, 1, 10, 10, 20]


@pytest.mark.parametrize("name", NAMES)
def test_every_condition_has_a_range(name):
    with pytest.raises(ConfigError, match=f"condition {name} is -1"):
        Conditions(**{name: -1.0})
    with pytest.raises(ConfigError, match=f"condition {name} is nan"):
        Conditions(**{name: math.nan})


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("gpu_speeds", 2, "0 to 1"),
        ("across_nodes", 1.5, "to 1"),
        ("across_nodes", 0, "to 1"),
        ("across_racks", 1.01, "to 1"),
        ("refusal_rate", 1, "0 to 0.99"),
        ("restart", -0.1, "0 or more"),
        ("max_nodes", 0, "1 or more"),
        ("max_nodes", 1.5, "a whole number, or infinity"),
        ("retry_delay", 0, "or more"),
        ("mtbf", 0, "1 or more"),
        ("rack_mttr", 0, "or more"),
    ],
)
def test_out_of_range(name, value, expected):
    with pytest.raises(ConfigError, match=f"condition {name} is {value:g}") as caught:
        Conditions().replace({name: value})
    assert expected in caught.value.expected


@pytest.mark.parametrize(("name", "nearest"), [("mtfb", "mtbf"), ("checkpoints", "checkpoint")])
def test_unknown_name(name, nearest):
    with pytest.raises(ConfigError, match=f"unknown condition '{name}'") as caught:
        Conditions().replace({name: 1})
    assert nearest in caught.value.hint
    assert "restart" in caught.value.expected


def test_replace_keeps_the_others():
    first = Conditions(restart=10, tick=5)
    second = first.replace({"restart": 30})
    assert (second.restart, second.tick) == (30, 5)
    assert first.restart == 10
    assert second.changed() == {"restart": 30, "tick": 5}
    assert second.replace({"restart": 60, "tick": 0}).changed() == {}  # the defaults again


def test_numbers_of_a_file_become_floats():
    changed = Conditions().replace({"restart": 30})
    assert isinstance(changed.restart, float)


class TestOfARun:
    """`simulate(..., conditions=...)` changes the cluster of that run only."""

    JOBS = Workload.from_columns(submit=[0, 0], run=[10, 10], gpus=[1, 1])

    def test_the_result_keeps_the_changed_cluster(self):
        cluster = Cluster.uniform(nodes=1, gpus_per_node=2).with_conditions({"tick": 1})
        result = simulate(
            self.JOBS, cluster, "fcfs", conditions={"start_delay": 3}, simulator="reference"
        )
        assert result.cluster.conditions.changed() == {"tick": 1, "start_delay": 3}
        assert cluster.conditions.changed() == {"tick": 1}
        assert result.log.time[-1] == 13

    def test_nothing_to_change(self):
        cluster = Cluster.uniform(nodes=1, gpus_per_node=2)
        assert simulate(self.JOBS, cluster, "fcfs", conditions={}).cluster is cluster

    def test_a_comparison_changes_them_for_all(self):
        from berthline.evaluate.compare.compare import compare

        found = compare(
            self.JOBS,
            "uniform:1x1",
            ["fcfs", "sjf"],
            knowledge="exact",
            conditions={"start_delay": 5},
            simulator="reference",
        )
        assert found.conditions == {"start_delay": 5}
        assert [result.metrics.makespan for result in found.schedulers] == [30, 30]

    def test_errors_come_before_the_run(self):
        with pytest.raises(ConfigError, match="unknown condition 'delay'"):
            simulate(self.JOBS, "uniform:1x2", "fcfs", conditions={"delay": 3})
        with pytest.raises(ConfigError, match="condition restart is -3"):
            simulate(self.JOBS, "uniform:1x2", "fcfs", conditions={"restart": -3})


class TestInAFile:
    def cluster(self, tmp_path, text):
        path = tmp_path / "my.toml"
        path.write_text(f"[[nodes]]\ncount = 2\ngpus = 4\n{text}")
        return Cluster.from_toml(path)

    def test_read(self, tmp_path):
        cluster = self.cluster(tmp_path, "[conditions]\nmtbf = 604800\ncheckpoint = inf\n")
        assert cluster.conditions.changed() == {"mtbf": 604800, "checkpoint": math.inf}

    @pytest.mark.parametrize(
        ("line", "what"),
        [
            ("restrat = 3", "unknown condition 'restrat'"),
            ("restart = -3", "condition restart is -3"),
            ("restart = true", "condition restart is True"),
            ("restart = nan", "condition restart is nan"),
            ('restart = "soon"', "condition restart is 'soon'"),
        ],
    )
    def test_errors_name_the_file(self, tmp_path, line, what):
        with pytest.raises(ConfigError, match=what) as caught:
            self.cluster(tmp_path, f"[conditions]\n{line}\n")
        assert str(tmp_path / "my.toml") in caught.value.where
