"""Distributions over allowed actions."""

import math

import pytest
import torch

from berthline.learn.networks.masked_actions import MaskedCategorical, masked_mean

LOGITS = torch.tensor([[1.0, 2.0, 3.0, 50.0], [0.0, 0.0, 0.0, 0.0]])
MASK = torch.tensor([[True, True, False, False], [True, True, True, True]])


def test_forbidden_actions_have_no_probability_at_all():
    probs = MaskedCategorical(LOGITS, MASK).probs
    assert probs[0, 2:].tolist() == [0.0, 0.0]
    assert probs[0, 1] / probs[0, 0] == pytest.approx(math.e, rel=1e-6)
    assert probs[1].tolist() == [0.25] * 4


def test_entropy_is_of_the_allowed_actions():
    entropy = MaskedCategorical(LOGITS, MASK).entropy()
    p = 1 / (1 + math.e)
    assert entropy[0] == pytest.approx(-p * math.log(p) - (1 - p) * math.log(1 - p), rel=1e-5)
    assert entropy[1] == pytest.approx(math.log(4))


def test_one_allowed_action_has_no_entropy_and_finite_gradients():
    logits = LOGITS.clone().requires_grad_()
    mask = torch.tensor([[False, False, True, False], [False, True, False, False]])
    chances = MaskedCategorical(logits, mask)
    (chances.entropy().sum() + chances.log_prob(torch.tensor([2, 1])).sum()).backward()
    assert chances.entropy().tolist() == [0.0, 0.0]
    assert logits.grad is not None
    assert logits.grad.isfinite().all()


def test_samples_follow_the_probabilities_and_never_the_forbidden():
    generator = torch.Generator().manual_seed(1)
    chances = MaskedCategorical(LOGITS[:1].expand(40_000, -1), MASK[:1].expand(40_000, -1))
    drawn = torch.bincount(chances.sample(generator), minlength=4) / 40_000
    assert drawn[2:].tolist() == [0.0, 0.0]
    assert drawn[1] == pytest.approx(math.e / (1 + math.e), abs=0.01)


def test_kl_is_that_of_the_definition():
    old, new = MaskedCategorical(LOGITS, MASK), MaskedCategorical(LOGITS * 0.5, MASK)
    p, q = old.probs[0, :2], new.probs[0, :2]
    assert new.kl_from(old)[0] == pytest.approx(float((p * (p / q).log()).sum()), rel=1e-5)
    assert new.kl_from(old)[1] == pytest.approx(0.0, abs=1e-7)


def test_mean_of_the_rows_that_are_there():
    rows = torch.tensor([[[1.0], [3.0], [100.0]], [[5.0], [6.0], [7.0]]])
    present = torch.tensor([[True, True, False], [False, False, False]])
    assert masked_mean(rows, present).tolist() == [[2.0], [0.0]]
