"""Two workloads on the same clock as one."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.model.workload_columns import COLUMN_TYPES

if TYPE_CHECKING:
    import numpy.typing as npt

    from berthline.model.workload import Workload

_NAMED = {
    "user": "user_names",
    "pool": "pool_names",
    "gpu_types": "gpu_type_sets",
    "ran_on": "ran_on_types",
}
"""Columns of indices, and the names they point to."""


def join(first: Workload, then: Workload) -> Workload:
    """Return the jobs of one workload, then those of another that are submitted later.

    Both are on the same clock. Jobs of the second have names only if those of the first do.
    """
    columns: dict[str, Any] = {}
    for key in COLUMN_TYPES:
        later = getattr(then, key)
        if key in _NAMED:
            names = getattr(first, _NAMED[key])
            later, columns[_NAMED[key]] = _renamed(later, getattr(then, _NAMED[key]), names)
        columns[key] = np.concatenate([getattr(first, key), later])
        columns[key].setflags(write=False)
    names = None
    if first.names is not None and then.names is not None:
        names = np.concatenate([first.names, then.names])
    return dataclasses.replace(first, **columns, names=names, history=None)


def _renamed(
    index: npt.NDArray[np.int32], names: tuple[str, ...], known: tuple[str, ...]
) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
    """Return indices into the known names and those that are added to them."""
    if names == known:
        return index, known
    every = {name: position for position, name in enumerate(dict.fromkeys((*known, *names)))}
    moved = np.array([every[name] for name in names] + [-1], np.int32)
    return moved[index], tuple(every)
