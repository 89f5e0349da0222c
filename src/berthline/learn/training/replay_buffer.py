"""ReplayBuffer: past states and actions, sampled repeatedly.

A transition has n steps: the first state and its action, the discounted rewards of the next n
steps, and the state after them. It is shorter if the episode ends before. If the episode was
truncated, the transition ends with the last state; if it terminated, there is no last state.

States are stored once, in a ring buffer of rows. A transition is the row of its first state, which
refers to the row of its last one. Rows are numbered consecutively, and row i is in slot
i % capacity. The last state of a transition is newer than the first, so it is overwritten later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from berthline.errors import ConfigError

if TYPE_CHECKING:
    from berthline.learn.training.checkpoint import Checkpoint

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

_LEAST_ERROR = 1e-3
"""Added to errors, so that transitions with error 0 are also drawn sometimes."""
_ARRAYS = (
    "observations",
    "masks",
    "actions",
    "returns",
    "discounts",
    "following",
    "regimes",
    "priorities",
)


class SumTree:
    """Weights of slots, for draws in proportion to them. All methods take many slots at once.

    Node 1 is the root, the children of node i are 2 i and 2 i + 1, and the last level holds the
    slots. Every node is the sum of its children, independent of the order of changes.
    """

    def __init__(self, capacity: int) -> None:
        self._first = 1 << (capacity - 1).bit_length()
        self._sums = np.zeros(2 * self._first)

    @property
    def total(self) -> float:
        """The sum of all weights."""
        return float(self._sums[1])

    def get(self, slots: IntArray) -> FloatArray:
        """Return the weights of slots."""
        return self._sums[self._first + slots]

    def set(self, slots: IntArray, weights: FloatArray | float) -> None:
        """Change the weights of slots."""
        nodes = self._first + slots
        self._sums[nodes] = weights
        width = self._first
        while width > 1:
            nodes = nodes >> 1
            self._sums[nodes] = self._sums[2 * nodes] + self._sums[2 * nodes + 1]
            width >>= 1

    def find(self, targets: FloatArray) -> IntArray:
        """Return the first slots whose cumulative weights, from slot 0 on, exceed the targets."""
        left = targets.copy()
        nodes = np.ones(len(targets), np.int64)
        width = 1
        while width < self._first:
            nodes = 2 * nodes
            before = self._sums[nodes]
            # After rounding, `left` may exceed the remaining weight: never enter an empty branch.
            right = (left >= before) & (self._sums[nodes + 1] > 0)
            left = np.where(right, left - before, left)
            nodes = nodes + right
            width *= 2
        return nodes - self._first


class Transitions(msgspec.Struct, frozen=True):
    """Some transitions.

    Attributes:
        slots: their slots, for `set_errors`.
        observations: (batch, size), the first states.
        masks: (batch, actions), the allowed actions.
        actions: (batch,), the chosen actions.
        returns: (batch,), the sums of discounted rewards.
        discounts: (batch,), factor of the value of the last state; 0 = there is no last state.
        following: (batch, size), the last states; arbitrary where the discount is 0.
        following_masks: (batch, actions), the actions allowed there.
        weights: (batch,), importance weights against unequal probabilities; the largest is 1.
    """

    slots: IntArray
    observations: Tensor
    masks: Tensor
    actions: Tensor
    returns: Tensor
    discounts: Tensor
    following: Tensor
    following_masks: Tensor
    weights: Tensor


class ReplayBuffer:
    """Transitions of environments that step together.

    Call `see` before each step and `act` after it.

    Args:
        capacity: rows, one state each: one for each step and one for each truncated episode.
        num_envs: number of environments.
        size: numbers in an observation.
        actions: number of actions.
        n_step: steps of a transition.
        exponent: priority = |error|^exponent; 0 = all are drawn with equal probability.
        num_regimes: number of regimes, which are drawn equally often regardless of their sizes.
    """

    def __init__(
        self,
        capacity: int,
        num_envs: int,
        *,
        size: int,
        actions: int,
        n_step: int = 1,
        exponent: float = 0.0,
        num_regimes: int = 1,
    ) -> None:
        # Open transitions must not be overwritten, nor any state of the current step.
        least = 2 * num_envs * (n_step + 1)
        if capacity < least:
            raise ConfigError(
                f"a replay of {capacity} states",
                expected=f"at least {least} for {num_envs} environments and {n_step} steps",
            )
        self.capacity, self.num_envs = capacity, num_envs
        self.n_step, self.exponent = n_step, exponent
        self.observations = np.zeros((capacity, size), np.float32)
        self.masks = np.zeros((capacity, actions), np.bool_)
        self.actions = np.zeros(capacity, np.int64)
        self.returns = np.zeros(capacity)
        self.discounts = np.zeros(capacity)
        self.following = np.zeros(capacity, np.int64)
        self.regimes = np.zeros(capacity, np.int64)
        self._trees = [SumTree(capacity) for _ in range(num_regimes)]
        self._counts = np.zeros(num_regimes, np.int64)
        self._next_row = 0
        self._largest = 1.0
        # [k, env]: the row of k steps ago whose transition is still open; -1 = none.
        self._open = np.full((n_step, num_envs), -1, np.int64)

    def __len__(self) -> int:
        """Return the number of transitions that can be drawn."""
        return int(self._counts.sum())

    @property
    def counts(self) -> IntArray:
        """The number of transitions of each regime."""
        return self._counts.copy()

    def see(
        self,
        observations: npt.NDArray[np.float32],
        masks: BoolArray,
        regimes: IntArray | None = None,
    ) -> None:
        """Store the states of all environments before a step.

        Args:
            observations: (num_envs, size).
            masks: (num_envs, actions).
            regimes: (num_envs,); None = 0.
        """
        rows = self._write(observations, masks, regimes)
        ripe = self._open[-1] >= 0
        self._close(self._open[-1, ripe], rows[ripe])
        self._open[1:] = self._open[:-1]
        self._open[0] = rows

    def act(
        self,
        actions: IntArray,
        rewards: FloatArray,
        discounts: FloatArray,
        terminated: BoolArray,
        truncated: BoolArray,
        last_observations: npt.NDArray[np.float32],
        last_masks: BoolArray,
    ) -> None:
        """Store the actions and outcomes of a step.

        Args:
            actions: (num_envs,).
            rewards: (num_envs,).
            discounts: (num_envs,), of everything after this step.
            terminated: (num_envs,).
            truncated: (num_envs,).
            last_observations: (number truncated, size).
            last_masks: (number truncated, actions).
        """
        self.actions[self._open[0] % self.capacity] = actions
        for rows in self._open:
            is_open = rows >= 0
            slots = rows[is_open] % self.capacity
            self.returns[slots] += self.discounts[slots] * rewards[is_open]
            self.discounts[slots] *= discounts[is_open]
        cut = np.flatnonzero(truncated)
        ends = self._write(last_observations, last_masks, None)
        for rows in self._open:
            over = rows[terminated & (rows >= 0)]
            self.discounts[over % self.capacity] = 0.0
            self._close(over, over)
            is_open = rows[cut] >= 0
            self._close(rows[cut][is_open], ends[is_open])
        self._open[:, terminated | truncated] = -1

    def sample(self, size: int, generator: torch.Generator, *, importance: float) -> Transitions:
        """Draw transitions.

        Args:
            size: number of transitions.
            generator: of random numbers.
            importance: exponent of the importance weights: 0 = no correction, 1 = full correction.
        """
        present = np.flatnonzero(self._counts)
        draws = torch.rand((2, size), dtype=torch.float64, generator=generator).numpy()
        regimes = present[(draws[0] * len(present)).astype(np.int64)]
        slots = np.zeros(size, np.int64)
        chances = np.zeros(size)
        for regime in present:
            chosen = np.flatnonzero(regimes == regime)
            tree = self._trees[regime]
            slots[chosen] = tree.find(draws[1, chosen] * tree.total)
            # Relative to a uniform draw from the regime.
            chances[chosen] = tree.get(slots[chosen]) / tree.total * self._counts[regime]
        weights = chances**-importance
        ends = self.following[slots] % self.capacity
        return Transitions(
            slots=slots,
            observations=torch.from_numpy(self.observations[slots]),
            masks=torch.from_numpy(self.masks[slots]),
            actions=torch.from_numpy(self.actions[slots]),
            returns=torch.from_numpy(self.returns[slots].astype(np.float32)),
            discounts=torch.from_numpy(self.discounts[slots].astype(np.float32)),
            following=torch.from_numpy(self.observations[ends]),
            following_masks=torch.from_numpy(self.masks[ends]),
            weights=torch.from_numpy((weights / weights.max()).astype(np.float32)),
        )

    def set_errors(self, slots: IntArray, errors: FloatArray) -> None:
        """Set the priorities of transitions from their errors."""
        if self.exponent == 0.0:
            return
        priorities = (np.abs(errors) + _LEAST_ERROR) ** self.exponent
        self._largest = max(self._largest, float(priorities.max()))
        self._set_priorities(slots, priorities)

    def tensors(self) -> dict[str, Tensor]:
        """Return the contents as tensors to save."""
        filled = min(self._next_row, self.capacity)
        found = {name: getattr(self, name)[:filled] for name in _ARRAYS if name != "priorities"}
        slots = np.arange(filled)
        # Each slot has a weight in one tree only, that of its regime.
        found["priorities"] = sum((tree.get(slots) for tree in self._trees), np.zeros(filled))
        found["open"] = self._open
        # Copies: the arrays must not change while they are saved.
        return {name: torch.from_numpy(array.copy()) for name, array in found.items()}

    def state(self) -> dict[str, Any]:
        """Return the rest of the state as JSON."""
        return {"next_row": self._next_row, "largest": self._largest}

    def restore(self, checkpoint: Checkpoint, name: str, state: dict[str, Any]) -> None:
        """Continue from a checkpoint, whose tensors have the prefix `name`."""
        self._next_row, self._largest = state["next_row"], state["largest"]
        found = {key: tensor.numpy() for key, tensor in checkpoint.part(name).items()}
        filled = min(self._next_row, self.capacity)
        for key in _ARRAYS:
            if key != "priorities":
                getattr(self, key)[:filled] = found[key]
        self._open = found["open"].copy()
        slots = np.arange(filled)
        self._trees = [SumTree(self.capacity) for _ in self._trees]
        self._set_priorities(slots, found["priorities"])
        drawn = self.regimes[:filled][found["priorities"] > 0]
        self._counts = np.bincount(drawn, minlength=len(self._trees))

    def _write(
        self,
        observations: npt.NDArray[np.float32],
        masks: BoolArray,
        regimes: IntArray | None,
    ) -> IntArray:
        """Write states to new rows, replacing the oldest ones, and return the row numbers."""
        rows = np.arange(self._next_row, self._next_row + len(observations))
        self._next_row += len(observations)
        slots = rows % self.capacity
        for regime, tree in enumerate(self._trees):
            lost = slots[tree.get(slots) > 0]
            tree.set(lost, 0.0)
            self._counts[regime] -= len(lost)
        self.observations[slots] = observations
        self.masks[slots] = masks
        self.returns[slots] = 0.0
        self.discounts[slots] = 1.0
        self.regimes[slots] = 0 if regimes is None else regimes
        return rows

    def _close(self, rows: IntArray, ends: IntArray) -> None:
        """Set the last states of transitions, so that they can be drawn."""
        slots = rows % self.capacity
        self.following[slots] = ends
        self._counts += np.bincount(self.regimes[slots], minlength=len(self._trees))
        self._set_priorities(slots, self._largest)

    def _set_priorities(self, slots: IntArray, priorities: FloatArray | float) -> None:
        regimes = self.regimes[slots]
        values = np.broadcast_to(priorities, slots.shape)
        for regime, tree in enumerate(self._trees):
            chosen = regimes == regime
            if chosen.any():
                tree.set(slots[chosen], values[chosen])
