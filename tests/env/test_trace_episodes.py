"""Episodes of traces: inside the running cluster, at the load that was asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import berthline as bl
from berthline.env.single import SchedulingEnv
from berthline.env.sources.make_source import BUSIEST
from berthline.env.sources.starts import StartedEpisodes
from berthline.env.vector import SchedulingVectorEnv
from berthline.errors import ConfigError
from berthline.sim.snapshots.take import take_jobs
from berthline.traces.offered_load import offered_load

CLUSTER = bl.Cluster.parse("uniform:4x8:V100")
TRACE = bl.generate("poisson", cluster=CLUSTER, jobs=1500, load=0.3, seed=5)
PLAIN: dict[str, Any] = {"workload": TRACE, "cluster": CLUSTER, "episode_jobs": 100}


def to_come(env: SchedulingEnv) -> bl.Workload:
    """Return the jobs of an episode that were not known when it began."""
    jobs, start = env.workload(), env.start()
    known = 0 if start is None else start.num_jobs
    return take_jobs(jobs, np.arange(known, len(jobs)))


@pytest.mark.parametrize("start", ["empty", "warm", None])
def test_load__is_that_of_every_episode(start: str | None) -> None:
    env = SchedulingEnv("pick", **PLAIN, start=start, load=1.2)
    for seed in range(5):
        env.reset(seed=seed)
        assert offered_load(to_come(env), CLUSTER) == pytest.approx(1.2, rel=1e-9)


def test_range_of_loads__is_drawn_by_every_episode() -> None:
    env = SchedulingEnv("pick", **PLAIN, load=(0.5, 1.5))
    found = []
    for seed in range(40):
        env.reset(seed=seed)
        found.append(offered_load(to_come(env), CLUSTER))
    assert min(found) >= 0.5 - 1e-9
    assert max(found) <= 1.5 + 1e-9
    assert max(found) - min(found) > 0.7


def test_set_load__changes_the_next_episodes_of_a_trace() -> None:
    envs = SchedulingVectorEnv(3, "gate", **PLAIN, load=0.5)
    envs.reset(seed=1)
    envs.set_load(1.4)
    known = envs.start(0)
    assert known is not None
    jobs = envs.workload(0)
    now = take_jobs(jobs, np.arange(known.num_jobs, len(jobs)))
    assert offered_load(now, CLUSTER) == pytest.approx(0.5, rel=1e-9)  # has begun
    envs.reset()
    for env in range(3):
        start, jobs = envs.start(env), envs.workload(env)
        assert start is not None
        later = take_jobs(jobs, np.arange(start.num_jobs, len(jobs)))
        assert offered_load(later, CLUSTER) == pytest.approx(1.4, rel=1e-9)


def test_deadlines_and_order__keep_their_distance() -> None:
    env = SchedulingEnv("pick", **PLAIN, start="empty", load=2.0)
    plain = SchedulingEnv("pick", **PLAIN, start="empty")
    env.reset(seed=3)
    plain.reset(seed=3)
    ours, theirs = env.workload(), plain.workload()
    np.testing.assert_allclose(ours.deadline - ours.submit, theirs.deadline - theirs.submit)
    np.testing.assert_array_equal(ours.run, theirs.run)
    ratio = ours.submit[1:] / theirs.submit[1:]
    assert np.ptp(ratio) < 1e-9


def test_windows__begin_inside_the_running_cluster() -> None:
    env = SchedulingEnv("pick", **PLAIN)
    env.reset(seed=1)
    start = env.start()
    assert start is not None
    jobs = to_come(env)
    assert start.now < jobs.submit[0]
    # What is known was submitted before, as in the trace.
    known = set(TRACE.submit.tolist())
    assert set(start.workload.submit.tolist()) <= known


def test_states__never_are_from_the_future_of_their_part() -> None:
    env = SchedulingEnv("pick", **PLAIN, split="train", split_gap=300.0)
    assert isinstance(env.plan.source, StartedEpisodes)
    last = TRACE.submit[len(TRACE) // 2]
    for seed in range(20):
        env.reset(seed=seed)
        start = env.start()
        assert start is not None
        assert start.now <= last
        assert start.workload.submit.max() <= start.now
        assert to_come(env).submit.max() <= last


@pytest.mark.parametrize(
    "options",
    [
        {"episode_jobs": None},
        {"episode_jobs": len(TRACE)},
        {"start": "empty"},
        {"workload": "poisson"},
    ],
)
def test_without_a_past__the_cluster_is_empty(options: dict[str, Any]) -> None:
    env = SchedulingEnv("pick", **{**PLAIN, **options})
    env.reset(seed=1)
    assert env.start() is None


def test_jobs_wait__where_they_never_do_as_recorded() -> None:
    """A trace that leaves most of its cluster idle, and episodes that cannot fill it."""
    cluster = bl.Cluster.parse("uniform:16x8:V100")
    plain = {**PLAIN, "cluster": cluster, "reward": "mean-wait-hours", "episode_jobs": 150}
    assert share_with_waits(plain, "empty", None) == 0
    assert share_with_waits(plain, "empty", 1.0) < 0.2
    assert share_with_waits(plain, "warm", 1.0) > 0.6


def share_with_waits(options: dict[str, Any], start: str, load: float | None) -> float:
    """Return the share of episodes in which the first allowed action makes jobs wait."""
    envs = SchedulingVectorEnv(24, "pick", **options, start=start, load=load)
    _, infos = envs.reset(seed=1)
    left, waits = np.ones(24, np.bool_), np.zeros(24)
    while left.any():
        _, reward, terminated, truncated, infos = envs.step(infos["action_mask"].argmax(axis=1))
        waits[left] -= reward[left]
        left &= ~(terminated | truncated)
    return float((waits > 1e-4).mean())


def test_range_for_the_whole_trace__is_refused() -> None:
    with pytest.raises(ConfigError, match="there is only one episode"):
        SchedulingEnv("pick", **{**PLAIN, "episode_jobs": None}, load=(0.5, 1.0))
    env = SchedulingEnv("pick", **{**PLAIN, "episode_jobs": None}, load=0.9)
    env.reset(seed=1)
    assert offered_load(env.workload(), CLUSTER) == pytest.approx(0.9)


def test_the_run_before_an_episode__is_never_overloaded() -> None:
    env = SchedulingEnv("pick", **PLAIN, load=3.0)
    env.reset(seed=1)
    start = env.start()
    assert start is not None
    factor = offered_load(TRACE, CLUSTER) / BUSIEST
    first = TRACE.submit[0]
    scaled = first + (TRACE.submit - first) * factor
    assert np.isin(start.workload.submit, scaled).all()
