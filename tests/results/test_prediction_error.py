"""Predicting run times from finished jobs alone, and measuring how well."""

import numpy as np
import pytest
from benchmarks.prediction_error import LastTwo, prediction_error, replay_predictions
from benchmarks.run_time_predictor import FIRST_DEVIATION, RunTimePredictor

import berthline as bl
from berthline.model.schedule import START


def test_errors_of_four_jobs():
    """Predicted 10, 40, 100, 100 of runs 10, 10, 50, 800: factors 1, 4, 2, 8.

    Ranks 1, 2, 3.5, 3.5 against 1.5, 1.5, 3, 4: covariance 4 over sqrt(4.5 x 4.5).
    """
    found = prediction_error(np.array([10.0, 40, 100, 100]), np.array([10.0, 10, 50, 800]))
    assert found.mean_factor == pytest.approx(2 ** ((0 + 2 + 1 + 3) / 4))
    assert found.median_factor == pytest.approx(2**1.5)
    assert found.within_two == 0.5
    assert found.too_short == 0.25
    assert found.rank_correlation == pytest.approx(4.0 / 4.5)
    assert found.jobs == 4


def test_the_simulators_rule_is_the_one_that_is_measured():
    """With no queue, jobs start when submitted, and replay and simulator know the same."""
    random = np.random.default_rng(3)
    workload = bl.Workload.from_columns(
        submit=np.sort(random.integers(0, 50_000, 200)).astype(float),
        run=random.integers(1, 5_000, 200).astype(float),
        gpus=np.ones(200, np.int32),
        user=random.integers(0, 6, 200),
    )
    replayed = replay_predictions(workload, LastTwo())
    assert replayed[0] == 3600
    # The log does not tell predictions, but jobs that fill the cluster start in their order.
    last = np.full(6, 60_000.0)
    behind = bl.Workload.from_columns(
        submit=np.append(workload.submit, last),
        run=np.append(workload.run, np.full(6, 10.0)),
        gpus=np.append(workload.gpus, np.full(6, 256)).astype(np.int32),
        user=np.append(workload.user, np.arange(6)),
    )
    log = bl.simulate(behind, "uniform:1x256", "sjf", knowledge="predicted").log
    started = log.job[(log.kind == START) & (log.job >= 200)] - 200
    predicted = replay_predictions(behind, LastTwo())[-6:]
    assert len(set(predicted)) == 6
    assert started.tolist() == np.argsort(predicted).tolist()


def test_nothing_is_known_of_jobs_that_have_not_finished():
    """Three jobs of 100 s, submitted at 0, 50 and 100: only the third is told by the first."""
    workload = bl.Workload.from_columns(
        submit=np.array([0.0, 50, 100]), run=np.full(3, 100.0), gpus=np.ones(3, np.int32)
    )
    for predictor in (LastTwo(), RunTimePredictor(leaning=1e-9)):
        assert replay_predictions(workload, predictor) == pytest.approx([3600, 3600, 100])


def test_changing_a_job_changes_no_prediction_made_before_it_finished():
    random = np.random.default_rng(1)
    columns = {
        "submit": np.sort(random.random(300) * 1e5),
        "run": random.random(300) * 1e4 + 1,
        "gpus": random.integers(1, 5, 300).astype(np.int32),
        "user": random.integers(0, 9, 300),
    }
    before = bl.Workload.from_columns(**columns)
    changed = columns["run"].copy()
    changed[150] *= 3
    after = bl.Workload.from_columns(**{**columns, "run": changed})
    seen = [replay_predictions(w, RunTimePredictor()) for w in (before, after)]
    differ = np.flatnonzero(seen[0] != seen[1])
    assert differ.size
    assert before.submit[differ[0]] >= before.submit[150] + before.run[150]


def test_a_group_without_history_leans_on_the_one_above():
    predictor = RunTimePredictor()
    for _ in range(50):
        predictor.finished(user=1, pool=0, gpus=1, run=100)
        predictor.finished(user=2, pool=0, gpus=1, run=10_000)
    assert predictor.predict(user=1, pool=0, gpus=1) == pytest.approx(100, rel=0.1)
    assert predictor.predict(user=1, pool=0, gpus=8) == pytest.approx(100, rel=1.0)
    assert predictor.predict(user=3, pool=0, gpus=1) == pytest.approx(1000, rel=0.2)
    for _ in range(10):
        predictor.finished(user=1, pool=0, gpus=8, run=5000)
    assert predictor.predict(user=1, pool=0, gpus=8) > 3000
    # Of another user only what is common has changed.
    assert predictor.predict(user=2, pool=0, gpus=1) == pytest.approx(10_000, rel=0.1)


def test_quantiles_cover_what_they_promise():
    """Log-normal run times: 90 % of the jobs end within the quantile 0.9, or a little more."""
    random = np.random.default_rng(0)
    predictor = RunTimePredictor(fading=0.98)
    inside = []
    for number, run in enumerate(np.exp(random.normal(7, 1, 4000))):
        if number >= 500:
            inside.append(run <= predictor.predict(user=0, pool=0, gpus=1, quantile=0.9))
        predictor.finished(user=0, pool=0, gpus=1, run=run)
    assert 0.87 < np.mean(inside) < 0.94


def test_doubt_is_large_at_first():
    predictor = RunTimePredictor()
    safe = predictor.predict(user=0, pool=0, gpus=1, quantile=0.9)
    assert safe == pytest.approx(3600 * np.exp(1.2815515655 * FIRST_DEVIATION))


def test_doubt_is_what_quantiles_are_made_of():
    predictor = RunTimePredictor()
    for run in (100, 400, 100, 400):
        predictor.finished(user=0, pool=0, gpus=1, run=run)
    doubt = predictor.doubt(user=0, pool=0, gpus=1)
    middle, safe = (predictor.predict(user=0, pool=0, gpus=1, quantile=q) for q in (0.5, 0.9))
    assert np.log2(safe / middle) == pytest.approx(1.2815515655 * doubt)
    for _ in range(30):
        predictor.finished(user=0, pool=0, gpus=1, run=100)
    assert predictor.doubt(user=0, pool=0, gpus=1) < doubt / 2
