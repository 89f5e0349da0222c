"""SAC: its parts against direct formulas, and an interrupted run."""

import math

import numpy as np
import pytest
import torch

from berthline.learn.algorithms.configs import SACConfig
from berthline.learn.algorithms.sac import (
    SAC,
    log_allowed,
    policy_objective,
    soft_value,
    temperature_objective,
)
from berthline.learn.networks.masked_actions import MaskedCategorical
from berthline.learn.networks.networks import NetworkConfig
from berthline.learn.training import checkpoint
from berthline.learn.training.environments import Environments

OPTIONS = {"episode_jobs": 12, "load": 2.0, "window": 8, "running_window": 4, "max_steps": 25}
SMALL = {"rollout": 4, "reuse": 2.0, "batch": 32, "capacity": 400, "warmup": 100, "n_step": 3}


def _fresh(seed: int = 3) -> SAC:
    envs = Environments("pick", num=8, seed=5, options=OPTIONS)
    return SAC(envs, NetworkConfig(hidden=(8, 8)), SACConfig(**SMALL), seed=seed)


def _case() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(4)
    masks = torch.rand(6, 5) < 0.5
    masks[:, 2] = True
    masks[0] = torch.tensor([False, False, True, False, False])
    return torch.randn(6, 5), torch.randn(6, 5), masks


def test_gradient_of_the_policy_loss_is_that_of_the_formula():
    logits, values, masks = _case()
    moving = logits.clone().requires_grad_()
    temperature = torch.tensor(0.3)
    chances = MaskedCategorical(moving, masks)
    policy_objective(chances, values, temperature).backward()
    found = soft_value(chances, values, temperature).detach()
    expected = torch.zeros(6, 5)
    for i in range(6):
        allowed = masks[i].nonzero()[:, 0].tolist()
        weights = {a: math.exp(float(logits[i, a])) for a in allowed}
        p = {a: w / sum(weights.values()) for a, w in weights.items()}
        soft = {a: float(values[i, a]) - 0.3 * math.log(p[a]) for a in allowed}
        mean = sum(p[a] * soft[a] for a in allowed)
        assert found[i] == pytest.approx(mean, abs=1e-5)
        for a in allowed:
            expected[i, a] = -p[a] * (soft[a] - mean) / 6
    torch.testing.assert_close(moving.grad, expected)
    # With one allowed action the gradient is 0, not NaN.
    assert (expected[0] == 0).all()


def test_what_is_forbidden_may_have_any_value():
    logits, values, masks = _case()
    chances = MaskedCategorical(logits, masks)
    plain = soft_value(chances, values, torch.tensor(0.3))
    wild = values.masked_fill(~masks, torch.inf)
    assert torch.equal(soft_value(chances, wild, torch.tensor(0.3)), plain)


def test_the_temperature_goes_where_entropy_is_lacking():
    masks = torch.tensor([[True, True, True, False], [False, True, False, False]])
    allowed = 0.02 * log_allowed(masks)
    assert allowed.tolist() == pytest.approx([0.02 * math.log(3), 0.0])
    log_temperature = torch.tensor(-1.0, requires_grad=True)
    apart = torch.tensor([0.4, 0.0])
    temperature_objective(log_temperature, apart, allowed).backward()
    assert log_temperature.grad == pytest.approx((0.02 * math.log(3) - 0.4) / 2)
    assert log_temperature.grad < 0  # too far apart: a descent step raises the temperature


def test_entropy_is_counted_from_a_plain_choice():
    """Two jobs and a no-op, which is e^3 times less likely in the plain choice; then a no-op alone.

    A policy with probabilities p has an entropy of ln(3) - sum p log(p / plain), so the plain
    choice has the largest entropy.
    """
    algorithm = _fresh()
    masks = torch.zeros((2, 9), dtype=torch.bool)
    masks[0, [1, 4, 8]] = True
    masks[1, 8] = True
    plain = algorithm.plain(masks)
    one = 1 / (2 + math.exp(-3))
    expected = [0, one, 0, 0, one, 0, 0, 0, one * math.exp(-3)]
    assert plain.probs[0].tolist() == pytest.approx(expected, abs=1e-6)
    assert plain.probs[1].tolist() == [0.0] * 8 + [1.0]
    assert algorithm._allowed_apart(masks).tolist() == pytest.approx([0.15 * math.log(3), 0.0])


def test_critics_learn_what_the_definition_says():
    algorithm = _fresh()
    for i in range(16):
        algorithm.iterate(i / 16)
    batch = algorithm.experience.sample(128, algorithm.generator)
    goals = algorithm._goals(batch, torch.tensor(0.2))
    with torch.no_grad():
        q = [c(batch.following, batch.following_masks).means for c in algorithm.targets]
        scores = algorithm.actor(batch.following)[0][..., 0]
    assert (batch.discounts == 0).any()
    for i in range(128):
        allowed = batch.following_masks[i].nonzero()[:, 0]
        p = torch.softmax(scores[i, allowed], dim=0)
        lower = torch.minimum(q[0][i, allowed], q[1][i, allowed])
        plain = torch.tensor([math.exp(-3) if action == 8 else 1.0 for action in allowed])
        apart = (p * (p / (plain / plain.sum())).log()).sum()
        value = (p * lower).sum() - 0.2 * (apart - 0.15 * math.log(len(allowed)))
        assert goals[i] == pytest.approx(float(batch.returns[i] + batch.discounts[i] * value), 1e-4)


def test_an_interrupted_run_goes_on_with_the_same_bits(tmp_path):
    whole, first = _fresh(), _fresh()
    for i in range(20):
        log = whole.iterate(i / 20)
    assert np.isfinite(list(log.values())).all()
    for i in range(12):
        first.iterate(i / 20)
    path = checkpoint.save(tmp_path, "last", 1, first.tensors(), {"state": first.state()})
    again = _fresh(seed=99)
    again.restore(checkpoint.load(path))
    for i in range(12, 20):
        again.iterate(i / 20)
    assert whole.steps > SMALL["capacity"]
    for name, tensor in whole.tensors().items():
        assert torch.equal(tensor, again.tensors()[name]), name
    assert again.state() == whole.state()
