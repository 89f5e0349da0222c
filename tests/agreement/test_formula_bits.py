"""A formula's value in the native core has the same bits as the reference's.

The core gives no values away, only schedules. So a run is arranged in which the gate says whether
the core's value of a formula equals the one the reference computed, job by job:

    job 0    |XXXXXXXXXXXX...   keeps the cluster from being idle, on which every gate is open
    job i     |X                submitted at 1; starts at once if and only if the values are equal
             0 1

The columns `estimate`, `random` and `priority` hold the formula's arguments, any numbers at all (a
Workload made without `from_columns` is not checked), and `deadline` the expected value.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.agreement.random_formulas import random_formula

from berthline.model.cluster import Cluster
from berthline.model.schedule import START
from berthline.model.workload import Workload
from berthline.policies.formulas import FUNCTIONS, Formula
from berthline.policies.scheduler import Scheduler
from berthline.sim.inputs import prepare
from berthline.sim.native import run

ARGUMENTS = ("estimate", "random", "priority")

# Equal as numbers, and of the same sign when zero; or both not a number.
SAME_BITS = (
    "where({f} == deadline, where({f} == 0, 1 / ({f}) == 1 / deadline, 1),"
    " ({f} != {f}) * (deadline != deadline)) - 0.5"
)

NASTY = np.array(
    [
        *(0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 10.0, 1 / 3, -1e-9),
        *(math.inf, -math.inf, math.nan, 5e-324, -5e-324, 2.2250738585072014e-308),
        *(1.7976931348623157e308, -1.7976931348623157e308, 1e300, -1e-300, 1e16, 2.0**53 + 2),
        *(709.782712893384, 709.7827128933841, -745.2, 0.9999999999999999, 1.0000000000000002),
        *(math.pi, -math.e, 3600.0, 604800.0, -1234.5678, 22.5, 1023.5),
    ]
)


def arguments(rng: np.random.Generator, rows: int) -> npt.NDArray[np.float64]:
    """Return (3, rows): nasty numbers among ordinary ones of all sizes, small whole ones too."""
    ordinary = rng.normal(size=(3, rows)) * 10.0 ** rng.integers(-12, 13, (3, rows))
    whole = rng.integers(-20, 21, (3, rows)).astype(float)
    kind = rng.integers(3, size=(3, rows))
    return np.choose(kind, [rng.choice(NASTY, (3, rows)), ordinary, whole])


def jobs_whose_value_is(
    text: str, columns: npt.NDArray[np.float64], expected: npt.NDArray[np.float64]
) -> npt.NDArray[np.bool_]:
    """Return for which rows the native core's value of the formula has the expected bits."""
    num_jobs = columns.shape[1] + 1

    def column(values: npt.ArrayLike, dtype: type[np.generic] = np.float64) -> npt.NDArray[Any]:
        whole = np.ones(num_jobs, dtype)
        whole[1:] = values
        return whole

    nothing = column(0, np.int32) * 0
    workload = Workload(
        submit=np.append(0.0, np.ones(num_jobs - 1)),
        run=column(1.0) * 1e6,
        gpus=column(1, np.int32),
        gpu_milli=nothing + 1000,
        estimate=column(columns[0]),
        cpus=nothing,
        memory_mib=nothing.astype(np.int64),
        priority=column(columns[2]),
        deadline=column(expected),
        user=nothing,
        pool=nothing - 1,
        gpu_types=nothing - 1,
        ran_on=nothing - 1,
    )
    scheduler = Scheduler.parse("fcfs+skip", gate=SAME_BITS.format(f=f"({text})"))
    inputs = prepare(
        workload,
        Cluster.uniform(nodes=1, gpus_per_node=num_jobs),
        scheduler,
        knowledge="estimate",
        seed=0,
        horizon=1.0,
    )
    log = run(dataclasses.replace(inputs, estimate=workload.estimate, random=column(columns[1])))
    started = np.zeros(num_jobs, np.bool_)
    started[log.job[log.kind == START]] = True
    assert started[0]
    return started[1:]


def reference_values(text: str, columns: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    formula = Formula.parse(text)
    rows = [dict(zip(ARGUMENTS, row, strict=True)) for row in columns.T.tolist()]
    return np.array([formula.evaluate(row.__getitem__) for row in rows])


def assert_same_bits(text: str, columns: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    expected = reference_values(text, columns)
    equal = jobs_whose_value_is(text, columns, expected)
    assert equal.all(), [
        (text, *columns[:, row].tolist(), "reference:", float(expected[row]))
        for row in np.flatnonzero(~equal)[:5]
    ]
    return expected


def every_operation() -> list[str]:
    x, y, z = ARGUMENTS
    calls = [
        f"{name}({', '.join([x, y, z, f'{x} - {y}'][:count])})"
        for name, (at_least, at_most) in FUNCTIONS.items()
        for count in range(at_least, min(at_most, 4) + 1)
    ]
    symbols = ["+", "-", "*", "/", "**", "<", "<=", ">", ">=", "==", "!="]
    return [*calls, *(f"{x} {symbol} {y}" for symbol in symbols), f"-{x}", "1e999 - 1e999", "0.1"]


@pytest.mark.parametrize("text", every_operation())
def test_operation__all_pairs_of_nasty_numbers(text: str) -> None:
    """Also more jobs than one block of the evaluator holds."""
    first, second = (grid.ravel() for grid in np.meshgrid(NASTY, NASTY))
    columns = np.stack([first, second, np.resize(NASTY, first.size)])
    assert columns.shape[1] > 1024
    expected = assert_same_bits(text, columns[:, :700])
    assert_same_bits(text, columns[:, 700:])
    assert len(expected) == 700


@pytest.mark.parametrize("text", every_operation())
def test_operation__ordinary_numbers(text: str) -> None:
    rng = np.random.default_rng([len(text), 17])
    assert_same_bits(text, arguments(rng, 300))


@pytest.mark.parametrize("block", range(8))
def test_random_formulas__same_bits(block: int) -> None:
    rng = np.random.default_rng([block, 0xB175])
    for _ in range(120):
        text = random_formula(rng, ARGUMENTS, depth=int(rng.integers(2, 5)))
        assert_same_bits(text, arguments(rng, 60))


@pytest.mark.parametrize("text", ["estimate * random", "exp(tanh(estimate)) - priority", "-random"])
def test_the_check_itself__sees_a_change_of_the_last_bit(text: str) -> None:
    columns = arguments(np.random.default_rng(1), 200)
    expected = reference_values(text, columns)
    others = np.where(np.isnan(expected), 0.0, np.nextafter(expected, 0.0))
    zero = expected == 0
    assert zero.any() or text != "-random"
    others[zero] = -expected[zero]  # the other zero
    assert not jobs_whose_value_is(text, columns, others).any()
