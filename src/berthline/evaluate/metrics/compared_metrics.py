"""Compared metrics: the metrics used in every comparison, with their names and readers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.errors import ConfigError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from berthline.evaluate.metrics.measure import Metrics


def mean_of(values: npt.NDArray[np.floating]) -> float:
    """Return the mean of a column."""
    return float(np.mean(values))


def p99_of(values: npt.NDArray[np.floating]) -> float:
    """Return the 99th percentile of a column."""
    return float(np.percentile(values, 99))


@dataclasses.dataclass(frozen=True)
class ComparedMetric:
    """A metric that schedulers are compared by.

    Attributes:
        label: its name in tables and figures.
        path: its place in `Metrics`, and in what `berthline sim --json` prints.
        higher_is_better: whether higher values are better; for times, lower values are.
        column: the column of the table of jobs that it summarises; empty = it is about the whole
            run.
        statistic: its statistic of that column, or of a block of it.
    """

    label: str
    path: tuple[str, ...]
    higher_is_better: bool = False
    column: str = ""
    statistic: Callable[[npt.NDArray[np.floating]], float] = mean_of

    def of(self, metrics: Metrics) -> float:
        """Return the value in the metrics of a run."""
        value = metrics
        for name in self.path:
            value = getattr(value, name)
        return value  # type: ignore[return-value]

    def of_summary(self, summary: Mapping[str, object]) -> float:
        """Return the value in the summary of a run, as read from JSON."""
        value: object = summary
        for name in self.path:
            value = value[name]  # type: ignore[index]
        return value  # type: ignore[return-value]


METRICS: dict[str, ComparedMetric] = {
    "jct_mean": ComparedMetric("mean JCT", ("jct", "mean"), column="jct"),
    "jct_p99": ComparedMetric("p99 JCT", ("jct", "p99"), column="jct", statistic=p99_of),
    "bounded_slowdown_mean": ComparedMetric(
        "bounded slowdown", ("bounded_slowdown", "mean"), column="bounded_slowdown"
    ),
    "wait_mean": ComparedMetric("mean wait", ("wait", "mean"), column="wait"),
    "makespan": ComparedMetric("makespan", ("makespan",)),
    "utilization": ComparedMetric("GPU utilisation", ("utilization", "gpu"), higher_is_better=True),
}
"""Slowdown is never shown alone: it can be improved at the cost of JCT."""


def check_metric(name: str) -> None:
    """Raise unless there is such a metric.

    Raises:
        ConfigError: there is none.
    """
    if name not in METRICS:
        what, expected, hint = unknown_name("metric", name, METRICS)
        raise ConfigError(what, expected=expected, hint=hint)
