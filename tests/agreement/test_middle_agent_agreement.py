"""A run with an agent that begins in the middle goes on as if it had never stopped.

In every seat and in both simulators: the same questions, masks, observations and rewards, and the
same rest of the log. The decision of the instant needs no run time of an unfinished job.
"""

from __future__ import annotations

import pytest
from tests.agreement.middle_agent_runs import Broken
from tests.agreement.random_agent_runs import random_agent_run

RUNS_PER_BLOCK = 49


def check(number: int, *, in_reference: bool) -> bool:
    """Check one run; return whether its instant had a decision."""
    broken = Broken(random_agent_run(number), number)
    found = broken.check_native()
    if in_reference:
        broken.check_reference(found)
    return broken.check_decision()


@pytest.mark.parametrize("block", range(6))
def test_the_rest_is_that_of_the_whole_run(block):
    first = block * RUNS_PER_BLOCK
    decided = [
        check(number, in_reference=number % 3 == 0)
        for number in range(first, first + RUNS_PER_BLOCK)
    ]
    assert sum(decided) > RUNS_PER_BLOCK // 4


@pytest.mark.slow
@pytest.mark.parametrize("block", range(100))
def test_the_rest_is_that_of_many_whole_runs(block):
    first = 10_000 + block * 100
    for number in range(first, first + 100):
        check(number, in_reference=True)
