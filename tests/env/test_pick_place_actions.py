"""Pairs: PickPlace as one choice, with exactly the pairs that the environment allows."""

from __future__ import annotations

import numpy as np

from berthline.learn.training.environments import Environments
from berthline.model.schedule import START

OPTIONS = {"cluster": "uniform:3x4", "load": 2.0, "episode_jobs": 40, "window": 6}


def test_allowed_pairs_are_legal_and_mean_what_they_say() -> None:
    """Random allowed pairs: none is illegal, and jobs go where they were sent."""
    envs = Environments("pickplace", num=4, seed=1, options=OPTIONS)
    draws = np.random.default_rng(0)
    assert envs.layout.actions == envs.masks.shape[1] == 6 * 3 + 1
    started = 0
    for _ in range(150):
        noise = draws.random(envs.masks.shape)
        actions = np.where(envs.masks, noise, -1.0).argmax(axis=1)
        assert envs.masks[np.arange(4), actions].all()
        before = [envs._envs.question(env)["jobs"] for env in range(4)]
        _, terminated, truncated = envs.step(actions)
        assert not envs._envs.illegal.any()
        for env, action in enumerate(actions.tolist()):
            if action == 18 or terminated[env] or truncated[env]:
                continue
            log = envs._envs.log(env)
            row, node = divmod(action, 3)
            starts = np.flatnonzero((log.kind == START) & (log.job == before[env][row]))
            share = int(log.detail[starts[-1]])
            assert log.alloc_node[share] == node
            started += 1
    assert started > 100


def test_actions_come_back_from_rows_and_nodes() -> None:
    envs = Environments("pickplace", num=19, seed=1, options=OPTIONS)
    actions = np.arange(19)
    answers = envs._pairs.split(actions)
    assert answers[:3].tolist() == [[0, 0], [0, 1], [0, 2]]
    assert answers[-1, 0] == 6, "the no-op"
    assert envs._pairs.joined(answers).tolist() == actions.tolist()


def test_an_experts_answer_is_an_allowed_pair() -> None:
    envs = Environments(
        "pickplace", num=4, seed=1, options={**OPTIONS, "experts": ("sjf+skip@best-fit",)}
    )
    for _ in range(60):
        actions = envs.expert_actions("sjf+skip@best-fit")
        assert envs.masks[np.arange(4), actions].all()
        envs.step(actions)


def test_a_position_is_returned_to() -> None:
    envs = Environments("pickplace", num=3, seed=1, options=OPTIONS)
    for _ in range(25):
        envs.step(envs.masks.argmax(axis=1))
    position, masks, seen = envs.position(), envs.masks.copy(), envs.observations.copy()
    envs.step(envs.masks.argmax(axis=1))
    envs.restore(position)
    np.testing.assert_array_equal(envs.masks, masks)
    np.testing.assert_array_equal(envs.observations, seen)
