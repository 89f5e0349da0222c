"""Bandits: they learn what is best, from what a scheduler can observe, and the same every time."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import berthline
from berthline.deploy.bandit_policy import (
    FEATURES,
    BanditChoice,
    EpsilonGreedy,
    Exp3,
    LinUcb,
    menu_of,
)
from berthline.deploy.policy_run import PolicyRun, inputs_of
from berthline.deploy.run_policy import environment_of
from berthline.deploy.trained_policy import read_policy
from berthline.errors import PolicyError
from berthline.model.cluster import Cluster
from berthline.model.workload import Workload
from berthline.model.workload_columns import COLUMN_TYPES
from berthline.policies.bandits import BANDITS, find_bandit
from berthline.policies.formulas import Formula
from berthline.policies.scheduler import Scheduler
from berthline.sim.simulate import simulate
from berthline.traces.generators.synthetic import generate

FOUR = Cluster.parse("uniform:1x4:V100")
KINDS = list(BANDITS)
SJF = 3  # on the menu rlmetadqn


@pytest.fixture(scope="module")
def crowded():
    """More jobs than four GPUs can do for hours: here sjf is by far the best of the five."""
    return generate("rlmetadqn", cluster=FOUR, jobs=1500, load=1.3, seed=1)


def choices_of(text, workload, *, knowledge="exact", seed=0, cluster=FOUR):
    """Return (time, arm) of every choice, and the rewards."""
    learned = Scheduler.parse(text).learned
    environment = environment_of(learned, cluster, knowledge)
    running = PolicyRun(inputs_of(environment.plan, workload, seed=seed), environment.arguments)
    choice = BanditChoice(learned.bandit, running, workload.submit, seed=seed)
    running.play(choice)
    return choice.choices, choice.rewards


def learners(seed):
    return {
        "epsilon-greedy": EpsilonGreedy(4, seed=seed, epsilon=0.1),
        "exp3": Exp3(4, seed=seed, gamma=0.1),
        "linucb": LinUcb(4, features=2, alpha=1.0),
    }


@pytest.mark.parametrize("kind", KINDS)
def test_regret_stays_small_where_one_arm_is_clearly_best(kind):
    # Mean rewards 0.3, 0.3, 0.8, 0.3: choosing at random loses 0.375 a time.
    means, times = np.array([0.3, 0.3, 0.8, 0.3]), 1000
    regrets = []
    for seed in range(5):
        draws = np.random.default_rng(seed).uniform(size=times)
        learner, context, lost = learners(seed)[kind], np.array([1.0, 0.5]), 0.0
        for draw in draws:
            arm = learner.choose(context)
            learner.learn(arm, context, float(draw < means[arm]))
            lost += means.max() - means[arm]
        regrets.append(lost)
    assert np.mean(regrets) < 0.3 * 0.375 * times


def test_linucb_learns_what_is_best_in_which_state():
    learner, generator, wrong = LinUcb(2, features=2, alpha=1.0), np.random.default_rng(0), 0
    for time in range(400):
        state = generator.uniform(-1, 1)
        context = np.array([1.0, state])
        arm = learner.choose(context)
        learner.learn(arm, context, 0.5 + (0.4 * state if arm else -0.4 * state))
        wrong += time >= 200 and (state > 0) != arm and abs(state) > 0.1
    assert wrong < 10


@pytest.mark.parametrize("kind", KINDS)
def test_it_comes_to_prefer_the_best_order(crowded, kind):
    choices, rewards = choices_of(f"bandit:{kind}:menu=rlmetadqn", crowded)
    assert len(choices) == len(rewards) + 1
    assert len(choices) > 150
    assert all(0 <= reward <= 1 for reward in rewards)
    later = [arm for _, arm in choices[len(choices) // 2 :]]
    assert later.count(SJF) / len(later) > 0.28  # 0.2 if it had not learned

    def jct(scheduler):
        return simulate(crowded, FOUR, scheduler, knowledge="exact").metrics().jct.mean

    rules = [jct(text) for text in menu_of(find_bandit("bandit:exp3:menu=rlmetadqn"), "exact")]
    assert min(rules) < jct(f"bandit:{kind}:menu=rlmetadqn") < np.mean(rules)


@pytest.mark.parametrize("kind", KINDS)
def test_it_knows_nothing_of_unfinished_run_times(crowded, kind):
    # Estimates are given, and stay; run times of jobs that are not over by then are changed.
    text = f"bandit:{kind}:menu=rlmetadqn"
    until = 9000.0
    before, _ = choices_of(text, crowded, knowledge="estimate")
    log = simulate(crowded, FOUR, text).log
    over = set(log.job[(log.kind == 2) & (log.time <= until)].tolist())
    run = np.where([job in over for job in range(len(crowded))], crowded.run, crowded.run * 3)
    assert 50 < len(over) < 1000
    after, _ = choices_of(text, dataclasses.replace(crowded, run=run), knowledge="estimate")
    first = [choice for choice in before if choice[0] <= until]
    assert len(first) > 10
    assert after[: len(first)] == first
    assert after != before


@pytest.mark.parametrize("kind", KINDS)
def test_later_jobs_do_not_matter(crowded, kind):
    text = f"bandit:{kind}:menu=rlmetadqn"
    until = float(crowded.submit[700])
    before, _ = choices_of(text, crowded)
    columns = {name: getattr(crowded, name)[:700].copy() for name in COLUMN_TYPES}
    after, _ = choices_of(text, Workload.from_columns(**columns, rebase=False))
    first = [choice for choice in before if choice[0] < until]
    assert len(first) > 10
    assert after[: len(first)] == first


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_gives_the_same_run(crowded, kind):
    text = f"bandit:{kind}:menu=rlmetadqn"
    hashes = [
        simulate(crowded, FOUR, text, knowledge="exact", seed=seed).log.sha256()
        for seed in (0, 0, 1)
    ]
    assert hashes[0] == hashes[1]
    assert (hashes[0] == hashes[2]) == (kind == "linucb")  # which draws nothing


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_known_of_run_times_matters_to_the_menu_only(crowded, kind):
    # Estimates of this workload are the run times.
    text = f"bandit:{kind}:menu=rlmetadqn"
    exact, estimate = (
        simulate(crowded, FOUR, text, knowledge=knowledge).log.sha256()
        for knowledge in ("exact", "estimate")
    )
    assert exact == estimate
    assert simulate(crowded, FOUR, text, knowledge="predicted").metrics().jobs.completed == 1500
    blind = choices_of(text, crowded, knowledge="none")[0]
    assert {arm for _, arm in blind} == {0, 1, 2, 3}  # sjf is left out


def test_without_run_times_a_menu_that_needs_them_is_refused(crowded):
    with pytest.raises(PolicyError, match="5 of 5 schedulers") as error:
        simulate(crowded, FOUR, "bandit:exp3", knowledge="none")
    assert "bandit:exp3:menu=rlmetadqn" in str(error.value)


def test_no_feature_depends_on_run_times():
    assert not any(Formula.parse(text).uses_estimate for text in FEATURES)


def test_the_reward_compares_with_what_is_usual():
    # One GPU; jobs of 400 s. Five come at 0, one at 700. It is asked every 600 s.
    #
    #   from   to    waited                             had none started       V x T^2  mean V
    #   0      600   4 x 400 + 3 x 200 = 2200           5 x 600       = 3000   800      800
    #   600    1200  3 x 200 + 2 x 400 + 1 x 500 = 1900 3 x 600 + 500 = 2300   400      600
    #   1200   1800  2 x 400 + 1 x 200 = 1000           3 x 600       = 1800   800      2000 / 3
    jobs = Workload.from_columns(
        submit=[0, 0, 0, 0, 0, 700], run=[400] * 6, estimate=[400] * 6, gpus=[1] * 6
    )
    cluster = Cluster.parse("uniform:1x1:V100")
    choices, rewards = choices_of("bandit:linucb:menu=rlmetadqn", jobs, cluster=cluster)
    assert [time for time, _ in choices] == [0.0, 600.0, 1200.0, 1800.0]
    assert rewards == pytest.approx([0.5, 400 / 1000, 800 / (800 + 2000 / 3)])


def test_it_is_compared_like_any_scheduler_in_worker_processes():
    first, second = (
        berthline.compare(
            "drift",
            "uniform:4x8:V100",
            ["fcfs+easy", "bandit:exp3"],
            jobs=200,
            windows=4,
            workers=workers,
        )
        for workers in (1, 2)
    )
    assert [one.scheduler for one in first.schedulers] == ["fcfs+easy", "bandit:exp3"]
    assert first.schedulers[1].log_sha256 == second.schedulers[1].log_sha256
    assert first.schedulers[1].log_sha256 != first.schedulers[0].log_sha256


def test_a_snapshot_does_not_hold_what_it_has_learned(crowded):
    result = simulate(crowded.window(0, 100), FOUR, "bandit:exp3:menu=rlmetadqn", knowledge="exact")
    snapshot = result.snapshot(2000.0)
    with pytest.raises(PolicyError, match="learns within a run"):
        berthline.resume(snapshot)
    again = berthline.resume(snapshot, scheduler="sjf")
    assert again.metrics().jobs.unfinished == 0


def test_there_is_nothing_to_export():
    with pytest.raises(PolicyError, match="no trained policy"):
        read_policy(Scheduler.parse("bandit:exp3").learned)
