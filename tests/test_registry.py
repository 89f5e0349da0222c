"""Registries: names from functions and from entry points, and what is refused."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import msgspec
import pytest
from torch import nn

import berthline as bl
from berthline.env.columns import COLUMN_SETS
from berthline.env.presets import PRESETS
from berthline.env.rewards import REWARDS
from berthline.errors import BerthlineError, ConfigError
from berthline.learn.algorithms.algorithm_table import ALGORITHMS
from berthline.learn.networks.networks import NETWORKS
from berthline.registry import Registry

GROUP = "berthline.things"


@pytest.fixture
def points(monkeypatch):
    """Set the entry points of installed packages: (name, value, package)."""

    def set_points(*given):
        class Package:
            def __init__(self, name):
                self.name = name

        found = []
        for name, value, package in given:
            point = EntryPoint(name, value, GROUP)
            vars(point)["dist"] = Package(package)
            found.append(point)
        monkeypatch.setattr("importlib.metadata.entry_points", lambda group: found)

    return set_points


def things(loaded=None):
    table = Registry[object](
        "a thing", GROUP, {"own": 1}, lambda name, value: table.add(name, value)
    )
    return table


def test_names_of_entry_points_are_listed_without_an_import(points):
    points(("far", "no_such_module:x", "far-package"))
    assert list(things()) == ["own", "far"]
    assert "far" in things()
    assert "further" not in things()
    with pytest.raises(ConfigError, match="cannot import a thing") as error:
        things()["far"]
    assert "entry point 'far' of far-package, no_such_module:x" in str(error.value)


def test_an_entry_point_is_loaded_when_its_name_is_used(points):
    points(("pi", "math:pi", "numbers"))
    assert things()["pi"] == pytest.approx(3.14159, abs=1e-5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([("own", "math:pi", "a")], "a adds a thing 'own', which Berthline itself has"),
        ([("x", "math:pi", "a"), ("x", "math:e", "b")], "b adds a thing 'x', which a has"),
        ([("X y", "math:pi", "a")], "bad name for a thing 'X y'"),
    ],
)
def test_entry_points_that_clash_are_refused(points, given, message):
    points(*given)
    with pytest.raises(ConfigError, match=message):
        list(things())


def test_a_name_is_taken_once():
    table = things()
    table.add("new", 2)
    assert table.add("new", 2) == 2
    for name, owner in (("own", "Berthline's own"), ("new", "registered before")):
        with pytest.raises(ConfigError, match=f"already a thing '{name}', {owner}"):
            table.add(name, 3)
    assert table.add("new", 3, is_same=lambda old, new: True) == table["new"] == 3
    with pytest.raises(KeyError):
        table["newer"]


class Complete:
    """The least that an algorithm must have."""

    class Settings(msgspec.Struct):
        """Settings."""

        rollout: int = 8

    default_steps = 10
    iterate = tensors = state = restore = print


def without(**changes):
    return type("Changed", (Complete,), changes)


class NoRollout(msgspec.Struct):
    """Settings without one that is needed."""

    rate: float = 1.0


class NoDefault(msgspec.Struct):
    """Settings of which one has no default."""

    rollout: int


@pytest.mark.parametrize(
    ("register", "message"),
    [
        (lambda: bl.register_algorithm("Mine", Complete), "bad name for an algorithm 'Mine'"),
        (lambda: bl.register_algorithm("ppo", Complete), "already an algorithm 'ppo'"),
        (lambda: bl.register_algorithm("mine", print), "expected: a class"),
        (lambda: bl.register_algorithm("mine", without(state=None)), "has no method state"),
        (lambda: bl.register_algorithm("mine", without(Settings=dict)), "msgspec.Struct"),
        (lambda: bl.register_algorithm("mine", without(Settings=NoRollout)), "no setting `rollout"),
        (lambda: bl.register_algorithm("mine", without(Settings=NoDefault)), "rollout has no def"),
        (lambda: bl.register_algorithm("mine", without(default_steps=0)), "default_steps of Ch"),
        (lambda: bl.register_algorithm("mine", without(env="Pik")), "did you mean 'Pick'"),
        (lambda: bl.register_network("mine", nn.Linear(2, 2)), "a subclass of torch.nn.Module"),
        (lambda: bl.register_network("kernel", nn.Linear), "already a network 'kernel'"),
        (lambda: bl.register_reward("mine", {"a": ("secnd", "1")}), "did you mean 'second'"),
        (lambda: bl.register_reward("mine", {"a": ("second", "queu_len")}), "'queue_len'"),
        (lambda: bl.register_reward("mine", {"a": ("second", "1")}, metric="jct"), "jct_mean"),
        (lambda: bl.register_reward("mine", "jct"), "terms: {name"),
        (lambda: bl.register_reward("jct", {"a": ("second", "1")}), "already a reward 'jct'"),
        (lambda: bl.register_columns("mine"), "is empty"),
        (lambda: bl.register_columns("mine", jobs="wait"), "a list of formulas"),
        (lambda: bl.register_columns("mine", globals=["wait"]), "wait"),
        (lambda: bl.register_columns("default", jobs=["wait"]), "already a set of columns"),
        (lambda: bl.register_preset("mine", "Pik", {}), "did you mean 'Pick'"),
        (lambda: bl.register_preset("mine", "Pick", {"lod": 1}), "did you mean 'load'"),
        (lambda: bl.register_preset("lsf", "Pick", {}), "already a preset 'lsf'"),
    ],
)
def test_what_cannot_be_registered(register, message):
    with pytest.raises(BerthlineError) as error:
        register()
    assert message in str(error.value)
    assert all("mine" not in one for one in (ALGORITHMS, NETWORKS, REWARDS, COLUMN_SETS, PRESETS))
