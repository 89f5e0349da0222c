"""What `explain` says about a whole wait: its timeline, and which jobs were ahead."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.agreement.random_model_runs import random_model_run
from tests.evaluate.explain.explained_runs import run_of, simulated

from berthline.errors import ConfigError
from berthline.evaluate.explain.explain import explain
from berthline.evaluate.metrics.job_table import job_table
from berthline.policies.formulas import Formula
from berthline.sim.reasons.waiting_order import terms

if TYPE_CHECKING:
    from berthline.sim.reasons.reason_codes import Reason


@pytest.mark.parametrize("first", [0, 50])
def test_timelines_cover_the_wait(first: int) -> None:
    seen: Counter[Reason] = Counter()
    for number in range(first, first + 50):
        result = simulated(random_model_run(number))
        if result is None:
            continue
        table = job_table(result.log, result.workload)
        submitted = int(np.searchsorted(result.workload.submit, result.log.horizon, side="right"))
        for job in range(0, submitted, 5):
            found = explain(result, job, max_points=0)
            spans = [(interval.begin, interval.end) for interval in found.timeline]
            waits = [(wait.begin, wait.end) for wait in found.waits]
            assert joined(spans) == joined(waits)
            assert sum(found.reasons.values()) == pytest.approx(found.wait)
            if found.waits and found.waits[0].after == "submitted" and found.waits[0].started:
                assert found.waits[0].end == table.start[job]
            seen.update(interval.reason for interval in found.timeline)
    assert len(seen) >= 10


def joined(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Join spans that follow one another."""
    found: list[tuple[float, float]] = []
    for begin, end in spans:
        if found and found[-1][1] == begin:
            found[-1] = (found[-1][0], end)
        else:
            found.append((begin, end))
    return found


def test_order_and_terms() -> None:
    result = run_of([8, 3, 2, 1], "[2 * gpus - priority]+skip", priority=[0, 0, 4, 0])
    found = explain(result, 1)
    late = explain(result, 1, at=50.5)
    assert found.moment is not None
    assert late.moment is not None
    assert (found.moment.time, found.moment.position, found.moment.queue) == (1, 1, 1)
    assert (late.moment.time, late.moment.position, late.moment.queue) == (3, 3, 3)
    assert [ahead.job for ahead in late.moment.ahead] == [2, 3]
    assert [ahead.value for ahead in late.moment.ahead] == [0, 2]
    assert late.moment.ahead[0].terms == {"2 * gpus": 4, "-priority": -4}
    assert late.moment.own.words == {"gpus": 3, "priority": 0}


def test_overtakers() -> None:
    # Jobs 2 (ahead because of its size) and 3 start when job 0 ends; job 1 needs all GPUs.
    result = run_of([8, 8, 2], "smallest-first")
    found = explain(result, 1)
    [other] = found.overtakers
    assert (other.job, other.time, other.came_later, other.is_ahead) == (2, 100, True, True)
    assert (other.value.value, other.own.value) == (2, 8)
    assert other.gpu_seconds == 200
    assert found.started_meanwhile == 1


def test_past_the_head() -> None:
    result = run_of([5, 8, 1], "fcfs+easy", run=[100.0, 100.0, 10.0])
    [other] = explain(result, 1).overtakers
    assert (other.job, other.is_ahead) == (2, False)


def test_terms_add_up() -> None:
    rng = np.random.default_rng(1)
    for text in (
        "-(wait + 2 * gpus) - priority",
        "gpus",
        "-(1 - (wait - gpus)) * 2",
        "1 - -wait",
    ):
        formula = Formula.parse(text)
        values = {word: float(rng.random()) for word in formula.words}
        parts = [
            Formula(t, node, formula.words).evaluate(values.get) for t, node in terms(formula.root)
        ]
        assert sum(parts) == pytest.approx(formula.evaluate(values.get))
        for t, node in terms(formula.root):
            assert Formula.parse(t).root == node


def test_many_points_are_thinned() -> None:
    gpus = [8, 8] + [9] * 300
    result = run_of(gpus, "fcfs", run=[400.0] * len(gpus))
    found = explain(result, 1, max_points=10)
    assert (found.points, found.looked_at) == (301, 10)
    assert found.wait == 399
    assert explain(result, 1, max_points=0).looked_at == 301


def test_mistakes() -> None:
    result = run_of([8, 8], "fcfs")
    with pytest.raises(ConfigError, match="there is no job 2"):
        explain(result, 2)
    with pytest.raises(ConfigError, match="job 1 did not wait at 100 s"):
        explain(result, 1, at=100)
