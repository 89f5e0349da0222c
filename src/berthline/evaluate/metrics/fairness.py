"""Fairness: how evenly users are served, and what an equal share would give.

Finish-time fairness follows the idea of Themis (Mahajan et al., NSDI 2020): compare how long a job
took in the shared cluster with how long it would have taken on an equal share of it for its user
alone. See `finish_time_fairness` for the formula and for where it differs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt

from berthline.evaluate.metrics.distribution import Distribution
from berthline.evaluate.metrics.job_table import completion_times
from berthline.evaluate.metrics.slowdown import bounded_slowdowns, slowdowns
from berthline.model.schedule import FINISH, SUBMIT

if TYPE_CHECKING:
    from berthline.evaluate.metrics.job_table import JobTable
    from berthline.model.cluster import Cluster
    from berthline.model.schedule import Schedule
    from berthline.model.workload import FloatColumn, Workload


class Fairness(msgspec.Struct, frozen=True, kw_only=True):
    """How evenly users are served: Jain's index, and finish-time fairness over jobs."""

    jain: float
    rho: Distribution


def user_slowdowns(table: JobTable, workload: Workload) -> FloatColumn:
    """Return the mean bounded slowdown of each user with a counted job."""
    user = table.of_counted(workload.user)
    total = np.bincount(user, bounded_slowdowns(table, workload))
    jobs = np.bincount(user)
    return total[jobs > 0] / jobs[jobs > 0]


def jain_index(values: FloatColumn) -> float:
    """Return Jain's fairness index, between 1/n (one user takes all) and 1 (all alike).

    Formula: (sum x)^2 / (n x sum x^2) over users; x is the user's mean bounded slowdown, in which
    unfinished jobs are censored and rejected jobs left out. NaN when no job is counted.
    """
    if not values.size:
        return float("nan")
    return float(values.sum() ** 2 / (values.size * (values @ values)))


def finish_time_fairness(
    log: Schedule, table: JobTable, workload: Workload, cluster: Cluster
) -> FloatColumn:
    """Return rho of each counted job: above 1, the job would have been better off on its own share.

    Formula: JCT / (run x max(1, n x gpus / G)). G is all GPUs of the cluster, n the time average
    over the job's stay of the number of users with unfinished jobs. G / n is then the equal share
    of a user; a job that needs more GPUs would have them for only a fraction of the time, so it
    takes longer by the factor n x gpus / G. Unfinished jobs: with their JCT and n so far. Rejected
    jobs: left out. With a single user this is the slowdown.

    Themis divides the cluster among applications, at each moment, and asks each application how it
    would run on fewer GPUs. Here the cluster is divided among users (splitting a job in two earns
    no second share), averaged over the stay, and a gang keeps its size and takes turns. Other jobs
    of the same user are not part of the share's load: a user who floods the cluster sees it in rho.
    """
    if len(workload.user_names) == 1:
        return slowdowns(table, workload)
    entitled = _mean_active_users(log, table, workload)
    entitled *= table.of_counted(workload.gpu_amount)
    entitled /= cluster.total_gpus
    np.maximum(entitled, 1.0, out=entitled)
    entitled *= table.of_counted(workload.run)
    rho = completion_times(table, workload)
    rho /= entitled
    return rho


def _mean_active_users(log: Schedule, table: JobTable, workload: Workload) -> FloatColumn:
    """Return for each counted job the mean number of users with unfinished jobs during its stay."""
    is_event = (log.kind == SUBMIT) | (log.kind == FINISH)
    if not (admitted := table.admitted).all():
        is_event &= admitted[log.job]
    rows = np.flatnonzero(is_event)
    job, is_submit = log.job[rows], log.kind[rows] == SUBMIT
    del rows  # 16 MB at a million jobs, and fast to recompute
    active = np.cumsum(_user_changes(job, is_submit, workload), dtype=np.int32)
    time = log.time[np.flatnonzero(is_event)]
    # The integral of the number of active users, up to each row.
    area = np.zeros(len(time))
    np.subtract(time[1:], time[:-1], out=area[1:])
    area[1:] *= active[:-1]
    np.cumsum(area, out=area)
    at_end = area[-1] + active[-1] * (table.end - time[-1]) if len(time) else 0.0
    del time, active
    found = np.full(len(workload), at_end)
    rows = np.flatnonzero(~is_submit)
    found[job[rows]] = area[rows]
    rows = np.flatnonzero(is_submit)
    found[job[rows]] -= area[rows]
    found = table.of_counted(found)
    stay = completion_times(table, workload)
    # A job submitted at the end has a stay of 0; only its own user counts as active.
    mean: FloatColumn = np.divide(found, stay, out=np.ones(len(found)), where=stay > 0)
    return mean


def _user_changes(
    job: npt.NDArray[np.int32], is_submit: npt.NDArray[np.bool_], workload: Workload
) -> npt.NDArray[np.int8]:
    """Return what each submission or finish does to the number of active users: +1, 0 or -1."""
    user = workload.user[job]
    if len(workload.user_names) <= 2**16:
        user = user.astype(np.uint16)  # which numpy sorts in linear time
    order = np.argsort(user, kind="stable")
    user = user[order]
    is_submit = is_submit[order]
    unfinished = np.where(is_submit, np.int8(1), np.int8(-1)).cumsum(dtype=np.int32)
    # The cumulative sum continues over users: subtract what earlier users have left.
    last = np.flatnonzero(user[1:] != user[:-1])
    sizes = np.diff(last, prepend=-1, append=len(user) - 1)
    unfinished -= np.repeat(np.append(np.int32(0), unfinished[last]), sizes)
    change = np.empty(len(job), dtype=np.int8)
    change[order] = (is_submit & (unfinished == 1)).view(np.int8) - (
        ~is_submit & (unfinished == 0)
    ).view(np.int8)
    return change
