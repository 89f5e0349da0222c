"""Wrong types in the Python API are errors in the usual form, never a TypeError of Python."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

import berthline as bl
from berthline.errors import BerthlineError

if TYPE_CHECKING:
    from collections.abc import Callable

CLUSTER = "uniform:1x4"
WRONG: dict[str, Any] = {
    "a fraction": 2.5,
    "None": None,
    "a text": "x",
    "huge": 2**40,
    "True": True,
    "a list": [1],
    "a mapping": {1: 2},
    "an object": object(),
    "bytes": b"x",
    "NaN": math.nan,
}


def _jobs(**more: Any) -> bl.Workload:
    return bl.Workload.from_columns(**{"submit": [0, 1], "run": [1, 2], "gpus": 1, **more})


def _compare(**more: Any) -> object:
    return bl.compare(_jobs(), CLUSTER, ["fcfs"], **more)


def _generated(**more: Any) -> object:
    return bl.generate("synthetic", **{"cluster": CLUSTER, "jobs": 9, **more})


CALLS: dict[str, Callable[[Any], object]] = {
    "Cluster.uniform(nodes)": lambda v: bl.Cluster.uniform(nodes=v, gpus_per_node=4),
    "Cluster.uniform(gpus_per_node)": lambda v: bl.Cluster.uniform(nodes=1, gpus_per_node=v),
    "Cluster.parse": bl.Cluster.parse,
    "read_cluster": bl.read_cluster,
    "resolve_cluster": bl.resolve_cluster,
    "resolve_workload": lambda v: bl.resolve_workload(v, cluster=bl.Cluster.parse(CLUSTER)),
    "load_trace": bl.load_trace,
    "validate_trace": bl.validate_trace,
    "open_run": bl.open_run,
    "Workload(submit)": lambda v: _jobs(submit=v),
    "Workload(run)": lambda v: _jobs(run=v),
    "Workload(gpus)": lambda v: _jobs(gpus=v),
    "Workload(user)": lambda v: _jobs(user=v),
    "Workload(pool)": lambda v: _jobs(pool=v),
    "Workload(names)": lambda v: _jobs(names=v),
    "simulate(workload)": lambda v: bl.simulate(v, CLUSTER, "fcfs"),
    "simulate(cluster)": lambda v: bl.simulate(_jobs(), v, "fcfs"),
    "simulate(scheduler)": lambda v: bl.simulate(_jobs(), CLUSTER, v),
    "simulate(seed)": lambda v: bl.simulate(_jobs(), CLUSTER, "fcfs", seed=v),
    "simulate(horizon)": lambda v: bl.simulate(_jobs(), CLUSTER, "fcfs", horizon=v),
    "simulate(knowledge)": lambda v: bl.simulate(_jobs(), CLUSTER, "fcfs", knowledge=v),
    "simulate(simulator)": lambda v: bl.simulate(_jobs(), CLUSTER, "fcfs", simulator=v),
    "simulate(conditions)": lambda v: bl.simulate(_jobs(), CLUSTER, "fcfs", conditions=v),
    "compare(workload)": lambda v: bl.compare(v, CLUSTER, ["fcfs"]),
    "compare(cluster)": lambda v: bl.compare(_jobs(), v, ["fcfs"]),
    "compare(schedulers)": lambda v: bl.compare(_jobs(), CLUSTER, v),
    "compare(baseline)": lambda v: _compare(baseline=v),
    "compare(load)": lambda v: bl.compare("synthetic", CLUSTER, ["fcfs"], jobs=9, load=v),
    "compare(loads)": lambda v: bl.compare("synthetic", CLUSTER, ["fcfs"], jobs=9, loads=v),
    "compare(jobs)": lambda v: bl.compare("synthetic", CLUSTER, ["fcfs"], jobs=v),
    "compare(settings)": lambda v: bl.compare("synthetic", CLUSTER, ["fcfs"], jobs=9, settings=v),
    "compare(by)": lambda v: _compare(by=v),
    "compare(seed)": lambda v: _compare(seed=v),
    "compare(measure)": lambda v: _compare(measure=v),
    "compare(conditions)": lambda v: _compare(conditions=v),
    "compare(energy_rate)": lambda v: _compare(energy_rate=v),
    "compare(knowledge)": lambda v: _compare(knowledge=v),
    "evaluate(run)": lambda v: bl.evaluate(v, window_jobs=9, windows=1, against=["fcfs"]),
    "evaluate(against)": lambda v: bl.evaluate("lcfs", window_jobs=9, windows=1, against=v),
    "generate(name)": lambda v: bl.generate(v, cluster=CLUSTER),
    "generate(cluster)": lambda v: _generated(cluster=v),
    "generate(jobs)": lambda v: _generated(jobs=v),
    "generate(load)": lambda v: _generated(load=v),
    "generate(seed)": lambda v: _generated(seed=v),
    "register_order(name)": lambda v: bl.register_order(v, "unknown_word"),
    "register_order(formula)": lambda v: bl.register_order("abc", v),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("call", CALLS)
def test_a_wrong_type_is_an_error_in_the_usual_form(call: str, wrong: str) -> None:
    try:
        CALLS[call](WRONG[wrong])  # some values are right: a horizon of 2.5, no load
    except BerthlineError as error:
        assert error.what  # noqa: PT017 - no error is right too


@pytest.mark.parametrize(
    "call",
    [
        lambda: bl.Cluster.uniform(nodes=2.5, gpus_per_node=4),
        lambda: bl.Cluster.uniform(nodes=2, gpus_per_node=2.5),
        lambda: bl.Cluster.uniform(nodes=True, gpus_per_node=4),
        lambda: bl.load_trace(None),
        lambda: _jobs(gpus=2**40),
        lambda: bl.simulate(_jobs(), CLUSTER, "fcfs", seed="x"),
        lambda: bl.simulate(_jobs(), CLUSTER, "fcfs", horizon="x"),
        lambda: _compare(seed=None),
    ],
)
def test_these_are_refused(call: Callable[[], object]) -> None:
    with pytest.raises(BerthlineError) as caught:
        call()
    assert caught.value.expected
