"""What a comparison leaves in its run directory besides figures: jobs, logs, cluster, workload."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from berthline.cli.run_directory import FileWriter
    from berthline.evaluate.grid import GridResults
    from berthline.sim.simulate import Result


def tables_of(results: GridResults) -> dict[str, FileWriter]:
    """Return the files of a comparison and what writes each, for `RunDirectory.write`."""
    from berthline.evaluate.run_tables import write_events, write_jobs
    from berthline.model.write_cluster_file import write_cluster_file
    from berthline.traces.parquet import write_parquet

    first = results.first_window
    cluster = results.grid.cells[0].cluster
    names = results.grid.schedulers
    logs = {name: results.logs[number] for number, name in enumerate(names)}
    return {
        "jobs.parquet": lambda path: write_jobs(results.run_jobs(), path),
        "events.parquet": lambda path: write_events(logs, path),
        "cluster.toml": lambda path: write_cluster_file(cluster, path),
        "workload.parquet": lambda path: write_parquet(first, path),
    }


def tables_of_run(result: Result) -> dict[str, FileWriter]:
    """Return the same files for a single run, whose log is written by itself."""
    from berthline.evaluate.job_outcomes import job_outcomes
    from berthline.evaluate.run_tables import RunJobs, WindowColumns, write_jobs
    from berthline.model.write_cluster_file import write_cluster_file
    from berthline.traces.parquet import write_parquet

    jobs = RunJobs(
        cell=0,
        scheduler=str(result.scheduler),
        window=0,
        columns=WindowColumns.of(result.workload),
        outcomes=job_outcomes(result.log, result.workload),
    )
    return {
        "jobs.parquet": lambda path: write_jobs([jobs], path),
        "cluster.toml": lambda path: write_cluster_file(result.cluster, path),
        "workload.parquet": lambda path: write_parquet(result.workload, path),
    }
