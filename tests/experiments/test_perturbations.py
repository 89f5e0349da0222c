"""Perturbations: one thing changes, by the stated amount, and nothing else does."""

from __future__ import annotations

import numpy as np
import pytest

from berthline.errors import ConfigError
from berthline.experiments.perturbations import (
    KINDS,
    begins_at,
    check_perturbation,
    perturb,
)
from berthline.model.cluster import Cluster
from berthline.model.workload import Workload
from berthline.model.workload_columns import COLUMN_TYPES
from berthline.sim.simulate import simulate
from berthline.traces.generators.synthetic import generate

CLUSTER = Cluster.parse("uniform:10x2:V100")
SHIPPED = [f"{name}:{value}" for name, kind in KINDS.items() for value in kind.shipped]
CHANGES = {
    "arrival-noise": {"submit", "deadline"},
    "run-times": {"run"},
    "estimates": {"estimate"},
    "phase-shift": {"submit", "deadline"},
    "bursts": {"submit", "deadline"},
    "capacity-dip": set(),
    "drift": {"submit", "deadline"},
}


@pytest.fixture(scope="module")
def jobs():
    return generate(
        "diurnal",
        cluster=CLUSTER,
        jobs=600,
        seed=3,
        deadline_low=2.0,
        deadline_high=4.0,
        estimate_error=0.3,
    )


def log_of(workload, cluster):
    return simulate(workload, cluster, "sjf+easy").log.sha256()


def by_hand(submit, run=None, estimate=None, **more):
    submit = np.asarray(submit, np.float64)
    run = np.ones(len(submit)) if run is None else run
    return Workload.from_columns(
        submit=submit, run=run, estimate=estimate, gpus=np.ones(len(submit)), **more
    )


@pytest.mark.parametrize("text", SHIPPED)
def test_only_what_is_named_changes(jobs, text):
    changed, cluster = perturb(text, jobs, CLUSTER, 5)
    different = {
        name
        for name in COLUMN_TYPES
        if not np.array_equal(getattr(jobs, name), getattr(changed, name), equal_nan=True)
    }
    assert different == CHANGES[text.partition(":")[0]]
    assert (cluster is CLUSTER) == (not text.startswith("capacity-dip"))
    assert changed.in_order  # a job keeps its number, and with it its random numbers
    slack = changed.deadline - changed.submit
    finite = np.isfinite(jobs.deadline)
    np.testing.assert_allclose(slack[finite], (jobs.deadline - jobs.submit)[finite])
    assert (changed.submit >= 0).all()
    assert (changed.run > 0).all()


@pytest.mark.parametrize("text", SHIPPED)
def test_the_same_text_and_seed_give_the_same_pair(jobs, text):
    (one, first), (other, second) = (perturb(text, jobs, CLUSTER, 5) for _ in range(2))
    for name in COLUMN_TYPES:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert first.outages == second.outages
    assert log_of(one, first) == log_of(other, second)


def test_no_perturbation_is_the_clean_pair(jobs):
    assert perturb("", jobs, CLUSTER, 5) == (jobs, CLUSTER)


@pytest.mark.parametrize(
    "text", ["arrival-noise:10%", "run-times:lognormal", "estimates:lognormal"]
)
def test_another_seed_gives_other_numbers(jobs, text):
    columns = [
        np.concatenate(
            [getattr(perturb(text, jobs, CLUSTER, seed)[0], name) for name in COLUMN_TYPES]
        )
        for seed in (5, 6)
    ]
    assert not np.array_equal(*columns, equal_nan=True)


def test_the_draws_of_a_kind_do_not_depend_on_its_strength(jobs):
    weak, strong = (
        np.diff(perturb(f"arrival-noise:{share}%", jobs, CLUSTER, 5)[0].submit)
        - np.diff(jobs.submit)
        for share in (5, 20)
    )
    np.testing.assert_allclose(4 * weak, strong, atol=1e-6)


def test_arrival_noise_is_within_its_share(jobs):
    changed, _ = perturb("arrival-noise:10%", jobs, CLUSTER, 5)
    gaps = np.diff(jobs.submit)
    ratio = np.diff(changed.submit)[gaps > 0] / gaps[gaps > 0]
    assert 0.9 - 1e-6 <= ratio.min() < 0.91
    assert 1.09 < ratio.max() <= 1.1 + 1e-6
    assert abs(ratio.mean() - 1) < 0.01


def test_the_draws_of_a_job_do_not_depend_on_the_number_of_jobs(jobs):
    whole, _ = perturb("run-times:lognormal", jobs, CLUSTER, 5)
    part, _ = perturb("run-times:lognormal", jobs.window(0, 50), CLUSTER, 5)
    np.testing.assert_array_equal(whole.run[:50], part.run)


def test_distorted_run_times_leave_the_load_as_it_is_on_average():
    many = by_hand(np.arange(20_000.0), run=np.full(20_000, 100.0), estimate=np.full(20_000, 100.0))
    changed, _ = perturb("run-times:lognormal", many, CLUSTER, 1)
    assert abs(changed.run.mean() / 100 - 1) < 0.02
    assert abs(np.median(changed.run) / 100 - np.exp(-(0.7**2) / 2)) < 0.02
    assert abs(np.log(changed.run).std() - 0.7) < 0.02
    np.testing.assert_array_equal(changed.estimate, many.estimate)


def test_a_factor_of_estimates_leaves_missing_ones_missing():
    given = by_hand([0, 1, 2], estimate=[10.0, np.nan, 30.0])
    np.testing.assert_array_equal(
        perturb("estimates:x2", given, CLUSTER, 0)[0].estimate, [20.0, np.nan, 60.0]
    )


def test_the_peak_of_the_day_comes_later():
    # The rate 1 + 0.8 sin has its peak at 6:00.
    given = generate("diurnal", cluster=CLUSTER, jobs=20_000, seed=1, depth=0.8)
    whole = given.submit[-1] // 86_400 * 86_400

    def peak(workload):
        mean = np.exp(2j * np.pi * workload.submit[workload.submit < whole] / 86_400).mean()
        return np.angle(mean) / (2 * np.pi) * 24 % 24, 2 * abs(mean)

    hour, depth = peak(given)
    assert abs(hour - 6) < 0.2
    for hours in (3, 6, 12):
        shifted, _ = perturb(f"phase-shift:{hours}h", given, CLUSTER, 0)
        later, as_deep = peak(shifted)
        assert abs(later - hour - hours) < 0.1
        assert abs(as_deep - depth) < 0.02


def test_a_shift_by_a_whole_day_changes_nothing(jobs):
    shifted, _ = perturb("phase-shift:24h", jobs, CLUSTER, 0)
    np.testing.assert_allclose(shifted.submit, jobs.submit, atol=20.0)


def test_a_cycle_of_one_hour_is_shifted_in_its_own_hours():
    given = generate("rlmetadqn", cluster="uniform:1x4:V100", jobs=2000, seed=1, shape="diurnal")
    with pytest.raises(ConfigError, match="another period"):
        perturb("phase-shift:6h", given.window(0, 100), CLUSTER, 0)
    shifted, _ = perturb("phase-shift:6h:period=3600", given, CLUSTER, 0)

    def angle(workload):
        return np.angle(np.exp(2j * np.pi * workload.submit / 3600).mean())

    turned = (angle(shifted) - angle(given)) % (2 * np.pi)
    assert abs(turned - np.pi / 2) < 0.15


def test_bursts_are_faster_and_a_lull_follows():
    # Slots of 10 s. The second has 30 of the 60 jobs: a burst.
    submit = np.concatenate([np.linspace(0, 9, 6), 10 + np.arange(30) / 3, np.linspace(20, 60, 24)])
    given = by_hand(submit)
    changed, _ = perturb("bursts:x2", given, CLUSTER, 0)
    np.testing.assert_allclose(changed.submit[6:36], 10 + np.arange(30) / 6)
    np.testing.assert_array_equal(changed.submit[:6], submit[:6])
    np.testing.assert_array_equal(changed.submit[36:], submit[36:])


def test_jobs_submitted_at_once_have_no_bursts():
    given = by_hand(np.zeros(30))
    assert perturb("bursts:x3", given, CLUSTER, 0)[0] is given


def test_drift_gives_each_third_of_the_jobs_its_shape():
    given = by_hand(np.arange(3000.0))
    drifted, _ = perturb("drift:base+bursty+diurnal", given, CLUSTER, 0)
    base, bursty, diurnal = (drifted.submit[i : i + 1000] for i in (0, 1000, 2000))
    np.testing.assert_allclose(base, np.arange(1000.0))
    # Four turns of 125 s each at x3 and x0.3: 10 of 11 jobs in the first half of a turn.
    assert bursty[0] == 1000
    early = ((bursty - 1000) % 250 < 125).mean()
    assert abs(early - 10 / 11) < 0.01
    # 1 + 0.5 sin: the first half has 1/2 + 0.5/pi of the jobs.
    assert abs((diurnal < 2500).mean() - (0.5 + 0.5 / np.pi)) < 0.005
    assert abs(drifted.submit[-1] - 2999) < 2


def test_a_high_phase_lasts_half_as_long():
    given = by_hand(np.arange(3000.0))
    drifted, _ = perturb("drift:base+bursty-high+base", given, CLUSTER, 0)
    np.testing.assert_allclose(drifted.submit[2000:], 1500 + np.arange(1000.0))


def test_a_dip_takes_its_share_of_the_nodes_for_its_hours():
    given = by_hand(np.arange(10) * 3600.0)
    for share, nodes in ((10, 1), (30, 3), (50, 5)):
        _, cluster = perturb(f"capacity-dip:{share}%/6h", given, CLUSTER, 4)
        (outage,) = cluster.outages
        assert len(set(outage.nodes)) == nodes
        assert (outage.down, outage.up) == (3 * 3600.0, 9 * 3600.0)
    chosen = [
        set(perturb(f"capacity-dip:{share}%/1h", given, CLUSTER, 4)[1].outages[0].nodes)
        for share in (10, 30, 50)
    ]
    assert chosen[0] < chosen[1] < chosen[2]
    others = {
        perturb("capacity-dip:10%/1h", given, CLUSTER, seed)[1].outages[0].nodes
        for seed in range(20)
    }
    assert len(others) > 3


def test_a_dip_makes_running_jobs_lose_work():
    given = by_hand(np.arange(40) * 600.0, run=np.full(40, 20_000.0))
    _, cluster = perturb("capacity-dip:50%/6h", given, CLUSTER, 4)
    clean, dipped = (simulate(given, nodes, "fcfs").metrics() for nodes in (CLUSTER, cluster))
    assert clean.preemptions == 0
    assert dipped.preemptions > 0
    assert dipped.jct.mean > clean.jct.mean


def test_a_dip_needs_nodes_that_stay():
    with pytest.raises(ConfigError, match="uniform:8x1"):
        perturb("capacity-dip:50%/1h", by_hand([0, 1]), Cluster.parse("uniform:1x8:V100"), 0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("arival-noise:5%", "did you mean 'arrival-noise'"),
        ("arrival-noise:0%", "a share, such as 10%"),
        ("arrival-noise:100%", "a share"),
        ("run-times:lognorm", "run-times:lognormal"),
        ("run-times:x0", "a factor"),
        ("capacity-dip:30%", "capacity-dip:30%/"),
        ("drift:base+bursty", "three of base"),
        ("phase-shift:6", "hours of a day"),
        ("bursts", "a factor"),
    ],
)
def test_unknown_texts_name_what_is_near(text, says):
    with pytest.raises(ConfigError, match=r"perturbation|value of") as error:
        check_perturbation(text)
    assert says in str(error.value)


def test_the_shipped_ones_are_read():
    for text in (*SHIPPED, ""):
        check_perturbation(text)
    assert len(SHIPPED) == 22
    assert begins_at("capacity-dip:30%/1h") == pytest.approx(1 / 3)
    assert begins_at("arrival-noise:5%") == begins_at("") == 0
