"""An agent that does what a rule does gives that rule's schedule, event for event."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.env import by_hand
from tests.env.agents import SEATS, options_of, random_action

import berthline as bl
from berthline.env.episode_supply import episode_seed
from berthline.env.single import SchedulingEnv
from berthline.env.vector import SchedulingVectorEnv
from berthline.evaluate.metrics.measure import measure
from berthline.model.schedule import START

SEEDS = range(6)


def simulated(env: SchedulingEnv, info: dict[str, Any], scheduler: str) -> bl.Result:
    """Return the run of a scheduler on the episode of an environment."""
    return bl.simulate(
        env.workload(),
        env.plan.cluster,
        scheduler,
        knowledge=env.plan.options.knowledge,
        seed=episode_seed(*info["episode_key"].tolist()),
    )


def play(seat: str, rule: Any, scheduler: str, seed: int, **more: Any) -> int:
    """Play an episode by a rule and compare it with a scheduler; return the number of steps."""
    env = SchedulingEnv(seat, **options_of(seat, **more))
    _, info = env.reset(seed=seed)
    expected = simulated(env, info, scheduler)
    is_over, steps = False, 0
    while not is_over:
        _, _, terminated, truncated, info = env.step(rule(env))
        is_over = terminated or truncated
        steps += 1
    assert terminated
    assert env.log().sha256() == expected.log.sha256()
    assert env.log().decisions == expected.log.decisions
    return steps


def first(env: SchedulingEnv) -> int:
    return int(np.argmax(env.action_masks()))


def pair(env: SchedulingEnv) -> list[int]:
    """Return the first row, and the lowest node it may take."""
    row = int(np.argmax(env.action_masks()[: env.plan.num_actions]))
    if row == env.plan.options.window:
        return [row, 0]
    return [row, int(np.argmax(env._envs.pair_mask[0, row]))]


@pytest.mark.parametrize("order", ["fcfs", "sjf", "wfp3", "random"])
@pytest.mark.parametrize("conditions", [None, {"mtbf": 3000.0, "mttr": 200.0, "tick": 3.0}])
def test_pick__first_row_is_skip(order: str, conditions: Any) -> None:
    more = {"order": order, "window": 16, "conditions": conditions}
    steps = sum(play("pick", first, f"{order}+skip@best-fit", seed, **more) for seed in SEEDS)
    assert steps > 16


@pytest.mark.parametrize("discipline", ["strict", "skip", "easy"])
def test_pick__waiting_for_the_first_row_is_the_discipline(discipline: str) -> None:
    more = {"semantics": "wait", "discipline": discipline, "window": 3}
    for seed in SEEDS:
        play("pick", first, f"fcfs+{discipline}@best-fit", seed, **more)


@pytest.mark.parametrize("discipline", ["strict", "skip", "easy"])
def test_place__lowest_node_is_first_fit(discipline: str) -> None:
    for seed in SEEDS:
        more = {"order": "sjf", "discipline": discipline, "placement": "first-fit"}
        play("place", first, f"sjf+{discipline}@first-fit", seed, **more)


def test_place__one_rule_is_that_rule() -> None:
    for rule in ("worst-fit", "random", "[-node_free_gpus]", "defrag"):
        more = {"placements": [rule], "discipline": "skip", "placement": rule}
        play("place", first, f"fcfs+skip@{rule}", 1, **more)


def test_pickplace__first_row_on_lowest_node_is_skip_first_fit() -> None:
    for seed in SEEDS:
        more = {"order": "sjf", "window": 16, "placement": "first-fit"}
        play("pickplace", pair, "sjf+skip@first-fit", seed, **more)


@pytest.mark.parametrize(
    "scheduler",
    ["sjf+easy@best-fit", "wfp3+conservative@worst-fit", "fcfs+skip@[node_id]?express-lane"],
)
def test_meta__one_scheduler_is_that_scheduler(scheduler: str) -> None:
    for seed in SEEDS:
        play("meta", first, scheduler, seed, schedulers=[scheduler])


@pytest.mark.parametrize("discipline", ["strict", "skip", "easy", "conservative"])
def test_gate__always_starting_is_the_base_scheduler(discipline: str) -> None:
    for seed in SEEDS:
        more = {"order": "sjf", "discipline": discipline}
        play("gate", lambda _: 1, f"sjf+{discipline}@best-fit", seed, **more)


def test_gate__without_holds_is_never_asked() -> None:
    steps = play("gate", lambda _: 0, "fcfs+easy@best-fit", 0, discipline="easy", max_holds=0)
    assert steps == 1


def test_gate__a_held_job_is_left_alone_unless_the_cluster_is_idle() -> None:
    """Two GPUs. Job 0 takes one for 100 s; jobs 1 to 3 come at 10, 20 and 60 s, one GPU each.

    Without `hold_seconds`, the agent is asked again about job 1, held at 10 s, at 20 s, and about
    job 2 when job 1 has ended. With 45 s, it is asked about job 2 at 20 s; at 60 s job 1 comes
    first again. Held again, until 105 s, it starts without a question at 100 s, when nothing is
    running.
    """
    columns = {"submit": [0, 10, 20, 60], "run": [100, 5, 10, 40], "gpus": [1, 1, 1, 1]}
    workload = bl.Workload.from_columns(name="four", **columns)
    for seconds, times, start in ((0.0, [10, 20, 25, 60], 20), (45.0, [10, 20, 60, 60], 100)):
        actions = [0, 1, 1, 1] if seconds == 0 else [0, 1, 0, 1]
        env = by_hand.make(
            "gate",
            workload,
            cluster="uniform:1x2:V100",
            knowledge="none",
            hold_seconds=seconds,
        )
        episode = by_hand.play(env, *actions)
        assert episode.times == times
        log = env.log()
        assert log.time[(log.kind == START) & (log.job == 1)].tolist() == [start]


@pytest.mark.parametrize(
    ("recheck", "hold_seconds", "asked"),
    [
        (100, 0, {1: [1, 61, 161, 261, 361], 2: [61, 161, 261, 361, 461]}),
        (100, 90, {1: [1, 101, 201, 301, 401], 2: [61, 161, 261, 361, 461]}),
        (100, 200, {1: [1, 201, 401, 601, 801], 2: [61, 261, 461, 661, 861]}),
    ],
)
def test_gate__every_held_job_is_asked_about_again(
    recheck: float, hold_seconds: float, asked: dict[int, list[float]]
) -> None:
    jobs = bl.Workload.from_columns(submit=[0, 1, 61], run=[10_000, 50, 50], gpus=[1, 1, 1])
    env = SchedulingEnv(
        "gate",
        workload=jobs,
        cluster="uniform:1x8:V100",
        episode_jobs=None,
        knowledge="exact",
        max_holds=5,
        recheck=recheck,
        hold_seconds=hold_seconds,
    )
    env.reset(seed=0)
    found: dict[int, list[float]] = {1: [], 2: []}
    is_over = False
    while not is_over:
        question = env.question()
        found[question["job_at_hand"]].append(question["now"])
        *_, terminated, truncated, _ = env.step(0)
        is_over = terminated or truncated
    assert found == asked


@pytest.mark.parametrize("order", ["fcfs", "sjf", "wfp3"])
def test_backfill__first_allowed_is_easy(order: str) -> None:
    for seed in SEEDS:
        play("backfill", first, f"{order}+easy@best-fit", seed, order=order, window=16)


def test_backfill__without_protection_first_allowed_is_skip() -> None:
    for seed in SEEDS:
        play(
            "backfill", first, "sjf+skip@best-fit", seed, order="sjf", window=16, protect_head=False
        )


def test_backfill__no_op_is_strict() -> None:
    for seed in SEEDS:
        play("backfill", lambda env: env.plan.options.window, "fcfs+strict@best-fit", seed)


@pytest.mark.parametrize("discipline", ["strict", "skip", "easy", "conservative"])
def test_preempt__never_is_the_base_scheduler(discipline: str) -> None:
    for seed in SEEDS:
        never = {"discipline": discipline, "order": "sjf"}
        rule = play("preempt", lambda env: 4, f"sjf+{discipline}@best-fit", seed, **never)
        assert rule >= 1


@pytest.mark.parametrize("seat", SEATS)
@pytest.mark.parametrize("cut", [None, {"horizon_factor": 0.3}, {"max_steps": 9}])
def test_reward_jct_sums_to_minus_the_total_jct(seat: str, cut: dict[str, Any] | None) -> None:
    env = SchedulingEnv(seat, **options_of(seat, reward="jct", **(cut or {})))
    rng = np.random.default_rng(1)
    for _ in range(4):
        _, info = env.reset(seed=None if rng.random() < 0.5 else int(rng.integers(99)))
        total, is_over = 0.0, False
        while not is_over:
            action = random_action(rng, info["action_mask"], seat)
            _, reward, terminated, truncated, info = env.step(action)
            total += reward
            is_over = terminated or truncated
        measured = measure(env.log(), env.workload(), env.plan.cluster)
        counted = measured.jobs.submitted - measured.jobs.rejected
        assert -total == pytest.approx(measured.jct.mean * counted, rel=1e-9)
        assert info["sched"]["return"] == pytest.approx(total)
        assert info["sched"]["mean_jct"] == pytest.approx(measured.jct.mean, rel=1e-9)


@pytest.mark.parametrize("seat", SEATS)
def test_energy_sums_to_the_energy_of_the_log(seat: str) -> None:
    env = SchedulingEnv(seat, **options_of(seat, reward={"energy": ("second", "power_w / 3.6e6")}))
    rng = np.random.default_rng(2)
    _, info = env.reset(seed=4)
    total, is_over = 0.0, False
    while not is_over:
        action = random_action(rng, info["action_mask"], seat)
        _, reward, terminated, truncated, info = env.step(action)
        total += reward
        is_over = terminated or truncated
    measured = measure(env.log(), env.workload(), env.plan.cluster)
    assert total == pytest.approx(measured.energy_kwh, rel=1e-9)


@pytest.mark.parametrize("cluster", ["uniform:3x4:V100", "uniform:6x4:V100"])
@pytest.mark.parametrize("seat", SEATS)
def test_mask__to_write_to_it_does_no_harm(seat: str, cluster: str) -> None:
    options = options_of(seat, cluster=cluster, out_of_range="illegal")
    envs = SchedulingVectorEnv(4, seat, copy=False, **options)
    random = np.random.default_rng(5)
    _, infos = envs.reset(seed=5)
    ended = 0
    for step in range(300):
        infos["action_mask"][:] = step % 2 == 0
        size = int(infos["action_mask"].shape[1])
        actions = random.integers(0, size, size=envs.action_space.shape)
        _, _, terminated, truncated, infos = envs.step(actions)
        ended += int((terminated | truncated).sum())
        for env in range(4):
            log = envs.log(env)
            started = log.job[log.kind == START]
            assert len(np.unique(started)) == len(started)
    assert ended > 0
