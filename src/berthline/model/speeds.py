"""Speeds of the nodes of a cluster, and of the GPU types that run times refer to.

The run time of a job holds on the GPU type that it was recorded on. On another type it is scaled by
the ratio of both speeds, if both types are known; if the type is not known, it is not scaled.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from berthline.model.gpu_types import GPU_TYPES, RECORDED, canonical_name, type_names

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from berthline.model.cluster import Cluster
    from berthline.model.workload import FloatColumn, Workload

AS_RECORDED = 0.0
"""The reference speed of a job whose run time holds on every GPU type."""

_SHOWN = 4


def speeds(workload: Workload, cluster: Cluster) -> tuple[FloatColumn, FloatColumn]:
    """Return the speed of each node, and of the GPU type that each job's run time refers to.

    All are 1 if the conditions say that GPU types do not differ. The second is AS_RECORDED for a
    job whose type is not known, unless all nodes are equally fast: then it is their speed.
    """
    if not cluster.conditions.gpu_speeds:
        return np.ones(cluster.num_nodes), np.ones(len(workload))
    speed = np.array([kind.speed for kind in cluster.types])[cluster.gpu_type]
    kinds, of_job = _kinds(workload)
    known = _known_speeds(cluster)
    named = [known.get(_recorded_on(workload, known, *kind), AS_RECORDED) for kind in kinds]
    if (speed == speed[0]).all():
        named = [float(speed[0]) if found == AS_RECORDED else found for found in named]
    if len(named) == 1:  # looking each job up would cost a hundredth of a fast run
        return speed, np.full(len(workload), named[0])
    return speed, np.array(named)[of_job]


def relative_speed(speed: npt.ArrayLike, reference: npt.ArrayLike) -> FloatColumn:
    """Return how many seconds of a run time pass in one second, on GPUs of a speed."""
    speed, reference = np.broadcast_arrays(speed, reference)
    is_scaled = reference != AS_RECORDED
    rate: FloatColumn = np.ones(speed.shape)
    np.divide(speed, reference, out=rate, where=is_scaled)
    return rate


class TypeScaling(msgspec.Struct, frozen=True, kw_only=True):
    """Run times recorded on one GPU type, on nodes of another.

    Attributes:
        recorded: the type that they were recorded on.
        on: the type that jobs may run on.
        factor: by which their run times are multiplied there.
        jobs: how many jobs.
    """

    recorded: str
    on: str
    factor: float
    jobs: int


class RunTimeScaling(msgspec.Struct, frozen=True, kw_only=True):
    """How a run scales the run times of its workload.

    Attributes:
        jobs: how many jobs have a GPU type to run on that scales their run time.
        of: how many jobs there are.
        lowest: the smallest factor.
        highest: the largest factor.
        types: the factors, by pair of GPU types.
    """

    jobs: int
    of: int
    lowest: float
    highest: float
    types: list[TypeScaling]

    def in_words(self) -> str:
        """Return it as a sentence.

        Example:
            >>> pair = TypeScaling(recorded="V100-32", on="A100-80", factor=0.5681, jobs=9)
            >>> RunTimeScaling(jobs=9, of=9, lowest=0.5681, highest=0.5681, types=[pair]).in_words()
            'x 0.568: recorded on V100-32, run on A100-80'
        """
        several = "" if self.lowest == self.highest else f" to {self.highest:.3g}"
        some = "" if self.jobs == self.of else f"; {self.jobs:,} of {self.of:,} jobs"
        recorded = _listed(pair.recorded for pair in self.types)
        on = _listed(pair.on for pair in self.types)
        return f"x {self.lowest:.3g}{several}: recorded on {recorded}, run on {on}{some}"


def scaling_words(workload: Workload, cluster: Cluster) -> list[str]:
    """Return a sentence about how a run on the cluster scales run times; none if it does not."""
    scaling = run_time_scaling(workload, cluster)
    return [] if scaling is None else [f"{workload.name}: run times {scaling.in_words()}"]


def run_time_scaling(workload: Workload, cluster: Cluster) -> RunTimeScaling | None:
    """Return how a run of these jobs on this cluster scales their run times; None = not at all."""
    if not cluster.conditions.gpu_speeds:
        return None
    kinds, of_job = _kinds(workload)
    known = _known_speeds(cluster)
    counts = np.bincount(of_job, weights=workload.gpus > 0, minlength=len(kinds)).astype(int)
    with_gpus = {cluster.types[i] for i in set(cluster.gpu_type[cluster.gpus > 0].tolist())}
    pairs: dict[tuple[str, str], TypeScaling] = {}
    jobs = 0
    for (types, ran_on), count in zip(kinds, counts.tolist(), strict=True):
        recorded = _recorded_on(workload, known, types, ran_on)
        if recorded not in known or not count:
            continue
        asked = type_names(workload.gpu_type_sets[types]) if types >= 0 else None
        scaled = {
            kind.name: known[recorded] / kind.speed
            for kind in with_gpus
            if kind.speed != known[recorded] and (asked is None or kind.name in asked)
        }
        jobs += count if scaled else 0
        for on, factor in scaled.items():
            before = pairs[recorded, on].jobs if (recorded, on) in pairs else 0
            pairs[recorded, on] = TypeScaling(
                recorded=recorded, on=on, factor=factor, jobs=before + count
            )
    if not pairs:
        return None
    found = sorted(pairs.values(), key=lambda pair: (-pair.jobs, pair.recorded, pair.on))
    factors = [pair.factor for pair in found]
    return RunTimeScaling(
        jobs=jobs, of=len(workload), lowest=min(factors), highest=max(factors), types=found
    )


def recorded_types(workload: Workload) -> dict[str, int]:
    """Return how many jobs were recorded on each GPU type, the most frequent first."""
    kinds, of_job = _kinds(workload)
    known = {name: kind.speed for name, kind in GPU_TYPES.items()}
    counts: dict[str, int] = {}
    for kind, jobs in zip(kinds, np.bincount(of_job, minlength=len(kinds)).tolist(), strict=True):
        name = _recorded_on(workload, known, *kind)
        counts[name] = counts.get(name, 0) + jobs
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


def common_type(workload: Workload) -> str:
    """Return the GPU type that all run times were recorded on; RECORDED if there are several."""
    kinds, _ = _kinds(workload)
    known = {name: kind.speed for name, kind in GPU_TYPES.items()}
    found = {_recorded_on(workload, known, *kind) for kind in kinds}
    # Types that jobs ask for stay in their sets; only the others need a common one.
    others = {_recorded_on(workload, known, *kind) for kind in kinds if kind[0] < 0} or found
    return others.pop() if len(others) == 1 else RECORDED


def _kinds(workload: Workload) -> tuple[list[tuple[int, int]], npt.NDArray[np.intp]]:
    """Return the distinct pairs of `gpu_types` and `ran_on`, and the index of each job's pair."""
    if not workload.gpu_type_sets and not workload.ran_on_types:
        return [(-1, -1)], np.zeros(len(workload), np.intp)
    width = len(workload.ran_on_types) + 1
    codes = (workload.gpu_types.astype(np.int64) + 1) * width + workload.ran_on + 1
    if len(codes) and (codes == codes[0]).all():  # sorting would cost a tenth of a fast run
        unique, of_job = codes[:1], np.zeros(len(codes), np.intp)
    else:
        unique, of_job = np.unique(codes, return_inverse=True)
    return [(code // width - 1, code % width - 1) for code in unique.tolist()], of_job.reshape(-1)


def _known_speeds(cluster: Cluster) -> dict[str, float]:
    return _listed_speeds() | {kind.name: kind.speed for kind in cluster.types}


@functools.cache
def _listed_speeds() -> dict[str, float]:
    return {kind.name: kind.speed for kind in GPU_TYPES.values()}


def _recorded_on(workload: Workload, known: dict[str, float], types: int, ran_on: int) -> str:
    """Return the GPU type that a kind of job's run time refers to; RECORDED = not known."""

    def spelled(written: str) -> str:
        return written if written in known else canonical_name(written)

    if ran_on >= 0:
        found = spelled(workload.ran_on_types[ran_on])
        return found if found in known else RECORDED
    if types >= 0:
        names = {spelled(name.strip()) for name in workload.gpu_type_sets[types].split("|")}
        # A job that asks for one type has run on that type, whatever nodes there are.
        if len(names) == 1 and names <= known.keys():
            return names.pop()
    return workload.reference_type


def _listed(names: Iterable[str]) -> str:
    """Return the first few distinct names, in words."""
    distinct = list(dict.fromkeys(names))
    more = f" and {len(distinct) - _SHOWN} more" if len(distinct) > _SHOWN else ""
    return ", ".join(distinct[:_SHOWN]) + more
