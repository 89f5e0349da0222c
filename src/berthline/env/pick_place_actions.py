"""Pairs: the actions of PickPlace, a job and its first node, as one number.

Action `row * nodes + node` starts the job of a row on a node, and the last action is the no-op. So
a learner sees one choice among many, as in every other seat, with a mask of possible pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from berthline.env.native_envs import NativeEnvs


class Pairs:
    """The pairs that environments allow.

    Attributes:
        masks: (num_envs, window * nodes + 1), True = allowed; updated by `look`.

    Args:
        envs: environments of PickPlace.
    """

    def __init__(self, envs: NativeEnvs) -> None:
        self._envs = envs
        num, self._window, self._nodes = envs.pair_mask.shape
        self.masks = np.zeros((num, self._window * self._nodes + 1), np.bool_)

    def look(self) -> None:
        """Update the masks in place."""
        jobs = self._envs.mask[:, : self._window, None]
        np.logical_and(
            self._envs.pair_mask,
            jobs,
            out=self.masks[:, :-1].reshape(self._envs.pair_mask.shape),
        )
        self.masks[:, -1] = self._envs.mask[:, self._window]

    def split(self, actions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return rows and nodes, (num_envs, 2); the no-op is the row after the last one."""
        rows, nodes = np.divmod(actions, self._nodes)
        return np.stack((rows, nodes), axis=-1)

    def joined(self, answers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the actions for these rows and nodes: the inverse of `split`."""
        rows, nodes = answers.T
        return np.where(
            rows == self._window, self._window * self._nodes, rows * self._nodes + nodes
        )
