"""What each discipline does with a blocked head, in scenarios small enough to draw.

Drawings have one line per GPU and one character per second; digits are jobs.
"""

from __future__ import annotations

import pytest
from tests.sim.scenarios import allocations, jobs, nodes, order, run, starts


def test_strict__head_blocks_jobs_that_would_fit() -> None:
    """Four GPUs. Job 1 needs two and blocks job 2, which would fit at once.

    GPU 0 |0000000000111111111
    GPU 1 |0000000000111111111
    GPU 2 |0000000000222
    GPU 3 |
           0         10
    """
    workload = jobs((0, 10, 3), (1, 9, 2), (2, 3, 1))
    assert starts(run(workload, nodes(4), "fcfs+strict")) == {0: 0, 1: 10, 2: 10}


def test_skip__jobs_that_fit_pass_the_head() -> None:
    """The same jobs: job 2 passes job 1.

    GPU 0 |0000000000111111111
    GPU 1 |0000000000111111111
    GPU 2 |0000000000
    GPU 3 |  222
           0         10
    """
    workload = jobs((0, 10, 3), (1, 9, 2), (2, 3, 1))
    assert starts(run(workload, nodes(4), "fcfs+skip")) == {0: 0, 1: 10, 2: 2}


def test_skip__may_starve_the_head() -> None:
    """One-GPU jobs arrive in time to block job 1, which needs two GPUs, again and again.

    GPU 0 |0000333355551111
    GPU 1 | 22224444   1111
           0   4   8   12
    """
    workload = jobs((0, 4, 1), (1, 4, 2), (1, 4, 1), (4, 4, 1), (5, 4, 1), (8, 4, 1))
    log = run(workload, nodes(2), "fcfs+skip")
    assert starts(log) == {0: 0, 1: 12, 2: 1, 3: 4, 4: 5, 5: 8}
    assert starts(run(workload, nodes(2), "fcfs+strict"))[1] == 4


def test_skip__takes_jobs_in_the_given_order() -> None:
    """Two GPUs are free at 10; in the order sjf they go to jobs 3 and 2, not to 1."""
    workload = jobs((0, 10, 2), (1, 9, 1), (2, 7, 1), (3, 5, 1))
    assert order(run(workload, nodes(2), "sjf+skip")) == [0, 3, 2, 1]


def test_easy__may_pass_by_time_or_by_spare_gpus_but_not_otherwise() -> None:
    """Six GPUs. Job 2 (the head) needs four: it can start at 10 and leaves one GPU spare then.

    GPU 0 |000000000022222222225555555555...
    GPU 1 |00000000002222222222666666666
    GPU 2 |111111111111111111111111111111
    GPU 3 |  333333332222222222            job 3 ends by 10, the shadow time
    GPU 4 |  4444444444444444444444444...  job 4 does not, but one GPU is spare at 10
    GPU 5 |          2222222222            free till 10, yet jobs 5 and 6 would end too late
           0         10        20
    """
    workload = jobs(
        (0, 10, 2), (0, 30, 1), (1, 10, 4), (2, 8, 1), (2, 50, 1), (2, 50, 1), (2, 9, 1)
    )
    expected = {0: 0, 1: 0, 2: 10, 3: 2, 4: 2, 5: 20, 6: 20}
    assert starts(run(workload, nodes(6), "fcfs+easy")) == expected


def test_easy__ends_exactly_at_the_shadow_time() -> None:
    """A job that ends at the shadow time passes; one that ends a moment later does not.

    GPU 0 |00000000001111111111
    GPU 1 |  222222221111111111
           0         10
    """
    just = jobs((0, 10, 1), (1, 10, 2), (2, 8, 1))
    assert starts(run(just, nodes(2), "fcfs+easy")) == {0: 0, 1: 10, 2: 2}
    late = jobs((0, 10, 1), (1, 10, 2), (2, 8.001, 1))
    assert starts(run(late, nodes(2), "fcfs+easy")) == {0: 0, 1: 10, 2: 20}


def test_easy__second_waiting_job_may_be_delayed() -> None:
    """Six GPUs. The head (job 1, five GPUs) leaves one spare; job 3 takes it for 100 s.

    GPU 0 |00000000001111111111                              2222222222
    ..3   |00000000001111111111                              2222222222
    GPU 4 |          1111111111                              2222222222
    GPU 5 | 33333333333333333333333333333333333333333 ... 33 2222222222
           0         10        20                           101
    """
    workload = jobs((0, 10, 4), (1, 10, 5), (1, 10, 6), (1, 100, 1))
    assert starts(run(workload, nodes(6), "fcfs+easy")) == {0: 0, 1: 10, 2: 101, 3: 1}


def test_conservative__second_waiting_job_is_protected() -> None:
    """The same jobs: job 2 holds a reservation for 20, so job 3 has to wait until it is over.

    GPU 0 |000000000011111111112222222222333333333333333...
    ..3   |000000000011111111112222222222
    GPU 4 |          11111111112222222222
    GPU 5 |                    2222222222
           0         10        20        30
    """
    workload = jobs((0, 10, 4), (1, 10, 5), (1, 10, 6), (1, 100, 1))
    assert starts(run(workload, nodes(6), "fcfs+conservative")) == {0: 0, 1: 10, 2: 20, 3: 30}


def test_conservative__a_gap_before_the_reservations_is_used() -> None:
    """As before, but job 3 needs 9 s: it is over when job 1's reservation begins.

    GPU 0 |000000000011111111112222222222
    ..3   |000000000011111111112222222222
    GPU 4 | 33333333311111111112222222222
    GPU 5 |                    2222222222
           0         10        20
    """
    workload = jobs((0, 10, 4), (1, 10, 5), (1, 10, 6), (1, 9, 1))
    assert starts(run(workload, nodes(6), "fcfs+conservative")) == {0: 0, 1: 10, 2: 20, 3: 1}


def test_conservative__jobs_share_the_time_of_a_reservation() -> None:
    """Four GPUs. Job 1 is reserved for 10, job 2 for 20, and job 3 beside it.

    GPU 0 |000000000011111111112222222222
    GPU 1 |000000000011111111112222222222
    GPU 2 |000000000011111111112222222222
    GPU 3 |          11111111113333333333
           0         10        20        30
    """
    workload = jobs((0, 10, 3), (1, 10, 4), (2, 10, 3), (3, 10, 1))
    assert starts(run(workload, nodes(4), "fcfs+conservative")) == {0: 0, 1: 10, 2: 20, 3: 20}


def test_easy__reservations_use_estimates_and_not_the_truth() -> None:
    """Job 0's estimate is 100 s, so job 2 (60 s) may pass at 2; but job 0 ends early, at 10.

    GPU 0 |0000000000                        1111111111
    GPU 1 |0000000000                        1111111111
    GPU 2 |  2222222222222222222222222 ... 221111111111
           0         10                      62
    """
    workload = jobs((0, 10, 2), (1, 10, 3), (2, 60, 1), estimate=[100, 10, 60])
    assert starts(run(workload, nodes(3), "fcfs+easy")) == {0: 0, 1: 62, 2: 2}
    assert starts(run(workload, nodes(3), "fcfs+easy", knowledge="exact")) == {0: 0, 1: 10, 2: 20}


def test_easy__early_finish_moves_the_reservation_forward() -> None:
    """Job 0's estimate is 100 s, so job 2 (99 s) may not pass; when job 0 ends at 10, the head
    starts.

    GPU 0 |0000000000111111111122222...
    GPU 1 |00000000001111111111
    GPU 2 |          1111111111
           0         10        20
    """
    workload = jobs((0, 10, 2), (1, 10, 3), (2, 99, 1), estimate=[100, 10, 99])
    assert starts(run(workload, nodes(3), "fcfs+easy")) == {0: 0, 1: 10, 2: 20}


@pytest.mark.parametrize("discipline", ["easy", "conservative"])
def test_reservations__an_overdue_job_counts_as_ending_now(discipline: str) -> None:
    """Job 0 should end at 10 but runs until 50. At 20, the head's reservation is therefore at 20.

    GPU 0 |00000000000000000000000000000000000000000000000000111111111122222
    GPU 1 |000000000000000000000000000000000000000000000000001111111111
    GPU 2 |                    (free: job 2 would end at 25)  1111111111
           0         10        20                            50
    """
    workload = jobs((0, 50, 2), (1, 10, 3), (20, 5, 1), estimate=[10, 10, 5])
    assert starts(run(workload, nodes(3), f"fcfs+{discipline}")) == {0: 0, 1: 50, 2: 60}


def test_easy__spare_gpus_are_counted_node_by_node() -> None:
    """Two nodes of two GPUs. Job 3 (the head) needs a whole node and is reserved on node 0 at 10.

    node 0 |00000000003333333333
    node 0 |11111  5553333333333   free at 7, but spare only until 10: job 5 ends by then
    node 1 |22222222222222222222
    node 1 |       4444444444...   job 4 does not, and must not go where first-fit would
            0         10        20
    """
    workload = jobs((0, 10, 1), (0, 5, 1), (0, 20, 1), (1, 10, 2), (7, 90, 1), (7, 3, 1))
    log = run(workload, nodes(2, 2), "fcfs+easy")
    assert starts(log) == {0: 0, 1: 0, 2: 0, 3: 10, 4: 7, 5: 7}
    assert allocations(log) == {0: {0: 1}, 1: {0: 1}, 2: {1: 1}, 3: {0: 2}, 4: {1: 1}, 5: {0: 1}}


@pytest.mark.parametrize(
    ("placement", "head", "other"),
    [("first-fit", {0: 4}, {1: 1}), ("best-fit", {0: 4}, {1: 1}), ("worst-fit", {1: 4}, {0: 1})],
)
def test_easy__the_head_is_reserved_where_its_placement_rule_will_put_it(
    placement: str, head: dict[int, int], other: dict[int, int]
) -> None:
    """Nodes of 4 and 6 GPUs, one GPU free on each until 10, when both are empty.

    Job 2 (the head, four GPUs) takes node 0, or with worst-fit node 1. Job 3 (one GPU, long) may
    use what the head leaves: with node 0 full at 10, only node 1.
    """
    workload = jobs((0, 10, 5), (0, 10, 3), (1, 10, 4), (2, 90, 1))
    log = run(workload, nodes(4, 6), f"fcfs+easy@{placement}")
    assert starts(log) == {0: 0, 1: 0, 2: 10, 3: 2}
    assert allocations(log) == {0: {1: 5}, 1: {0: 3}, 2: head, 3: other}


@pytest.mark.parametrize("discipline", ["strict", "skip", "easy", "conservative"])
def test_all__an_empty_cluster_starts_everything_that_fits_in_order(discipline: str) -> None:
    """Nothing is held back for a job that fits.

    GPU 0 |0000033333
    GPU 1 |0000033333
    GPU 2 |1111133333
    GPU 3 |2222233333
           0    5
    """
    workload = jobs((0, 5, 2), (0, 5, 1), (0, 5, 1), (0, 5, 4))
    log = run(workload, nodes(4), f"fcfs+{discipline}")
    assert order(log) == [0, 1, 2, 3]
    assert starts(log) == {0: 0, 1: 0, 2: 0, 3: 5}
