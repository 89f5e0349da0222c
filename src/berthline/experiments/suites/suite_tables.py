"""The tables of a suite: one row for each run, and one for each of its jobs."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from berthline.evaluate.compare.protocol import VAL
from berthline.evaluate.metrics.compared_metrics import METRICS
from berthline.evaluate.metrics.measure import Metrics
from berthline.experiments.suites.planned_runs import (
    BEST_ON_VAL,
    PlannedRuns,
    PlannedScheduler,
    RunId,
    Unit,
)
from berthline.runs.job_tables import RunJobs, write_jobs
from berthline.write_frame import write_frame

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import polars as pl

    from berthline.experiments.suites.suite_work import SuiteWork
    from berthline.experiments.suites.unit_worker import SuiteRecord

OF_GROUPS = ("by_priority", "preemptions_by_reason")
"""Metrics whose names depend on the jobs: they are in metrics.jsonl, not in the table."""
NOT_COMPLETED = "no rule finished on VAL"


@dataclasses.dataclass(frozen=True)
class SuiteRow:
    """A row of the table: a run, and whose name it stands under.

    Attributes:
        unit: its unit.
        run: the run whose figures these are; None = there is none.
        scheduler: its name in the table.
        planned: the scheduler that ran.
    """

    unit: Unit
    run: RunId | None
    scheduler: str
    planned: PlannedScheduler | None
    cell: int


class SuiteResults:
    """The results of a suite, in the order of its plan.

    Args:
        work: the runs, all of them made.
    """

    def __init__(self, work: SuiteWork) -> None:
        self.work = work
        self.planned: PlannedRuns = work.planned
        self.chosen = self._chosen_on_val() if self.planned.chooses_on_val else None

    def rows(self) -> Iterator[SuiteRow]:
        """Yield the rows: by cell, seed and scheduler; without those of VAL."""
        units: dict[str, list[Unit]] = {}
        for unit in self.planned.units:
            if unit.part != VAL:
                units.setdefault(unit.clean.regime, []).append(unit)
        for cell in self.planned.cells:
            for unit in units.get(cell.regime, []):
                if cell in unit.cells:
                    yield from self._rows_of(unit, unit.cells.index(cell))

    def _rows_of(self, unit: Unit, cell: int) -> Iterator[SuiteRow]:
        runs = [run for run in self.planned.runs_of(unit) if run.cell == cell]
        for run in runs:
            planned = self.planned.schedulers[run.scheduler]
            yield SuiteRow(unit, run, planned.name, planned, cell)
        if self.chosen is not None and runs:
            rule = self.chosen[unit.clean.name]
            found = None if rule is None else RunId(unit.number, cell, rule)
            yield SuiteRow(unit, found, BEST_ON_VAL, None, cell)

    def record(self, row: SuiteRow) -> SuiteRecord | None:
        """Return the figures of a row; None = it failed."""
        return None if row.run is None else self.work.result_of(row.unit, row.run)

    def error(self, row: SuiteRow) -> str | None:
        """Return why a row has no figures; None = it has."""
        if row.run is None:
            return NOT_COMPLETED
        failure = self.work.failures.get(row.run)
        return None if failure is None else failure.error.what.strip().splitlines()[-1]

    def chosen_names(self) -> dict[str, str | None] | None:
        """Return the rule that was chosen in each cell; None = nothing is chosen on VAL."""
        if self.chosen is None:
            return None
        schedulers = self.planned.schedulers
        return {
            cell: None if number is None else schedulers[number].name
            for cell, number in self.chosen.items()
        }

    def _chosen_on_val(self) -> dict[str, int | None]:
        """Return the number of the rule with the best mean on VAL, by clean cell."""
        metric = METRICS[self.planned.plan.metric]
        rules = range(len(self.planned.plan.schedulers))
        values: dict[str, dict[int, list[float]]] = {}
        for unit in self.planned.units:
            if unit.part == VAL:
                of = values.setdefault(unit.clean.name, {rule: [] for rule in rules})
                for run in self.planned.runs_of(unit):
                    record = self.work.result_of(unit, run)
                    if run.scheduler in of:
                        of[run.scheduler].append(
                            np.nan if record is None else metric.of(record.metrics)
                        )
        sign = -1 if metric.higher_is_better else 1
        found: dict[str, int | None] = {}
        for cell, of in values.items():
            means = {rule: sign * float(np.mean(each)) for rule, each in of.items() if each}
            finite = {rule: mean for rule, mean in means.items() if np.isfinite(mean)}
            found[cell] = min(finite, key=finite.__getitem__) if finite else None
        return found

    def cells_frame(self) -> pl.DataFrame:
        """Return the table of runs."""
        import polars as pl

        rows = list(self.rows())
        limited = self.planned.plan.limit is not None
        columns: dict[str, list[Any]] = {}
        metrics = flat_names()
        measures = self._measures()
        names = [*_FACTS, *metrics, *measures]
        names += ["cpu_seconds", "peak_mb"] if self.planned.plan.costs else []
        columns = {name: [] for name in names}
        for row in rows:
            record = self.record(row)
            found = self._facts(row, record, limited=limited)
            if record is not None:
                found |= flat(record.metrics)
                found |= record.against_twin
                found |= {"cpu_seconds": record.cpu_seconds, "peak_mb": record.peak_mb}
            for name, values in columns.items():
                values.append(found.get(name))
        kinds: dict[str, Any] = {name: pl.Float64() for name in names}
        kinds |= dict.fromkeys(_TEXTS, pl.String())
        kinds |= dict.fromkeys(_WHOLE, pl.Int64())
        kinds["limited"] = pl.Boolean()
        kinds |= {k: pl.List(pl.Float64()) for k, kind in measures.items() if kind == "list"}
        series = [pl.Series(name, columns[name], kinds[name], strict=False) for name in names]
        return pl.DataFrame(series)

    def write_cells(self, path: Path) -> None:
        """Write the table of runs."""
        write_frame(self.cells_frame(), path, compression="zstd", compression_level=1)

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield a line of metrics.jsonl for each run, those of VAL last."""
        limited = self.planned.plan.limit is not None
        for row in self.rows():
            record = self.record(row)
            yield {"protocol": row.unit.part, **self._line(row, record, limited=limited)}
        for unit in self.planned.units:
            if unit.part == VAL:
                for run in self.planned.runs_of(unit):
                    planned = self.planned.schedulers[run.scheduler]
                    row = SuiteRow(unit, run, planned.name, planned, run.cell)
                    record = self.work.result_of(unit, run)
                    yield {"protocol": VAL, **self._line(row, record, limited=limited)}

    def write_jobs(self, path: Path) -> None:
        """Write the table of jobs."""
        runs = []
        number_of = {cell.name: number for number, cell in enumerate(self.planned.cells)}
        for row in self.rows():
            found = None if row.run is None else self.work.jobs_of(row.unit, row.run)
            if found is not None:
                columns, outcomes = found
                name = row.scheduler if row.planned is None else row.planned.label
                runs.append(
                    RunJobs(
                        cell=number_of[row.unit.cells[row.cell].name],
                        scheduler=name,
                        window=row.unit.seed,
                        columns=columns,
                        outcomes=outcomes,
                    )
                )
        if runs:
            write_jobs(runs, path)

    def _line(self, row: SuiteRow, record: SuiteRecord | None, *, limited: bool) -> dict[str, Any]:
        facts = self._facts(row, record, limited=limited)
        if record is None:
            return facts
        found = facts | msgspec.structs.asdict(record.metrics)
        # Curves are in the table of runs only: here they would be most of the file.
        measures = {k: v for k, v in record.against_twin.items() if not isinstance(v, list)}
        return found | ({"against_twin": measures} if measures else {})

    def _facts(self, row: SuiteRow, record: SuiteRecord | None, *, limited: bool) -> dict[str, Any]:
        cell, planned = row.unit.cells[row.cell], row.planned
        return {
            "suite": self.planned.plan.name,
            "cell": cell.name,
            "regime": cell.regime,
            "shape": cell.shape,
            "intensity": cell.intensity,
            "gpus": cell.nodes.total_gpus,
            "perturbation": cell.perturbation,
            "twin": "" if cell.is_clean else cell.regime,
            "workload": cell.workload,
            "cluster": cell.cluster,
            "load": cell.load,
            "part": "" if planned is None else planned.part,
            "training_seed": None if planned is None else planned.training_seed,
            "scheduler": row.scheduler,
            "seed": row.unit.seed,
            "num_jobs": None if record is None else record.num_jobs,
            "limited": limited,
            "error": self.error(row),
        }

    def _measures(self) -> dict[str, str]:
        """Return the columns of measures against the twin, and what they hold."""
        if all(cell.is_clean for cell in self.planned.cells):
            return {}
        from berthline.experiments.robustness_measures import COLUMNS

        return dict(COLUMNS)


_FACTS = (
    "suite", "cell", "regime", "shape", "intensity", "gpus", "perturbation", "twin", "workload",
    "cluster", "load", "part", "training_seed", "scheduler", "seed", "num_jobs", "limited", "error",
)  # fmt: skip
_WHOLE = ("gpus", "training_seed", "seed", "num_jobs")
_TEXTS = (
    "suite", "cell", "regime", "shape", "intensity", "perturbation", "twin", "workload", "cluster",
    "part", "scheduler", "error", "log_sha256", "starvation_name",
)  # fmt: skip


def flat(metrics: Metrics) -> dict[str, Any]:
    """Return metrics by flat names: `jct.mean` is `jct_mean`."""
    found: dict[str, Any] = {}
    _flatten(metrics, "", found)
    return found


def _flatten(struct: msgspec.Struct, prefix: str, found: dict[str, Any]) -> None:
    for name in struct.__struct_fields__:
        value = getattr(struct, name)
        if isinstance(value, msgspec.Struct):
            _flatten(value, f"{prefix}{name}_", found)
        elif name not in OF_GROUPS:
            found[prefix + name] = value


def flat_names(kind: Any = Metrics, prefix: str = "") -> list[str]:
    """Return the flat names of all metrics, in order."""
    names: list[str] = []
    struct: Any = msgspec.inspect.type_info(kind)
    for field in struct.fields:
        types = getattr(field.type, "types", (field.type,))
        inner = [one for one in types if isinstance(one, msgspec.inspect.StructType)]
        if inner:
            names += flat_names(inner[0].cls, f"{prefix}{field.name}_")
        elif field.name not in OF_GROUPS:
            names.append(prefix + field.name)
    return names
