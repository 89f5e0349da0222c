"""Spaces: what observations and actions look like to Gymnasium."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from berthline import _native

if TYPE_CHECKING:
    from berthline.env.plan import Plan

_LIMIT = np.float32(_native.observation_limit)


def action_space(plan: Plan) -> spaces.Space[Any]:
    """Return the actions of one environment."""
    if plan.seat == "pickplace":
        return spaces.MultiDiscrete([plan.num_actions, plan.cluster.num_nodes])
    return spaces.Discrete(plan.num_actions)


def mask_size(plan: Plan) -> int:
    """Return how many entries a mask has."""
    return plan.num_actions + (plan.cluster.num_nodes if plan.seat == "pickplace" else 0)


def observation_space(plan: Plan) -> spaces.Space[Any]:
    """Return the observations of one environment."""
    shapes = plan.table_shapes()
    if plan.options.observation == "flat":
        size = sum(int(np.prod(shape)) for shape in shapes.values())
        return spaces.Box(-_LIMIT, _LIMIT, (size,), np.float32)
    parts: dict[str, spaces.Space[Any]] = {
        name: spaces.Box(-_LIMIT, _LIMIT, shape, np.float32) for name, shape in shapes.items()
    }
    parts["action_mask"] = spaces.MultiBinary(mask_size(plan))
    if plan.seat == "pickplace":
        parts["pair_mask"] = spaces.MultiBinary((plan.options.window, plan.cluster.num_nodes))
    return spaces.Dict(parts)


def views(plan: Plan, flat: npt.NDArray[np.float32]) -> dict[str, npt.NDArray[np.float32]]:
    """Return the tables of flat observations, as views: (..., size) to (..., *shape)."""
    rows = flat.shape[:-1]
    return {
        name: flat[..., part].reshape(rows + shape)
        for name, (part, shape) in plan.table_slices.items()
    }
