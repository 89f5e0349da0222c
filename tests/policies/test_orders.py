"""The registry of orderings."""

from __future__ import annotations

import math

import pytest

from berthline.errors import PolicyError
from berthline.policies import orders
from berthline.policies.orders import ORDERS, order_formula, register_order
from berthline.policies.vocabulary import VOCABULARY

# A waiting job and a cluster with round numbers, so that values can be computed by hand.
JOB = dict.fromkeys(VOCABULARY, 1.0) | {
    "submit": 100.0,
    "wait": 60.0,
    "estimate": 20.0,
    "gpus": 4.0,
    "work": 80.0,
    "priority": 3.0,
    "deadline": 500.0,
    "slack": 340.0,
    "random": 0.25,
    "user_share": 0.5,
    "num_users": 4.0,
    "total_gpus": 16.0,
    "max_priority": 5.0,
    "now": 160.0,
}

BY_HAND = {
    "fcfs": 100.0,
    "lcfs": -100.0,
    "sjf": 20.0,
    "ljf": -20.0,
    "smallest-first": 4.0,
    "largest-first": -4.0,
    "smallest-area": 80.0,
    "largest-area": -80.0,
    "srf": 5.0,
    "lrf": -5.0,
    "sexp": 4.0,
    "lexp": -4.0,
    "hrrn": -4.0,
    "sqrt-area": 40.0,
    "wfp3": -108.0,
    "unicep": -60.0 / (math.log2(5) * 20.0),
    "f1": math.log10(20) * 4 + 870 * 2,
    "f2": math.sqrt(20) * 4 + 25600 * 2,
    "f3": 80.0 + 6860000 * 2,
    "f4": 40.0 + 530000 * 2,
    "edf": 500.0,
    "static-priority": -3.0,
    "static-equal": 100.0,
    "dynamic-heuristic": 85.0,
    "slurm-multifactor": -(1000 * 60 / 604800 + 250 + 250 + 600),
    "random": 0.25,
}


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> dict[str, orders.Order]:
    """The registry, restored after the test."""
    copy = dict(ORDERS)
    monkeypatch.setattr(orders, "ORDERS", copy)
    return copy


@pytest.mark.parametrize("name", list(BY_HAND))
def test_registered_orders__parse_and_evaluate(name: str) -> None:
    found = order_formula(name).evaluate(JOB.__getitem__)
    assert found == pytest.approx(BY_HAND[name], rel=1e-12)


def test_registered_orders__all_that_the_foundation_promises() -> None:
    assert set(BY_HAND) <= set(ORDERS)
    assert all(order.name == name and order.reference for name, order in ORDERS.items())


def test_unicep__a_job_of_one_gpu_has_a_finite_key() -> None:
    key = order_formula("unicep").evaluate((JOB | {"gpus": 1.0}).__getitem__)
    assert key == -60.0 / 20.0


@pytest.mark.parametrize("name", ["f1", "f2", "f3", "f4"])
def test_learned_orders__the_first_job_has_a_finite_key(name: str) -> None:
    assert math.isfinite(order_formula(name).evaluate((JOB | {"submit": 0.0}).__getitem__))


def test_order_formula__unknown_name() -> None:
    with pytest.raises(PolicyError) as caught:
        order_formula("sfj")
    assert caught.value.what == "unknown ordering 'sfj'"
    assert caught.value.hint == "did you mean 'sjf'? all of them: berthline policies"
    assert "wfp3" in caught.value.expected


def test_register_order__usable_at_once(registry: dict[str, orders.Order]) -> None:
    order = register_order("aged-area-2", "work / (1 + wait)", reference="a test")
    assert registry["aged-area-2"] == order
    assert order.reference == "a test"
    assert order_formula("aged-area-2").evaluate(JOB.__getitem__) == 80 / 61


def test_register_order__the_same_again_is_no_error(registry: dict[str, orders.Order]) -> None:
    register_order("twice", "gpus")
    register_order("twice", "gpus")
    with pytest.raises(PolicyError) as caught:
        register_order("twice", "-gpus")
    assert caught.value.what == "the ordering 'twice' already exists"
    assert caught.value.where == "'gpus'"
    assert registry["twice"].formula == "gpus"


@pytest.mark.parametrize("name", ["", "Sjf", "my_order", "two words", "-x", "x-", "x--y", "1st"])
def test_register_order__bad_names(name: str, registry: dict[str, orders.Order]) -> None:
    with pytest.raises(PolicyError, match="bad name for an ordering"):
        register_order(name, "gpus")
    assert name not in registry


def test_register_order__a_wrong_formula_registers_nothing(
    registry: dict[str, orders.Order],
) -> None:
    with pytest.raises(PolicyError, match="unknown word 'gpsu'"):
        register_order("broken", "gpsu")
    assert "broken" not in registry
