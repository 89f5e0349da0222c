"""Algorithm: the interface of PPO, D3QN, SAC and the others, as the trainer uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import torch

    from berthline.learn.networks.networks import Network
    from berthline.learn.training.checkpoint import Checkpoint


class Algorithm(Protocol):
    """Learns a policy from environments that step together.

    `tensors()` and `state()` hold the complete state: loaded into a fresh instance, training
    continues bit for bit.
    """

    steps: int
    """Environment steps so far."""

    updates: int
    """Steps of the optimiser so far."""

    @property
    def policy(self) -> Network:
        """The network; the policy takes the allowed action that it scores highest."""

    def iterate(self, progress: float) -> dict[str, float]:
        """Collect some steps, learn from them, and return values to log.

        Args:
            progress: share of all steps done so far, for schedules.
        """

    def tensors(self) -> dict[str, torch.Tensor]:
        """Return the tensors to save: `policy.*`, optimisers, replay."""

    def state(self) -> dict[str, Any]:
        """Return the rest of the state as JSON: random generators, environments, averages."""

    def restore(self, checkpoint: Checkpoint) -> None:
        """Continue from a checkpoint."""
