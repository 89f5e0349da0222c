"""PPO: its parts against direct formulas, and an interrupted run."""

import pytest
import torch

from berthline.learn.algorithms.configs import PPOConfig
from berthline.learn.algorithms.ppo import PPO, gae, policy_objective, scaled, value_objective
from berthline.learn.networks.networks import NetworkConfig
from berthline.learn.training import checkpoint
from berthline.learn.training.environments import Environments

OPTIONS = {"episode_jobs": 12, "load": 2.0, "window": 8, "running_window": 4}


def test_advantages_are_those_of_the_definition():
    torch.manual_seed(1)
    rewards, values, following = torch.randn(3, 7, 2).unbind()
    ended = (torch.rand(7, 2) < 0.3).float()
    found = gae(rewards, values, following, ended, 0.9, 0.8)
    for env in range(2):
        for t in range(7):
            expected, weight = 0.0, 1.0
            for k in range(t, 7):
                alive = 1 - float(ended[k, env])
                delta = rewards[k, env] + 0.9 * alive * following[k, env] - values[k, env]
                expected += weight * float(delta)
                weight *= 0.9 * 0.8 * alive
            assert found[t, env] == pytest.approx(expected, abs=1e-5)


def test_gradient_of_the_policy_loss_is_that_of_the_formula():
    torch.manual_seed(2)
    new = torch.randn(50).mul(0.3).requires_grad_()
    old, advantages = torch.zeros(50), torch.randn(50)
    loss, _ = policy_objective(new, old, scaled(advantages), 0.2)
    loss.backward()
    gains = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    ratio = new.detach().exp()
    # Where the clipped term is the minimum, it is constant.
    clipped = ((ratio > 1.2) & (gains > 0)) | ((ratio < 0.8) & (gains < 0))
    expected = torch.where(clipped, torch.zeros(50), -ratio * gains / 50)
    torch.testing.assert_close(new.grad, expected)


def test_the_value_loss_may_be_clipped():
    values, old, returns = torch.tensor([0.0, 3.0]), torch.zeros(2), torch.tensor([1.0, 1.0])
    assert value_objective(values, old, returns, None) == pytest.approx((1 + 4) / 4)
    # The second may move to 0.5, which is 0.5 away; the larger of 4 and 0.25 counts.
    assert value_objective(values, old, returns, 0.5) == pytest.approx((1 + 4) / 4)
    old = torch.tensor([0.0, 0.2])
    values = torch.tensor([0.0, 1.0])
    # Clipped to 0.7, it is 0.3 away instead of 0.
    assert value_objective(values, old, returns, 0.5) == pytest.approx((1 + 0.09) / 4)


def _fresh(seed: int = 3, **settings) -> PPO:
    envs = Environments("pick", num=8, seed=5, options=OPTIONS)
    config = PPOConfig(**{"rollout": 16, "epochs": 2, "minibatches": 2, **settings})
    return PPO(envs, NetworkConfig(hidden=(8, 8)), config, seed=seed)


def test_an_interrupted_run_goes_on_with_the_same_bits(tmp_path):
    whole = _fresh()
    for i in range(4):
        whole.iterate(i / 4)
    first = _fresh()
    for i in range(2):
        first.iterate(i / 4)
    path = checkpoint.save(tmp_path, "last", 1, first.tensors(), {"state": first.state()})
    again = _fresh(seed=99)
    again.restore(checkpoint.load(path))
    for i in range(2, 4):
        again.iterate(i / 4)
    assert again.steps == whole.steps
    for name, tensor in whole.tensors().items():
        assert torch.equal(tensor, again.tensors()[name]), name
    assert again.state() == whole.state()


def test_positions_are_returned_to():
    envs = Environments("pick", num=5, seed=5, options=OPTIONS)
    for _ in range(31):
        envs.step(envs.masks.argmax(axis=1))
    seen, masks, position = envs.observations.copy(), envs.masks.copy(), envs.position()
    assert len({entry["episode"] for entry in position} | {0}) > 1
    other = Environments("pick", num=5, seed=77, options=OPTIONS)
    other.restore(position)
    assert (other.observations == seen).all()
    assert (other.masks == masks).all()
    for _ in range(20):
        action = envs.masks.argmax(axis=1)
        assert (envs.step(action)[0] == other.step(action)[0]).all()
        assert (envs.observations == other.observations).all()


def test_values_begin_at_what_the_first_rewards_add_up_to():
    """A reward of -2 in every step, discounted by 0.9 per step: -2 / (1 - 0.9) = -20."""
    ppo, rewards = _fresh(), torch.full((5, 4), -2.0)
    ppo._begin_values(rewards, torch.full((5, 4), 0.9))
    assert ppo.returns.mean == pytest.approx(-20.0, rel=1e-5)
    # Without discount, the sum over the rollout is used instead.
    ppo._begin_values(rewards, torch.ones(5, 4))
    assert ppo.returns.mean == pytest.approx(rewards.sum() / ppo.envs.num)


@pytest.mark.parametrize("parts", [3, 1000])
def test_gradients_of_parts_of_a_minibatch_add_up(parts):
    whole, split = _fresh(), _fresh(accumulate=parts)
    # A rate of 0 and one minibatch: every gradient is of the same weights and steps.
    logs = [ppo.iterate(1.0) for ppo in (whole, split)]
    for name, value in logs[0].items():
        assert logs[1][name] == pytest.approx(value, rel=1e-4, abs=1e-6), name
    plain, added = (
        [p.grad for p in ppo.optimizer.param_groups[0]["params"]] for ppo in (whole, split)
    )
    assert any(gradient.abs().max() > 0 for gradient in plain)
    for one, other in zip(plain, added, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-6)


def test_the_learning_rate_rises_over_the_steps_of_its_warm_up():
    settings = {"learning_rate": 0.01, "learning_rate_schedule": "constant"}
    ppo = _fresh(**settings, learning_rate_warmup=512)
    rates = [ppo.iterate(step / 10)["learning_rate"] for step in range(6)]
    # An iteration has 128 steps.
    assert rates == pytest.approx([0.0025, 0.005, 0.0075, 0.01, 0.01, 0.01])
