"""Episodes: seeds, ends, illegal actions, episodes without questions, curricula."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.env.agents import SEATS, SMALL, first_allowed, options_of, random_action

import berthline as bl
from berthline.env.episodes_source import batch_seeds
from berthline.env.single import SchedulingEnv
from berthline.env.vector import SchedulingVectorEnv
from berthline.errors import ConfigError, PolicyError, SimulationError
from berthline.traces.generators.fitted.fit import fit
from berthline.traces.split import PARTS, split_by_time


def to_the_end(env: SchedulingEnv, info: dict[str, Any], rng: np.random.Generator) -> Any:
    """Play an episode at random; return its last step."""
    while True:
        step = env.step(random_action(rng, info["action_mask"], env.plan.seat))
        info = step[4]
        if step[2] or step[3]:
            return step


@pytest.mark.parametrize("seat", SEATS)
def test_reset__with_a_seed_repeats_and_without_goes_on(seat: str) -> None:
    env = SchedulingEnv(seat, **options_of(seat, observation="flat"))
    first, info = env.reset(seed=5)
    assert info["episode_key"].tolist() == [5, 0]
    jobs = env.workload()
    to_the_end(env, info, np.random.default_rng(0))
    _, info = env.reset()
    assert info["episode_key"].tolist() == [5, 1]
    assert not np.array_equal(env.workload().run, jobs.run)
    again, info = env.reset(seed=5)
    assert info["episode_key"].tolist() == [5, 0]
    np.testing.assert_array_equal(again, first)
    np.testing.assert_array_equal(env.workload().run, jobs.run)


def test_reset__in_the_middle_goes_on_to_the_next_episode() -> None:
    env = SchedulingEnv("pick", **options_of("pick"))
    keys = [env.reset(seed=2)[1]["episode_key"].tolist()]
    for _ in range(80):
        env.step(0)
        keys.append(env.reset()[1]["episode_key"].tolist())
    assert keys == [[2, k] for k in range(81)]


def test_workload__is_that_of_the_log() -> None:
    """The submissions in the log are those of the jobs, in every episode."""
    env = SchedulingEnv("pick", **options_of("pick"))
    _, info = env.reset(seed=8)
    for _ in range(40):
        to_the_end(env, info, np.random.default_rng(0))
        log = env.log()
        np.testing.assert_array_equal(log.time[log.kind == 0], env.workload().submit)
        _, info = env.reset()


def test_vector_workload__is_that_of_the_log() -> None:
    """In every episode of every environment of the batch."""
    envs = SchedulingVectorEnv(3, "pick", **options_of("pick"))
    _, infos = envs.reset(seed=8)
    for _ in range(200):
        *_, infos = envs.step(np.argmax(infos["action_mask"], axis=1))
        for env in range(3):
            log = envs.log(env)
            submitted = log.time[log.kind == 0]
            np.testing.assert_array_equal(submitted, envs.workload(env).submit[: len(submitted)])
    assert max(envs.episode_key(env)[1] for env in range(3)) > 2


def test_vector_reset__some_environments_only() -> None:
    envs = SchedulingVectorEnv(4, "pick", **options_of("pick", observation="flat"))
    before, _ = envs.reset(seed=1)
    chosen = np.array([True, False, True, False])
    after, _ = envs.reset(options={"reset_mask": chosen})
    np.testing.assert_array_equal(after[~chosen], before[~chosen])
    assert [envs.episode_key(i) for i in range(4)] == [
        *zip(batch_seeds(1, 4), (1, 0, 1, 0), strict=True)
    ]
    with pytest.raises(ConfigError):
        envs.reset(options={"reset_mask": np.zeros(4, np.bool_)})


def test_vector_reset__without_a_seed_each_draws_its_own_or_goes_on() -> None:
    def keys(envs: SchedulingVectorEnv) -> list[tuple[int, int]]:
        return [envs.episode_key(env) for env in range(envs.num_envs)]

    envs = SchedulingVectorEnv(4, "pick", **options_of("pick"))
    envs.reset(seed=[7, None, None, 9])
    first = keys(envs)
    assert (first[0], first[3]) == ((7, 0), (9, 0))
    assert len({seed for seed, _ in first}) == 4
    assert 0 not in (first[1][0], first[2][0])
    envs.reset(seed=[None, None, 5, None])
    assert keys(envs) == [(7, 1), (first[1][0], 1), (5, 0), (9, 1)]
    for nothing in (None, [None] * 4):
        envs = SchedulingVectorEnv(4, "pick", **options_of("pick"))
        envs.reset(seed=nothing, options={"reset_mask": np.array([True, True, False, False])})
        begun = [envs.episode_key(env) for env in range(2)]
        envs.reset(seed=nothing)
        assert keys(envs)[:2] == [(seed, 1) for seed, _ in begun]
        assert len({seed for seed, _ in keys(envs)}) == 4


def test_step__without_an_episode_is_refused() -> None:
    env = SchedulingEnv("pick", **options_of("pick"))
    with pytest.raises(SimulationError, match="without an episode"):
        env.step(0)
    _, info = env.reset(seed=0)
    to_the_end(env, info, np.random.default_rng(0))
    with pytest.raises(SimulationError, match="without an episode"):
        env.step(0)


@pytest.mark.parametrize("autoreset", ["same_step", "next_step"])
def test_nothing_is_ever_asked__one_step_ends_the_episode(autoreset: str) -> None:
    """Jobs that can never run are rejected: there is nothing to decide."""
    workload = bl.Workload.from_columns(submit=[0.0, 5.0], run=10.0, gpus=[99, 99])
    options = {"workload": workload, "cluster": "uniform:1x4:V100", "episode_jobs": None}
    env = SchedulingEnv("pick", **options, knowledge="exact", reward="jct")
    for _ in range(3):
        _, info = env.reset(seed=0)
        assert info["action_mask"].sum() == 1
        _, reward, terminated, truncated, info = env.step(int(np.argmax(info["action_mask"])))
        assert (reward, terminated, truncated) == (0.0, True, False)
        assert info["sched"]["rejected"] == 2
    envs = SchedulingVectorEnv(
        3, "pick", autoreset_mode=autoreset, **options, knowledge="exact", observation="flat"
    )
    envs.reset(seed=0)
    ends = [envs.step(np.zeros(3, np.int64))[2].tolist() for _ in range(4)]
    over, going_on = [True] * 3, [False] * 3
    assert ends == ([over] * 4 if autoreset == "same_step" else [over, going_on] * 2)


@pytest.mark.parametrize("seat", SEATS)
def test_nothing_is_asked_before_the_first_decision_but_it_counts(seat: str) -> None:
    """One job alone on the cluster: its JCT is in the reward whether the agent was asked or not."""
    workload = bl.Workload.from_columns(submit=[3.0], run=10.0, gpus=[2], rebase=False)
    env = SchedulingEnv(
        seat,
        workload=workload,
        cluster="uniform:2x4:V100",
        episode_jobs=None,
        knowledge="exact",
        reward="jct",
    )
    _, info = env.reset(seed=0)
    total, is_over = 0.0, False
    while not is_over:
        mask = info["action_mask"]
        action: Any = int(np.argmax(mask))
        if seat == "pickplace":
            action = [0, 0]
        _, reward, terminated, truncated, info = env.step(action)
        total += reward
        is_over = terminated or truncated
    assert total == -10.0


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(SEATS),
    st.integers(0, 1000),
    st.lists(
        st.tuples(st.integers(-(2**62), 2**62) | st.integers(-3, 12), st.integers(-(2**62), 2**62)),
        min_size=1,
        max_size=60,
    ),
)
def test_illegal_actions__are_flagged_and_do_no_harm(
    seat: str, seed: int, actions: list[tuple[int, int]]
) -> None:
    env = SchedulingEnv(seat, **options_of(seat), out_of_range="illegal")
    _, info = env.reset(seed=seed)
    is_over = False
    for action, node in actions:
        if is_over:
            _, info = env.reset()
        mask = info["action_mask"]
        asked = bool(env.question()["jobs"])
        _, _, terminated, truncated, info = env.step(
            [action, node] if seat == "pickplace" else action
        )
        is_over = terminated or truncated
        if seat != "pickplace" and asked:
            is_legal = 0 <= action < len(mask) and bool(mask[action])
            assert info.get("illegal", False) == (not is_legal)


def test_illegal_actions__are_the_no_op_or_the_first_allowed() -> None:
    """An agent with only illegal actions plays like one that never acts, or takes the first
    choice."""
    for seat, right in (("pick", 5), ("backfill", 5), ("preempt", 4), ("gate", 0), ("meta", 0)):
        logs = []
        for wrong in (False, True):
            env = SchedulingEnv(seat, **options_of(seat), out_of_range="illegal")
            _, info = env.reset(seed=3)
            is_over = False
            while not is_over:
                allowed = (
                    right
                    if info["action_mask"][right]
                    else first_allowed(info["action_mask"], seat)
                )
                _, _, terminated, truncated, info = env.step(-1 if wrong else allowed)
                is_over = terminated or truncated
            logs.append(env.log().sha256())
        assert logs[0] == logs[1], seat


def test_illegal_actions__a_job_on_a_node_that_it_may_not_go_to_starts_where_pick_puts_it() -> None:
    logs = []
    flagged = 0
    for seat in ("pick", "pickplace"):
        env = SchedulingEnv(seat, **options_of(seat), out_of_range="illegal")
        _, info = env.reset(seed=3)
        is_over = False
        while not is_over:
            row = int(np.argmax(info["action_mask"]))
            _, _, terminated, truncated, info = env.step((row, -1) if seat == "pickplace" else row)
            flagged += info.get("illegal", False)
            is_over = terminated or truncated
        logs.append(env.log().sha256())
    assert logs[0] == logs[1]
    assert flagged >= options_of("pick")["episode_jobs"]


@pytest.mark.parametrize("seat", SEATS)
def test_sample__takes_the_masks(seat: str) -> None:
    env = SchedulingEnv(seat, **options_of(seat))
    env.action_space.seed(1)
    observation, _ = env.reset(seed=3)
    assert isinstance(observation, dict)
    for _ in range(10):
        mask: Any = observation["action_mask"]
        if seat == "pickplace":
            mask = tuple(np.split(mask, [env.action_space.nvec[0]]))
        observation, _, terminated, truncated, info = env.step(env.action_space.sample(mask))
        assert seat == "pickplace" or "illegal" not in info
        if terminated or truncated:
            observation, _ = env.reset()


@pytest.mark.parametrize("seat", SEATS)
def test_truncation__is_not_termination(seat: str) -> None:
    rng = np.random.default_rng(0)
    env = SchedulingEnv(seat, **options_of(seat, load=4.0, max_steps=3))
    _, info = env.reset(seed=0)
    *_, terminated, truncated, info = to_the_end(env, info, rng)
    assert (terminated, truncated, info["sched"]["length"]) == (False, True, 3)
    assert info["action_mask"].any()
    assert env.log().horizon == env.question()["now"]

    for factor in (0.01, 0.0):
        env = SchedulingEnv(seat, **options_of(seat, horizon_factor=factor))
        _, info = env.reset(seed=0)
        *_, terminated, truncated, info = to_the_end(env, info, rng)
        assert (terminated, truncated) == (False, True)
        jobs = env.workload()
        work = float((jobs.run * jobs.gpus).sum())
        end = float(jobs.submit[-1]) + factor * work / env.plan.cluster.total_gpus
        assert env.question()["now"] == pytest.approx(end)
        assert info["sched"]["unfinished"] > 0

    env = SchedulingEnv(seat, **options_of(seat))
    _, info = env.reset(seed=0)
    *_, terminated, truncated, info = to_the_end(env, info, rng)
    assert (terminated, truncated, info["sched"]["unfinished"]) == (True, False, 0)


@pytest.mark.parametrize("num_envs", [1, 5, 40])
def test_set_load__is_for_episodes_that_have_not_begun(num_envs: int) -> None:
    """Whatever the batch has drawn ahead, an episode has the load at its beginning."""
    envs = SchedulingVectorEnv(num_envs, "pick", **options_of("pick", load=0.5))
    reference = {
        load: SchedulingEnv("pick", **options_of("pick", load=load)) for load in (0.5, 2.0)
    }
    _, infos = envs.reset(seed=9)
    rngs = [np.random.default_rng(i) for i in range(num_envs)]
    begun = [{envs.episode_key(i): 0.5} for i in range(num_envs)]
    for step in range(150):
        if step == 40:
            envs.set_load(2.0)
        masks = infos["action_mask"]
        actions = [random_action(r, m, "pick") for r, m in zip(rngs, masks, strict=True)]
        *_, infos = envs.step(np.array(actions))
        for i in range(min(num_envs, 5)):
            key = envs.episode_key(i)
            if key not in begun[i]:
                begun[i][key] = 0.5 if step < 40 else 2.0
            log = envs.log(i)
            source: Any = reference[begun[i][key]].plan.source
            expected = source.draw(np.array([key], np.int64))["submit"][0]
            submits = log.time[log.kind == 0]
            np.testing.assert_array_equal(submits, expected[: len(submits)])
    assert {load for one in begun for load in one.values()} == {0.5, 2.0}


@pytest.mark.parametrize("part", PARTS)
def test_split__without_episode_jobs_the_whole_part_is_the_episode(part: str) -> None:
    trace = bl.Workload.from_columns(submit=np.arange(100.0), run=10.0, gpus=1)
    options = {"workload": trace, "split": part, "episode_jobs": None, "knowledge": "exact"}
    with pytest.raises(ConfigError, match="smaller gaps"):
        SchedulingEnv("pick", **options)
    options["split_gap"] = 2
    env = SchedulingEnv("pick", **options)
    env.reset(seed=3)
    assert len(env.workload()) == split_by_time(trace, gap_seconds=2).counts()[part]


@pytest.mark.parametrize("num_envs", [1, 3, 8])
def test_set_load__leaves_the_workload_of_episodes_that_have_begun(num_envs: int) -> None:
    """Even if the load has changed since, several times."""
    envs = SchedulingVectorEnv(num_envs, "pick", **options_of("pick", load=(0.4, 0.6)))
    _, infos = envs.reset(seed=4)
    jobs: dict[tuple[int, int], Any] = {}
    kept = 0
    for step in range(150):
        if step % 7 == 6:
            envs.set_load(0.5 + step / 100, 1.0 + step / 100)
        for env in range(num_envs):
            found, log = envs.workload(env), envs.log(env)
            before = jobs.setdefault(envs.episode_key(env), found)
            np.testing.assert_array_equal(found.submit, before.submit)
            submits = log.time[log.kind == 0]
            np.testing.assert_array_equal(submits, found.submit[: len(submits)])
            kept += before is not found
        *_, infos = envs.step(np.argmax(infos["action_mask"], axis=1))
    assert kept > 100
    assert len(jobs) > 2 * num_envs


def test_set_load__leaves_the_workload_of_the_single_environment() -> None:
    env = SchedulingEnv("pick", **options_of("pick", load=0.5))
    env.reset(seed=1)
    before = env.workload()
    env.set_load(2.0)
    np.testing.assert_array_equal(env.workload().submit, before.submit)
    env.set_load(0.9)
    np.testing.assert_array_equal(env.workload().submit, before.submit)
    env.reset(seed=1)
    assert env.workload().submit[-1] < before.submit[-1]


def test_set_load__of_a_trace_is_refused() -> None:
    workload = bl.Workload.from_columns(submit=[0.0], run=10.0, gpus=[2])
    env = SchedulingEnv("pick", workload=workload, episode_jobs=None, knowledge="exact")
    with pytest.raises(ConfigError, match="load"):
        env.set_load(0.5)


@pytest.mark.parametrize("seat", SEATS)
def test_windows_without_estimates__have_an_hour_for_every_job(seat: str) -> None:
    jobs = bl.Workload.from_columns(
        submit=[0, 1, 2, 3], run=[50] * 4, gpus=[4, 8, 1, 1], estimate=[np.nan] * 3 + [60]
    )
    options = {"cluster": "uniform:1x8:V100", "episode_jobs": 3, "window": SMALL["window"]}
    env = SchedulingEnv(seat, workload=jobs, start="empty", **options)
    begun = set()
    for seed in range(8):
        _, info = env.reset(seed=seed)
        known = env.workload().estimate
        begun.add((int(np.isnan(known).sum()), *set(known[~np.isnan(known)].tolist())))
        to_the_end(env, info, np.random.default_rng(0))
    assert begun == {(0, 3600.0), (2, 60.0)}  # the first window has no estimates


def test_generators_without_estimates__are_refused_where_they_are_asked_for(tmp_path) -> None:
    jobs = bl.generate("synthetic", cluster=bl.Cluster.parse("uniform:1x4:V100"), jobs=300)
    stated = np.full(300, np.nan)
    path = tmp_path / "none.fit.json"
    fit(dataclasses.replace(jobs, estimate=stated)).save(path)
    options = {"workload": str(path), "cluster": "uniform:1x4:V100", "episode_jobs": 30}
    with pytest.raises(PolicyError, match="no job has an estimate"):
        SchedulingEnv("pick", **options)
    env = SchedulingEnv("pick", **options, knowledge="exact")
    to_the_end(env, env.reset(seed=0)[1], np.random.default_rng(0))


def test_generators_with_few_estimates__have_an_hour_in_episodes_without(tmp_path) -> None:
    jobs = bl.generate("synthetic", cluster=bl.Cluster.parse("uniform:1x4:V100"), jobs=300)
    stated = np.full(300, np.nan)
    stated[7] = 5e6
    path = tmp_path / "few.fit.json"
    fit(dataclasses.replace(jobs, estimate=stated)).save(path)
    options = {"workload": str(path), "cluster": "uniform:1x4:V100", "episode_jobs": 30}
    env = SchedulingEnv("backfill", **options, load=1.2)
    for seed in range(4):
        _, info = env.reset(seed=seed)
        assert np.nanmax(env.workload().estimate) in (3600.0, 5e6)
        to_the_end(env, info, np.random.default_rng(0))
