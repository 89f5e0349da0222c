"""Job rows: what a run did to each counted job, as a table; what `jobs.parquet` holds of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from berthline.evaluate.job_table import (
    COMPLETED,
    bounded_slowdowns,
    completion_times,
    job_table,
    waits,
)

if TYPE_CHECKING:
    import polars as pl

    from berthline.model.schedule import Schedule
    from berthline.model.workload import Workload


def job_rows(log: Schedule, workload: Workload) -> pl.DataFrame:
    """Return a row for each counted job: times in seconds, size, priority, user and pool."""
    import numpy as np
    import polars as pl

    table = job_table(log, workload)
    jobs = np.flatnonzero(table.counted)
    columns = {
        "job": jobs.astype(np.uint32),
        "submit": workload.submit[jobs],
        "wait": waits(table, workload).astype(np.float32),
        "jct": completion_times(table, workload).astype(np.float32),
        "run_time": workload.run[jobs].astype(np.float32),
        "bounded_slowdown": bounded_slowdowns(table, workload).astype(np.float32),
        "gpus": workload.gpu_amount[jobs].astype(np.float32),
        "priority": workload.priority[jobs].astype(np.int32),
    }
    frame = pl.DataFrame(columns)
    done = pl.Series("state", table.status[jobs] == COMPLETED)
    states = [
        pl.when(done).then(pl.lit("completed")).otherwise(pl.lit("unfinished")).alias("state")
    ]
    frame = frame.with_columns(states)
    if len(workload.user_names) > 1:
        names = pl.Series(workload.user_names, dtype=pl.String)
        frame = frame.with_columns(names.gather(workload.user[jobs]).alias("user"))
    if workload.pool_names:
        pools = pl.Series(["any pool", *workload.pool_names], dtype=pl.String)
        frame = frame.with_columns(pools.gather(workload.pool[jobs] + 1).alias("pool"))
    return frame
