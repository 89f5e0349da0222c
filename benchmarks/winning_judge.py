"""Evaluation of policies on REPORT: short windows in pairs, or one long run in blocks of jobs."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np
from benchmarks.hindsight import Place, column

from berthline.evaluate.metrics.job_table import completion_times, job_table, makespan
from berthline.evaluate.metrics.slowdown import bounded_slowdowns
from berthline.evaluate.statistics.blocks import block_ratio
from berthline.evaluate.statistics.paired import Ratio, paired_ratio
from berthline.sim.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.winning_settings import Setting

    import berthline as bl

METRICS = ("mean_bounded_slowdown", "mean_jct", "p99_jct", "makespan")
MIDDLE = (0.1, 0.9)
"""The jobs of one run that count: the queue is neither filling nor draining."""


def p99(values: np.ndarray) -> float:
    """Return the 99th percentile."""
    return float(np.quantile(values, 0.99))


class Judge:
    """Compares schedulers on the REPORT windows of a setting, running each once.

    Args:
        setting: where.
        report: the windows; for a long setting, the one run.
    """

    def __init__(self, setting: Setting, report: Sequence[bl.Workload]) -> None:
        self._setting, self._report = setting, report
        self._place = Place(setting.cluster, setting.knowledge)
        self.windows = 16 if setting.long else len(report)
        self._columns = functools.cache(self._run)

    def _run(self, scheduler: str) -> dict[str, np.ndarray]:
        """Return each metric of all windows; for one run, the values of all jobs that count."""
        if not self._setting.long:
            found = self._place.run(scheduler, self._report)
            return {metric: np.array(column(found, metric)) for metric in METRICS}
        (jobs,) = self._report
        log = simulate(
            jobs, self._setting.cluster, scheduler, knowledge=self._setting.knowledge
        ).log
        table = job_table(log, jobs)
        jct, slowdown = completion_times(table, jobs), bounded_slowdowns(table, jobs)
        first, last = (int(share * len(jct)) for share in MIDDLE)
        return {
            "mean_bounded_slowdown": slowdown[first:last],
            "mean_jct": jct[first:last],
            "p99_jct": jct[first:last],
            "makespan": np.array([makespan(table)]),
        }

    def best(self, names: Sequence[str]) -> tuple[str, str]:
        """Return the schedulers with the lowest slowdown and mean JCT, in hindsight."""
        lowest = []
        for metric in ("mean_bounded_slowdown", "mean_jct"):
            mean: Callable[[np.ndarray], float] = (
                (lambda values: float(np.log(values.mean())))
                if self._setting.long
                else (lambda values: float(np.log(values).mean()))
            )
            lowest.append(min(names, key=lambda name: mean(self._columns(name)[metric])))
        return lowest[0], lowest[1]

    def against(self, scheduler: str, rival: str) -> dict[str, str]:
        """Return the ratios of all metrics, with intervals, as columns of the CSV file."""
        ours, theirs = self._columns(scheduler), self._columns(rival)
        found: dict[str, str] = {}
        for metric in METRICS:
            ratio = self._ratio(metric, ours[metric], theirs[metric])
            for end in ("ratio", "low", "high"):
                value = getattr(ratio, end)
                found[f"{metric}_{end}"] = "" if value is None else f"{value:.5f}"
        return found

    def _ratio(self, metric: str, ours: np.ndarray, theirs: np.ndarray) -> Ratio:
        if not self._setting.long or metric == "makespan":
            return paired_ratio(ours.tolist(), theirs.tolist())
        return block_ratio(ours, theirs, statistic=p99 if metric == "p99_jct" else np.mean)
