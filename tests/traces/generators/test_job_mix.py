"""What jobs are like: run times, GPU mixes, estimates, and dials with choices."""

from __future__ import annotations

import numpy as np
import pytest

from berthline.errors import ConfigError
from berthline.traces.generators.dials import Dial, set_dials, with_defaults
from berthline.traces.generators.draws import Draws, number_of_limits
from berthline.traces.generators.estimates import ESTIMATE_DIALS, HUMAN_LIMITS, draw_estimates
from berthline.traces.generators.gpu_mix import GPU_DIALS, MIXES, draw_gpus, read_mix
from berthline.traces.generators.job_columns import (
    PRIORITY_CORRELATION_DIAL,
    PRIORITY_DIAL,
    USER_DIALS,
    draw_priorities,
    draw_users,
)
from berthline.traces.generators.run_times import RUN_DIALS, RUN_TIMES, draw_run_times

DRAWS = Draws(11, range(2), jobs=100_000)


def settings(*dials, **given):
    return set_dials(dials, given, where="here")


def run_times(**given):
    return draw_run_times(DRAWS, settings(*RUN_DIALS, **given))


def test_lognormal_run_times():
    run = run_times(run_median=500, run_sigma=1.0, run_low=1, run_high=1e8)
    assert np.median(run) == pytest.approx(500, rel=0.02)
    assert np.log(run).std() == pytest.approx(1.0, rel=0.02)


def test_heavy_tailed_run_times():
    run = run_times(run_times="heavy-tailed", run_low=1, run_high=10_000)
    short = run < 800
    assert short.mean() == pytest.approx(0.85, abs=0.01)
    assert run[short].min() == 100
    assert run[short].mean() == pytest.approx(450, rel=0.02)
    log = np.log(run[~short])
    assert run.max() == 10_000
    assert log.mean() == pytest.approx((np.log(800) + np.log(10_000)) / 2, rel=0.01)


def test_uniform_and_normal_run_times():
    run = run_times(run_times="uniform", run_low=20, run_high=29)
    values, counts = np.unique(run, return_counts=True)
    assert values.tolist() == list(range(20, 30))
    assert counts / run.size == pytest.approx(0.1, abs=0.005)
    run = run_times(run_times="normal", run_mean=3000, run_std=2500, run_low=1)
    assert np.median(run) == pytest.approx(3000, rel=0.02)
    assert (run == 1).mean() == pytest.approx(0.115, abs=0.01)  # N(0, 1) < -1.2


@pytest.mark.parametrize("kind", RUN_TIMES)
def test_run_times_are_whole_and_within_their_bounds_and_rise_with_one_number(kind):
    run = run_times(run_times=kind, run_low=15.5, run_high=5000)
    assert (run == np.rint(run)).all()
    assert 16 <= run.min() <= run.max() <= 5000
    in_order = run.ravel()[np.argsort(DRAWS.uniform("run"), axis=None)]
    assert (np.diff(in_order) >= 0).all()


def test_bounds_the_wrong_way_round_are_refused():
    with pytest.raises(ConfigError, match="run_low is 100 and run_high is 50"):
        run_times(run_low=100, run_high=50)


@pytest.mark.parametrize("mix", [*MIXES, "1-8", "2:1,16:3", "5:1"])
def test_gpus_have_the_shares_of_the_mix(mix):
    gpus = draw_gpus(DRAWS, settings(*GPU_DIALS, gpu_mix=mix))
    shares = read_mix(mix)
    total = sum(shares.values())
    values, counts = np.unique(gpus, return_counts=True)
    assert values.tolist() == sorted(shares)
    for value, count in zip(values, counts, strict=True):
        assert count / gpus.size == pytest.approx(shares[int(value)] / total, abs=0.005)


@pytest.mark.parametrize(
    "text",
    ["", "0-4", "8-1", "1:0", "1:-1", "1:x", "x:1", "1:1,1:2", "1.5:1", "1:inf", "many", "1"],
)
def test_what_is_no_mix_is_refused(text):
    assert read_mix(text) is None
    with pytest.raises(ConfigError) as caught:
        settings(*GPU_DIALS, gpu_mix=text)
    assert "LOW-HIGH" in caught.value.expected


@pytest.mark.parametrize("correlation", [-1.0, -0.5, 0.5, 1.0])
def test_correlation_keeps_the_shares(correlation):
    plain = draw_gpus(DRAWS, settings(*GPU_DIALS))
    linked = draw_gpus(DRAWS, settings(*GPU_DIALS, gpu_correlation=correlation))
    counts = [np.bincount(t.ravel().astype(int)) / t.size for t in (plain, linked)]
    np.testing.assert_allclose(counts[0], counts[1], atol=0.01)
    found = np.corrcoef(DRAWS.normal("run").ravel(), np.log2(linked).ravel())[0, 1]
    assert np.sign(found) == np.sign(correlation)
    assert abs(found) == pytest.approx(abs(correlation) * 0.84, abs=0.06)


def test_priorities_and_users():
    dials = (PRIORITY_DIAL, PRIORITY_CORRELATION_DIAL, *USER_DIALS)
    priority = draw_priorities(DRAWS, settings(*dials, priorities=5))
    assert np.bincount(priority.ravel().astype(int)) / priority.size == pytest.approx(0.2, abs=0.01)
    linked = draw_priorities(DRAWS, settings(*dials, priorities=5, priority_correlation=-0.6))
    assert np.bincount(linked.ravel().astype(int)) / linked.size == pytest.approx(0.2, abs=0.01)
    assert np.corrcoef(linked.ravel(), DRAWS.normal("run").ravel())[0, 1] < -0.5
    for count in (1, 7, 100):
        user = draw_users(DRAWS, settings(*dials, users=count, user_skew=1.0))
        zipf = 1 / np.arange(1, count + 1)
        shares = np.bincount(user.ravel(), minlength=count) / user.size
        np.testing.assert_allclose(shares, zipf / zipf.sum(), atol=0.01)


def test_comparing_and_searching_agree():
    values = DRAWS.uniform("x")
    for size in (0, 1, 5, 48, 49, 300):
        limits = np.sort(Draws(1, jobs=max(1, size)).uniform("y")[0, :size])
        expected = np.searchsorted(limits, values, side="right")
        np.testing.assert_array_equal(number_of_limits(values, limits), expected)


def estimates(run, **given):
    return draw_estimates(DRAWS, run, settings(*ESTIMATE_DIALS, **given))


def test_estimate_models():
    run = run_times(run_median=1000, run_low=1, run_high=1e8)
    np.testing.assert_array_equal(estimates(run, estimates="exact"), run)
    np.testing.assert_array_equal(estimates(run), run)
    np.testing.assert_array_equal(
        estimates(run, estimates="factor", estimate_factor=1.5), np.ceil(run * 1.5)
    )
    over = estimates(run, estimate_error=0.5)
    assert (over >= run).all()
    assert np.median(np.log(over / run)) == pytest.approx(0.5 * 0.6745, abs=0.02)
    noisy = estimates(run, estimates="lognormal", estimate_error=0.5)
    long = run > 100
    assert np.log(noisy / run)[long].mean() == pytest.approx(0, abs=0.01)
    assert np.log(noisy / run)[long].std() == pytest.approx(0.5, rel=0.02)
    assert noisy.min() >= 1


def test_human_limits_are_the_next_round_ones():
    run = np.array([[1.0, 300.0, 301.0, 3599.0, 3600.0, 90_000.0, 30 * 86_400.0, 3e6]])
    stated = draw_estimates(Draws(0, jobs=8), run, settings(*ESTIMATE_DIALS, estimates="human"))
    day = 86_400.0
    assert stated[0].tolist() == [300, 300, 600, 3600, 3600, 2 * day, 30 * day, 35 * day]
    many = estimates(run_times(), estimates="human", estimate_error=1.0)
    few = np.unique(many)
    assert np.isin(few[few <= HUMAN_LIMITS[-1]], HUMAN_LIMITS).all()


def test_a_choice_is_checked_and_gets_the_nearest():
    dial = Dial(name="shape", default="flat", meaning="x", choices=("flat", "bursty"))
    assert dial.convert(" bursty ", where="here") == "bursty"
    assert dial.default_text == "flat"
    assert dial.accepted == "one of flat, bursty"
    for wrong in ("busty", 3, None, ""):
        with pytest.raises(ConfigError) as caught:
            dial.convert(wrong, where="here")
        assert caught.value.expected == "one of flat, bursty"
    assert Dial(name="n", default=3, meaning="x").default_text == "3"
    assert Dial(name="n", default=0.25, meaning="x").default_text == "0.25"
    (changed,) = with_defaults((dial,), shape="bursty", other=3)
    assert changed.default == "bursty"
    with pytest.raises(ConfigError, match="shape is 'busty'") as caught:
        dial.convert("busty", where="here")
    assert caught.value.hint == "did you mean 'bursty'?"
