"""The results of a suite, as its figures, sentences and page read them.

Every figure compares with the best *rule* of a cell: the scheduler of the plan, no policy and no
bandit, that had the best mean there, in hindsight. Several training seeds of a part count as one
scheduler with more runs.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import TYPE_CHECKING, Any

from berthline.errors import ConfigError
from berthline.evaluate.metrics.compared_metrics import METRICS
from berthline.evaluate.statistics.paired import Ratio, includes_one, log_ratios, ratio_of_logs
from berthline.experiments.robustness_measures import COLUMNS
from berthline.experiments.suites.read_suite import read_suite
from berthline.report.figures.lineup import Lineup, line_up
from berthline.report.run_results import NotShown

if TYPE_CHECKING:
    import polars as pl

    from berthline.experiments.suites.suite_plan import SuitePlan
    from berthline.runs.open_run import Run

RESAMPLES = 2_000
"""There is an interval for each scheduler in each cell, and two digits are shown."""

BEST_ON_VAL = "best-on-val"
"""In the column of schedulers: the rule that was best on VAL."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class CellRatio:
    """A scheduler in a cell, against the best rule there.

    Attributes:
        cell: the name of the cell.
        scheduler: its name.
        best: the best rule.
        ratio: of the metric, a geometric mean over seeds; None = a value is 0 or missing.
        low: of its interval.
        high: of its interval.
    """

    cell: str
    scheduler: str
    best: str
    ratio: float | None
    low: float | None
    high: float | None

    @property
    def is_open(self) -> bool:
        """Whether the two are not distinguishable."""
        if self.ratio is None or self.low is None or self.high is None:
            return True
        return includes_one(self.low, self.high)


class ShownSuite:
    """The results of a suite.

    Args:
        run: its run directory.
        plan: as it was run.
        cells: one row for each run.
        failures: the runs that failed.

    Attributes:
        cells: with `label`: the scheduler, or the part it is.
    """

    def __init__(
        self, run: Run, plan: SuitePlan, cells: pl.DataFrame, failures: list[dict[str, Any]]
    ) -> None:
        import polars as pl

        label = pl.when(pl.col("part") == "").then(pl.col("scheduler")).otherwise(pl.col("part"))
        self.run, self.plan, self.failures = run, plan, failures
        self.cells = cells.with_columns(label=label)

    @property
    def metric(self) -> str:
        """What verdicts are about."""
        return self.plan.metric

    @property
    def column(self) -> str:
        """The column of the metric."""
        return "_".join(METRICS[self.metric].path)

    @property
    def higher(self) -> bool:
        """Whether higher values of the metric are better."""
        return METRICS[self.metric].higher_is_better

    @property
    def page(self) -> str:
        """Which page is drawn: the suite's name, unless it says otherwise."""
        return self.plan.page or self.plan.name

    @functools.cached_property
    def finished(self) -> pl.DataFrame:
        """The runs that did not fail."""
        import polars as pl

        return self.cells.filter(pl.col("error").is_null())

    @functools.cached_property
    def clean(self) -> pl.DataFrame:
        """The finished runs of cells as they are."""
        import polars as pl

        return self.finished.filter(pl.col("perturbation") == "")

    @functools.cached_property
    def perturbed(self) -> pl.DataFrame:
        """The finished runs of perturbed cells.

        Raises:
            NotShown: there is none.
        """
        import polars as pl

        found = self.finished.filter(pl.col("perturbation") != "")
        if not len(found) or not set(COLUMNS) <= set(found.columns):
            raise NotShown("nothing is perturbed in this suite")
        return found

    @functools.cached_property
    def schedulers(self) -> list[str]:
        """All schedulers, in the order of the plan."""
        return list(dict.fromkeys(self.cells["label"].to_list()))

    @functools.cached_property
    def rules(self) -> list[str]:
        """The fixed rules, no policies or bandits: hindsight chooses from them."""
        named = set(self.plan.schedulers) or {
            part.name for part in self.plan.parts if part.scheduler
        }
        return [name for name in self.schedulers if name in named]

    @functools.cached_property
    def clean_cells(self) -> list[str]:
        """The names of the clean cells, in order."""
        return list(dict.fromkeys(self.clean["cell"].to_list()))

    @functools.cached_property
    def _values(self) -> dict[str, dict[str, list[float]]]:
        """The metric by cell and scheduler, in the order of training seeds and seeds."""
        found: dict[str, dict[str, list[float]]] = {}
        rows = self.clean.sort("training_seed", "seed", nulls_last=False, maintain_order=True)
        rows = rows.select("cell", "label", self.column)
        for cell, label, value in rows.iter_rows():
            found.setdefault(cell, {}).setdefault(label, []).append(float(value))
        return found

    def values(self, cell: str, scheduler: str) -> list[float]:
        """Return the metric of a scheduler's runs in a clean cell."""
        return self._values.get(cell, {}).get(scheduler, [])

    def best_rule(self, cell: str) -> str | None:
        """Return the rule with the best mean in a clean cell; None = none has finished."""
        runs = max((len(self.values(cell, rule)) for rule in self.rules), default=0)
        whole = [rule for rule in self.rules if len(self.values(cell, rule)) == runs > 0]
        sign = -1.0 if self.higher else 1.0
        return min(whole, key=lambda rule: sign * _mean(self.values(cell, rule)), default=None)

    @functools.cached_property
    def ratios(self) -> list[CellRatio]:
        """Every scheduler in every clean cell, against the best rule there."""
        found = []
        for cell in self.clean_cells:
            best = self.best_rule(cell)
            for name in self.schedulers:
                ours = self.values(cell, name)
                if best is None or not ours:
                    continue
                one = self._ratio(ours, self.values(cell, best))
                found.append(
                    CellRatio(
                        cell=cell,
                        scheduler=name,
                        best=best,
                        ratio=one.ratio,
                        low=one.low,
                        high=one.high,
                    )
                )
        return found

    def _ratio(self, ours: list[float], theirs: list[float]) -> Ratio:
        times, rest = divmod(len(ours), len(theirs))
        logs = None if rest else log_ratios(ours, theirs * times)
        if logs is None:
            return Ratio(ratio=None, low=None, high=None, windows=len(ours))
        # Policies of several training seeds have run the same jobs: these are no further windows.
        return ratio_of_logs(logs.reshape(times, -1).mean(axis=0), resamples=RESAMPLES)

    def compared(self, scheduler: str, other: str, column: str) -> Ratio:
        """Return the ratio of a column of two schedulers: a geometric mean over clean cells.

        The interval is over cells.
        """
        import numpy as np
        import polars as pl

        keys = ["cell", "seed"]
        mine, theirs = (
            self.clean.filter(pl.col("label") == name).select(*keys, column)
            for name in (scheduler, other)
        )
        pairs = mine.join(theirs, on=keys, suffix="_other").filter(
            (pl.col(column) > 0) & (pl.col(f"{column}_other") > 0)
        )
        if not len(pairs):
            return Ratio(ratio=None, low=None, high=None, windows=0)
        logs = (
            pairs.with_columns(log=(pl.col(column) / pl.col(f"{column}_other")).log())
            .group_by("cell", maintain_order=True)
            .agg(pl.col("log").mean())
        )
        return ratio_of_logs(np.asarray(logs["log"].to_numpy()), resamples=RESAMPLES)

    def best_in(self, scheduler: str) -> int:
        """Return the number of clean cells in which no rule has a better mean."""
        sign = -1.0 if self.higher else 1.0
        return sum(
            sign * _mean(ours) <= sign * _mean(self.values(cell, best))
            for cell in self.clean_cells
            if (ours := self.values(cell, scheduler)) and (best := self.best_rule(cell))
        )

    @functools.cached_property
    def overall(self) -> dict[str, Ratio]:
        """Every scheduler over all clean cells: the geometric mean of its ratios to the best."""
        import numpy as np

        logs: dict[str, list[float]] = {name: [] for name in self.schedulers}
        for one in self.ratios:
            if one.ratio is not None:
                logs[one.scheduler].append(math.log(one.ratio))
        return {
            name: ratio_of_logs(np.array(each), resamples=RESAMPLES)
            for name, each in logs.items()
            if each
        }

    def worst(self, scheduler: str) -> CellRatio | None:
        """Return the clean cell in which a scheduler is worst."""
        mine = [one for one in self.ratios if one.scheduler == scheduler and one.ratio is not None]
        sign = -1.0 if self.higher else 1.0
        return max(mine, key=lambda one: sign * (one.ratio or 0.0), default=None)

    @functools.cached_property
    def ranked(self) -> list[str]:
        """The schedulers, nearest to the best rule of each cell first."""
        sign = -1.0 if self.higher else 1.0
        return sorted(self.overall, key=lambda name: sign * (self.overall[name].ratio or math.inf))

    @property
    def subject(self) -> str:
        """What the suite is about: a policy, the best rule on VAL, a part, or a rule."""
        others = [name for name in self.ranked if name not in self.rules]
        first = [name for name in (self.plan.run, BEST_ON_VAL) if name in others]
        # With rules only, the first of the plan: the best one would be compared with itself.
        return [*first, *others, *self.schedulers][0]

    @functools.cached_property
    def lineup(self) -> Lineup:
        """How schedulers are drawn: the best rule overall is the baseline."""
        rules = [name for name in self.ranked if name in self.rules]
        baseline = rules[0] if rules else self.schedulers[0]
        others = [name for name in self.ranked if name not in self.rules]
        rest = [name for name in self.schedulers if name not in self.ranked]
        return line_up(self.schedulers, baseline, [*others, *rules, *rest])


def shown_suite(run: Run) -> ShownSuite:
    """Return the results of a suite.

    Raises:
        ConfigError: it cannot be read, or no run has finished.
    """
    found = read_suite(run.path)
    cells = found.cells
    if not len(cells) or cells["error"].is_not_null().all():
        raise ConfigError(
            "no run of the suite has finished",
            where=str(run.path),
            expected="results to report",
            hint="failures.jsonl says why; resume the suite to make them again",
        )
    return ShownSuite(run, found.plan, cells, found.failures)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
