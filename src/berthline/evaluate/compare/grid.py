"""Grid: every scheduler on every window of every cell, with every seed, and the results.

A *cell* is one workload on one cluster at one load; its windows start on an empty cluster. Windows
are made when they are needed, so that few are in memory at a time. The order in which runs finish
has no effect: results are stored by their index in the grid.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from berthline.engines.engine import LOCAL, Engine
from berthline.errors import ConfigError
from berthline.evaluate.compare.kept_grid import KeptGrid
from berthline.evaluate.compare.run_record import FinishedRun, RunRecord, RunSettings, make_run
from berthline.evaluate.metrics.energy_rate import EnergyRate
from berthline.evaluate.statistics.blocks import BLOCKS
from berthline.model.cluster import Cluster
from berthline.model.schedule import Schedule
from berthline.model.workload import Workload
from berthline.policies.given import is_given
from berthline.runs.job_tables import JobOutcomes, RunJobs, WindowColumns, table_writers
from berthline.size_limits import check_sizes

if TYPE_CHECKING:
    from berthline.runs.run_directory import FileWriter

Progress = Callable[[int, int, str], None]
"""Called after each run with (runs done, total runs, label of the run)."""


_FEW_JOBS = 200_000
"""Total jobs of all runs: one process simulates this many in about half a second, which is also the
time to start another process."""


class RunIndex(NamedTuple):
    """The index of a run in a grid."""

    cell: int
    window: int
    seed: int
    scheduler: int


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Cell:
    """One workload on one cluster at one load.

    Attributes:
        workload: its name.
        source: the workload that windows are cut from, or the first of those generated.
        cluster: the nodes.
        load: the requested offered load; None = the load of the workload.
        windows: number of windows.
        window: returns a window by its number, and its zero on the workload's clock.
        energy_rate: on the workload's clock.
        part: which part of the protocol it belongs to, if any: `VAL`, `REPORT`.
    """

    workload: str
    source: Workload
    cluster: Cluster
    load: float | None = None
    windows: int
    window: Callable[[int], tuple[Workload, float]]
    energy_rate: EnergyRate | None = None
    part: str = ""


@dataclasses.dataclass(frozen=True, eq=False)
class Grid:
    """The runs to make.

    Attributes:
        cells: the cells to run in.
        schedulers: their texts.
        seeds: each window is run with each of them.
        settings: settings of all runs.
        continuous: every cell is one run, evaluated in blocks of its jobs.
        blocks: number of blocks.
        jitter: the windows of a continuous cell are the workload and this many replicates of it.
        mode: why the runs are continuous, or why not, in words.
    """

    cells: Sequence[Cell]
    schedulers: Sequence[str]
    seeds: Sequence[int]
    settings: RunSettings
    continuous: bool = False
    blocks: int = BLOCKS
    jitter: int = 0
    mode: str = ""

    def __post_init__(self) -> None:
        check_sizes(lowest=0, runs=len(self), blocks=self.blocks)
        replicates = 1 + self.jitter
        if self.continuous and (
            len(self.seeds) > 1 or any(cell.windows > replicates for cell in self.cells)
        ):
            raise ConfigError(
                "a continuous run has no windows and one seed",
                expected="`continuous` without `windows` and `seeds`",
                hint="`blocks` sets the number of blocks that it is evaluated in",
            )

    def __len__(self) -> int:
        windows = sum(cell.windows for cell in self.cells)
        return windows * len(self.seeds) * len(self.schedulers)

    def windows(self) -> Iterator[tuple[int, int]]:
        """Yield (cell, window) of every window, in order."""
        for number, cell in enumerate(self.cells):
            for window in range(cell.windows):
                yield number, window

    def runs_of(self, cell: int, window: int) -> list[RunIndex]:
        """Return the runs of a window, in order."""
        return [
            RunIndex(cell, window, seed, scheduler)
            for seed in range(len(self.seeds))
            for scheduler in range(len(self.schedulers))
        ]

    def keeps_log(self, index: RunIndex) -> bool:
        """Whether the log of this run is kept: on the first window, with the first seed."""
        return self.settings.keeps_jobs and index[:3] == (0, 0, 0)

    def bounds(self, index: RunIndex) -> bool:
        """Whether this run computes the bound of its window: the first run of each window does."""
        return (index.seed, index.scheduler) == (0, 0)


class WindowNote(NamedTuple):
    """Facts about a window."""

    name: str
    jobs: int


@dataclasses.dataclass(eq=False)
class GridResults:
    """The results of a grid.

    Attributes:
        grid: the runs.
        records: the figures of each run.
        kept: finished runs of an earlier attempt; new runs are added to it.
        windows: facts about each window, by (cell, window).
        columns: the jobs of each window, where jobs are kept.
        jobs: the outcomes of these jobs, for runs with the first seed.
        logs: the log of each scheduler on the first window.
    """

    grid: Grid
    kept: KeptGrid | None = None
    records: dict[RunIndex, RunRecord] = dataclasses.field(default_factory=dict)
    windows: dict[tuple[int, int], WindowNote] = dataclasses.field(default_factory=dict)
    columns: dict[tuple[int, int], WindowColumns] = dataclasses.field(default_factory=dict)
    jobs: dict[RunIndex, JobOutcomes] = dataclasses.field(default_factory=dict)
    logs: dict[int, Schedule] = dataclasses.field(default_factory=dict)
    _first: tuple[Workload, float] | None = None

    def open_window(self, cell: int, window: int) -> tuple[Workload, float]:
        """Make a window, record the facts about it, and return it with its zero.

        Runs on it that were kept from an earlier attempt are added.
        """
        if (cell, window) == (0, 0) and self._first is not None:
            workload, begins = self._first
        else:
            workload, begins = self.grid.cells[cell].window(window)
        if (cell, window) == (0, 0):
            self._first = workload, begins
        if (cell, window) not in self.windows:
            self.windows[cell, window] = WindowNote(workload.name, len(workload))
            if self.grid.settings.keeps_jobs:
                self.columns[cell, window] = WindowColumns.of(workload)
            if self.kept is not None:
                for index, run in self.kept.runs_on(self.grid, cell, window, workload):
                    self.add(index, run)
        return workload, begins

    @property
    def first_window(self) -> Workload:
        """The first window of the first cell."""
        return self.open_window(0, 0)[0]

    def missing(self, cell: int, window: int) -> list[RunIndex]:
        """Return the runs of a window that are not made yet, in order."""
        return [index for index in self.grid.runs_of(cell, window) if index not in self.records]

    def add(self, index: RunIndex, run: FinishedRun) -> None:
        """Add the results of a run."""
        self.records[index] = run.record
        if run.jobs is not None and index.seed == 0:
            self.jobs[index] = run.jobs
        if run.log is not None:
            self.logs[index.scheduler] = run.log

    def of(self, cell: int, scheduler: int) -> list[list[RunRecord]]:
        """Return the records of a scheduler in a cell: for each window, those of its seeds."""
        return [
            [
                self.records[RunIndex(cell, window, seed, scheduler)]
                for seed in range(len(self.seeds))
            ]
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
                cell=index.cell,
                scheduler=self.grid.schedulers[index.scheduler],
                window=index.window,
                columns=self.columns[index.cell, index.window],
                outcomes=outcomes,
            )
            for index, outcomes in sorted(self.jobs.items())
        ]

    def tables(self) -> dict[str, FileWriter]:
        """Return the tables of the run directory and their writers."""
        names = self.grid.schedulers
        return table_writers(
            self.run_jobs(),
            workload=self.first_window,
            cluster=self.grid.cells[0].cluster,
            logs={name: self.logs[number] for number, name in enumerate(names)},
        )

    def lines(self) -> Iterator[dict[str, object]]:
        """Yield a line of `metrics.jsonl` for each run, in the order of the grid."""
        for index, record in sorted(self.records.items()):
            cell = self.grid.cells[index.cell]
            yield {
                "cell": index.cell,
                "scheduler": self.grid.schedulers[index.scheduler],
                "window": index.window,
                "seed": self.grid.seeds[index.seed],
                "workload": cell.workload,
                "cluster": cell.cluster.name,
                "load": cell.load,
                **record.line(),
            }


def run_grid(
    grid: Grid,
    *,
    workers: int | None = 1,
    engine: Engine | None = None,
    kept: KeptGrid | None = None,
    progress: Progress | None = None,
) -> GridResults:
    """Make all runs of a grid. The results are bit-identical for any number of workers.

    Args:
        grid: the runs.
        workers: number of processes; 1 = only this one; None = one per core, or only this one if
            the runs would end before other processes have started.
        engine: where they are; None = on this machine.
        kept: finished runs of an earlier attempt; new runs are added to it.
        progress: called after each run.

    Raises:
        BerthlineError: a scheduler cannot be used with a workload, cluster or knowledge; or a
            worker process ended.
    """
    check_sizes(workers=workers)
    engine = engine or Engine()
    results = GridResults(grid, kept)
    is_far = engine.name != LOCAL
    if workers is None and not is_far:
        workers = _worthwhile_workers(results)
    workers = engine.count(workers, most=len(grid))
    if any(map(is_given, grid.schedulers)):
        workers, is_far = 1, False  # other processes do not have the policy
    if workers > 1 or is_far:
        from berthline.evaluate.compare.grid_workers import run_in_workers

        runs = run_in_workers(results, workers, engine)
    else:
        runs = _run_here(results)
    with contextlib.closing(runs):
        for index, run in runs:
            results.add(index, run)
            if kept is not None:
                kept.add(index, run)
            if progress is not None:
                label = f"{grid.schedulers[index.scheduler]} on {results.windows[index[:2]].name}"
                progress(len(results.records), len(grid), label)
    return results


def _run_here(results: GridResults) -> Generator[tuple[RunIndex, FinishedRun]]:
    grid = results.grid
    for cell, window in grid.windows():
        workload, begins = results.open_window(cell, window)
        rate = grid.cells[cell].energy_rate
        for index in results.missing(cell, window):
            run = make_run(
                workload,
                grid.cells[cell].cluster,
                grid.schedulers[index.scheduler],
                grid.settings,
                seed=grid.seeds[index.seed],
                energy_rate=None if rate is None else rate.shifted(begins),
                keeps_log=grid.keeps_log(index),
                bounds=grid.bounds(index),
            )
            yield index, run


def _worthwhile_workers(results: GridResults) -> int:
    """Return how many processes are worth starting: few runs end before others have started."""
    from berthline.worker_pool import usable_cores

    grid = results.grid
    is_slow = grid.settings.simulator != "native" or any("@milp" in s for s in grid.schedulers)
    jobs = len(results.first_window) * len(grid)
    return usable_cores() if is_slow or jobs >= _FEW_JOBS else 1
