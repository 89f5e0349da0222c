"""Formulas that are constant or undefined everywhere are warned about."""

from __future__ import annotations

import pytest

import berthline as bl
from berthline.cli.main import main
from berthline.policies.formula_checks import idle_formulas
from berthline.policies.orders import ORDERS
from berthline.policies.rules import GATES
from berthline.policies.scheduler import Scheduler

IDLE = {
    "0/0": "is always nan",
    "9**9**9": "is always inf",
    "1": "is always 1",
    "wait/0": "has no finite value",
    "sqrt(-gpus - 1)": "has no finite value",
    "exp(1000 + wait)": "has no finite value",
}


@pytest.mark.parametrize("formula", IDLE)
def test_a_formula_that_tells_nothing_apart_is_warned_about(
    formula: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for seat in ("", "fcfs?", "fcfs@", "fcfs!"):
        scheduler = f"{seat}[{formula}]"
        [remark] = idle_formulas(Scheduler.parse(scheduler))
        assert IDLE[formula] in remark
        assert repr(formula) in remark
    assert main(["sim", "synthetic", "--jobs", "9", "--order", formula]) == 0
    assert IDLE[formula] in capsys.readouterr().err
    told: list[str] = []
    bl.compare("synthetic", "uniform:2x4", ["fcfs", f"[{formula}]"], jobs=9, remark=told.append)
    assert len(told) == 1
    assert main(["compare", "synthetic", "--jobs", "9", "--schedulers", f"fcfs,[{formula}]"]) == 0
    assert IDLE[formula] in capsys.readouterr().err


def test_formulas_that_ship_are_not() -> None:
    texts = [*ORDERS, *(f"fcfs?{gate}" for gate in GATES), "fcfs@fgd", "fcfs!las", "fcfs!srpt"]
    for text in texts:
        assert not list(idle_formulas(Scheduler.parse(text)))
    for formula in ("ln(submit - now)", "-(wait/estimate)**3 * gpus", "1 / (gpus - 1)", "slack"):
        assert not list(idle_formulas(Scheduler.parse(f"[{formula}]")))
