"""The VAL/REPORT protocol: rivals are chosen on some windows, and reported once on others.

Choosing the best of many rivals on the windows you report rewards luck. Therefore the rival is
chosen on VAL windows alone, and the verdict is about REPORT windows, which played no part in the
selection. A generator makes the two with separate seeds, which `compare` never uses. A trace is
split by time (traces/split.py): VAL windows are cut from its validation part and REPORT windows
from its test part, with a gap between the parts.
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from berthline.errors import ConfigError
from berthline.evaluate.compare.comparison import Comparison, Judgement, PerMetric
from berthline.evaluate.compare.grid import Cell
from berthline.evaluate.compare.judge import comparison_of, judge_pair
from berthline.evaluate.metrics.compared_metrics import METRICS, ComparedMetric
from berthline.evaluate.statistics.power import Power

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from berthline.evaluate.compare.grid import GridResults
    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload

VAL, REPORT = "VAL", "REPORT"

RIVALS = (
    "random+skip",
    "fcfs",
    "fcfs+easy",
    "sjf+easy",
    "smallest-first+easy",
    "largest-first+easy",
    "f1+easy",
    "wfp3+easy",
    "las+skip!las",
)
"""The default rivals: a random choice, what most clusters run, and the heuristics that do best on
one workload or another."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A rival on the VAL windows."""

    scheduler: str
    jct_mean: float
    value: float
    """Its mean of the metric that the rival is chosen by."""


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """The result of the protocol.

    Attributes:
        run: the scheduler that is evaluated.
        metric: the metric that the rival is chosen by, and verdicts begin with.
        rival: the best of the rivals by that metric on VAL; in a tie, the first.
        candidates: all rivals on VAL.
        against_rival: paired ratios on REPORT; a single comparison, so not corrected.
        trades: slowdown is better and JCT worse than the rival's by more than the tolerance.
        power: number of windows that would detect the difference in the metric.
        gap_to_bound: mean JCT on REPORT / lower bound - 1.
        cells: the comparisons of all schedulers on VAL and on REPORT, each with the rival as its
            baseline. In hindsight another rival may be better on REPORT (`oracle`).
    """

    run: str
    metric: str
    rival: str
    candidates: list[Candidate]
    against_rival: PerMetric[Judgement]
    trades: bool
    power: Power | None
    gap_to_bound: float | None
    cells: list[Comparison]

    @property
    def report(self) -> Comparison:
        """The comparison on REPORT."""
        return self.cells[1]


def evaluation_of(results: GridResults, metric: str = "jct_mean") -> Evaluation:
    """Return the evaluation of the first scheduler against the best of the others.

    Args:
        results: results of a grid with two cells, VAL and REPORT.
        metric: what the best of them is chosen by; one of METRICS.
    """
    names = results.grid.schedulers

    def on_val(of: ComparedMetric) -> list[float]:
        return [
            float(np.mean([of.of(run.metrics) for runs in results.of(0, number) for run in runs]))
            for number in range(1, len(names))
        ]

    about = METRICS[metric]
    values, means = on_val(about), on_val(METRICS["jct_mean"])
    rival = 1 + int(np.argmax(values) if about.higher_is_better else np.argmin(values))
    cells = [comparison_of(results, cell, rival) for cell in (0, 1)]
    ours = cells[1].schedulers[0]
    judged, trades = judge_pair(results, 1, 0, rival)
    return Evaluation(
        run=names[0],
        metric=metric,
        rival=names[rival],
        candidates=[
            Candidate(scheduler=name, jct_mean=mean, value=value)
            for name, mean, value in zip(names[1:], means, values, strict=True)
        ],
        against_rival=judged,
        trades=trades,
        power=getattr(ours.power, metric),
        gap_to_bound=ours.gap_to_bound,
        cells=cells,
    )


def protocol_seeds(seed: int, windows: int) -> tuple[list[int], list[int]]:
    """Return the seeds of generated VAL windows and of REPORT windows, which share none."""
    words = np.random.SeedSequence((seed, 2)).generate_state(2 * windows, np.uint64)
    val, report = (list(map(int, part)) for part in (words[:windows], words[windows:]))
    return val, report


def generated_cells(
    make: Callable[[int], Workload],
    cluster: Cluster,
    *,
    seed: int,
    windows: int,
    load: float | None,
) -> list[Cell]:
    """Return the VAL and the REPORT cell of a generator.

    Args:
        make: generates a workload from a seed.
        cluster: the nodes.
        seed: all seeds are derived from it.
        windows: number of windows in each part.
        load: the requested load.
    """
    cells = []
    for part, seeds in zip((VAL, REPORT), protocol_seeds(seed, windows), strict=True):
        first = make(seeds[0])
        cells.append(
            Cell(
                workload=first.name,
                source=first,
                cluster=cluster,
                load=load,
                windows=windows,
                window=functools.partial(_generated_window, make, seeds),
                part=part,
            )
        )
    return cells


def _generated_window(
    make: Callable[[int], Workload], seeds: list[int], number: int
) -> tuple[Workload, float]:
    return make(seeds[number]), 0.0


def trace_cells(
    trace: Workload,
    cluster: Cluster,
    *,
    windows: int,
    window_jobs: int | None,
    gap_seconds: float,
    load: float | None,
) -> list[Cell]:
    """Return the VAL and the REPORT cell of a trace.

    Args:
        trace: all jobs of the trace.
        cluster: the nodes.
        windows: number of windows in each part.
        window_jobs: jobs in each window; the windows are spread over the part. None = the part is
            cut into windows of equal size.
        gap_seconds: time between the parts.
        load: the load that the trace was scaled to.

    Raises:
        ConfigError: a part has too few jobs.
    """
    from berthline.traces.split import split_by_time

    split = split_by_time(trace, gap_seconds=gap_seconds)
    cells = []
    for part, jobs in ((VAL, split.validation), (REPORT, split.test)):
        cuts = spread_windows(len(jobs), windows, window_jobs, where=jobs.name)
        cells.append(
            Cell(
                workload=jobs.name,
                source=jobs,
                cluster=cluster,
                load=load,
                windows=windows,
                window=functools.partial(_cut_window, jobs, cuts),
                part=part,
            )
        )
    return cells


def _cut_window(jobs: Workload, cuts: list[tuple[int, int]], number: int) -> tuple[Workload, float]:
    first, last = cuts[number]
    return jobs.window(first, last), float(jobs.submit[first])


def spread_windows(
    jobs: int, windows: int, window_jobs: int | None, *, where: str
) -> list[tuple[int, int]]:
    """Return (first job, one past the last job) of each window; windows share no job.

    Raises:
        ConfigError: there are not enough jobs.

    Example:
        >>> spread_windows(10, 3, 2, where="x")
        [(0, 2), (4, 6), (8, 10)]
    """
    length = window_jobs or max(jobs // windows, 1)
    if windows * length > jobs:
        raise ConfigError(
            f"{windows} windows of {length:,} jobs need {windows * length:,}",
            where=f"{where}, which has {jobs:,} jobs",
            expected=f"up to {jobs // length:,} windows, or up to {jobs // windows:,} jobs in each",
        )
    if window_jobs is None:
        edges = [jobs * i // windows for i in range(windows + 1)]
        return list(itertools.pairwise(edges))
    free = jobs - windows * length
    starts = [
        i * length + (free * i // (windows - 1) if windows > 1 else 0) for i in range(windows)
    ]
    return [(start, start + length) for start in starts]


def distinct_rivals(run: str, rivals: Sequence[str]) -> list[str]:
    """Return the rivals that differ from the evaluated scheduler.

    Raises:
        ConfigError: there is none.
    """
    from berthline.policies.scheduler import Scheduler

    own = str(Scheduler.parse(run))
    others = [name for name in rivals if str(Scheduler.parse(name)) != own]
    if not others:
        raise ConfigError(
            f"`against` names no scheduler other than {run!r}", expected="one rival or more"
        )
    return others
