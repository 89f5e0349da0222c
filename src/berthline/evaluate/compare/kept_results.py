"""Grids with a run directory: finished runs survive an interruption, and results are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from berthline.errors import BerthlineError, ConfigError, OutputError, SimulationError
from berthline.evaluate.compare.grid import run_grid
from berthline.evaluate.compare.kept_grid import KeptGrid
from berthline.policies.given import is_given

if TYPE_CHECKING:
    from collections.abc import Mapping

    from berthline.engines.engine import Engine
    from berthline.evaluate.compare.grid import Grid, GridResults, Progress
    from berthline.runs.run_directory import RunDirectory

_NO_MATTER = ("out", "force", "resume", "json", "workers", "engine", "address")
"""Settings that do not affect results."""


def make_runs(
    grid: Grid,
    directory: RunDirectory | None,
    config: Mapping[str, Any],
    *,
    workers: int | None,
    progress: Progress | None,
    engine: Engine | None = None,
) -> GridResults:
    """Make the runs of a grid; with a directory, finished runs survive an interruption.

    Args:
        grid: the runs.
        directory: where the results will be.
        config: the resolved settings, which must be the same to resume.
        workers: number of processes.
        progress: called after each run.
        engine: where the runs are made; None = on this machine.

    Raises:
        BerthlineError: a run is impossible, or the directory has runs with other settings.
    """
    kept = None
    if directory is not None and directory.resume and any(map(is_given, grid.schedulers)):
        raise ConfigError(
            "a policy that is a Python object may have changed since the run began",
            where=next(filter(is_given, grid.schedulers)),
            expected="a new run, without `resume`",
            hint="to resume, write the policy to a file: berthline.export_policy",
        )
    if directory is not None:
        asked = {k: v for k, v in config.items() if k not in _NO_MATTER and v is not None}
        if not directory.resume:
            directory.forget_unfinished()
        kept = KeptGrid(directory.unfinished, asked)
    try:
        return run_grid(grid, workers=workers, engine=engine, kept=kept, progress=progress)
    except BerthlineError as error:
        if directory is not None and not isinstance(error, OutputError | SimulationError):
            directory.forget_unfinished()  # the same settings would fail again
        raise
    finally:
        if kept is not None:
            kept.close()


def keep_results(
    directory: RunDirectory,
    results: GridResults,
    *,
    command: str,
    config: Mapping[str, Any],
    summary: object,
) -> None:
    """Write the run directory of a grid after all runs are made.

    Raises:
        OutputError: the disk is full, or the directory cannot be written.
    """
    directory.write(
        command=command,
        config=config,
        seed=results.seeds[0],
        summary=summary,
        metrics=results.lines(),
        workload=results.grid.cells[0].source,
        files=results.tables(),
    )
