"""Slowdown and bounded slowdown: the definitions, which every metric and comparison uses.

    slowdown          JCT / run
    bounded slowdown  max(1, JCT / max(run, 10 s))

The bound keeps very short jobs from dominating a mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berthline.evaluate.metrics.job_table import completion_times

if TYPE_CHECKING:
    from berthline.evaluate.metrics.job_table import JobTable
    from berthline.model.workload import FloatColumn, Workload

BOUND_SECONDS = 10.0
"""Shorter run times count as this in the bounded slowdown."""


def bounded_slowdown(jct: FloatColumn, run: FloatColumn) -> FloatColumn:
    """Return the bounded slowdown of each job.

    Formula: max(1, JCT / max(run, 10 s)); no unit.

    Args:
        jct: the JCT of each job, in seconds.
        run: its run time on the reference GPU type, in seconds.

    Example:
        >>> bounded_slowdown(np.array([30.0, 5.0, 200.0]), np.array([1.0, 1.0, 100.0])).tolist()
        [3.0, 1.0, 2.0]
    """
    values = np.maximum(run, BOUND_SECONDS)
    np.divide(jct, values, out=values)
    return np.maximum(values, 1.0, out=values)


def bounded_slowdowns(table: JobTable, workload: Workload) -> FloatColumn:
    """Return the bounded slowdown of each counted job.

    Formula: max(1, JCT / max(run, 10 s)); no unit. Unfinished jobs: with their JCT so far.
    Rejected jobs: left out.
    """
    return bounded_slowdown(completion_times(table, workload), table.of_counted(workload.run))


def slowdowns(table: JobTable, workload: Workload) -> FloatColumn:
    """Return the slowdown of each counted job (Batsim: `stretch`).

    Formula: JCT / run; no unit. The run time is that on the reference GPU type, so a job on faster
    GPUs can be below 1. Unfinished jobs: with their JCT so far, which can be below 1 too. Rejected
    jobs: left out.
    """
    values = completion_times(table, workload)
    values /= table.of_counted(workload.run)
    return values
