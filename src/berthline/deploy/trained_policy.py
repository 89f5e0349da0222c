"""Trained policies, as read from their files."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import msgspec
import numpy.typing as npt

from berthline.env.observation_layout import ObservationLayout
from berthline.errors import ConfigError, MissingExtraError, PolicyError
from berthline.policies.learned import ONNX, Learned, policy_files, read_facts


class Trained(msgspec.Struct, frozen=True):
    """A policy as read from its files.

    Attributes:
        file: the file with its weights.
        facts: the contents of its checkpoint's JSON file or of its manifest.
        tensors: of its network, by name; empty for an exported policy, which keeps them in `file`.
    """

    file: Path
    facts: dict[str, Any]
    tensors: dict[str, npt.NDArray[Any]]

    @property
    def layout(self) -> ObservationLayout:
        """The layout of the observations it was trained on."""
        return msgspec.convert(self.facts["layout"], ObservationLayout)

    @property
    def network(self) -> dict[str, Any]:
        """The shape of its network: kind, hidden, heads."""
        return dict(self.facts["config"]["network"])

    @property
    def takes_any_rows(self) -> bool:
        """Whether tables may have any number of rows."""
        return bool(self.network["kind"] != "mlp")


@functools.lru_cache(maxsize=8)
def read_policy(learned: Learned) -> Trained:
    """Read a policy; cached, because a comparison asks for the same one many times.

    Raises:
        ConfigError: it cannot be read.
        MissingExtraError: safetensors is not installed.
        PolicyError: it is a bandit, which has learned nothing before a run.
    """
    if learned.bandit is not None:
        raise PolicyError(
            "a bandit learns within the run: there is no trained policy",
            where=learned.name,
            expected="a training run, a checkpoint or an exported policy",
        )
    numbers, about = policy_files(learned.path)
    tensors: dict[str, npt.NDArray[Any]] = {}
    try:
        facts = read_facts(numbers, about)
    except OSError as error:
        raise ConfigError(f"not a policy: {error}", where=str(about)) from None
    if numbers.suffix == ONNX:
        return Trained(numbers, facts, tensors)
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError:
        raise MissingExtraError("safetensors", "deploy", "reading checkpoints") from None
    try:
        # The file also holds optimisers and replays, which are not read.
        with safe_open(numbers, framework="numpy") as file:
            for name in file.keys():  # noqa: SIM118 - not a mapping
                if name.startswith("policy."):
                    tensors[name.removeprefix("policy.")] = file.get_tensor(name)
    except (OSError, SafetensorError) as error:
        raise ConfigError(f"not a checkpoint: {error}", where=str(numbers)) from None
    return Trained(numbers, facts, tensors)
