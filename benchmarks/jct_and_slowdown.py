"""Schedulers tuned for mean JCT and slowdown at once, with prices for p99 JCT and preemptions.

Shared by experiments on clusters with costs: windows of two kinds of jobs, the loss, and searches
whose best result is chosen on VAL.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from benchmarks.tuning import tune

import berthline as bl
from berthline.errors import SimulationError, TraceError
from berthline.evaluate.compare.protocol import spread_windows
from berthline.evaluate.metrics.job_table import completion_times, job_table
from berthline.evaluate.metrics.slowdown import bounded_slowdowns
from berthline.learn.tuning.search_goal import FAILED
from berthline.model.schedule import PREEMPT
from berthline.policies.scheduler import Scheduler
from berthline.traces.offered_load import scale_to_load
from berthline.traces.split import split_by_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from benchmarks.tuning import Tuned

    from berthline.learn.tuning.search_space import SearchSpace

P99_TOLERANCE, P99_PRICE, PREEMPTION_PRICE = 1.05, 5.0, 0.1
LOAD, JOBS, LONG_JOBS, DAY = 0.9, 2000, 5000, 86_400.0
TRAIN, VAL, REPORT, LONG = 24, 6, 16, 6
"""Numbers of windows."""
TRAIN_WINDOWS = 3
"""Windows per generation."""
SPREAD = {"run_median": 200, "run_sigma": 2.5, "run_high": 172_800}
"""Run times as spread as on GPU clusters."""


class Outcome(NamedTuple):
    """A scheduler's outcome on a window; preemptions per job."""

    jct: float
    p99: float
    slowdown: float
    preemptions: float


@dataclasses.dataclass(frozen=True)
class Ground:
    """Where schedulers run: the cluster with its conditions, and what they know of run times."""

    cluster: bl.Cluster
    knowledge: str

    def run(self, text: str, windows: Iterable[bl.Workload]) -> list[Outcome]:
        """Return a scheduler's outcome on each window."""
        scheduler, found = Scheduler.parse(text), []
        for window in windows:
            log = bl.simulate(window, self.cluster, scheduler, knowledge=self.knowledge).log
            table = job_table(log, window)
            jct = completion_times(table, window)
            found.append(
                Outcome(
                    float(jct.mean()),
                    float(np.quantile(jct, 0.99)),
                    float(bounded_slowdowns(table, window).mean()),
                    float((log.kind == PREEMPT).sum()) / len(window),
                )
            )
        return found

    def lowest_jct(self, texts: Iterable[str], windows: Sequence[bl.Workload]) -> str:
        """Return the scheduler with the lowest geometric mean of mean JCT."""
        return min(
            texts,
            key=lambda text: math.fsum(math.log(one.jct) for one in self.run(text, windows)),
        )


def loss(ours: Sequence[Outcome], reference: Sequence[Outcome]) -> float:
    """Return the loss: mean JCT and slowdown, half each, with prices for p99 JCT and preemptions.

    Formula: mean over windows of ln(JCT / reference) / 2 + ln(slowdown / reference) / 2
    + PREEMPTION_PRICE * preemptions per job; + P99_PRICE * max(0, mean of ln(p99 / reference)
    - ln P99_TOLERANCE).
    """
    logs = np.log(np.array(ours)[:, :3] / np.array(reference)[:, :3]).mean(axis=0)
    jct, p99, slowdown = logs.tolist()
    preempted = math.fsum(one.preemptions for one in ours) / len(ours)
    excess = max(p99 - math.log(P99_TOLERANCE), 0.0)
    return float((jct + slowdown) / 2 + PREEMPTION_PRICE * preempted + P99_PRICE * excess)


class Searches:
    """Searches on the same windows, with the same reference: the lowest mean JCT on VAL.

    Args:
        ground: where they run.
        windows: TRAIN and VAL windows, as `windows_of` returns them.
        named: schedulers to choose the reference from.
    """

    def __init__(
        self, ground: Ground, windows: dict[str, list[bl.Workload]], named: Iterable[str]
    ) -> None:
        self._ground, self._train, self._val = ground, windows["train"], windows["val"]
        self.reference = ground.lowest_jct(named, self._val)
        self._on_train = ground.run(self.reference, self._train)
        self._on_val = ground.run(self.reference, self._val)

    def val_loss(self, text: str) -> float:
        """Return the loss of a scheduler on VAL."""
        return self._loss(text, self._val, self._on_val)

    def best(self, spaces: Iterable[SearchSpace], *, epochs: int, seeds: Sequence[int]) -> Tuned:
        """Return the best result on VAL of all seeds and spaces."""
        found = [
            tune(space, self._train_loss(seed), self.val_loss, epochs=epochs, seed=seed)
            for space in spaces
            for seed in seeds
        ]
        print("  VAL", ", ".join(f"{one.val_loss:+.3f}" for one in found), flush=True)
        return min(found, key=lambda one: one.val_loss)

    def _train_loss(self, seed: int) -> Callable[[str, int], float]:
        def train_loss(text: str, epoch: int) -> float:
            draws = np.random.Generator(np.random.Philox(key=[seed, epoch]))
            chosen = draws.choice(len(self._train), TRAIN_WINDOWS, replace=False)
            windows = [self._train[i] for i in chosen]
            return self._loss(text, windows, [self._on_train[i] for i in chosen])

        return train_loss

    def _loss(
        self, text: str, windows: Sequence[bl.Workload], reference: Sequence[Outcome]
    ) -> float:
        try:
            return loss(self._ground.run(text, windows), reference)
        except SimulationError:  # jobs preempt one another without end
            return FAILED


def windows_of(
    jobs: str, cluster: bl.Cluster, trace: Path, *, load: float = LOAD, widest: int | None = None
) -> dict[str, list[bl.Workload]]:
    """Return the windows of every part: with separate seeds (`spread`), or of a log by time.

    Gangs of the log are at most as wide as the cluster, or as `widest`.

    Raises:
        TraceError: the log is not there.
    """
    names = ("train", "val", "report", "report, long windows")
    counts, sizes = (TRAIN, VAL, REPORT, LONG), (JOBS, JOBS, JOBS, LONG_JOBS)
    if jobs == "spread":
        seeds = iter(range(7000, 8000))
        return {
            name: [_generated(cluster, size, load, next(seeds)) for _ in range(count)]
            for name, count, size in zip(names, counts, sizes, strict=True)
        }
    if not trace.exists():
        raise TraceError("the log is not there", where=str(trace))
    log = bl.load_trace(trace)
    # The log has no estimates, so we draw some: unbiased in the logarithm, sigma = 1.
    noise = np.random.Generator(np.random.Philox(key=[0, 17])).standard_normal(len(log))
    whole = bl.Workload.from_columns(
        submit=log.submit,
        run=log.run,
        gpus=log.gpus.clip(max=widest or cluster.total_gpus),
        estimate=np.maximum(log.run * np.exp(noise), 1.0),
        name=jobs,
    )
    split = split_by_time(scale_to_load(whole, cluster, load), gap_seconds=DAY)
    parts = (split.train, split.validation, split.test, split.test)
    return {
        name: [part.window(*cut) for cut in spread_windows(len(part), count, size, where=name)]
        for name, part, count, size in zip(names, parts, counts, sizes, strict=True)
    }


def _generated(cluster: bl.Cluster, jobs: int, load: float, seed: int) -> bl.Workload:
    return bl.generate(
        "diurnal", cluster=cluster, jobs=jobs, load=load, seed=seed, estimate_error=1, **SPREAD
    )
