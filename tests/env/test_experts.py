"""Experts: an agent that does what a scheduler would do gives that scheduler's schedule."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from tests.env.agents import plain

import berthline as bl
from berthline.env.episode_supply import episode_seed
from berthline.env.experts import expert_actions
from berthline.errors import ConfigError, PolicyError

SEED = 3


def follow(env, expert):
    """Follow the expert for one episode; return the number of steps."""
    env.reset(seed=SEED)
    for steps in range(1, 10_000):
        *_, terminated, truncated, info = env.step(expert_actions(env, expert))
        assert "illegal" not in info
        if terminated or truncated:
            return steps
    raise AssertionError("the episode does not end")


@pytest.mark.parametrize("load", [0.9, 2.0])
@pytest.mark.parametrize(
    ("name", "expert", "scheduler", "options"),
    [
        ("Pick", "sjf", "sjf+skip@best-fit", {}),
        ("Pick", "sjf+easy", "sjf+easy@best-fit", {}),
        ("Pick", "sjf+strict", "sjf+strict@best-fit", {}),
        ("Pick", "[-wait / estimate]", "[-wait / estimate]+skip@best-fit", {}),
        ("Pick", "[random]", "[random]+skip@best-fit", {}),
        ("Pick", "sjf+skip?express-lane", "sjf+skip@best-fit?express-lane", {}),
        ("Pick", "fcfs", "fcfs+strict@best-fit", {"semantics": "wait"}),
        ("PickPlace", "sjf+easy@first-fit", "sjf+easy@first-fit", {}),
        ("PickPlace", "sjf@worst-fit", "sjf+skip@worst-fit", {}),
        ("Place", "fcfs@first-fit", "fcfs+easy@first-fit", {}),
        ("Place", "fcfs@worst-fit", "fcfs+easy@worst-fit", {}),
        ("Place", "fcfs@[-node_free_gpus]", "fcfs+easy@[-node_free_gpus]", {}),
        (
            "Place",
            "fcfs@worst-fit",
            "fcfs+easy@worst-fit",
            {"placements": ["best-fit", "worst-fit"]},
        ),
        ("Meta", "sjf+easy", "sjf+easy", {}),
        (
            "Meta",
            "sjf+easy@[-node_free_gpus]",
            "sjf+easy@[-node_free_gpus]",
            {"schedulers": ["fcfs", "sjf+easy@[-node_free_gpus]"]},
        ),
        ("Backfill", "fcfs", "fcfs+easy@best-fit", {}),
        (
            "Gate",
            "fcfs?express-lane",
            "fcfs+skip@best-fit?express-lane",
            {"discipline": "skip", "max_holds": 10**6},
        ),
    ],
)
def test_an_expert_gives_its_schedulers_log(name, expert, scheduler, options, load):
    env = gym.make(
        f"berthline/{name}-v0",
        experts=[expert],
        **{**plain(name.lower()), "episode_jobs": 96, "window": 96, "load": load, **options},
    ).unwrapped
    follow(env, expert)
    result = bl.simulate(
        env.workload(),
        env.plan.cluster,
        scheduler,
        knowledge="estimate",
        seed=episode_seed(SEED, 0),
    )
    for column in ("time", "kind", "job", "detail", "alloc_node", "alloc_gpus", "alloc_slot"):
        np.testing.assert_array_equal(getattr(env.log(), column), getattr(result.log, column))


@pytest.mark.parametrize("name", ["Pick", "PickPlace", "Place", "Backfill", "Gate"])
def test_asking_changes_nothing(name):
    """Steps are the same with and without calls to experts whose answers are not used."""
    logs = []
    for experts in ([], ["sjf+easy@worst-fit?express-lane"]):
        env = gym.make(
            f"berthline/{name}-v0", experts=experts, episode_jobs=64, window=16, load=2.0
        ).unwrapped
        env.reset(seed=SEED)
        rng = np.random.default_rng(1)
        over = False
        while not over:
            for expert in experts:
                expert_actions(env, expert)
            mask = env.action_masks()
            if name == "PickPlace":
                action = [int(rng.choice(np.flatnonzero(mask[:17]))), 0]
                if action[0] < 16:
                    action[1] = int(np.flatnonzero(env._envs.pair_mask[0, action[0]])[0])
            else:
                action = int(rng.choice(np.flatnonzero(mask)))
            observation, _, terminated, truncated, _ = env.step(action)
            over = terminated or truncated
        logs.append((env.log().sha256(), observation["jobs"].tobytes()))
    assert logs[0] == logs[1]


def test_a_batch_is_asked_at_once():
    options = {**plain("pick"), "episode_jobs": 32, "load": 2.0, "experts": ["sjf"]}
    envs = gym.make_vec("berthline/Pick-v0", num_envs=5, **options)
    single = gym.make("berthline/Pick-v0", **options).unwrapped
    envs.reset(seed=10)
    single.reset(seed=12)
    for _ in range(20):
        actions = expert_actions(envs, "sjf")
        assert envs.action_masks()[np.arange(5), actions].all()
        assert actions[2] == expert_actions(single, "sjf")
        envs.step(actions)
        single.step(actions[2])


def test_a_window_without_the_wanted_job_gives_another():
    """The shortest job may be beyond the window; then the expert takes the shortest job shown."""
    env = gym.make(
        "berthline/Pick-v0",
        **{**plain("pick"), "episode_jobs": 64, "window": 2, "load": 4.0, "experts": ["sjf"]},
    ).unwrapped
    assert follow(env, "sjf") >= 64
    assert env.log().decisions > 0


@pytest.mark.parametrize(
    ("name", "expert", "message"),
    [
        ("Preempt", "fcfs", "no experts for Preempt"),
        ("Pick", "fcfs+rounds", "without rounds"),
        ("Pick", "fcfs+skip!las", "without rounds and preemption"),
        ("Place", "fcfs@scatter", "'scatter'"),
        ("Meta", "fcfs+skip", "not among the choices"),
        ("Pick", "nonsense", "nonsense"),
    ],
)
def test_who_cannot_be_asked(name, expert, message):
    with pytest.raises(PolicyError, match=message):
        gym.make(f"berthline/{name}-v0", experts=[expert])


def test_experts_know_no_more_than_the_environment():
    with pytest.raises(PolicyError, match="knowledge is 'none'"):
        gym.make("berthline/Pick-v0", experts=["sjf"], knowledge="none", discipline="skip")


def test_experts_are_named_beforehand():
    env = gym.make("berthline/Pick-v0", experts=["fcfs"])
    env.reset(seed=1)
    with pytest.raises(ConfigError, match=r"(?s)'sjf' is not among.*experts=\['sjf'\]"):
        expert_actions(env, "sjf")
