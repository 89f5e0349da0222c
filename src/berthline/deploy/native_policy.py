"""Policies in the native core: networks `mlp` and `kernel`, built from a checkpoint's tensors.

Layers and their order are those of learn/networks/networks.py. Sums are added in another order
than in torch, so scores differ in the last digits, by less than TOLERANCE * largest score.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from berthline import _native

if TYPE_CHECKING:
    from collections.abc import Mapping

    from berthline.env.observation_layout import ObservationLayout

NETWORKS = ("mlp", "kernel")
TOLERANCE = 1e-5
_PARTS = ("body.", "head.", "no_op.", "regimes.")
_Tensors = dict[str, npt.NDArray[Any]]


class NativePolicy:
    """A policy whose network runs in the native core, in microseconds.

    Args:
        kind: of the network, one of NETWORKS.
        tensors: of the network, by name.
        layout: of the observations; with `kernel` the number of rows may differ from training.
    """

    def __init__(
        self, kind: str, tensors: Mapping[str, npt.NDArray[Any]], layout: ObservationLayout
    ) -> None:
        self.network = _native.Network(_network_parts(kind, dict(tensors), layout))
        self._actions = layout.actions
        self.choose = self.network.choose
        """Return the allowed action with the highest score."""

    def scores(self, observation: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the score of every action, for one flat observation."""
        found = np.zeros(self._actions, np.float32)
        self.network.score(observation, found)
        return found


def is_plain(kind: str, tensors: Mapping[str, Any]) -> bool:
    """Whether the native core has all parts of a network."""
    return kind in NETWORKS and all(name.startswith(_PARTS) for name in tensors)


def _network_parts(kind: str, tensors: _Tensors, layout: ObservationLayout) -> dict[str, Any]:
    parts: dict[str, Any] = {
        "size": layout.size,
        "actions": layout.actions,
        "tables": [],
        "main": -1,
        "at_hand": -1,
        "body": _layers(tensors, "body.layers" if kind == "mlp" else "body.summary"),
        "head": _layers(tensors, "head"),
        "no_op": _layers(tensors, "no_op"),
        "regimes": _regimes(tensors, layout),
    }
    if kind == "mlp":
        return parts
    shapes = {name: shape for name, shape in layout.shapes.items() if 0 not in shape}
    names = list(shapes)
    if layout.row_table:
        parts["main"] = names.index(layout.row_table)
    if layout.has_job_at_hand and "jobs" in shapes:
        parts["at_hand"] = names.index("jobs")
    places = layout.slices()
    parts["tables"] = [
        {
            "begin": places[name].start,
            "rows": 1 if name == "globals" else shape[0],
            "columns": 1 if name == "lookahead" else math.prod(shape[-1:]),
            "is_sequence": name == "lookahead",
            "is_single": name == "globals",
            "encoder": _layers(tensors, f"body.encoders.{name}"),
        }
        for name, shape in shapes.items()
    ]
    return parts


def _regimes(tensors: _Tensors, layout: ObservationLayout) -> dict[str, Any]:
    """Return the regimes of a network as lists of numbers; empty = it has none."""
    if "regimes.centres" not in tensors:
        return {}
    names = {
        "mean": "mean",
        "deviation": "deviation",
        "centres": "centres",
        "embedding": "embedding.weight",
    }
    return {
        "begin": layout.slices()["globals"].start,
        **{key: tensors[f"regimes.{name}"].ravel().tolist() for key, name in names.items()},
    }


def _layers(tensors: _Tensors, prefix: str) -> list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    """Return weights and biases of the linear layers, in order; other layers have no tensors."""
    begin, end = f"{prefix}.", ".weight"
    numbers = sorted(
        int(name[len(begin) : -len(end)])
        for name in tensors
        if name.startswith(begin) and name.endswith(end)
    )
    return [
        (
            np.ascontiguousarray(tensors[f"{begin}{number}.weight"], np.float32),
            np.ascontiguousarray(tensors[f"{begin}{number}.bias"], np.float32),
        )
        for number in numbers
    ]
