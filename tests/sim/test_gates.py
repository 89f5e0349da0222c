"""Gates: a job whose gate is closed takes no part in the decision; idle nodes open every gate.

Drawings have one line per GPU and one character per second; digits are jobs.
"""

from __future__ import annotations

import pytest
from tests.sim.scenarios import jobs, nodes, run, starts


def test_express_lane__holds_long_jobs_back() -> None:
    """Four GPUs; jobs over 100 s must leave half of them free.

    GPU 0 |00000000000000000000000000000000000000000000000000111111...
    GPU 1 |  2222222222                                      111111...
    GPU 2 |  (job 1 may not start: 3 free - 2 < 2)
    GPU 3 |
           0                                                 50
    """
    workload = jobs((0, 50, 1), (1, 200, 2), (2, 10, 1))
    log = run(workload, nodes(4), "fcfs+strict?express-lane:T=100:r=0.5")
    assert starts(log) == {0: 0, 1: 50, 2: 2}
    assert starts(run(workload, nodes(4), "fcfs+strict"))[1] == 1


def test_express_lane__a_long_job_that_leaves_enough_starts() -> None:
    """The same with one GPU for job 1: 3 free - 1 = 2, just enough."""
    workload = jobs((0, 50, 1), (1, 200, 1), (2, 10, 1))
    log = run(workload, nodes(4), "fcfs+strict?express-lane:T=100:r=0.5")
    assert starts(log) == {0: 0, 1: 1, 2: 2}


def test_express_lane__a_job_of_just_that_length_is_not_long() -> None:
    for seconds, expected in ((100, 1), (101, 50)):
        workload = jobs((0, 50, 1), (1, seconds, 2))
        log = run(workload, nodes(4), "fcfs+strict?express-lane:T=100:r=0.5")
        assert starts(log)[1] == expected


@pytest.mark.parametrize("discipline", ["strict", "skip", "easy", "conservative"])
def test_idle_cluster__every_gate_is_open_so_nothing_deadlocks(discipline: str) -> None:
    """A gate that is never open lets one job at a time onto an idle cluster.

    GPU 0 |0000011111222
    GPU 1 |00000     222
           0    5    10
    """
    workload = jobs((0, 5, 2), (0, 5, 1), (1, 3, 2))
    assert starts(run(workload, nodes(2), f"fcfs+{discipline}?[-1]")) == {0: 0, 1: 5, 2: 10}


def test_idle_nodes__are_those_the_job_may_use() -> None:
    """Red and blue nodes; the gate is never open. Red is idle at 1, though blue is not.

    red  | 11111111112222222222
    red  |
    blue |0000000000000000000000...
    blue |
          0         10
    """
    workload = jobs((0, 100, 1), (1, 10, 1), (2, 10, 1), pool=[1, 0, 0], pool_names=("red", "blue"))
    log = run(workload, nodes(2, 2, pool=["red", "blue"]), "fcfs+skip?[-1]")
    assert starts(log) == {0: 0, 1: 1, 2: 11}


def test_idle_nodes__a_job_that_may_use_all_waits_for_all() -> None:
    """Job 1 may use both nodes: it starts when the whole cluster is idle, at 100."""
    workload = jobs((0, 100, 1), (1, 10, 1), pool=[1, -1], pool_names=("red", "blue"))
    log = run(workload, nodes(2, 2, pool=["red", "blue"]), "fcfs+skip?[-1]")
    assert starts(log) == {0: 0, 1: 100}


def test_gate__zero_is_open_and_not_a_number_is_closed() -> None:
    workload = jobs((0, 10, 1), (1, 10, 1))
    for gate, expected in (("0", 1), ("-0", 1), ("1e-9", 1), ("-1e-9", 10), ("0/0", 10)):
        assert starts(run(workload, nodes(2), f"fcfs?[{gate}]"))[1] == expected, gate


def test_gate__is_asked_again_after_every_start() -> None:
    """At most two jobs at once, though eight would fit.

    GPU 0 |000002222244444
    GPU 1 |1111133333
           0    5    10
    """
    workload = jobs(*[(0, 5, 1)] * 5)
    log = run(workload, nodes(8), "fcfs+skip?[1 - running_jobs]")
    assert starts(log) == {0: 0, 1: 0, 2: 5, 3: 5, 4: 10}


def test_gate__a_closed_job_is_not_the_head_under_easy() -> None:
    """Job 2 is closed until 20, so job 3 is the head and leaves nothing for job 4 at 10.

    GPU 0 |000000000033333333333333322222
    GPU 1 |000000000033333333333333322222
    GPU 2 |1111111111111111111111111111111...
    GPU 3 |          3333333333333334444444...
           0         10             25
    """
    workload = jobs((0, 10, 2), (0, 100, 1), (1, 5, 2), (2, 15, 3), (3, 90, 1))
    log = run(workload, nodes(4), "fcfs+easy?[where(gpus == 2, now - 20, 1)]")
    assert starts(log) == {0: 0, 1: 0, 2: 25, 3: 10, 4: 25}
    assert starts(run(workload, nodes(4), "fcfs+easy"))[4] == 3


def test_gate__arrival_rate_counts_the_last_hour_without_its_beginning() -> None:
    """At 3600 the job submitted at 0 is out of the window: one arrival, not two."""
    workload = jobs((0, 5000, 1), (3600, 10, 1))
    log = run(workload, nodes(2), "fcfs?[1.5 - arrival_rate * 3600]")
    assert starts(log) == {0: 0, 1: 3600}
    earlier = jobs((0, 5000, 1), (3599, 10, 1))
    assert starts(run(earlier, nodes(2), "fcfs?[1.5 - arrival_rate * 3600]")) == {0: 0, 1: 5000}
