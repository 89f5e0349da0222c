"""fit: learn a generator from a workload, such as a site's own log.

See fitted_generator.py for what the generator contains. It keeps only shares, quantiles and rates
of the trace, and the names of pools and GPU types: no user, no job, no single time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt

from berthline.errors import TraceError
from berthline.model.speeds import common_type
from berthline.traces.generators.fitted.fit_arrivals import fit_arrivals, normal_ranks, series_of
from berthline.traces.generators.fitted.fit_levels import with_levels
from berthline.traces.generators.fitted.fit_requests import fit_requests
from berthline.traces.generators.fitted.fitted_arrivals import normal_share
from berthline.traces.generators.fitted.fitted_draws import JITTER
from berthline.traces.generators.fitted.fitted_generator import (
    FittedGenerator,
    SizeClass,
    StatedLimits,
    UserHabits,
)
from berthline.traces.generators.fitted.fitted_tables import SERIES_LEVELS
from berthline.traces.generators.fitted.successive_jobs import successive

if TYPE_CHECKING:
    from berthline.model.workload import Workload

    Column = npt.NDArray[np.float64]  # (num_jobs,)
    Numbers = npt.NDArray[np.intp]  # (num_jobs,)

FEWEST_JOBS = 100
_CLASS_SHARE = 0.01  # of jobs; a size with a smaller share is in one class with its neighbours
_MOST_USERS = 300
_FEWEST_OF_USER = 20  # jobs; users with fewer are grouped
_RUN_LEVELS = np.concatenate(
    (
        [0.0],
        np.geomspace(1e-4, 0.01, 9),
        np.linspace(0.02, 0.98, 97),
        1.0 - np.geomspace(0.01, 1e-4, 9),
        [1.0],
    )
)
"""Probabilities at which quantiles of run times are kept: dense in both tails."""
_LIMIT_BINS, _LIMIT_VALUES = 12, 100
_NO_BOUND = 1e18  # seconds; the file cannot represent infinity
_FARTHEST_RANK = 6.0
_MOST_REPEATED = 0.98


def fit(workload: Workload) -> FittedGenerator:
    """Return a generator with the habits of a workload.

    Raises:
        TraceError: there are too few jobs, or all are submitted at once.

    Example:
        >>> import berthline as bl
        >>> cluster = bl.Cluster.uniform(nodes=8, gpus_per_node=8)
        >>> fitted = fit(bl.generate("diurnal", cluster=cluster, jobs=5000))
        >>> len(fitted.generate(jobs=200, seed=1))
        200
    """
    span = float(workload.submit[-1] - workload.submit[0])
    if len(workload) < FEWEST_JOBS or span <= 0:
        raise TraceError(
            f"{len(workload):,} jobs within {span:g} s are too few to fit a generator",
            where=workload.name,
            expected=f"at least {FEWEST_JOBS} jobs, submitted at different times",
        )
    size_class, members = _size_classes(workload.gpus)
    ranks = _ranks(workload.run, size_class)
    users, habit = _users(workload.user, size_class, ranks)
    requests, of_user = fit_requests(workload, habit, size_class)
    users = [
        msgspec.structs.replace(person, requests=own)
        for person, own in zip(users, of_user, strict=True)
    ]
    repeat_size, repeat_run = _repetition(workload.user, size_class, ranks, users, habit)
    rough = FittedGenerator(
        name=workload.name,
        jobs=len(workload),
        mean_gap=span / (len(workload) - 1),
        mean_work=workload.work / len(workload),
        demand=workload.work / span,
        repeat_size=repeat_size,
        repeat_run=repeat_run,
        classes=[SizeClass(sizes, shares, [-1.0, 1.0], [1.0, 1.0]) for sizes, shares in members],
        users=users,
        limits=_limits(workload),
        series_scale=1.0,
        requests=requests,
        pool_names=list(workload.pool_names) if requests else [],
        gpu_type_sets=list(workload.gpu_type_sets) if requests else [],
        reference_type=common_type(workload),
        **fit_arrivals(workload),
    )
    return with_levels(_with_run_times(rough, workload, size_class), workload)


def _size_classes(
    gpus: npt.NDArray[np.int32],
) -> tuple[Numbers, list[tuple[list[int], list[float]]]]:
    """Return the class of each job, and the sizes of each class with their shares."""
    sizes, inverse, counts = np.unique(gpus, return_inverse=True, return_counts=True)
    is_frequent = (counts >= _CLASS_SHARE * len(gpus)) | (sizes == 0)
    # A frequent size is its own class; the others are grouped by floor(log2(size)).
    label = np.where(is_frequent, sizes, -1 - np.floor(np.log2(np.maximum(sizes, 1)))).astype(
        np.int64
    )
    labels, class_of_size = np.unique(label, return_inverse=True)
    members = []
    for number in range(len(labels)):
        here = class_of_size == number
        shares = counts[here] / counts[here].sum()
        members.append((sizes[here].tolist(), shares.tolist()))
    return class_of_size[inverse].astype(np.intp), members


def _ranks(run: Column, size_class: Numbers) -> Column:
    """Return the normal rank of each run time within its size class."""
    ranks = np.empty(len(run))
    for number in range(int(size_class.max()) + 1):
        here = np.flatnonzero(size_class == number)
        ranks[here] = normal_ranks(run[here])
    return ranks


def _users(
    user: npt.NDArray[np.int32], size_class: Numbers, ranks: Column
) -> tuple[list[UserHabits], Numbers]:
    """Return the habits of users, and the index of each job's habits."""
    counts = np.bincount(user)
    by_count = np.argsort(-counts, kind="stable")
    known = [int(u) for u in by_count[:_MOST_USERS] if counts[u] >= _FEWEST_OF_USER]
    number_of = np.full(len(counts), len(known), np.intp)
    number_of[known] = np.arange(len(known))
    habit = number_of[user]
    is_first, length = series_of(user)
    users = []
    for number in range(int(habit.max()) + 1):
        here = habit == number
        classes, jobs = np.unique(size_class[here], return_counts=True)
        users.append(
            UserHabits(
                share=float(here.mean()),
                count=1 if number < len(known) else int((counts > 0).sum()) - len(known),
                classes=dict(zip(classes.tolist(), (jobs / jobs.sum()).tolist(), strict=True)),
                level=float(ranks[here].mean()),
                spread=max(float(ranks[here].std()), 1e-3),
                series=np.quantile(length[here & is_first], SERIES_LEVELS).tolist(),
            )
        )
    return users, habit


def _repetition(
    user: npt.NDArray[np.int32],
    size_class: Numbers,
    ranks: Column,
    users: list[UserHabits],
    habit: Numbers,
) -> tuple[float, float]:
    """Return how often users repeat the size class, and the run time, of their previous job."""
    before, after = successive(user)
    if not before.size:
        return 0.0, 0.0
    by_chance = np.array([sum(share**2 for share in person.classes.values()) for person in users])
    repeat_size = _beyond_chance(
        float((size_class[before] == size_class[after]).mean()),
        float(by_chance[habit[after]].mean()),
    )
    level = np.array([person.level for person in users])[habit]
    spread = np.array([person.spread for person in users])[habit]
    own = (ranks - level) / spread
    return repeat_size, float(
        np.clip((own[before] * own[after]).mean() / (1 - JITTER**2), 0, _MOST_REPEATED)
    )


def _beyond_chance(observed: float, by_chance: float) -> float:
    """Return the share that is not explained by chance."""
    if by_chance >= 1:
        return 0.0
    return float(np.clip((observed - by_chance) / (1 - by_chance), 0.0, _MOST_REPEATED))


def _limits(workload: Workload) -> list[StatedLimits]:
    """Return users' estimates, by run time: actual values, since people choose round ones."""
    inner = np.quantile(workload.run, np.linspace(0, 1, _LIMIT_BINS + 1)[1:-1])
    bounds = np.unique(inner)
    which = np.searchsorted(bounds, workload.run, side="left")
    limits = []
    levels = (np.arange(_LIMIT_VALUES) + 0.5) / _LIMIT_VALUES
    for number, bound in enumerate((*bounds.tolist(), _NO_BOUND)):
        stated = workload.estimate[which == number]
        known = stated[~np.isnan(stated)]
        values = np.quantile(known, levels, method="inverted_cdf").tolist() if known.size else []
        missing = 1.0 - known.size / stated.size if stated.size else 1.0
        limits.append(StatedLimits(bound, missing, values))
    return limits


def _with_run_times(
    fitted: FittedGenerator, workload: Workload, size_class: Numbers
) -> FittedGenerator:
    """Return the generator with the run times of the trace, class by class.

    The ranks of all users together are not exactly normal. Therefore run-time quantiles are
    assigned to the quantiles of the ranks that are drawn, at the same levels.
    """
    even = (np.arange(1 << 14) + 0.5) / (1 << 14)
    classes, mean_work = [], 0.0
    for number, kind in enumerate(fitted.classes):
        log_run = np.quantile(np.log(workload.run[size_class == number]), _RUN_LEVELS)
        ranks = _ranks_at_levels(fitted.users, number)
        classes.append(SizeClass(kind.sizes, kind.shares, ranks.tolist(), np.exp(log_run).tolist()))
        mean_run = float(np.exp(np.interp(even, _RUN_LEVELS, log_run)).mean())
        gpus = float(workload.gpu_amount[size_class == number].mean())
        mean_work += float((size_class == number).mean()) * mean_run * gpus
    return msgspec.structs.replace(fitted, classes=classes, mean_work=mean_work)


def _ranks_at_levels(users: list[UserHabits], size_class: int) -> Column:
    """Return the quantiles of the ranks of a class's jobs at the probabilities _RUN_LEVELS."""
    grid = np.linspace(-_FARTHEST_RANK, _FARTHEST_RANK, 1 + int(200 * _FARTHEST_RANK))
    share = np.zeros(len(grid))
    total = 0.0
    for person in users:
        weight = person.share * person.classes.get(size_class, 0.0)
        if weight > 0:
            share += weight * normal_share((grid - person.level) / person.spread)
            total += weight
    return np.interp(_RUN_LEVELS, share / total, grid)
