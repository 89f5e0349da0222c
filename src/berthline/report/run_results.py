"""RunResults: the results of `compare`, `eval`, `demo` or `sim`, as figures and pages need them.

The report is about one cell of the run: REPORT for an evaluation, else the first. If the run lacks
a file that a figure needs, the figure is not drawn, and the page says so.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from berthline.errors import ConfigError
from berthline.evaluate.metrics.compared_metrics import METRICS
from berthline.evaluate.metrics.groups import ANY_POOL
from berthline.evaluate.metrics.starvation import Starvation
from berthline.evaluate.statistics.blocks import replicated_block_ratio
from berthline.evaluate.statistics.paired import Ratio, paired_ratio
from berthline.report.figures.lineup import Lineup, line_up
from berthline.runs.open_run import Run
from berthline.runs.run_layout import CLUSTER, EVENTS, JOBS, WORKLOAD

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars as pl

    from berthline.model.cluster import Cluster
    from berthline.model.schedule import Schedule
    from berthline.model.workload import Workload


COMPARED = ("sim", "compare", "demo", "eval", "deploy")
"""Kinds of run that have such results."""

_FILE_OF = {"jobs": JOBS, "logs": EVENTS, "workload": WORKLOAD, "cluster": CLUSTER}

Cell = dict[str, Any]
"""One workload on one cluster at one load under all schedulers, as summary.json has it."""


class NotShown(Exception):  # noqa: N818 - not an error: the run has no such data
    """The run has no data for a figure; the text says what is missing."""


@dataclasses.dataclass(frozen=True)
class RunResults:
    """The results of a run of one or more schedulers.

    Attributes:
        run: the run directory.
        cells: the cells of the results; one for a single comparison.
        overall: the results over several cells; empty with one.
        number: the index of the cell that the report is about.
    """

    run: Run
    cells: list[Cell]
    overall: dict[str, Any]
    number: int = 0
    _ratios: dict[tuple[str, str, str], Ratio] = dataclasses.field(default_factory=dict)

    @property
    def cell(self) -> Cell:
        """The cell that the report is about."""
        return self.cells[self.number]

    @property
    def logged_part(self) -> str:
        """The part of an evaluation that its logs are from, if it is not the report's."""
        return str(self.cells[0].get("part", "")) if self.number else ""

    @property
    def baseline(self) -> str:
        """The scheduler that the others are compared with."""
        return str(self.cell["baseline"])

    @property
    def schedulers(self) -> list[str]:
        """All schedulers, as given."""
        return [str(result["scheduler"]) for result in self.cell["schedulers"]]

    @property
    def windows(self) -> int:
        """How many windows the cell has."""
        return int(self.cell["windows"])

    @cached_property
    def lineup(self) -> Lineup:
        """The schedulers and their looks: the best by several metrics stand out."""
        found: dict[str, None] = {}
        for metric in ("jct_mean", "bounded_slowdown_mean", "jct_p99"):
            found[self.ranked(metric)[0]] = None
        found |= dict.fromkeys(self.ranked("jct_mean"))
        return line_up(self.schedulers, self.baseline, list(found))

    @property
    def judged_on(self) -> int:
        """Number of windows, or blocks of a continuous run, that verdicts are based on."""
        judged = self.cell["schedulers"][0].get("against_baseline") or {}
        return int((judged.get("jct_mean") or {}).get("windows", self.windows))

    def ranked(self, metric: str) -> list[str]:
        """Return the schedulers of the cell by the mean over windows, best first."""
        sign = -1.0 if METRICS[metric].higher_is_better else 1.0
        means = {name: sign * mean(self.values(name, metric)) for name in self.schedulers}
        return sorted(means, key=lambda name: means[name])

    def values(self, scheduler: str, metric: str, cell: Cell | None = None) -> list[float]:
        """Return a metric of a scheduler, one value for each window."""
        return [float(v) for v in self.result(scheduler, cell)["per_window"][metric]]

    def ratio(self, scheduler: str, other: str, metric: str) -> Ratio:
        """Return the paired ratio of two schedulers over windows, or blocks, of the cell."""
        key = (scheduler, other, metric)
        if key not in self._ratios:
            self._ratios[key] = self._ratio(*key)
        return self._ratios[key]

    def _ratio(self, scheduler: str, other: str, metric: str) -> Ratio:
        import polars as pl

        seed = int(self.cell["seed"])
        column, statistic = METRICS[metric].column, METRICS[metric].statistic
        values = [self.values(name, metric) for name in (scheduler, other)]
        if not self.cell.get("continuous"):
            return paired_ratio(values[0], values[1], seed=seed)
        if not column:
            return paired_ratio([mean(values[0])], [mean(values[1])])

        def values_of(name: str, window: int) -> npt.NDArray[np.float64]:
            mine = (pl.col("scheduler") == name) & (pl.col("window") == window)
            return self.jobs.filter(mine).sort("job")[column].to_numpy()

        replicates = [
            (values_of(scheduler, window), values_of(other, window))
            for window in range(self.windows)
        ]
        return replicated_block_ratio(
            replicates, statistic=statistic, blocks=self.judged_on, seed=seed
        )

    def total(self, scheduler: str, other: str, metric: str) -> float | None:
        """Return the ratio of the values of whole runs, or of the means over windows."""
        ours, theirs = (mean(self.values(name, metric)) for name in (scheduler, other))
        return ours / theirs if ours > 0 and theirs > 0 else None

    def starvation(self, scheduler: str) -> Starvation | None:
        """Return the longest wait and the starved jobs; None = not known."""
        found = self.result(scheduler).get("starvation")
        return None if not found else msgspec.convert(found, Starvation)

    def result(self, scheduler: str, cell: Cell | None = None) -> dict[str, Any]:
        """Return the results of a scheduler in a cell, by default that of the report."""
        for result in (cell or self.cell)["schedulers"]:
            if result["scheduler"] == scheduler:
                found: dict[str, Any] = result
                return found
        raise ConfigError(f"the run has no scheduler {scheduler!r}", where=str(self.run.path))

    @cached_property
    def jobs(self) -> pl.DataFrame:
        """The counted jobs of the cell, one row for each scheduler, window and job.

        Raises:
            NotShown: the run has no table of jobs.
        """
        import polars as pl

        frame: pl.DataFrame = self._part("jobs").filter(pl.col("state") != "rejected")
        if "cell" in frame.columns:
            frame = frame.filter(pl.col("cell") == self.number)
        if "pool" in frame.columns:
            frame = frame.with_columns(pl.col("pool").cast(pl.String).fill_null(ANY_POOL))
        order = pl.Enum(self.schedulers)
        return frame.with_columns(pl.col("scheduler").cast(pl.String).cast(order))

    @property
    def logs(self) -> dict[str, Schedule]:
        """The log of the first window of the first cell under each scheduler.

        Raises:
            NotShown: the run has no logs.
        """
        logs: dict[str, Schedule] = self._part("logs")
        return logs

    @property
    def workload(self) -> Workload:
        """The jobs of the first window of the first cell.

        Raises:
            NotShown: the run does not have them.
        """
        workload: Workload = self._part("workload")
        return workload

    @property
    def cluster(self) -> Cluster:
        """The nodes of the first cell.

        Raises:
            NotShown: the run does not have them.
        """
        cluster: Cluster = self._part("cluster")
        return cluster

    def _part(self, name: str) -> Any:
        """Return a part of the run; an unreadable file is an error, a missing file is not."""
        if not (self.run.path / _FILE_OF[name]).is_file():
            raise NotShown(f"the run directory has no {_FILE_OF[name]}")
        return getattr(self.run, name)


def results_of(run: Run) -> RunResults:
    """Return the results of a run.

    Raises:
        ConfigError: the run is not a comparison, or one of its files cannot be read.
    """
    if run.kind not in COMPARED:
        raise ConfigError(
            f"a run of kind {run.kind} is not a comparison",
            where=str(run.path),
            expected=f"a run of kind {', '.join(COMPARED)}",
        )
    if "regimes" in run.results:
        raise ConfigError(
            "an evaluation over regimes has no page",
            where=str(run.path),
            hint="its table is in summary.json, and all jobs and runs are in the other files",
        )
    try:
        cells, overall = _cells_of(run.results)
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"summary.json cannot be read: {error}",
            where=str(run.path),
            expected="a run directory as it was written",
        ) from None
    is_report = run.kind == "eval" and len(cells) > 1
    return RunResults(run, cells, overall, number=1 if is_report else 0)


def _cells_of(summary: Any) -> tuple[list[Cell], dict[str, Any]]:
    """Return the cells of a summary, and its results over all cells."""
    if "scheduler" in summary:
        summary = _as_comparison(summary)
    cells = list(summary.get("cells", [summary]))
    if not cells:
        raise ValueError("summary.json has no cells")
    for cell in cells:
        names = [result["scheduler"] for result in cell["schedulers"]]
        if cell["baseline"] not in names:
            raise ValueError("the baseline is not one of the schedulers")
        for result in cell["schedulers"]:
            for metric in METRICS:
                if len(result["per_window"][metric]) != int(cell["windows"]):
                    raise ValueError(f"{metric} does not have one value per window")
    return cells, dict(summary.get("overall") or {})


def mean(values: list[float]) -> float:
    """Return the arithmetic mean; NaN for an empty list."""
    return sum(values) / len(values) if values else float("nan")


def _as_comparison(summary: dict[str, Any]) -> Cell:
    """Return the summary of `berthline sim` as a comparison of one scheduler on one window."""
    result = {
        "scheduler": summary["scheduler"],
        "jobs": summary["jobs"],
        "metrics": summary,
        "starvation": summary.get("starvation"),
        "per_window": {name: [metric.of_summary(summary)] for name, metric in METRICS.items()},
        "log_sha256": [summary["log_sha256"]],
    }
    return {
        **{key: summary[key] for key in ("workload", "cluster", "conditions", "knowledge", "seed")},
        "run_times": summary.get("run_times"),
        "windows": 1,
        "window_jobs": [summary["jobs"]["submitted"]],
        "baseline": summary["scheduler"],
        "schedulers": [result],
    }
