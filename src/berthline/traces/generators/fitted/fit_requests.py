"""User requests other than GPUs and time: pools, types, CPUs, memory, priority and so on.

Some requests of each user and size class are kept, each kind in proportion to its share. This
preserves how pools, types and the others depend on each other, on users and on sizes. If a trace
has no such requests, nothing is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.model.workload import WHOLE_GPU
from berthline.traces.generators.fitted.fitted_generator import Request

if TYPE_CHECKING:
    from berthline.model.workload import Workload

    Numbers = npt.NDArray[np.intp]  # (num_jobs,)

_MOST, _FEWEST = 400, 20  # requests kept per user and size class: for one user, for many users


def fit_requests(
    workload: Workload, habit: Numbers, size_class: Numbers
) -> tuple[list[Request], list[dict[int, list[int]]]]:
    """Return all kept requests, and for each user the numbers of its requests by size class."""
    users = int(habit.max()) + 1
    if not has_requests(workload):
        return [], [{} for _ in range(users)]
    columns = _columns(workload)
    order = np.lexsort((*columns[::-1], size_class, habit))
    group = habit[order] * (int(size_class.max()) + 1) + size_class[order]
    first = np.flatnonzero(np.concatenate(([True], group[1:] != group[:-1])))
    most = max(_FEWEST, _MOST // users)
    picked, owner = [], []
    for start, end in zip(first, (*first[1:], len(order)), strict=True):
        count = min(end - start, most)
        picked.append(start + ((np.arange(count) + 0.5) / count * (end - start)).astype(np.intp))
        owner.append(np.full(count, start))
    jobs, begins = order[np.concatenate(picked)], order[np.concatenate(owner)]
    rows, number = np.unique(columns[:, jobs], axis=1, return_inverse=True)
    of_user: list[dict[int, list[int]]] = [{} for _ in range(users)]
    for begin, request in zip(begins.tolist(), number.ravel().tolist(), strict=True):
        by_class = of_user[int(habit[begin])]
        by_class.setdefault(int(size_class[begin]), []).append(request)
    requests = [
        Request(int(pool), int(types), priority, cpus, memory, slack, int(milli))
        for pool, types, priority, cpus, memory, slack, milli in rows.T.tolist()
    ]
    return requests, of_user


def has_requests(workload: Workload) -> bool:
    """Return whether any job requests more than GPUs and time."""
    return bool(
        (workload.pool >= 0).any()
        or (workload.gpu_types >= 0).any()
        or (workload.priority != 0).any()
        or (workload.cpus > 0).any()
        or (workload.memory_mib > 0).any()
        or np.isfinite(workload.deadline).any()
        or (workload.gpu_milli != WHOLE_GPU).any()
    )


def _columns(workload: Workload) -> npt.NDArray[np.float64]:
    """Return the requests, one row per field: CPUs and memory per GPU, deadlines in run times."""
    gpus = np.maximum(workload.gpus, 1)
    slack = (workload.deadline - workload.submit) / workload.run
    return np.array(
        [
            workload.pool,
            workload.gpu_types,
            workload.priority,
            workload.cpus / gpus,
            workload.memory_mib / gpus,
            np.where(np.isfinite(slack), _three_digits(slack), -1.0),
            workload.gpu_milli,
        ],
        dtype=np.float64,
    )


def _three_digits(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    known = np.where(np.isfinite(values) & (values > 0), values, 1.0)
    unit = 10.0 ** (np.floor(np.log10(known)) - 2)
    return np.where(values > 0, np.rint(known / unit) * unit, 0.0)
