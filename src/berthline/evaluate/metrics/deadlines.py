"""Deadlines: which jobs missed theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from berthline.evaluate.metrics.job_table import JobTable
    from berthline.model.workload import Workload


def deadline_miss_rate(table: JobTable, workload: Workload) -> float | None:
    """Return the share of jobs with a deadline that missed it; None when no job has one.

    Formula: jobs with finish > deadline / jobs with a finite deadline. Unfinished jobs: missed
    when the deadline is not after the end; otherwise counted as not missed, which makes the rate
    a lower bound. Rejected jobs: left out.
    """
    has_one = np.isfinite(table.of_counted(workload.deadline))
    if not has_one.any():
        return None
    return float(missed_deadlines(table, workload)[has_one].mean())


def missed_deadlines(table: JobTable, workload: Workload) -> npt.NDArray[np.bool_]:
    """Return for each counted job whether it missed a deadline; False without a deadline."""
    deadline, finish = table.of_counted(workload.deadline), table.of_counted(table.finish)
    missed: npt.NDArray[np.bool_] = np.where(
        np.isnan(finish), deadline <= table.end, finish > deadline
    )
    return missed
