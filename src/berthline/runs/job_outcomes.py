"""Job outcomes: what became of each job of one run, computed from its log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.evaluate.metrics.job_table import (
    COMPLETED,
    REJECTED,
    completion_times,
    job_table,
    waits,
)
from berthline.evaluate.metrics.slowdown import bounded_slowdowns
from berthline.runs.job_tables import STATES, JobOutcomes, RunJobs, WindowColumns

if TYPE_CHECKING:
    from berthline.model.schedule import Schedule
    from berthline.model.workload import Workload
    from berthline.sim.simulate import Result


def job_outcomes(log: Schedule, workload: Workload) -> JobOutcomes:
    """Return what the log says became of each job."""
    table = job_table(log, workload)
    counted = table.counted
    is_all = bool(counted.all())

    def of_all(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
        if is_all:
            return values.astype(np.float32)
        column = np.full(len(workload), np.nan, np.float32)
        column[counted] = values
        return column

    state = np.full(len(workload), STATES.index("unfinished"), np.uint8)
    state[table.status == COMPLETED] = STATES.index("completed")
    state[table.status == REJECTED] = STATES.index("rejected")
    return JobOutcomes(
        wait=of_all(waits(table, workload)),
        jct=of_all(completion_times(table, workload)),
        bounded_slowdown=of_all(bounded_slowdowns(table, workload)),
        state=state,
    )


def run_jobs(result: Result) -> RunJobs:
    """Return the jobs of a single run, for the table of jobs of its run directory."""
    return RunJobs(
        cell=0,
        scheduler=str(result.scheduler),
        window=0,
        columns=WindowColumns.of(result.workload),
        outcomes=job_outcomes(result.log, result.workload),
    )
