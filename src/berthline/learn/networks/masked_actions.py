"""Choices among the allowed actions: all others have probability exactly 0."""

from __future__ import annotations

import torch
from torch import Tensor

_FORBIDDEN = -1e9
"""A logit whose exponential is exactly 0 in float32 and whose gradient is finite."""


class MaskedCategorical:
    """A distribution over actions.

    Args:
        logits: (..., actions).
        mask: of the same shape, True = allowed; at least one in each.
    """

    def __init__(self, logits: Tensor, mask: Tensor) -> None:
        self.mask = mask
        self.log_probs = torch.log_softmax(logits.masked_fill(~mask, _FORBIDDEN), dim=-1)

    @property
    def probs(self) -> Tensor:
        """Probabilities; those of forbidden actions are 0."""
        # Not exp(log_probs): exp takes ten times as long where it underflows.
        return torch.softmax(self.log_probs, dim=-1)

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """Draw an action: the first whose cumulative probability exceeds a random number."""
        sums = self.probs.cumsum(dim=-1)
        total = sums[..., -1:]
        drawn = torch.rand(total.shape, generator=generator) * total
        # Rounding may give the total, which no cumulative sum exceeds.
        drawn = torch.minimum(drawn, torch.nextafter(total, torch.zeros_like(total)))
        return (sums > drawn).to(torch.uint8).argmax(dim=-1)

    def mode(self) -> Tensor:
        """Return the most probable action."""
        return self.log_probs.masked_fill(~self.mask, -torch.inf).argmax(dim=-1)

    def log_prob(self, actions: Tensor) -> Tensor:
        """Return log-probabilities of actions."""
        return self.log_probs.gather(-1, actions.unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Tensor:
        """Return -sum p log p over the allowed actions, in nats."""
        terms = self.probs * self.log_probs.masked_fill(~self.mask, 0.0)
        return -terms.sum(dim=-1)

    def kl_from(self, old: MaskedCategorical) -> Tensor:
        """Return KL(old || self) over the allowed actions, in nats."""
        gap = (old.log_probs - self.log_probs).masked_fill(~self.mask, 0.0)
        return (old.probs * gap).sum(dim=-1)


def masked_mean(rows: Tensor, present: Tensor) -> Tensor:
    """Return the mean over the present rows: (..., rows, width) to (..., width).

    Without any, it is 0.
    """
    weights = present.to(rows.dtype).unsqueeze(-1)
    return (rows * weights).sum(dim=-2) / weights.sum(dim=-2).clamp_min(1.0)
