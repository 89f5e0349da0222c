"""Starvation: the longest wait, the jobs that waited out of proportion, and who left jobs behind.

This module is the only definition of the word. A mean hides a few jobs that wait for months; the
figures here show them, and name the scheduler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from berthline.counted import counted
from berthline.evaluate.metrics.job_table import waits
from berthline.one_line import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from berthline.evaluate.metrics.job_table import JobTable
    from berthline.model.workload import FloatColumn, Workload

DAY = 86_400.0
STARVED_RATIO, STARVED_SECONDS = 10.0, DAY
"""A starved job waited more than this many run times, and more than this."""

BEHIND_RATIO, BEHIND_SECONDS = 10.0, 14 * DAY
"""A job left behind is a starved job that waited more than this many times as long as the jobs that
were submitted while it waited, and more than this. With a long queue for all, many jobs are starved
but none is left behind. Two weeks are twice the time after which the age of a job counts in full in
Slurm (PriorityMaxAge)."""


class Starvation(msgspec.Struct, frozen=True, kw_only=True):
    """The job that waited longest for its first start (in a tie, the first), and starved jobs.

    Attributes:
        wait: the longest wait.
        job: the row of that job; with several windows, in its window.
        name: its name.
        starved: number of jobs that waited more than ten times their run time and a day.
        left_behind: those that also waited more than two weeks, and more than ten times as long as
            the jobs submitted meanwhile did on average.
        starves: whether the scheduler starves: it left a job behind.
    """

    wait: float
    job: int
    name: str
    starved: int
    left_behind: int
    starves: bool


def starvation(table: JobTable, workload: Workload) -> Starvation | None:
    """Return the longest wait in seconds, its job, and the starved jobs; None when none is counted.

    Formula: `wait` = max of `waits`; in a tie, the first job, given by row and name. `starved` =
    jobs with wait > 10 x run and wait > 1 day. `left_behind` = those of them with wait > 14 days
    and wait > 10 x the mean wait of the jobs submitted after them and before their start. `starves`
    = `left_behind` > 0: the scheduler served later jobs and left one waiting. A job not started by
    the end has waited until the end. Rejected jobs: left out.
    """
    waited = waits(table, workload)
    if not waited.size:
        return None
    longest = int(waited.argmax())
    counts = table.counted
    job = longest if counts.all() else int(np.flatnonzero(counts)[longest])
    name = str(job) if workload.names is None else str(workload.names[job])
    submit, run = table.of_counted(workload.submit), table.of_counted(workload.run)
    return of_waits(waited, submit, run, job=job, name=name)


def of_waits(
    waited: FloatColumn, submit: FloatColumn, run: FloatColumn, *, job: int, name: str
) -> Starvation:
    """Return the starvation of jobs with these waits.

    Args:
        waited: their waits; one or more.
        submit: when each of them began to wait, ascending.
        run: their run times.
        job: the row of the job that waited longest.
        name: its name.
    """
    starved = np.flatnonzero((waited > STARVED_SECONDS) & (waited > STARVED_RATIO * run))
    long = starved[waited[starved] > BEHIND_SECONDS]
    left = 0
    if long.size:
        total = np.concatenate(([0.0], np.cumsum(waited)))
        last = np.searchsorted(submit, submit[long] + waited[long])
        later = last - (long + 1)
        mean = (total[last] - total[long + 1]) / np.maximum(later, 1)
        left = int(np.count_nonzero((later > 0) & (waited[long] > BEHIND_RATIO * mean)))
    return Starvation(
        wait=float(waited.max()),
        job=job,
        name=name,
        starved=len(starved),
        left_behind=left,
        starves=left > 0,
    )


def over_runs(runs: Sequence[Starvation | None], *, same_jobs: bool = False) -> Starvation | None:
    """Return the longest wait of several runs, and their counts of jobs.

    Args:
        runs: one or more.
        same_jobs: the runs are replicates: counts are those of the worst one, not sums.
    """
    found = [run for run in runs if run is not None]
    if not found:
        return None
    longest = max(found, key=lambda run: run.wait)
    total = max if same_jobs else sum
    return msgspec.structs.replace(
        longest,
        starved=total(run.starved for run in found),
        left_behind=total(run.left_behind for run in found),
        starves=any(run.starves for run in found),
    )


def starvation_words(found: Starvation) -> str:
    """Return the longest wait and the number of starved jobs, in words."""
    return (
        f"longest wait {wait_words(found.wait)} (job {one_line(found.name)}); "
        f"{counted(found.starved, 'job')} waited more than 10 x run time and a day"
    )


def starves_words(found: Mapping[str, Starvation | None]) -> str:
    """Return which of these schedulers starve, in words; empty if none does."""
    starving = [
        f"{name} ({counted(one.left_behind, 'job')} left behind, longest wait "
        f"{wait_words(one.wait)})"
        for name, one in found.items()
        if one is not None and one.starves
    ]
    if not starving:
        return ""
    return f"{', '.join(starving)} {'starves' if len(starving) == 1 else 'starve'}"


def wait_words(seconds: float) -> str:
    """Return a wait with a unit that suits it.

    Example:
        >>> wait_words(27_812_160), wait_words(5400), wait_words(30)
        ('322 days', '1.5 hours', '30 s')
    """
    if seconds >= 2 * DAY:
        days = seconds / DAY
        return f"{days:,.0f} days" if days >= 100 else f"{days:.1f} days"
    return f"{seconds / 3600:.1f} hours" if seconds >= 3600 else f"{seconds:,.0f} s"
