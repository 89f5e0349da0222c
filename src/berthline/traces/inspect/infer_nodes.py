"""Nodes as seen in lists of nodes: GPUs, GPU types, and the partitions that share them."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.model.gpu_types import GPU_TYPES, REFERENCE_TYPE, canonical_name
from berthline.model.history import NOT_RECORDED

if TYPE_CHECKING:
    from berthline.model.history import History
    from berthline.model.workload import FloatColumn, Workload

_ALL = "all"


def peak_use(start: FloatColumn, end: FloatColumn, amount: FloatColumn) -> float:
    """Return the largest amount held at once; intervals do not include their end."""
    times = np.concatenate([end, start])  # ends first: the sort is stable
    change = np.concatenate([-amount, amount])
    order = np.argsort(times, kind="stable")
    return float(np.cumsum(change[order]).max(initial=0.0))


def peaks(
    node: npt.NDArray[np.int64],
    start: FloatColumn,
    end: FloatColumn,
    share: FloatColumn,
    nodes: int,
) -> FloatColumn:
    """Return the largest amount held at once on each node."""
    order = np.argsort(node, kind="stable")
    cuts = np.searchsorted(node[order], np.arange(nodes + 1))
    peaks = np.zeros(nodes)
    for index in range(nodes):
        mine = order[cuts[index] : cuts[index + 1]]
        peaks[index] = peak_use(start[mine], end[mine], share[mine])
    return peaks


def completed(
    names: list[str], kinds: list[tuple[str, ...]], seen: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the GPUs of the nodes: at least the most frequent number among nodes of its kind."""
    alike: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for index, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        alike.setdefault((re.sub(r"\d+", "#", name), kind), []).append(index)
    gpus = seen.copy()
    for members in alike.values():
        # The most frequent number; in a tie, the larger.
        usual = max(Counter(seen[members].tolist()).items(), key=lambda item: (item[1], item[0]))
        gpus[members] = np.maximum(seen[members], usual[0])
    return gpus


def kinds_of_nodes(
    history: History, job: npt.NDArray[np.int64], node: npt.NDArray[np.int64], nodes: int
) -> list[tuple[str, ...]]:
    """Return the GPU types that jobs were allocated on each node."""
    found: list[set[str]] = [set() for _ in range(nodes)]
    if history.gpu_type is not None:
        codes = history.gpu_type[job]
        pairs = np.unique(np.stack([node, codes])[:, codes != NOT_RECORDED], axis=1)
        for index, code in pairs.T.tolist():
            found[index].add(history.gpu_type_names[code])
    return [tuple(sorted(types)) for types in found]


def job_classes(
    workload: Workload, history: History
) -> tuple[list[tuple[int, int]], npt.NDArray[np.int64]]:
    """Return the distinct pairs of partition and GPU type, and the index of each job's pair."""
    kind = np.full(len(workload), NOT_RECORDED) if history.gpu_type is None else history.gpu_type
    pairs, of_job = np.unique(np.stack([workload.pool, kind]), axis=1, return_inverse=True)
    return [(int(pool), int(code)) for pool, code in pairs.T], of_job.reshape(-1)


def components(
    job_class: npt.NDArray[np.int64], node: npt.NDArray[np.int64], classes: int
) -> npt.NDArray[np.int64]:
    """Return for each class the lowest class that shares nodes with it, directly or indirectly."""
    parent = np.arange(classes)

    def root(index: int) -> int:
        while parent[index] != index:
            index = int(parent[index])
        return index

    first: dict[int, int] = {}
    for at, mine in np.unique(np.stack([node, job_class]), axis=1).T.tolist():
        low, high = sorted((root(first.setdefault(at, mine)), root(mine)))
        parent[high] = low
    return np.array([root(index) for index in range(classes)])


def pool_labels(
    pairs: list[tuple[int, int]],
    owner: npt.NDArray[np.int64],
    workload: Workload,
    history: History,
) -> dict[int, str]:
    """Return a name for each pool: its partitions, and its GPU types if these distinguish it."""
    partitions: dict[int, list[str]] = {}
    types: dict[int, list[str]] = {}
    for (pool, kind), root in zip(pairs, owner.tolist(), strict=True):
        name = workload.pool_names[pool] if pool >= 0 else _ALL
        if name not in partitions.setdefault(root, []):
            partitions[root].append(name)
        if kind >= 0 and history.gpu_type_names[kind] not in types.setdefault(root, []):
            types[root].append(history.gpu_type_names[kind])
    labels = {root: "+".join(names) for root, names in partitions.items()}
    taken = Counter(labels.values())
    return {
        root: f"{label}:{'+'.join(types.get(root, ['?']))}" if taken[label] > 1 else label
        for root, label in labels.items()
    }


def spelled(kind: tuple[str, ...]) -> str:
    """Return a GPU type that Berthline knows: the named one, else the reference type."""
    found = canonical_name(kind[0]) if kind else REFERENCE_TYPE
    return found if found in GPU_TYPES else REFERENCE_TYPE


def natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key for names, so that gpu10 comes after gpu9."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
