"""How long jobs will run: drawn from jobs that have finished.

A job with an estimate runs for estimate x ratio, where ratio = run time / estimate of a finished
job; a job without one runs as long as a finished job did. Finished jobs of the same user with the
same GPUs and estimate are preferred, then those of the user with an estimate of this size (or with
these GPUs), then those of all users with one, then all. Long estimates tend to be further off than
short ones, and the error of a long queue is the sum of those of its jobs. Of n jobs in a group, the
group is used with probability n / (n + PRIOR), else the next larger one. A run time is longer
than the progress of its job. Jobs of one user often run alike, so in each draw a share of them uses
the same random number; the share is the rank correlation of a user's consecutive finished jobs.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.evaluate.forecast.known_past import Jobs

if TYPE_CHECKING:
    from berthline.evaluate.forecast.known_past import Past
    from berthline.model.workload import FloatColumn, Workload

FEWEST_JOBS = 20
"""With fewer finished jobs, ratios are drawn uniformly from 0 to 1."""

FEWEST_LONGER = 5
"""With fewer finished jobs that ran longer than a job has run so far, their values are not used."""

PRIOR = 4.0
"""The weight of a larger group, in jobs."""

LEVELS = 4
"""Groups that a job is in: its own, its user's, those of its size, all."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, eq=False)
class RunTimeGroups:
    """Values of finished jobs, sorted within groups.

    Attributes:
        value: ratios or run times, by group, then by size.
        first: where each group begins, and the end of the last.
        of_job: the group of each job of the past; -1 = no finished job is in it.
    """

    value: Floats
    first: Ints
    of_job: Ints


@dataclasses.dataclass(frozen=True, eq=False)
class RunTimes:
    """Run times of jobs that have not finished, ready to be drawn.

    Attributes:
        jobs: which jobs.
        unit: what a value is multiplied with: the estimate, or 1.
        least: the value that their progress amounts to.
        chosen: for each of the LEVELS, the probability that its group is used.
        begin: for each group, where its values that are large enough begin,
        size: and how many there are.
        values: for each group, the values.
        user: the user of each job.
        shared: the share of jobs of a user that use the same random number.
        source: `ratios` or `run times` of finished jobs, or `even` if too few have finished.
    """

    jobs: Jobs
    unit: Floats
    least: Floats
    chosen: Floats  # (LEVELS, num_jobs)
    begin: Ints  # (LEVELS, num_jobs)
    size: Ints  # (LEVELS, num_jobs)
    values: Floats
    user: Ints
    shared: float
    source: str

    def draw(self, rng: np.random.Generator) -> FloatColumn:
        """Return one run time for each job."""
        count = len(self.jobs)
        if not count:
            return np.zeros(0)
        which, own, alike = rng.random((3, count))
        of_user = rng.random(int(self.user.max()) + 1)[self.user]
        chance = np.where(alike < self.shared, of_user, own)
        group = (which > np.cumsum(self.chosen, axis=0)[:-1]).sum(axis=0)
        column = np.arange(count)
        size = self.size[group, column]
        index = self.begin[group, column] + (chance * size).astype(np.int64)
        # Longer than almost all that were seen: up to twice the progress. A handful of
        # jobs that were longer still says too little.
        value = np.where(
            self.size.max(axis=0) >= FEWEST_LONGER,
            self.values[np.minimum(index, len(self.values) - 1)],
            self.least * (1 + chance),
        )
        done = self.least * self.unit
        result: FloatColumn = np.maximum(value * self.unit, done * (1 + 1e-9) + 1e-3)
        return result


def run_times(past: Past, jobs: Jobs, done: FloatColumn) -> RunTimes:
    """Return the run times of some jobs of a past, ready to be drawn.

    Args:
        past: what is known.
        jobs: jobs whose run times are not known.
        done: seconds of run time that each has completed.
    """
    workload = past.jobs
    stated = ~np.isnan(workload.estimate)
    unit = np.where(stated, workload.estimate, 1.0)
    is_ratio = stated[jobs]
    least = done / unit[jobs]
    values: list[Floats] = []
    begin, size = np.zeros((2, LEVELS, len(jobs)), np.int64)
    total = np.zeros((LEVELS, len(jobs)), np.int64)
    offset = 0
    few = False
    for wanted in (True, False):
        rows = np.flatnonzero(is_ratio == wanted)
        # A job without an estimate runs as long as any other.
        finished = past.finished[stated[past.finished]] if wanted else past.finished
        seen = workload.run[finished] / (unit[finished] if wanted else 1.0)
        if len(rows) and len(finished) < FEWEST_JOBS:
            few = True
            longest = 1.0 if wanted else max(float(seen.max(initial=1.0)), 1.0)
            finished, seen = np.full(100, -1), np.linspace(0.0, longest, 101)[1:]
        for level, groups in enumerate(
            _groups(workload, finished, seen, jobs[rows], by_estimate=wanted)
        ):
            found = groups.of_job
            low = groups.first[found]
            high = np.where(found < 0, low, groups.first[found + 1])
            start = _first_above(groups, least[rows])
            total[level, rows] = high - low
            begin[level, rows] = offset + start
            size[level, rows] = high - start
            values.append(groups.value)
            offset += len(groups.value)
    source = "even" if few else "ratios" if is_ratio.any() or not len(jobs) else "run times"
    return RunTimes(
        jobs=jobs,
        unit=unit[jobs],
        least=least,
        chosen=_chosen(total, size),
        begin=begin,
        size=size,
        values=np.concatenate([*values, np.zeros(1)]),
        user=workload.user[jobs].astype(np.int64),
        shared=_alike(past, unit),
        source=source,
    )


def _groups(
    workload: Workload, finished: Jobs, seen: Floats, jobs: Jobs, *, by_estimate: bool
) -> list[RunTimeGroups]:
    """Return the finished jobs in groups, the smallest first; see LEVELS."""
    rows = np.concatenate([finished, jobs])
    # Jobs that stand for none at all (-1) are in the group of all only.
    user, gpus, estimate = (
        np.where(rows >= 0, column[rows], -1.0)
        for column in (workload.user, workload.gpus, np.nan_to_num(workload.estimate, nan=1.0))
    )
    size = np.rint(np.log2(np.maximum(estimate, 1.0))) if by_estimate else gpus
    own = [user, gpus, estimate] if by_estimate else [user, gpus]
    levels: list[list[Floats]] = [own, [user, size], [size], [np.zeros(len(rows))]]
    return [_sorted(_numbered(columns), seen, len(finished)) for columns in levels]


def _numbered(columns: list[Floats]) -> Ints:
    """Return the number of each distinct row of columns."""
    numbers: Ints = np.unique(np.stack(columns), axis=1, return_inverse=True)[1].reshape(-1)
    return numbers


def _sorted(key: Ints, seen: Floats, finished: int) -> RunTimeGroups:
    order = np.lexsort([seen, key[:finished]])
    groups, first = np.unique(key[:finished][order], return_index=True)
    place = np.searchsorted(groups, key[finished:])
    is_there = place < len(groups)
    is_there[is_there] = groups[place[is_there]] == key[finished:][is_there]
    return RunTimeGroups(seen[order], np.append(first, finished), np.where(is_there, place, -1))


def _first_above(groups: RunTimeGroups, least: Floats) -> Ints:
    """Return where the values of each job's group begin that are larger than its progress."""
    # Search in all groups at once: a group's values are moved beyond those of the one before.
    found = groups.of_job
    if not len(groups.value):
        return np.zeros(len(found), np.int64)
    rank_of = np.unique(np.concatenate([groups.value, least]), return_inverse=True)[1].reshape(-1)
    ranks, mine = rank_of[: len(groups.value)], rank_of[len(groups.value) :]
    step = len(rank_of) + 1
    members = np.repeat(np.arange(len(groups.first) - 1), np.diff(groups.first))
    place: Ints = np.searchsorted(members * step + ranks, found * step + mine, side="right")
    return np.where(found < 0, groups.first[found], place)


def _chosen(total: Ints, size: Ints) -> Floats:
    """Return with which probability each group is used, given the progress of the jobs."""
    weight = np.zeros(total.shape)
    before = np.ones(total.shape[1])
    for level in range(LEVELS):
        last = level == LEVELS - 1
        share = np.where(last, 1.0, total[level] / (total[level] + PRIOR))
        weight[level] = before * share
        before = before * (1 - share)
    # The more of a group's jobs had ended by now, the less likely the job is one of them.
    weight *= size / np.maximum(total, 1)
    whole = weight.sum(axis=0)
    weight[-1, whole == 0] = 1.0
    chosen: Floats = weight / np.where(whole == 0, 1.0, whole)
    return chosen


def _alike(past: Past, unit: Floats) -> float:
    """Return the rank correlation of the run times of a user's finished jobs that followed."""
    jobs = past.finished
    if len(jobs) < FEWEST_JOBS:
        return 0.0
    rank = np.argsort(np.argsort(past.jobs.run[jobs] / unit[jobs], kind="stable"), kind="stable")
    order = np.argsort(past.jobs.user[jobs], kind="stable")
    user, rank = past.jobs.user[jobs][order], rank[order]
    same = user[1:] == user[:-1]
    if same.sum() < FEWEST_JOBS:
        return 0.0
    return float(np.clip(np.nan_to_num(np.corrcoef(rank[1:][same], rank[:-1][same])[0, 1]), 0, 1))
