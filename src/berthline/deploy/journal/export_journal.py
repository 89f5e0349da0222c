"""export_journal: a journal as a run directory, with what was decided in each cycle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from berthline.deploy.journal.journal_file import JournalReader
from berthline.deploy.journal.journal_run import journal_run
from berthline.policies.scheduler import Scheduler
from berthline.runs.job_outcomes import run_jobs
from berthline.runs.job_tables import table_writers
from berthline.runs.run_directory import RunDirectory
from berthline.runs.run_layout import DECISIONS
from berthline.sim.simulate import Result
from berthline.write_frame import write_frame

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    from berthline.deploy.journal.journal_run import JournalRun
    from berthline.runs.run_output import RunOutput

NATIVE = "fcfs+easy"
"""Stands for the scheduler of a log that we did not act on, unless another is named."""


def export_journal(
    directory: str | os.PathLike[str],
    out: RunOutput,
    *,
    native: str = "",
    force: bool = False,
) -> Result:
    """Write a journal as a run directory and return the run.

    Args:
        directory: of the journal.
        out: the run directory and the command that writes it.
        native: the scheduler of the system; empty = that which acted, else NATIVE.
        force: replace an earlier export.

    Raises:
        ConfigError: there is no journal, or the directory must not be replaced.
    """
    target = RunDirectory(str(out.path), verb="deploy", force=force)
    run = journal_run(directory)
    result = _result_of(run, native)
    summary = result.summary()
    files = table_writers([run_jobs(result)], workload=run.workload, cluster=run.cluster)
    rows = list(_decisions(JournalReader(directory), run.origin, run.names))
    files[DECISIONS] = lambda path: write_frame(_frame(rows), path)
    target.write(
        command=out.command,
        config={
            "journal": str(directory),
            "scheduler": str(result.scheduler),
            "decides": run.decides,
            "knowledge": run.knowledge,
            "seed": 0,
            "horizon": run.log.horizon,
            "origin": run.origin,
            "withdrawn": run.withdrawn,
        },
        seed=0,
        summary=summary,
        metrics=[summary],
        log=run.log,
        workload=run.workload,
        files=files,
    )
    return result


def journal_result(directory: str | os.PathLike[str], native: str = "") -> Result:
    """Return what a journal says that happened, as the result of a run.

    Args:
        directory: of the journal.
        native: the scheduler of the system; empty = that which acted, else NATIVE.

    Raises:
        ConfigError: there is no journal, or a scheduler is wrong.
    """
    return _result_of(journal_run(directory), native)


def _result_of(run: JournalRun, native: str) -> Result:
    return Result(
        log=run.log,
        workload=run.workload,
        cluster=run.cluster,
        scheduler=Scheduler.parse(native or run.scheduler or NATIVE),
        knowledge=run.knowledge,
        seed=0,
        wall_seconds=0.0,
    )


_COLUMNS = ("cycle", "time", "mode", "job", "decided", "nodes", "gpus", "reason", "by", "fallback")


def _decisions(
    reader: JournalReader, origin: float, names: Mapping[int, str]
) -> Iterator[tuple[Any, ...]]:
    for entry in reader.entries():
        cycle = entry.cycle
        for row in cycle.decision:
            yield (
                cycle.number,
                cycle.time - origin,
                cycle.mode,
                names.get(row.job, "load"),
                row.kind,
                list(row.nodes),
                list(row.nodes.values()),
                row.reason,
                cycle.decided_by,
                cycle.fallback,
            )


def _frame(rows: list[tuple[Any, ...]]) -> Any:
    import polars as pl

    kinds: dict[str, Any] = {
        "cycle": pl.Int64,
        "time": pl.Float64,
        "nodes": pl.List(pl.String),
        "gpus": pl.List(pl.Int64),
    }
    schema: dict[str, Any] = {name: kinds.get(name, pl.String) for name in _COLUMNS}
    return pl.DataFrame(rows, schema=schema, orient="row")
