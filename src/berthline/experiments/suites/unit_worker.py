"""A worker of a suite: makes runs of units, and answers each with its figures.

A message is a list of units with the runs to make in each, as data: a worker makes the jobs itself.
A perturbed run that is measured against its clean twin needs the twin's log; the worker makes the
twin again where it was made before by another one.
"""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from berthline.evaluate.metrics.measure import Metrics
from berthline.experiments.suites.planned_runs import RunId, Unit
from berthline.experiments.suites.suite_cells import window_of
from berthline.experiments.suites.suite_plan import CLEAN
from berthline.policies.scheduler import Scheduler
from berthline.runs.job_outcomes import job_outcomes
from berthline.runs.job_tables import WindowColumns
from berthline.sim.simulate import Result, simulate
from berthline.worker_pool import ErrorText, serve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload


@dataclasses.dataclass(frozen=True)
class SuiteSetup:
    """What all runs of a suite share, sent once.

    Attributes:
        schedulers: all of them.
        keeps_jobs: whether outcomes of jobs are kept.
        costs: whether CPU time and memory are measured.
    """

    schedulers: tuple[Scheduler, ...]
    keeps_jobs: bool
    costs: bool


@dataclasses.dataclass(frozen=True)
class UnitTask:
    """Runs of one unit.

    Attributes:
        unit: the unit.
        runs: those to make.
        columns: the cells whose columns of jobs are wanted, by number.
    """

    unit: Unit
    runs: tuple[RunId, ...]
    columns: tuple[int, ...] = ()


class SuiteRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one run, as they are kept.

    Attributes:
        metrics: of the run.
        num_jobs: of its window.
        against_twin: measures against the clean twin, of a perturbed run.
        cpu_seconds: of the simulation, where costs are measured.
        peak_mb: largest memory of the process during the simulation, where that is known.
    """

    metrics: Metrics
    num_jobs: int
    against_twin: dict[str, float | list[float] | None] = {}
    cpu_seconds: float | None = None
    peak_mb: float | None = None


@dataclasses.dataclass(frozen=True)
class SuiteAnswer:
    """The result of one run, as bytes, or the error that ended it.

    Attributes:
        run: which run.
        record: a SuiteRecord, as MessagePack.
        jobs: outcomes of its jobs; None = not wanted.
        error: what ended it; None = nothing.
        seconds: CPU time that the run took with everything around it.
    """

    run: RunId
    record: bytes = b""
    jobs: bytes | None = None
    error: ErrorText | None = None
    seconds: float = 0.0


@dataclasses.dataclass(frozen=True)
class ColumnsAnswer:
    """The columns of the jobs of a window that do not depend on schedulers."""

    unit: int
    cell: int
    content: bytes


class _Windows:
    """The windows of a unit and its clean runs, each made when it is first needed."""

    def __init__(self, unit: Unit, setup: SuiteSetup) -> None:
        self._unit, self._setup = unit, setup
        self._windows: dict[int, tuple[Workload, Cluster]] = {}
        self._clean: dict[int, Result] = {}

    def of(self, cell: int) -> tuple[Workload, Cluster]:
        """Return the jobs and the cluster of a cell."""
        if cell not in self._windows:
            self._windows[cell] = self._made(cell)
        return self._windows[cell]

    def result(self, run: RunId) -> Result:
        """Return the result of a run; those of clean cells are kept for their twins."""
        if run.cell:
            return self._simulated(run)
        if run.scheduler not in self._clean:
            self._clean[run.scheduler] = self._simulated(run)
        return self._clean[run.scheduler]

    def _made(self, cell: int) -> tuple[Workload, Cluster]:
        unit, own = self._unit, self._unit.cells[cell]
        if own.perturbation == CLEAN:
            jobs = window_of(
                own, unit.part, unit.seed, seed=unit.seed_for("jobs"), windows=unit.windows
            )
            return jobs, own.nodes
        from berthline.experiments.perturbations import perturb

        return perturb(own.perturbation, *self.of(0), unit.seed_for("perturbation"))

    def _simulated(self, run: RunId) -> Result:
        workload, cluster = self.of(run.cell)
        return simulate(
            workload,
            cluster,
            self._setup.schedulers[run.scheduler],
            knowledge=self._unit.cells[run.cell].knowledge,
            seed=self._unit.seed_for("run"),
        )


def answers_of(setup: SuiteSetup) -> Callable[[list[UnitTask]], Iterator[Any]]:
    """Return what answers the messages of a suite."""

    def answers(tasks: list[UnitTask]) -> Iterator[SuiteAnswer | ColumnsAnswer]:
        for task in tasks:
            windows = _Windows(task.unit, setup)
            for cell in task.columns:
                try:
                    content = columns_bytes(windows.of(cell)[0])
                except Exception:
                    continue
                yield ColumnsAnswer(task.unit.number, cell, content)
            for run in task.runs:
                yield _answer(setup, task.unit, windows, run)

    return answers


def main() -> None:
    """Run a worker process."""
    serve(answers_of)


def _answer(setup: SuiteSetup, unit: Unit, windows: _Windows, run: RunId) -> SuiteAnswer:
    began = time.process_time()
    try:
        record, jobs = _made(setup, unit, windows, run)
    except Exception as error:
        return SuiteAnswer(run, error=ErrorText.of(error), seconds=time.process_time() - began)
    content = msgspec.msgpack.encode(record)
    return SuiteAnswer(run, content, jobs, seconds=time.process_time() - began)


def _made(
    setup: SuiteSetup, unit: Unit, windows: _Windows, run: RunId
) -> tuple[SuiteRecord, bytes | None]:
    workload, _ = windows.of(run.cell)
    peak = _PeakMemory() if setup.costs else None
    began = time.process_time()
    result = windows.result(run)
    seconds = time.process_time() - began
    against_twin: Mapping[str, Any] = {}
    if not unit.cells[run.cell].is_clean:
        from berthline.experiments.robustness_measures import measures

        against_twin = measures(windows.result(run._replace(cell=0)), result)
    record = SuiteRecord(
        metrics=result.metrics(),
        num_jobs=len(workload),
        against_twin=dict(against_twin),
        cpu_seconds=seconds if peak is not None else None,
        peak_mb=None if peak is None else peak.read(),
    )
    jobs = job_outcomes(result.log, workload).to_bytes() if setup.keeps_jobs else None
    return record, jobs


class _PeakMemory:
    """The largest memory of this process from now on, where the system tells it (Linux)."""

    def __init__(self) -> None:
        try:
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
            self._is_known = True
        except OSError:
            self._is_known = False

    def read(self) -> float | None:
        """Return it in MB; None = unknown."""
        if not self._is_known:
            return None
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
        return None


def columns_bytes(workload: Workload) -> bytes:
    """Return the columns of a window for the table of jobs, as MessagePack."""
    columns = WindowColumns.of(workload)
    return msgspec.msgpack.encode(
        {
            field.name: getattr(columns, field.name)
            if field.name.endswith("_names")
            else [getattr(columns, field.name).dtype.str, getattr(columns, field.name).tobytes()]
            for field in dataclasses.fields(columns)
        }
    )


def columns_of_bytes(content: bytes) -> WindowColumns:
    """Return the columns that `columns_bytes` wrote."""
    import numpy as np

    found: dict[str, Any] = msgspec.msgpack.decode(content)
    columns: dict[str, Any] = {
        name: tuple(value) if name.endswith("_names") else np.frombuffer(value[1], value[0])
        for name, value in found.items()
    }
    return WindowColumns(**columns)
