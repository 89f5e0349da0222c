"""The figures of learned policies on snapshots."""

import pytest

import berthline as bl
from berthline.cli.bench.snapshot_policy import (
    measure_random_policy,
    measure_rest,
    save_random_policy,
)

CLUSTER = "uniform:4x8:V100"


@pytest.fixture(scope="module")
def jobs():
    return bl.generate("synthetic", cluster=CLUSTER, jobs=200, load=1.3, seed=2)


def test_a_question_takes_less_than_the_decision_it_is_in(jobs):
    whole = bl.simulate(jobs, CLUSTER, "fcfs+skip")
    log = whole.log
    starts = log.time[log.kind == 1]
    snapshot = whole.snapshot(float(starts[len(starts) // 2]))
    found = measure_random_policy(snapshot, CLUSTER, quick=True)
    assert found.known == snapshot.num_jobs
    assert 0 < found.question_p50_us <= found.question_p99_us
    assert found.question_p50_us / 1e3 < found.decision_p50_ms <= found.decision_p99_ms


def test_the_rest_of_a_run_is_measured_with_its_parts(tmp_path, jobs):
    policy = save_random_policy(tmp_path / "run", CLUSTER)
    found = measure_rest(jobs, bl.Cluster.parse(CLUSTER), policy, rounds=1)
    assert 0 < found.known < len(jobs)
    assert min(found.whole_ms, found.first_ms, found.rest_ms, found.begin_ms) > 0
