"""Policies in torch: for networks that are not exported and that the native core cannot run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from berthline.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import numpy.typing as npt

    from berthline.env.observation_layout import ObservationLayout


class TorchPolicy:
    """A policy whose network runs in torch.

    Attributes:
        network: the network.

    Args:
        config: the fields of a NetworkConfig.
        tensors: of the network, by name.
        layout: of the observations.

    Raises:
        MissingExtraError: torch is not installed.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        tensors: Mapping[str, npt.NDArray[Any]],
        layout: ObservationLayout,
    ) -> None:
        try:
            import torch
        except ImportError:
            raise MissingExtraError(
                "torch", "train", f"a network {config['kind']!r} that is not exported"
            ) from None
        from berthline.learn.networks.networks import Network, NetworkConfig

        self.network = Network.load(
            layout,
            msgspec.convert(config, NetworkConfig),
            {name: torch.from_numpy(values) for name, values in tensors.items()},
        ).eval()

    def scores(self, observation: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the score of every action, for one flat observation."""
        import torch

        with torch.inference_mode():
            scores, _ = self.network(torch.from_numpy(observation).unsqueeze(0))
            found: npt.NDArray[np.float32] = scores[0, :, 0].numpy()
            return found

    def choose(self, observation: npt.NDArray[np.float32], mask: npt.NDArray[np.bool_]) -> int:
        """Return the allowed action with the highest score."""
        return best_by(self.network, observation, mask)


def best_by(network: Any, observation: npt.NDArray[np.float32], mask: npt.NDArray[np.bool_]) -> int:
    """Return the allowed action that a torch network scores highest."""
    import torch

    with torch.inference_mode():
        scores, _ = network(torch.from_numpy(observation).unsqueeze(0))
        return int(scores[0, :, 0].masked_fill(~torch.from_numpy(mask), -torch.inf).argmax())
