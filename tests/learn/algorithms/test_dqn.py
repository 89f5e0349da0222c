"""D3QN: its parts against direct formulas, and an interrupted run."""

import numpy as np
import pytest
import torch

from berthline.learn.algorithms.configs import DQNConfig
from berthline.learn.algorithms.dqn import (
    DQN,
    QNetwork,
    dueling,
    huber,
    masked_argmax,
    project,
    taken,
)
from berthline.learn.algorithms.off_policy import follow
from berthline.learn.networks.networks import Network, NetworkConfig
from berthline.learn.training import checkpoint
from berthline.learn.training.environments import Environments

OPTIONS = {"episode_jobs": 12, "load": 2.0, "window": 8, "running_window": 4}
SMALL = {"rollout": 4, "reuse": 2.0, "batch": 32, "capacity": 400, "warmup": 100, "n_step": 3}
NETWORK = NetworkConfig(hidden=(8, 8))


def _fresh(seed: int = 3, **settings) -> DQN:
    envs = Environments("pick", num=8, seed=5, options={**OPTIONS, "max_steps": 25})
    return DQN(envs, NETWORK, DQNConfig(**{**SMALL, **settings}), seed=seed)


def test_only_allowed_actions_count():
    value, advantages = torch.tensor([[2.0]]), torch.tensor([[1.0, 3.0, 100.0]])
    masks = torch.tensor([[True, True, False]])
    q = dueling(value, advantages, masks)
    assert q[0, :2].tolist() == [1.0, 3.0]  # 2 + 1 - (1 + 3) / 2, 2 + 3 - 2
    assert masked_argmax(q, masks).tolist() == [1]


@pytest.mark.parametrize("gap", [0.0, 0.9])
def test_gradient_of_the_loss_is_that_of_the_formula(gap):
    algorithm = _fresh(gap=gap)
    for _ in range(5):
        algorithm.iterate(0.5)
    batch = algorithm.experience.sample(32, algorithm.generator, importance=0.7)
    targets = []
    with torch.no_grad():
        own = algorithm.q(batch.following, batch.following_masks).means
        theirs = algorithm.target(batch.following, batch.following_masks).means
        before = algorithm.target(batch.observations, batch.masks).means
        for i in range(32):
            behind = before[i, batch.masks[i]].max() - before[i, batch.actions[i]]
            allowed = batch.following_masks[i].nonzero()[:, 0].tolist()
            best = max(allowed, key=lambda action: float(own[i, action]))
            seen = batch.returns[i] - gap * behind
            targets.append(seen + batch.discounts[i] * theirs[i, best])
    assert torch.equal(algorithm._targets(batch), torch.stack(targets))
    means = algorithm.q(batch.observations, batch.masks).means
    means.retain_grad()
    errors = taken(means, batch.actions) - torch.stack(targets)
    (batch.weights * huber(errors)).mean().backward()
    expected = torch.zeros_like(means)
    for i in range(32):
        expected[i, batch.actions[i]] = batch.weights[i] * errors[i].detach().clamp(-1, 1) / 32
    torch.testing.assert_close(means.grad, expected)


def test_illegal_actions_have_no_gradient():
    """The mean of advantages is over allowed actions, so the others have no gradient."""
    advantages = torch.randn(4, 5, requires_grad=True)
    masks = torch.rand(4, 5) < 0.5
    masks[:, 0] = True
    taken(
        dueling(torch.zeros(4, 1), advantages, masks), torch.zeros(4, dtype=torch.int64)
    ).sum().backward()
    assert advantages.grad is not None
    assert (advantages.grad[~masks] == 0).all()
    share = 1 / masks.sum(dim=-1)
    torch.testing.assert_close(advantages.grad[:, 0], 1 - share)


def test_chances_are_projected_as_by_hand():
    torch.manual_seed(0)
    support = torch.linspace(-2, 3, 11)
    chances = torch.softmax(torch.randn(6, 11), dim=-1)
    returns, discounts = torch.randn(6) * 2, torch.tensor([0.9, 0.5, 0.0, 1.0, 0.9, 0.9])
    found = project(chances, support, returns, discounts)
    expected = torch.zeros(6, 11)
    for i in range(6):
        for j in range(11):
            value = min(max(float(returns[i] + discounts[i] * support[j]), -2.0), 3.0)
            for k in range(11):
                near = max(0.0, 1 - abs(value - float(support[k])) / 0.5)
                expected[i, k] += chances[i, j] * near
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(found.sum(dim=-1), torch.ones(6))


def test_scores_of_the_policy_have_the_same_best_action():
    for settings in ({}, {"dueling": False}, {"distributional": True}, {"noisy": True}):
        algorithm = _fresh(**settings)
        for i in range(8):
            algorithm.iterate(i / 8)
        envs = algorithm.experience.envs
        seen, masks = torch.from_numpy(envs.observations), torch.from_numpy(envs.masks)
        with torch.no_grad():
            means = algorithm.q(seen, masks).means
            tensors = algorithm.q.policy.state_dict()
            scores, _ = Network.load(envs.layout, NETWORK, tensors)(seen)
            averaged, _ = algorithm.policy(seen)
        assert averaged.shape == scores.shape == (8, 9, 1)
        assert not torch.equal(averaged, scores)
        assert torch.equal(masked_argmax(means, masks), masked_argmax(scores[..., 0], masks))


def test_forbidden_actions_are_never_chosen():
    algorithm = _fresh()
    envs = algorithm.experience.envs
    for epsilon in (0.0, 0.5, 1.0):
        for _ in range(20):
            masks = torch.from_numpy(envs.masks)
            actions = algorithm.choose(torch.from_numpy(envs.observations), masks, epsilon)
            assert taken(masks, actions).all()
            envs.step(actions.numpy())


def test_noise_is_that_of_the_definition_and_is_learned():
    algorithm = _fresh(noisy=True)
    assert algorithm.noise is not None
    before = [size.clone() for size in algorithm.noise.sizes]
    state = algorithm.generator.get_state()
    added = algorithm.noise.draw(algorithm.generator)
    algorithm.generator.set_state(state)
    drawn = torch.randn(8 + 16, generator=algorithm.generator)  # the first layer of the head
    scaled = drawn.sign() * drawn.abs().sqrt()
    expected = 0.5 / 16**0.5 * scaled[:8, None] * scaled[None, 8:]
    torch.testing.assert_close(added["policy.head.0.weight"], expected)
    for i in range(6):
        algorithm.iterate(i / 6)
    assert any(not torch.equal(a, b) for a, b in zip(before, algorithm.noise.sizes, strict=True))


def test_targets_follow_softly_or_wholly():
    layout = Environments("pick", num=1, seed=1, options=OPTIONS).layout
    first, second = (QNetwork(Network(layout, NETWORK, gain=1.0), dueling=True) for _ in range(2))
    before = [p.clone() for p in first.parameters()]
    follow(first, second, 0.25)
    for old, new, goal in zip(before, first.parameters(), second.parameters(), strict=True):
        torch.testing.assert_close(new, 0.75 * old + 0.25 * goal)
    algorithm = _fresh(target_every=4)
    for i in range(8):
        algorithm.iterate(i / 8)
        same = all(
            torch.equal(a, b)
            for a, b in zip(algorithm.q.parameters(), algorithm.target.parameters(), strict=True)
        )
        assert same == (algorithm.updates % 4 == 0)


@pytest.mark.parametrize("more", [{}, {"noisy": True, "distributional": True}])
def test_an_interrupted_run_goes_on_with_the_same_bits(tmp_path, more):
    whole, first = _fresh(**more), _fresh(**more)
    for i in range(20):
        whole.iterate(i / 20)
    for i in range(12):
        first.iterate(i / 20)
    path = checkpoint.save(tmp_path, "last", 1, first.tensors(), {"state": first.state()})
    again = _fresh(seed=99, **more)
    again.restore(checkpoint.load(path))
    for i in range(12, 20):
        again.iterate(i / 20)
    # The ring buffer has wrapped, so its old contents have been overwritten.
    assert whole.steps > SMALL["capacity"]
    for name, tensor in whole.tensors().items():
        assert torch.equal(tensor, again.tensors()[name]), name
    assert again.state() == whole.state()
    assert np.isfinite(list(again.iterate(1.0).values())).all()
