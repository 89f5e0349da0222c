"""Grid: every scheduler on every window of every cell, with every seed, and what came of it.

A *cell* is one workload on one cluster at one load; its windows are run from an empty cluster.
Windows are made when their turn comes, so that few are in memory at a time. The order in which
runs finish decides nothing: results are kept under their place in the grid.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from berthline.evaluate.energy_rate import EnergyRate
from berthline.evaluate.job_outcomes import JobOutcomes
from berthline.evaluate.run_record import FinishedRun, RunRecord, RunSettings, make_run
from berthline.evaluate.run_tables import RunJobs, WindowColumns
from berthline.model.cluster import Cluster
from berthline.model.schedule import Schedule
from berthline.model.workload import Workload

Progress = Callable[[int, int, str], None]
"""Called after each run with (runs done, runs in all, what has just run)."""


class Place(NamedTuple):
    """Which run of a grid; all are indexes."""

    cell: int
    window: int
    seed: int
    scheduler: int


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Cell:
    """One workload on one cluster at one load.

    Attributes:
        workload: its name.
        cluster: the nodes.
        load: the offered load asked for; None = as the workload is.
        windows: how many windows there are.
        window: returns a window of that number, and its zero on the workload's clock.
        energy_rate: on the workload's clock.
    """

    workload: str
    cluster: Cluster
    load: float | None = None
    windows: int
    window: Callable[[int], tuple[Workload, float]]
    energy_rate: EnergyRate | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Grid:
    """The runs to make.

    Attributes:
        cells: where.
        schedulers: their texts.
        seeds: each window is run with each of them.
        settings: of all runs.
    """

    cells: Sequence[Cell]
    schedulers: Sequence[str]
    seeds: Sequence[int]
    settings: RunSettings

    def __len__(self) -> int:
        windows = sum(cell.windows for cell in self.cells)
        return windows * len(self.seeds) * len(self.schedulers)

    def windows(self) -> Iterator[tuple[int, int]]:
        """Yield (cell, window) of every window, in order."""
        for number, cell in enumerate(self.cells):
            for window in range(cell.windows):
                yield number, window

    def runs_of(self, cell: int, window: int) -> list[Place]:
        """Return the runs of a window, in order."""
        return [
            Place(cell, window, seed, scheduler)
            for seed in range(len(self.seeds))
            for scheduler in range(len(self.schedulers))
        ]

    def keeps_log(self, place: Place) -> bool:
        """Whether the log of this run is kept: those of the first window, with the first seed."""
        return self.settings.keeps_jobs and place[:3] == (0, 0, 0)


@dataclasses.dataclass(eq=False)
class GridResults:
    """What came of a grid.

    Attributes:
        grid: what was run.
        records: the figures of each run.
        window_jobs: how many jobs each window has, under (cell, window).
        columns: the jobs of each window, where jobs are kept.
        jobs: what became of them, of runs with the first seed.
        logs: of each scheduler on the first window.
        first_window: that window.
    """

    grid: Grid
    records: dict[Place, RunRecord] = dataclasses.field(default_factory=dict)
    window_jobs: dict[tuple[int, int], int] = dataclasses.field(default_factory=dict)
    columns: dict[tuple[int, int], WindowColumns] = dataclasses.field(default_factory=dict)
    jobs: dict[Place, JobOutcomes] = dataclasses.field(default_factory=dict)
    logs: dict[int, Schedule] = dataclasses.field(default_factory=dict)
    first_window: Workload | None = None

    def open_window(self, cell: int, window: int) -> tuple[Workload, float]:
        """Make a window, note what the tables need of it, and return it with its zero."""
        workload, begins = self.grid.cells[cell].window(window)
        self.window_jobs[cell, window] = len(workload)
        if self.first_window is None:
            self.first_window = workload
        if self.grid.settings.keeps_jobs:
            self.columns[cell, window] = WindowColumns.of(workload)
        return workload, begins

    def add(self, place: Place, run: FinishedRun) -> None:
        """Keep what a run gave."""
        self.records[place] = run.record
        if run.jobs is not None and place.seed == 0:
            self.jobs[place] = run.jobs
        if run.log is not None:
            self.logs[place.scheduler] = run.log

    def of(self, cell: int, scheduler: int) -> list[list[RunRecord]]:
        """Return the records of a scheduler in a cell: for each window, those of its seeds."""
        return [
            [self.records[Place(cell, window, seed, scheduler)] for seed in range(len(self.seeds))]
            for window in range(self.grid.cells[cell].windows)
        ]

    @property
    def seeds(self) -> Sequence[int]:
        """The seeds of the grid."""
        return self.grid.seeds

    def run_jobs(self) -> list[RunJobs]:
        """Return the jobs of all runs, in the order of the grid, for the table of jobs."""
        return [
            RunJobs(
                cell=place.cell,
                scheduler=self.grid.schedulers[place.scheduler],
                window=place.window,
                columns=self.columns[place.cell, place.window],
                outcomes=outcomes,
            )
            for place, outcomes in sorted(self.jobs.items())
        ]

    def lines(self) -> Iterator[dict[str, object]]:
        """Yield a line of `metrics.jsonl` for each run, in the order of the grid."""
        for place, record in sorted(self.records.items()):
            cell = self.grid.cells[place.cell]
            yield {
                "cell": place.cell,
                "scheduler": self.grid.schedulers[place.scheduler],
                "window": place.window,
                "seed": self.grid.seeds[place.seed],
                "workload": cell.workload,
                "cluster": cell.cluster.name,
                "load": cell.load,
                **record.line(),
            }


def run_grid(grid: Grid, *, progress: Progress | None = None) -> GridResults:
    """Make all runs of a grid, one after another.

    Raises:
        BerthlineError: a scheduler does not go with a workload, cluster or knowledge.
    """
    results = GridResults(grid)
    for cell, window in grid.windows():
        workload, begins = results.open_window(cell, window)
        rate = grid.cells[cell].energy_rate
        for place in grid.runs_of(cell, window):
            name = grid.schedulers[place.scheduler]
            run = make_run(
                workload,
                grid.cells[cell].cluster,
                name,
                grid.settings,
                seed=grid.seeds[place.seed],
                energy_rate=None if rate is None else rate.shifted(begins),
                keeps_log=grid.keeps_log(place),
            )
            results.add(place, run)
            if progress is not None:
                progress(len(results.records), len(grid), f"{name} on {workload.name}")
    return results
