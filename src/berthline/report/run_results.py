"""RunResults: what a run directory of `compare`, `eval`, `demo` or `sim` holds, as figures need it.

    summary.json                    one cell (workload, cluster, load), or a list of cells
    jobs.parquet                    one row for each run and job
    events.parquet                  schedule logs of the first window of the first cell
    workload.parquet, cluster.toml  the jobs of that window, and the nodes it ran on

Only summary.json and meta.json must be there. What needs a file that is missing is not drawn, and
says so.
"""

from __future__ import annotations

import dataclasses
import json
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.errors import ConfigError
from berthline.evaluate.blocks import block_ratio
from berthline.evaluate.comparison import HIGHER_IS_BETTER
from berthline.evaluate.groups import ANY_POOL
from berthline.evaluate.statistics import Ratio, paired_ratio
from berthline.report.lineup import Lineup, line_up

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt
    import polars as pl

    from berthline.model.cluster import Cluster
    from berthline.model.schedule import Schedule
    from berthline.model.workload import Workload


def arithmetic_mean(values: npt.NDArray[np.float64]) -> float:
    """Return the mean of a column."""
    return float(np.mean(values))


def p99(values: npt.NDArray[np.float64]) -> float:
    """Return the 99th percentile."""
    return float(np.percentile(values, 99))


METRICS = {
    "jct_mean": "mean JCT",
    "jct_p99": "p99 JCT",
    "bounded_slowdown_mean": "bounded slowdown",
    "makespan": "makespan",
    "utilization": "GPU utilisation",
    "wait_mean": "mean wait",
}
"""What schedulers are judged by, and what it is called; slowdown is never shown alone."""

OF_JOBS: dict[str, tuple[str, Callable[[npt.NDArray[np.float64]], float]]] = {
    "jct_mean": ("jct", arithmetic_mean),
    "jct_p99": ("jct", p99),
    "bounded_slowdown_mean": ("bounded_slowdown", arithmetic_mean),
    "wait_mean": ("wait", arithmetic_mean),
}
"""Metrics that blocks of jobs have too: their column, and what a block's value is."""

Cell = dict[str, Any]
"""One workload on one cluster at one load under all schedulers, as summary.json has it."""


class NotShown(Exception):  # noqa: N818 - not an error: the run has nothing of that kind
    """A figure that this run has no data for; the text says what is missing."""


@dataclasses.dataclass(frozen=True)
class RunResults:
    """The results in a run directory.

    Attributes:
        path: the directory.
        meta: meta.json.
        config: config.toml, as it stands.
        cells: the cells of summary.json; one for a single comparison.
        overall: what summary.json says over several cells; empty with one.
    """

    path: Path
    meta: dict[str, Any]
    config: str
    cells: list[Cell]
    overall: dict[str, Any]
    _ratios: dict[tuple[str, str, str], Ratio] = dataclasses.field(default_factory=dict)

    @property
    def first(self) -> Cell:
        """The first cell, the one that logs and job tables are shown of."""
        return self.cells[0]

    @property
    def baseline(self) -> str:
        """The scheduler that the others are compared with."""
        return str(self.first["baseline"])

    @property
    def schedulers(self) -> list[str]:
        """All schedulers, as given."""
        return [str(result["scheduler"]) for result in self.first["schedulers"]]

    @property
    def windows(self) -> int:
        """How many windows the first cell has."""
        return int(self.first["windows"])

    @cached_property
    def lineup(self) -> Lineup:
        """Who is shown, and how: the best by several metrics stand out."""
        found: dict[str, None] = {}
        for metric in ("jct_mean", "bounded_slowdown_mean", "jct_p99"):
            found[self.ranked(metric)[0]] = None
        found |= dict.fromkeys(self.ranked("jct_mean"))
        return line_up(self.schedulers, self.baseline, list(found))

    @property
    def judged_on(self) -> int:
        """How many windows, or blocks of a continuous run, verdicts are about."""
        judged = self.first["schedulers"][0].get("against_baseline") or {}
        return int((judged.get("jct_mean") or {}).get("windows", self.windows))

    def ranked(self, metric: str) -> list[str]:
        """Return the schedulers of the first cell by the mean over windows, best first."""
        sign = -1.0 if metric in HIGHER_IS_BETTER else 1.0
        means = {name: sign * mean(self.values(name, metric)) for name in self.schedulers}
        return sorted(means, key=lambda name: means[name])

    def values(self, scheduler: str, metric: str, cell: Cell | None = None) -> list[float]:
        """Return a metric of a scheduler, one value for each window."""
        return [float(v) for v in self.result(scheduler, cell)["per_window"][metric]]

    def ratio(self, scheduler: str, other: str, metric: str) -> Ratio:
        """Return the paired ratio of two schedulers over windows, or blocks, of the first cell."""
        key = (scheduler, other, metric)
        if key not in self._ratios:
            self._ratios[key] = self._ratio(*key)
        return self._ratios[key]

    def _ratio(self, scheduler: str, other: str, metric: str) -> Ratio:
        import polars as pl

        seed = int(self.first["seed"])
        if not self.first.get("continuous") or metric not in OF_JOBS:
            return paired_ratio(
                self.values(scheduler, metric), self.values(other, metric), seed=seed
            )
        column, statistic = OF_JOBS[metric]
        ours, theirs = (
            self.jobs.filter(pl.col("scheduler") == name).sort("job")[column].to_numpy()
            for name in (scheduler, other)
        )
        return block_ratio(ours, theirs, statistic=statistic, blocks=self.judged_on, seed=seed)

    def result(self, scheduler: str, cell: Cell | None = None) -> dict[str, Any]:
        """Return what a cell, by default the first, holds of a scheduler."""
        for result in (cell or self.first)["schedulers"]:
            if result["scheduler"] == scheduler:
                found: dict[str, Any] = result
                return found
        raise ConfigError(f"the run has no scheduler {scheduler!r}", where=str(self.path))

    @cached_property
    def jobs(self) -> pl.DataFrame:
        """The counted jobs of the first cell, one row for each scheduler, window and job.

        Raises:
            NotShown: the run kept no table of jobs.
        """
        import polars as pl

        path = self.path / "jobs.parquet"
        if not path.is_file():
            raise NotShown("the run directory has no jobs.parquet")
        frame = _read_table(path).filter(pl.col("state") != "rejected")
        if "cell" in frame.columns:
            frame = frame.filter(pl.col("cell") == 0)
        if "pool" in frame.columns:
            frame = frame.with_columns(pl.col("pool").cast(pl.String).fill_null(ANY_POOL))
        order = pl.Enum(self.schedulers)
        return frame.with_columns(pl.col("scheduler").cast(pl.String).cast(order))

    @cached_property
    def logs(self) -> dict[str, Schedule]:
        """The log of the first window of the first cell under each scheduler.

        Raises:
            NotShown: the run kept no logs, or not what they are about.
        """
        from berthline.model.schedule import Schedule

        path = self.path / "events.parquet"
        if not path.is_file():
            raise NotShown("the run directory has no events.parquet")
        frame = _read_table(path)
        if "scheduler" not in frame.columns:
            return {self.baseline: Schedule.read(self.path)}
        parts = frame.partition_by("scheduler", as_dict=True, include_key=False)
        return {str(key[0]): Schedule.from_frame(part) for key, part in parts.items()}

    @cached_property
    def workload(self) -> Workload:
        """The jobs of the first window of the first cell.

        Raises:
            NotShown: the run did not keep them.
        """
        from berthline.traces.load import load_trace

        path = self.path / "workload.parquet"
        if not path.is_file():
            raise NotShown("the run directory has no workload.parquet")
        return load_trace(path)

    @cached_property
    def cluster(self) -> Cluster:
        """The nodes of the first cell.

        Raises:
            NotShown: the run did not keep them.
        """
        from berthline.model.cluster import Cluster

        path = self.path / "cluster.toml"
        if not path.is_file():
            raise NotShown("the run directory has no cluster.toml")
        return Cluster.from_toml(path)


def read_run_results(directory: str | Path) -> RunResults:
    """Return the results in a run directory.

    Raises:
        ConfigError: there is none, or a file of it cannot be read.
    """
    path = Path(directory)
    try:
        meta = json.loads((path / "meta.json").read_bytes())
        summary = json.loads((path / "summary.json").read_bytes())
        config = (path / "config.toml").read_text(encoding="utf-8")
        cells, overall = _cells_of(summary)
    except FileNotFoundError as error:
        missing = Path(error.filename or path).name
        raise ConfigError(
            f"there is no {missing}" if path.is_dir() else "there is no such directory",
            where=str(path),
            expected="a run directory of berthline compare, eval, demo or sim",
            hint="berthline compare ... --out DIR writes one",
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"the run cannot be read: {error}",
            where=str(path),
            expected="a run directory of berthline compare, eval, demo or sim, as it was written",
        ) from None
    return RunResults(path, meta, config, cells, overall)


def _read_table(path: Path) -> pl.DataFrame:
    import polars as pl

    try:
        return pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise ConfigError(
            f"the table cannot be read: {reason}",
            where=str(path),
            expected="a file of a run directory, as it was written",
        ) from None


def _cells_of(summary: Any) -> tuple[list[Cell], dict[str, Any]]:
    """Return the cells of a summary, and what it says over all of them."""
    if "scheduler" in summary:
        summary = _as_comparison(summary)
    cells = list(summary.get("cells", [summary]))
    if not cells:
        raise ValueError("summary.json has no cells")
    for cell in cells:
        names = [result["scheduler"] for result in cell["schedulers"]]
        if cell["baseline"] not in names:
            raise ValueError("the baseline is none of the schedulers")
        for result in cell["schedulers"]:
            for metric in METRICS:
                if len(result["per_window"][metric]) != int(cell["windows"]):
                    raise ValueError(f"{metric} has no value for each window")
    return cells, dict(summary.get("overall") or {})


def mean(values: list[float]) -> float:
    """Return the arithmetic mean; NaN of nothing."""
    return sum(values) / len(values) if values else float("nan")


def _as_comparison(summary: dict[str, Any]) -> Cell:
    """Return what `berthline sim` printed as a comparison of one scheduler on one window."""
    result = {
        "scheduler": summary["scheduler"],
        "jobs": summary["jobs"],
        "metrics": summary,
        "per_window": {
            "jct_mean": [summary["jct"]["mean"]],
            "jct_p99": [summary["jct"]["p99"]],
            "bounded_slowdown_mean": [summary["bounded_slowdown"]["mean"]],
            "wait_mean": [summary["wait"]["mean"]],
            "makespan": [summary["makespan"]],
            "utilization": [summary["utilization"]["gpu"]],
        },
        "log_sha256": [summary["log_sha256"]],
    }
    return {
        **{key: summary[key] for key in ("workload", "cluster", "conditions", "knowledge", "seed")},
        "windows": 1,
        "window_jobs": [summary["jobs"]["submitted"]],
        "baseline": summary["scheduler"],
        "schedulers": [result],
    }
