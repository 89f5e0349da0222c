"""Episodes that begin in the middle: what they begin with, and what comes then."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.env.agents import SEATS, Trajectory, options_of, plain, random_action

import berthline as bl
from berthline.env.episode_supply import episode_seed
from berthline.env.episodes_source import batch_seeds
from berthline.env.single import SchedulingEnv
from berthline.env.vector import SchedulingVectorEnv
from berthline.errors import BerthlineError, ConfigError
from berthline.policies.scheduler import Scheduler
from berthline.sim.simulate import simulate
from berthline.sim.snapshots.resume import resume
from berthline.sim.snapshots.run_in_parts import RunInParts
from berthline.sim.snapshots.take import take_jobs, take_snapshot
from berthline.traces.workload_argument import resolve_workload

if TYPE_CHECKING:
    from pathlib import Path

    from berthline.model.snapshot import Snapshot
    from berthline.model.workload import Workload

CLUSTER = bl.Cluster.uniform(nodes=4, gpus_per_node=4)
COLUMNS = ("time", "kind", "job", "detail", "alloc_node", "alloc_gpus", "alloc_slot")


def trace(jobs: int = 400, seed: int = 1) -> Workload:
    """Return jobs that keep the cluster busy."""
    return resolve_workload("lublin", cluster=CLUSTER, jobs=jobs, load=1.1, seed=seed)


def snapshot_of(
    workload: Workload, rule: str = "fcfs+easy@best-fit", part: float = 0.5
) -> Snapshot:
    """Return the state of a rule's run after a part of the jobs."""
    result = simulate(workload, CLUSTER, rule, seed=3)
    return take_snapshot(result, float(workload.submit[int(part * len(workload))]))


def rule_action(env: SchedulingEnv, mask: Any) -> int:
    """Return what the environment's own scheduler would do."""
    if env.plan.seat == "gate":
        return 1
    return int(np.argmax(mask))  # the only rule, or the first job that may pass the head


def play_rule(env: SchedulingEnv, seed: int) -> int:
    """Play an episode with the rule's own choices; return the seed of its random numbers."""
    _, info = env.reset(seed=seed)
    key = episode_seed(*info["episode_key"].tolist())
    while True:
        *_, terminated, truncated, info = env.step(rule_action(env, info["action_mask"]))
        if terminated or truncated:
            return key


RULE_SEATS: list[tuple[str, str, dict[str, Any]]] = [
    ("gate", "sjf+easy@best-fit", {"order": "sjf", "discipline": "easy"}),
    ("gate", "fcfs+conservative@best-fit", {"discipline": "conservative"}),
    ("meta", "sjf+easy@first-fit", {"schedulers": ["sjf+easy@first-fit"]}),
    ("meta", "random+skip@random", {"schedulers": ["random+skip@random"]}),
    ("place", "fcfs+skip@random", {"discipline": "skip", "placements": ["random"]}),
    ("backfill", "wfp3+easy@best-fit", {"order": "wfp3", "protect_head": True}),
]
"""Seats that can express a rule."""


@pytest.mark.parametrize("start", ["snapshot", "warm"])
@pytest.mark.parametrize("knowledge", ["estimate", "predicted", "exact"])
@pytest.mark.parametrize(("seat", "rule", "options"), RULE_SEATS)
def test_a_rule_in_its_seat__has_the_log_of_resume(
    seat: str, rule: str, options: dict[str, Any], knowledge: str, start: str
) -> None:
    jobs = trace()
    more: dict[str, Any] = {
        "start": snapshot_of(jobs),
        "episode_jobs": 120,
        "cluster": CLUSTER,
    }
    if start == "warm":
        more = {"start": "warm", "episode_jobs": 60, "cluster": CLUSTER}
    more |= {"workload": jobs, "knowledge": knowledge, **options}
    env = SchedulingEnv(seat, **{**plain(seat), **more})
    for seed in (1, 2):
        key = play_rule(env, seed)
        begun, episode = env.start(), env.workload()
        assert begun is not None
        known = begun.num_jobs
        assert len(episode) == known + more["episode_jobs"]
        arrivals = take_jobs(episode, np.arange(known, len(episode)))
        rest = resume(begun, rule, arrivals=arrivals, knowledge=knowledge, seed=key)
        for column in COLUMNS:
            np.testing.assert_array_equal(
                getattr(env.log(), column), getattr(rest.log, column), err_msg=column
            )
        assert known > 0


@pytest.mark.parametrize("rule", ["fcfs+easy", "sjf+skip@worst-fit", "las?express-lane"])
@pytest.mark.parametrize("knowledge", ["estimate", "predicted"])
def test_run_in_parts__has_the_states_of_the_run(rule: str, knowledge: str) -> None:
    jobs = trace()
    whole = simulate(jobs, CLUSTER, rule, knowledge=knowledge)
    parts = RunInParts(
        jobs, CLUSTER, Scheduler.parse(rule), knowledge=knowledge, seed=0, part_jobs=50
    )
    for at in (jobs.submit[5], jobs.submit[49], jobs.submit[50], jobs.submit[333], 12_345.6):
        later = take_jobs(jobs, np.flatnonzero(jobs.submit > at))
        found, expected = parts.snapshot(float(at)), take_snapshot(whole, float(at))
        np.testing.assert_array_equal(found.number, expected.number)
        for column in ("submit", "run", "estimate", "gpus", "user"):
            np.testing.assert_array_equal(
                getattr(found.workload, column), getattr(expected.workload, column)
            )
        assert resume(found, arrivals=later).log.sha256() == (
            resume(expected, arrivals=later).log.sha256()
        )


@pytest.mark.parametrize("workload", ["trace", "synthetic", "lublin"])
def test_warm_episodes__begin_in_a_busy_cluster(workload: str) -> None:
    options: dict[str, Any] = {"start": "warm", "episode_jobs": 32, "cluster": CLUSTER}
    jobs = trace(2000)
    env = SchedulingEnv("pick", workload=jobs if workload == "trace" else workload, **options)
    begun = []
    for seed in range(5):
        env.reset(seed=seed)
        start = env.start()
        assert start is not None
        begun.append(start.now)
        assert env.question()["now"] >= start.now
        assert len(env.workload()) == start.num_jobs + 32
        coming = env.workload().submit[start.num_jobs :]
        assert (coming > start.now).all()
        assert (np.diff(env.workload().submit) >= 0).all()
        if workload == "trace":
            first = int(np.searchsorted(jobs.submit, start.now, side="right"))
            np.testing.assert_array_equal(coming, jobs.submit[first : first + 32])
    assert len(set(begun)) > 1


def test_warm_episodes_of_a_split__are_of_jobs_of_the_part() -> None:
    jobs = trace(2000)
    env = SchedulingEnv(
        "pick", workload=jobs, cluster=CLUSTER, start="warm", episode_jobs=50, split="test"
    )
    cold = SchedulingEnv(
        "pick", workload=jobs, cluster=CLUSTER, start="empty", episode_jobs=50, split="test"
    )
    first = cold.plan.source.rows[0]  # type: ignore[attr-defined]
    for seed in range(20):
        env.reset(seed=seed)
        start = env.start()
        assert start is not None
        assert start.now >= jobs.submit[first - 1]


@pytest.mark.parametrize("seat", SEATS)
def test_warm_batches__show_what_single_environments_show(seat: str) -> None:
    options = options_of(seat, observation="flat", start="warm")
    options["episode_jobs"] = 8
    envs = SchedulingVectorEnv(5, seat, num_threads=2, **options)
    rngs = [np.random.default_rng(i) for i in range(5)]
    together = [Trajectory() for _ in rngs]
    observations, infos = envs.reset(seed=9)
    for _ in range(40):
        masks = infos["action_mask"]
        actions = np.stack([random_action(r, m, seat) for r, m in zip(rngs, masks, strict=True)])
        for i, one in enumerate(together):
            one.observations.append(observations[i])
            one.masks.append(masks[i])
        observations, rewards, _, _, infos = envs.step(actions)
        for i, one in enumerate(together):
            one.rewards.append(float(rewards[i]))
    env = SchedulingEnv(seat, **options)
    for i in (0, 3):
        alone, rng = Trajectory(), np.random.default_rng(i)
        observation, info = env.reset(seed=batch_seeds(9, i + 1)[i])
        for _ in range(40):
            alone.observations.append(np.asarray(observation))
            alone.masks.append(info["action_mask"])
            action = random_action(rng, info["action_mask"], seat)
            observation, reward, terminated, truncated, info = env.step(action)
            alone.rewards.append(reward)
            if terminated or truncated:
                observation, info = env.reset()
        assert alone.equals(together[i])


def test_states__are_found_once_and_shared() -> None:
    envs = SchedulingVectorEnv(300, "pick", **options_of("pick", start="warm"))
    envs.reset(seed=1)
    states = {id(envs.start(i)) for i in range(300)}
    assert 1 < len(states) <= 64
    assert len(envs.plan._native_starts) >= len(states)
    assert len(envs.plan._native_starts) <= 64


def test_run_times_of_unfinished_jobs__are_not_seen() -> None:
    jobs = trace()
    start = snapshot_of(jobs)
    other = dataclasses.replace(start.workload, run=start.workload.run * 7.5)
    shown = []
    for state in (start, dataclasses.replace(start, workload=other)):
        env = SchedulingEnv("pick", workload=jobs, start=state, episode_jobs=50, observation="flat")
        shown.append(env.reset(seed=1)[0])
        assert len(env.question()["jobs"]) > 0
        assert len(env.question()["running"]) > 0
    np.testing.assert_array_equal(shown[0], shown[1])


def test_generated_jobs__come_after_a_snapshot() -> None:
    jobs = trace()
    start = snapshot_of(jobs)
    env = SchedulingEnv("pick", workload="lublin", start=start, episode_jobs=40, load=1.0)
    assert env.plan.cluster is start.cluster
    coming = []
    for seed in (1, 2):
        env.reset(seed=seed)
        episode = env.workload()
        np.testing.assert_array_equal(episode.run[: start.num_jobs], start.workload.run)
        assert episode.submit[start.num_jobs] > start.now
        users = set(np.array(episode.user_names)[episode.user].tolist())
        assert users <= {*start.workload.user_names, *env.plan.source.user_names}
        coming.append(episode.run[start.num_jobs :].tolist())
    assert coming[0] != coming[1]


def test_loads_of_warm_episodes__are_those_of_their_states() -> None:
    options = options_of("pick", start="warm", cluster="uniform:16x8:V100")
    options |= {"workload": "lublin", "load": (0.3, 1.4), "episode_jobs": 64}
    env = SchedulingVectorEnv(8, "pick", **options)
    env.reset(seed=1)
    low = env.fork()
    low.set_load(0.3)
    low.reset()
    busy, calm = (
        np.mean([one.start(i).num_jobs for i in range(8)])  # type: ignore[union-attr]
        for one in (env, low)
    )
    assert calm < busy


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"start": "hot"}, "start"),
        ({"start": 3}, "start"),
        ({"warm_rule": "sjf"}, "warm_rule"),
        ({"start": "warm", "warm_rule": "sfj+easy"}, "sfj"),
        ({"start": "snapshot", "cluster": "uniform:2x8:V100"}, "a cluster of 2 nodes"),
        ({"start": "snapshot", "workload": "trace", "episode_jobs": 900}, "episodes of 900 jobs"),
        ({"start": "snapshot", "workload": "trace", "split": "train"}, "split 'train'"),
        ({"start": "warm", "workload": "trace", "episode_jobs": None}, "no time to begin at"),
        ({"start": "warm", "workload": "trace", "load": 0.5}, None),
    ],
)
def test_options_that_do_not_fit__are_refused(options: dict[str, Any], what: str | None) -> None:
    jobs = trace(200)
    given = dict(options)
    if given.get("workload") == "trace":
        given["workload"] = jobs
        given.setdefault("cluster", CLUSTER)
        given.setdefault("episode_jobs", 20)
    if given.get("start") == "snapshot":
        given["start"] = snapshot_of(jobs)
    if what is None:
        SchedulingEnv("pick", **given).reset(seed=1)
        return
    with pytest.raises((ConfigError, BerthlineError), match=what):
        SchedulingEnv("pick", **given)


@pytest.mark.parametrize("kind", ["snapshot", "warm"])
def test_baseline__begins_where_the_episode_begins(kind: str) -> None:
    """The rule in the seat against itself: 0. Against another: the difference of their runs."""
    jobs = trace(200)
    start = snapshot_of(jobs) if kind == "snapshot" else "warm"
    options = {"workload": jobs, "cluster": CLUSTER, "episode_jobs": 40, "start": start}
    reward = {"end": ("end", "baseline_jct - mean_jct")}
    returns = []
    for baseline in ("fcfs+easy@best-fit", "lcfs+skip@best-fit"):
        env = SchedulingEnv("gate", **options, reward=reward, baseline=baseline, order="fcfs")
        env.reset(seed=3)
        total, is_over = 0.0, False
        while not is_over:
            _, gained, terminated, truncated, _ = env.step(1)
            total, is_over = total + gained, terminated or truncated
        state, episode = env.start(), env.workload()
        assert state is not None
        to_come = take_jobs(episode, np.arange(state.num_jobs, len(episode)))
        mine, theirs = (
            bl.resume(state, rule, arrivals=to_come).metrics().jct.mean
            for rule in ("fcfs+easy@best-fit", baseline)
        )
        assert total == pytest.approx(theirs - mine, rel=1e-9)
        returns.append(total)
    assert returns[0] == 0 != returns[1]


def test_start__may_be_a_run_directory(tmp_path: Path) -> None:
    jobs = trace(200)
    first = bl.simulate(jobs, CLUSTER, "fcfs+easy", horizon=float(jobs.submit[100]))
    state = first.snapshot(first.log.horizon)
    bl.write_snapshot(state, tmp_path / "first")
    env = SchedulingEnv("pick", workload=jobs, episode_jobs=20, start=str(tmp_path / "first"))
    env.reset(seed=1)
    found = env.start()
    assert found is not None
    assert found.now == state.now
    np.testing.assert_array_equal(found.log.time, state.log.time)
    bl.simulate(jobs, CLUSTER, "fcfs", out=tmp_path / "whole")
    with pytest.raises(ConfigError, match="went to its end"):
        SchedulingEnv("pick", workload=jobs, start=tmp_path / "whole")


@pytest.mark.parametrize("begin", ["empty", "warm"])
def test_snapshot__is_the_state_of_the_episode(begin: str) -> None:
    jobs = trace(200)
    options = {"workload": jobs, "cluster": CLUSTER, "episode_jobs": 60, "order": "fcfs"}
    env = SchedulingEnv("gate", **options, start=begin)
    env.reset(seed=5)
    for _ in range(50):
        env.step(1)
    state = env.snapshot()
    assert state.now == env.question()["now"]
    is_over = False
    while not is_over:
        *_, terminated, truncated, _ = env.step(1)
        is_over = terminated or truncated
    episode = env.workload()
    coming = np.flatnonzero(episode.submit > state.now)
    rest = bl.resume(state, "fcfs+easy@best-fit", arrivals=take_jobs(episode, coming)).log
    late = env.log().time > state.now
    assert late.sum() > 10
    np.testing.assert_array_equal(env.log().time[late], rest.time[rest.time > state.now])
    np.testing.assert_array_equal(env.log().kind[late], rest.kind[rest.time > state.now])

    futures = []
    for seed in (1, 2):
        other = SchedulingEnv("gate", workload="lublin", episode_jobs=8, start=state)
        other.reset(seed=seed)
        assert other.question()["now"] == state.now
        futures.append(other.workload().submit[-1])
    assert futures[0] != futures[1]


def test_a_cold_episode__has_no_start() -> None:
    env = SchedulingEnv("pick", **options_of("pick"))
    env.reset(seed=1)
    assert env.start() is None
