"""Public names for algorithms and networks of one's own. They need the extra `train`.

`berthline.register_algorithm` and `berthline.register_network` say what a class must have.
"""

from __future__ import annotations

from berthline.env.observation_layout import ObservationLayout
from berthline.errors import MissingExtraError

try:
    from berthline.learn.algorithms.algorithm import Algorithm
    from berthline.learn.networks.masked_actions import MaskedCategorical
    from berthline.learn.networks.networks import Network, NetworkConfig
    from berthline.learn.training.checkpoint import (
        Checkpoint,
        generator_state,
        optimizer_tensors,
        restore_generator,
        restore_optimizer,
    )
    from berthline.learn.training.environments import Environments
    from berthline.learn.training.events import TrainingEvent
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise MissingExtraError("torch", "train", "berthline.training") from None

__all__ = [
    "Algorithm",
    "Checkpoint",
    "Environments",
    "MaskedCategorical",
    "Network",
    "NetworkConfig",
    "ObservationLayout",
    "TrainingEvent",
    "generator_state",
    "optimizer_tensors",
    "restore_generator",
    "restore_optimizer",
]
