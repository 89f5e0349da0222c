"""Behaviour cloning: the network acts as its expert does, and is a warm start for others."""

import json

import numpy as np
import pytest
import torch

from berthline.errors import ConfigError
from berthline.evaluate.statistics.paired import paired_ratio
from berthline.learn.algorithms.bc import BC
from berthline.learn.algorithms.configs import BCConfig
from berthline.learn.networks.networks import NetworkConfig
from berthline.learn.training.environments import Environments
from berthline.learn.training.trainer import TrainConfig, Trainer
from berthline.learn.training.validation import EpisodeSet

OPTIONS = {
    "episode_jobs": 32,
    "load": 3.0,
    "window": 16,
    "running_window": 4,
    "cluster": "uniform:2x8:V100",
    "experts": ["sjf", "largest-first"],
}


def _bc(seed=0, num=32, **settings):
    torch.set_num_threads(1)
    envs = Environments("pick", num=num, seed=seed, options=OPTIONS)
    return BC(envs, NetworkConfig(hidden=(16, 16)), BCConfig(**settings), seed=seed)


def test_cloning_sjf_agrees_with_it_and_schedules_as_well():
    algorithm = _bc()
    logs = [algorithm.iterate(i / 14) for i in range(14)]
    assert logs[0]["charts/agreement"] < 0.9
    assert np.mean([log["charts/agreement"] for log in logs[-4:]]) >= 0.95
    val = EpisodeSet("pick", OPTIONS, part="val", episodes=24)
    clone = val.policy("bc", algorithm.policy)
    sjf = val.run("sjf", lambda envs: envs.expert_actions("sjf"))
    ratio = paired_ratio(clone.metrics["mean_jct"], sjf.metrics["mean_jct"])
    assert ratio.low is not None
    assert ratio.high is not None
    assert ratio.ratio == pytest.approx(1, abs=0.02)
    assert ratio.low <= 1.005
    assert ratio.high >= 0.995


def test_the_other_expert_is_another_policy():
    algorithm = _bc(expert="largest-first")
    for i in range(8):
        log = algorithm.iterate(i / 8)
    assert log["charts/agreement"] > 0.8
    other = _bc(num=16)
    states = torch.from_numpy(other.envs.observations.copy())
    masks = torch.from_numpy(other.envs.masks.copy())
    for _ in range(12):
        other.envs.step(other.choices(states, masks).mode().numpy())
        states = torch.from_numpy(other.envs.observations.copy())
        masks = torch.from_numpy(other.envs.masks.copy())
    rows = other.envs.masks.sum(axis=1) > 2
    wanted = other.envs.expert_actions("sjf")[rows]
    found = algorithm.choices(states, masks).mode().numpy()[rows]
    assert (found == wanted).mean() < 0.9


def test_nothing_is_learned_from_held_out_environments():
    algorithm = _bc(num=16)
    is_held_out = algorithm._held_out
    assert is_held_out.sum() == 2
    (observations, masks, answers), _ = algorithm._collect()
    assert len(observations) == len(masks) == len(answers) <= 14 * algorithm.config.rollout
    assert (masks.sum(dim=1) > 1).all()
    assert masks.gather(1, answers[:, None]).all()


def test_the_network_can_act_while_the_expert_corrects():
    algorithm = _bc(own_share=0.5, rollout=8)
    assert algorithm._acts_itself.sum() == 14
    assert not (algorithm._acts_itself & algorithm._held_out).any()
    assert algorithm.iterate(0.0)["losses/cross_entropy"] > 0


def test_loss_is_the_cross_entropy_over_allowed_actions():
    """Formula: -mean ln(exp(score of the answer) / sum of exp(scores of allowed actions))."""
    algorithm = _bc(epochs=1, minibatches=1)
    (observations, masks, answers), _ = algorithm._collect()
    with torch.no_grad():
        scores = algorithm.policy(observations)[0].squeeze(-1)
        chances = torch.where(masks, scores.exp(), torch.zeros(()))
        by_hand = -(chances.gather(1, answers[:, None])[:, 0] / chances.sum(dim=1)).log().mean()
    found = algorithm._learn(observations, masks, answers)["losses/cross_entropy"]
    assert found == pytest.approx(float(by_hand), rel=1e-5)


def test_wrong_experts_are_refused():
    with pytest.raises(ConfigError, match="'fcfs' is not among"):
        _bc(expert="fcfs")
    envs = Environments("pick", num=2, seed=0, options={**OPTIONS, "experts": []})
    with pytest.raises(ConfigError, match="no expert to learn from"):
        BC(envs, NetworkConfig(hidden=(8,)), BCConfig(), seed=0)
    with pytest.raises(ConfigError, match="one environment"):
        _bc(num=1)


def test_a_clone_is_a_warm_start_and_goes_on_when_stopped(tmp_path):
    config = TrainConfig(
        algorithm="bc",
        seat="pick",
        options=OPTIONS,
        settings={"rollout": 8, "epochs": 1},
        network=NetworkConfig(hidden=(8, 8)),
        num_envs=16,
        steps=512,
        validate_every=256,
        val_episodes=6,
        report_episodes=6,
    )
    for name in ("whole", "parts", "ppo"):
        (tmp_path / name).mkdir()
    whole = Trainer(config, tmp_path / "whole").run()
    stopped = Trainer(config, tmp_path / "parts")
    assert stopped.run(must_stop=lambda: stopped.algorithm.steps >= 256) is None
    assert Trainer(config, tmp_path / "parts", resume=True).run() == whole
    lines = (tmp_path / "whole/metrics.jsonl").read_text().splitlines()
    assert any("charts/agreement" in json.loads(line) for line in lines)
    # Another algorithm begins from it, without the option `experts`.
    ppo = TrainConfig(
        algorithm="ppo",
        seat="pick",
        options={k: v for k, v in OPTIONS.items() if k != "experts"},
        network=NetworkConfig(hidden=(8, 8)),
        num_envs=8,
        steps=8,
        val_episodes=4,
    )
    trainer = Trainer(ppo, tmp_path / "ppo", init_from=tmp_path / "whole")
    best = Trainer(config, tmp_path / "ppo", init_from=tmp_path / "whole").algorithm.policy
    for ours, theirs in zip(trainer.algorithm.policy.parameters(), best.parameters(), strict=True):
        assert torch.equal(ours, theirs)
