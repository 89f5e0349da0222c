"""The GPU type that each job of a log ran on: as its record names it, else as its nodes show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.errors import TraceError
from berthline.model.history import NOT_RECORDED
from berthline.traces.reading.host_lists import expand_hosts

if TYPE_CHECKING:
    from berthline.model.history import History

_MOST_LISTS = 200_000
"""Lists of nodes; a log with more would take long, and names types often enough."""


def recorded_types(history: History) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
    """Return the GPU type of each job, as an index into the names of types; -1 = not known.

    A job whose record does not name the type has that of its nodes, if other jobs had one type only
    on each of them, and the same on all.
    """
    jobs = len(history)
    if history.gpu_type is None or not history.gpu_type_names:
        return np.full(jobs, NOT_RECORDED, np.int32), ()
    types = history.gpu_type.astype(np.int32)
    nodes = history.nodes
    open_jobs = np.flatnonzero(types == NOT_RECORDED)
    if nodes is None or not len(open_jobs) or len(history.node_lists) > _MOST_LISTS:
        return types, history.gpu_type_names
    hosts = [_hosts(text) for text in history.node_lists]
    seen: dict[str, set[int]] = {}
    named = (types != NOT_RECORDED) & (nodes != NOT_RECORDED)
    for code, kind in np.unique(np.stack([nodes[named], types[named]]), axis=1).T.tolist():
        for host in hosts[code]:
            seen.setdefault(host, set()).add(kind)
    of_list = np.full(len(hosts) + 1, NOT_RECORDED, np.int32)  # the last: no list
    for code, listed in enumerate(hosts):
        kinds = [seen.get(host, set()) for host in listed]
        if kinds and all(len(kind) == 1 and kind == kinds[0] for kind in kinds):
            of_list[code] = next(iter(kinds[0]))
    types[open_jobs] = of_list[nodes[open_jobs]]
    return types, history.gpu_type_names


def _hosts(text: str) -> list[str]:
    """Return the nodes of a list; none if it cannot be read, which matters only to `whatif`."""
    try:
        return expand_hosts(text)
    except TraceError:
        return []
