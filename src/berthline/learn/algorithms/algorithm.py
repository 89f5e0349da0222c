"""Algorithm: what the trainer asks of PPO, D3QN, SAC and the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import torch

    from berthline.learn.networks.networks import Network
    from berthline.learn.training.checkpoint import Checkpoint


class Algorithm(Protocol):
    """Learns a policy from environments that step together.

    Everything that decides what comes next is in `tensors()` and `state()`: loaded into a fresh
    instance, training continues bit for bit.
    """

    steps: int
    """Environment steps so far."""

    @property
    def policy(self) -> Network:
        """The network whose best-scored allowed action is the policy's answer."""

    def iterate(self, progress: float) -> dict[str, float]:
        """Collect some steps, learn from them, and return what is to be logged.

        Args:
            progress: share of all steps that is done, for schedules.
        """

    def tensors(self) -> dict[str, torch.Tensor]:
        """Return the tensors to be saved: `policy.*`, optimisers, replay."""

    def state(self) -> dict[str, Any]:
        """Return the rest, as JSON: random numbers, where the environments are, averages."""

    def restore(self, checkpoint: Checkpoint) -> None:
        """Continue from a checkpoint."""
