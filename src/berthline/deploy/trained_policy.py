"""Trained policies: what their files say about them."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import msgspec
import numpy.typing as npt

from berthline.env.observation_layout import ObservationLayout
from berthline.errors import ConfigError, MissingExtraError
from berthline.policies.learned import ONNX, Learned, policy_files


class Trained(msgspec.Struct, frozen=True):
    """What is known of a policy.

    Attributes:
        file: the file with its numbers.
        facts: of its checkpoint or manifest.
        tensors: of its network, by name; empty for an exported policy, which keeps them in `file`.
    """

    file: Path
    facts: dict[str, Any]
    tensors: dict[str, npt.NDArray[Any]]

    @property
    def layout(self) -> ObservationLayout:
        """What it was trained on."""
        return msgspec.convert(self.facts["layout"], ObservationLayout)

    @property
    def network(self) -> dict[str, Any]:
        """The shape of its network: kind, hidden, heads."""
        return dict(self.facts["config"]["network"])

    @property
    def takes_any_rows(self) -> bool:
        """Whether it does not matter how many rows tables have."""
        return bool(self.network["kind"] != "mlp")


@functools.lru_cache(maxsize=8)
def read_policy(learned: Learned) -> Trained:
    """Return what is known of a policy; a comparison asks for the same one many times.

    Raises:
        ConfigError: it cannot be read.
        MissingExtraError: safetensors is not installed.
    """
    numbers, about = policy_files(learned.path)
    tensors: dict[str, npt.NDArray[Any]] = {}
    try:
        facts = json.loads(about.read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigError(f"not a policy: {error}", where=str(about)) from None
    if numbers.suffix == ONNX:
        return Trained(numbers, facts, tensors)
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError:
        raise MissingExtraError("safetensors", "deploy", "reading checkpoints") from None
    try:
        # Optimisers and replays are in there too, and are left where they are.
        with safe_open(numbers, framework="numpy") as file:
            for name in file.keys():  # noqa: SIM118 - not a mapping
                if name.startswith("policy."):
                    tensors[name.removeprefix("policy.")] = file.get_tensor(name)
    except (OSError, SafetensorError) as error:
        raise ConfigError(f"not a checkpoint: {error}", where=str(numbers)) from None
    return Trained(numbers, facts, tensors)
