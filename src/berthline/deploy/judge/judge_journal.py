"""judge_journal: what our scheduler would have done in a journal's period, against the native one.

Both are simulated on the jobs of the journal, from the state of its first look. What really
happened is compared only with the model of the native scheduler: that is the error of the model,
which is stated.
"""

from __future__ import annotations

import functools
import math
import time
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from berthline.deploy.control.promotion import (
    BETTER,
    NOT_WORSE,
    TOO_EARLY,
    WORSE,
    Compared,
    PromotionVerdict,
    keep_judgement,
)
from berthline.deploy.journal.journal_run import journal_run
from berthline.errors import ConfigError
from berthline.evaluate.metrics.slowdown import bounded_slowdown
from berthline.evaluate.statistics.blocks import BLOCKS, block_ratio
from berthline.model.schedule import FINISH, RESUME, START
from berthline.policies.scheduler import Scheduler
from berthline.sim.simulate import Result
from berthline.sim.snapshots.resume import resume
from berthline.sim.snapshots.take import take_jobs, take_snapshot

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    import numpy.typing as npt

    from berthline.deploy.journal.journal_run import JournalRun

    Floats = npt.NDArray[np.float64]

CANDIDATES = (
    "fcfs+easy",
    "fcfs+skip",
    "fcfs+strict",
    "static-priority+easy",
    "slurm-multifactor+easy",
    "sjf+easy",
)
"""Models of a native scheduler that is not named."""
FEWEST_JOBS = 5 * BLOCKS
TOLERANCE = {"jct_mean": 1.02, "wait_p99": 1.10, "bounded_slowdown_mean": 1.05}
"""Not worse: the upper end of the interval is at most this."""
SHORT_WAIT = 10.0
"""Added to waits, so that a block without waits has a ratio."""
_P99 = functools.partial(np.percentile, q=99)


class _Outcome(msgspec.Struct):
    """Start and end of each counted job under a scheduler."""

    start: Floats
    end: Floats


def judge_journal(
    directory: str | os.PathLike[str],
    scheduler: str = "",
    *,
    native: str = "",
    knowledge: str | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> PromotionVerdict:
    """Return the verdict on a scheduler over the period of a journal, and keep it there.

    Args:
        directory: of the journal.
        scheduler: ours; empty = that of the journal's last cycle.
        native: the native scheduler; empty = the candidate closest to what really happened.
        knowledge: what both know about run times; None = as in the journal.
        progress: called before each run with (done, total, label).

    Raises:
        ConfigError: there is no journal, or a scheduler is wrong.
    """
    from pathlib import Path

    run = journal_run(directory)
    ours = Scheduler.parse(scheduler or run.decides)
    if run.scheduler and not native:
        raise ConfigError(
            f"{run.scheduler} acted in this journal, so it does not show the native scheduler",
            where=str(directory),
            expected="`native`",
            hint="name the system's own scheduler, such as fcfs+easy",
        )
    judge = _Judge(run, run.knowledge if knowledge is None else knowledge)
    names = [native] if native else list(CANDIDATES)
    total = len(names) + 1
    models: dict[str, _Outcome] = {}
    for done, name in enumerate(names):
        if progress is not None:
            progress(done, total, name)
        models[name] = judge.played(Scheduler.parse(name))
    best = min(models, key=lambda name: judge.distance(models[name]))
    if progress is not None:
        progress(total - 1, total, str(ours))
    found = judge.judged(str(directory), ours, best, judge.played(ours), models[best])
    keep_judgement(Path(directory), found)
    return found


class _Judge:
    """Plays schedulers on the jobs of a journal, from its first look."""

    def __init__(self, run: JournalRun, knowledge: str) -> None:
        self.run, self.knowledge = run, knowledge
        whole = Result(
            log=run.log,
            workload=run.workload,
            cluster=run.cluster,
            scheduler=Scheduler.parse("fcfs"),
            knowledge="none",
            seed=0,
            wall_seconds=0.0,
        )
        self.start = take_snapshot(whole, run.first)
        later = np.flatnonzero(run.workload.submit > run.first)
        self.arrivals = take_jobs(run.workload, later) if len(later) else None
        log, jobs = run.log, len(run.workload)
        over = np.zeros(jobs, np.bool_)
        over[log.job[log.kind == FINISH]] = True
        self.counted = over & (run.workload.submit >= run.first)
        self.recorded = _outcome_of(log.time, log.kind, log.job, np.arange(jobs), jobs)

    def played(self, scheduler: Scheduler) -> _Outcome:
        """Return what a scheduler does with the jobs."""
        found = resume(
            self.start, scheduler, arrivals=self.arrivals, knowledge=self.knowledge, seed=0
        )
        kept, later = self.start.number, np.flatnonzero(self.run.workload.submit > self.run.first)
        log = found.log
        number = np.concatenate([kept, later])
        return _outcome_of(log.time, log.kind, log.job, number, len(self.run.workload))

    def wait(self, outcome: _Outcome) -> Floats:
        waits: Floats = (outcome.start - self.run.workload.submit)[self.counted]
        return waits

    def distance(self, outcome: _Outcome) -> float:
        """Return how far the waits of a model are from what happened."""
        if not self.counted.any():
            return 0.0
        return float(np.abs(np.nan_to_num(self.wait(outcome) - self.wait(self.recorded))).mean())

    def judged(
        self, directory: str, ours: Scheduler, native: str, mine: _Outcome, model: _Outcome
    ) -> PromotionVerdict:
        submit, run = self.run.workload.submit[self.counted], self.run.workload.run[self.counted]
        jct = [outcome.end[self.counted] - submit for outcome in (mine, model)]
        waits = [self.wait(outcome) + SHORT_WAIT for outcome in (mine, model)]
        slowdowns = [bounded_slowdown(each, run) for each in jct]
        hours = (self.run.log.horizon - self.run.first) / 3600.0
        jobs = int(self.counted.sum())
        compared = {
            "jct_mean": _compared(jct, np.mean),
            "wait_p99": _compared(waits, _P99, less=SHORT_WAIT),
            "bounded_slowdown_mean": _compared(slowdowns, np.mean),
        }
        verdict, words, more = _verdict(compared, jobs, hours)
        happened = self.wait(self.recorded)
        error = np.abs(happened - self.wait(model))
        return PromotionVerdict(
            journal=directory,
            verdict=verdict,
            words=words,
            more_hours=more,
            scheduler=str(ours),
            native=native,
            written=time.time(),
            hours=hours,
            jobs=jobs,
            wait_recorded=float(happened.mean()) if jobs else 0.0,
            wait_modelled=float(self.wait(model).mean()) if jobs else 0.0,
            wait_error=float(np.median(error)) if jobs else 0.0,
            **compared,
        )


def _outcome_of(
    time: Floats,
    kind: npt.NDArray[np.uint8],
    job: npt.NDArray[np.int32],
    number: npt.NDArray[np.int64],
    jobs: int,
) -> _Outcome:
    """Return first starts and ends by number of job; NaN = none."""
    start, end = np.full(jobs, np.nan), np.full(jobs, np.nan)
    is_start = (kind == START) | (kind == RESUME)
    rows = np.flatnonzero(is_start)[::-1]  # the first start is written last
    start[number[job[rows]]] = time[rows]
    rows = np.flatnonzero(kind == FINISH)
    end[number[job[rows]]] = time[rows]
    return _Outcome(start, end)


def _compared(
    values: list[Floats], statistic: Callable[[Floats], float], *, less: float = 0.0
) -> Compared:
    ours, native = values
    if not len(ours):
        return Compared(ours=0.0, native=0.0, ratio=None, low=None, high=None)
    found = block_ratio(ours, native, statistic=statistic, blocks=min(BLOCKS, len(ours)))
    return Compared(
        ours=float(statistic(ours)) - less,
        native=float(statistic(native)) - less,
        ratio=found.ratio,
        low=found.low,
        high=found.high,
    )


def _verdict(compared: dict[str, Compared], jobs: int, hours: float) -> tuple[str, str, float]:
    """Return the verdict, in words, and how many more hours are needed."""
    if jobs < FEWEST_JOBS:
        more = hours * (FEWEST_JOBS / max(jobs, 1) - 1)
        words = f"too early: {jobs} jobs began and ended, {FEWEST_JOBS} are needed"
        return TOO_EARLY, f"{words} (some {_hours(more)} more)", more
    if any(one.high is None or one.low is None for one in compared.values()):
        return TOO_EARLY, f"too early: no intervals (some {_hours(hours)} more)", hours
    low = {name: one.low or 0.0 for name, one in compared.items()}
    high = {name: one.high or math.inf for name, one in compared.items()}
    worse = [name for name in compared if low[name] > 1.0]
    if "jct_mean" in worse or (worse and low["jct_mean"] > 1 / TOLERANCE["jct_mean"]):
        return WORSE, f"worse: {', '.join(worse)} of ours is higher", 0.0
    open_names = [name for name in compared if high[name] > TOLERANCE[name]]
    if not open_names and high["jct_mean"] < 1.0:
        return BETTER, "better: mean JCT of ours is lower, nothing else is higher", 0.0
    if not open_names:
        return NOT_WORSE, "not worse: no metric of ours can be higher by more than allowed", 0.0
    if worse:
        return WORSE, f"worse: {', '.join(worse)} of ours is higher", 0.0
    # An interval shrinks with the root of the time.
    more = hours * max(
        (math.log(high[name] / low[name]) / math.log(TOLERANCE[name])) ** 2 / 4 - 1
        for name in open_names
    )
    more = max(more, hours / 4)
    words = f"too early: {', '.join(open_names)} may still be higher"
    return TOO_EARLY, f"{words} (needs some {_hours(more)} more)", more


def _hours(hours: float) -> str:
    return f"{math.ceil(hours):,} hours"
