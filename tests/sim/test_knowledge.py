"""What the scheduler knows about run times: none, estimate, predicted or exact."""

from __future__ import annotations

import numpy as np
import pytest
from tests.sim.scenarios import jobs, nodes, order, run, starts

import berthline as bl
from berthline.errors import ConfigError, PolicyError
from berthline.sim.inputs import FIRST_PREDICTION


@pytest.mark.parametrize("simulator", ["native", "reference"])
@pytest.mark.parametrize(
    "scheduler",
    ["sjf", "fcfs+easy", "fcfs+conservative", "fcfs?express-lane", "[queued_work]", "[work]+skip"],
)
def test_none__refuses_a_scheduler_that_needs_run_times(scheduler: str, simulator: str) -> None:
    with pytest.raises(PolicyError) as caught:
        bl.simulate(jobs((0, 1, 1)), nodes(1), scheduler, knowledge="none", simulator=simulator)
    name = str(bl.simulate(jobs((0, 1, 1)), nodes(1), scheduler).scheduler)
    assert caught.value.what == f"scheduler {name!r} needs run times, but knowledge is 'none'"
    assert caught.value.expected == "an order, discipline and gate that do not use run times"
    assert caught.value.hint == "use `knowledge=estimate`, predicted or exact; or fcfs+skip"


@pytest.mark.parametrize("scheduler", ["fcfs", "largest-first+skip@scatter", "fcfs?[free_gpus]"])
def test_none__runs_a_scheduler_that_needs_no_run_times(scheduler: str) -> None:
    workload = jobs((0, 10, 1), (1, 10, 2), (2, 10, 1))
    blind = run(workload, nodes(2), scheduler, knowledge="none")
    assert blind.sha256() == run(workload, nodes(2), scheduler, knowledge="exact").sha256()


def test_unknown_setting() -> None:
    with pytest.raises(ConfigError) as caught:
        bl.simulate(jobs((0, 1, 1)), nodes(1), "fcfs", knowledge="estimates")
    assert caught.value.what == "unknown knowledge 'estimates'"
    assert caught.value.hint == "did you mean 'estimate'?"


def test_unknown_simulator() -> None:
    with pytest.raises(ConfigError) as caught:
        bl.simulate(jobs((0, 1, 1)), nodes(1), "fcfs", simulator="natve")
    assert caught.value.what == "unknown simulator 'natve'"
    assert caught.value.hint == "did you mean 'native'?"


def test_estimate__is_what_the_user_said_and_exact_is_the_truth() -> None:
    """Three jobs wait for one GPU; users overstate in their own ways."""
    workload = jobs((0, 5, 1), (1, 30, 1), (2, 20, 1), (3, 10, 1), estimate=[5, 31, 40, 35])
    assert order(run(workload, nodes(1), "sjf", knowledge="estimate")) == [0, 1, 3, 2]
    assert order(run(workload, nodes(1), "sjf", knowledge="exact")) == [0, 3, 2, 1]


def test_estimate__a_missing_one_takes_the_largest_so_far() -> None:
    """Job 2 has no estimate and counts as 41 s, like job 1, which precedes it by its id."""
    workload = jobs(
        (0, 5, 1), (1, 1, 1), (2, 1, 1), (3, 1, 1), (4, 1, 1), estimate=[5, 41, np.nan, 40, 39]
    )
    assert order(run(workload, nodes(1), "sjf")) == [0, 4, 3, 1, 2]


def test_estimate__a_missing_one_does_not_know_later_ones() -> None:
    """Job 2 counts as 30 s, though 40 s are stated later; job 1 of the second run as an hour."""
    workload = jobs(
        (0, 5, 1), (1, 1, 1), (2, 1, 1), (3, 1, 1), (4, 1, 1), estimate=[5, 30, np.nan, 40, 35]
    )
    assert order(run(workload, nodes(1), "sjf")) == [0, 1, 2, 4, 3]
    workload = jobs(
        (0, 5, 1), (1, 1, 1), (2, 1, 1), (3, 1, 1), estimate=[np.nan] * 2 + [3599, 3601]
    )
    assert order(run(workload, nodes(1), "sjf")) == [0, 2, 1, 3]


def test_estimate__none_at_all_is_refused_only_where_it_matters() -> None:
    workload = jobs((0, 5, 1), (1, 5, 1), estimate=np.nan, name="bare")
    assert starts(run(workload, nodes(1), "fcfs")) == {0: 0, 1: 5}
    with pytest.raises(PolicyError) as caught:
        bl.simulate(workload, nodes(1), "sjf")
    assert "needs run times, but no job has an estimate" in caught.value.what
    assert caught.value.where == "workload 'bare'"
    assert starts(run(workload, nodes(1), "sjf", knowledge="exact")) == {0: 0, 1: 5}


def test_predicted__last_two_of_the_user_then_anybodys_then_a_constant() -> None:
    """One GPU, shortest predicted job first. Users: a a b a c a a d c.

    job         0   1   2     3   4   5   6     7   8
    user        a   a   b     a   c   a   a     d   c
    submitted   0   1   2     40  50  130 136   141 142
    predicted   3600 3600 3600 30 30  65  52.5  5   5
    run         30  100 10    5   5   5   20    5   5

    |0   |1         |3 |4 |6   |7 |8 |5 |2 |
    0    30         130 135 140 160 165 170 175

    Job 3: a has finished one job (30). Job 4: c none, all users one (30). Job 5 comes at the
    instant job 1 ends, which counts: (30 + 100) / 2. Job 6: (100 + 5) / 2. Job 7: d none; the last
    two of all users are jobs 3 and 4. Job 8: c has finished one.
    """
    workload = jobs(
        *((0, 30, 1), (1, 100, 1), (2, 10, 1), (40, 5, 1), (50, 5, 1)),
        *((130, 5, 1), (136, 20, 1), (141, 5, 1), (142, 5, 1)),
        user=[0, 0, 1, 0, 2, 0, 0, 3, 2],
        estimate=np.nan,
    )
    log = run(workload, nodes(1), "sjf", knowledge="predicted")
    assert order(log) == [0, 1, 3, 4, 6, 7, 8, 5, 2]
    expected = {0: 0, 1: 30, 2: 175, 3: 130, 4: 135, 5: 170, 6: 140, 7: 160, 8: 165}
    assert starts(log) == expected


def test_predicted__the_constant_is_an_hour() -> None:
    """A job submitted before any job finished counts as 3600 s, whatever its own estimate."""
    assert FIRST_PREDICTION == 3600.0
    workload = jobs((0, 10, 1), (1, 5, 1), (11, 5, 1), estimate=[10, 5, 5], user=[0, 1, 0])
    gate = "[where(estimate == 3600, -1, 1)]"  # closed for such jobs, except on an idle cluster
    log = run(workload, nodes(2), f"fcfs?{gate}", knowledge="predicted")
    assert starts(log) == {0: 0, 1: 10, 2: 11}


def test_predicted__is_made_once_at_submission() -> None:
    """Job 1 has waited since 1 and stays at 3600 s, although two jobs of its user end meanwhile.

    |0         |2    |3    |1
    0          10    15    20

    Jobs 2 and 3 are submitted at 10 and 15, when jobs 0 and 2 end: predicted 10 and 7.5 s.
    """
    workload = jobs((0, 10, 1), (1, 1, 1), (10, 5, 1), (15, 5, 1), user=0, estimate=np.nan)
    log = run(workload, nodes(1), "sjf", knowledge="predicted")
    assert starts(log) == {0: 0, 2: 10, 3: 15, 1: 20}


def test_predicted__without_users_anybodys_last_two() -> None:
    """As if every job came from a user who has finished none."""
    rows = [(7.0 * job, 5.0 + 17 * job % 60, 1 + job % 2) for job in range(40)]
    nobody = jobs(*rows, estimate=np.nan)
    strangers = jobs(*rows, estimate=np.nan, user=list(range(len(rows))))
    two = jobs(*rows, estimate=np.nan, user=[job % 2 for job in range(len(rows))])
    logs = [
        run(workload, nodes(2), "sjf", knowledge="predicted").sha256()
        for workload in (nobody, strangers, two)
    ]
    assert nobody.user_names == ("user0",)
    assert logs[0] == logs[1] != logs[2]


def test_predicted__does_not_peek_at_rejected_or_running_jobs() -> None:
    """Only finished jobs count: a job rejected or still running says nothing."""
    workload = jobs((0, 50, 2), (0, 1, 9), (1, 9, 1), (60, 9, 1), user=[0, 0, 0, 0])
    log = run(
        workload, nodes(3), "fcfs+skip?[where(estimate == 3600, 1, -1)]", knowledge="predicted"
    )
    # Job 2 is predicted 3600 s at 1, so its gate is open; job 3 gets (9 + 50) / 2 on idle nodes.
    assert starts(log) == {0: 0, 2: 1, 3: 60}
