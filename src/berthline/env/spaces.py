"""Spaces: what observations and actions look like to Gymnasium."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from berthline.env.interface.column_bounds import bounds_of

if TYPE_CHECKING:
    from berthline.env.plan import Plan


def action_space(plan: Plan) -> spaces.Space[Any]:
    """Return the actions of one environment."""
    if plan.seat == "pickplace":
        return spaces.MultiDiscrete([plan.num_actions, plan.cluster.num_nodes])
    return spaces.Discrete(plan.num_actions)


def mask_size(plan: Plan) -> int:
    """Return how many entries a mask has."""
    return plan.num_actions + (plan.cluster.num_nodes if plan.seat == "pickplace" else 0)


def observation_space(plan: Plan) -> spaces.Space[Any]:
    """Return the observations of one environment, with the bounds of their columns."""
    boxes = {name: _box(plan, name, shape) for name, shape in plan.table_shapes().items()}
    if plan.options.observation == "flat":
        low, high = (
            np.concatenate([getattr(box, end).ravel() for box in boxes.values()] or [[]])
            for end in ("low", "high")
        )
        return spaces.Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)
    parts: dict[str, spaces.Space[Any]] = {**boxes}
    parts["action_mask"] = spaces.MultiBinary(mask_size(plan))
    if plan.seat == "pickplace":
        parts["pair_mask"] = spaces.MultiBinary((plan.options.window, plan.cluster.num_nodes))
    return spaces.Dict(parts)


def _box(plan: Plan, name: str, shape: tuple[int, ...]) -> spaces.Box:
    if name == "lookahead":
        return spaces.Box(0.0, 1.0, shape, np.float32)
    # Only in the queue, and if no job comes back to it.
    has_plain_waits = name == "jobs" and not (
        plan.seat == "preempt" or plan.can_fail or plan.was_interrupted
    )
    columns = [
        bounds_of(formula, has_plain_waits=has_plain_waits, cluster=plan.cluster)
        for formula in plan.formulas(name)
    ]
    low, high = np.array(columns, np.float32).T
    return spaces.Box(
        np.broadcast_to(low, shape).copy(), np.broadcast_to(high, shape).copy(), dtype=np.float32
    )


def views(plan: Plan, flat: npt.NDArray[np.float32]) -> dict[str, npt.NDArray[np.float32]]:
    """Return the tables of flat observations, as views: (..., size) to (..., *shape)."""
    rows = flat.shape[:-1]
    return {
        name: flat[..., part].reshape(rows + shape)
        for name, (part, shape) in plan.table_slices.items()
    }
