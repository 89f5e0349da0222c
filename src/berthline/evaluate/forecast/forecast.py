"""forecast: when every waiting job of a snapshot will start, by simulating what may come.

Each draw is a run from the snapshot on. It draws what is unknown at that instant:

- Run times of running and waiting jobs, unless the scheduler knows them (`exact`); see
  run_time_draws.py.
- Later jobs: the past is repeated from a random instant on; see arrival_draws.py.
- Future failures of nodes are not predicted; nodes that are down return as planned.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from berthline.argument_types import check_arguments
from berthline.counted import counted
from berthline.errors import ConfigError
from berthline.evaluate.forecast.arrival_draws import MOST_TURNS, draw_arrivals, length_of
from berthline.evaluate.forecast.correction import Correction
from berthline.evaluate.forecast.job_forecast import JobForecast
from berthline.evaluate.forecast.known_past import Past, last_rows, past_of
from berthline.evaluate.forecast.many_futures import Future, ManyFutures
from berthline.evaluate.forecast.run_time_draws import run_times
from berthline.model.schedule import PREEMPT, REFUSE, SUBMIT
from berthline.policies.scheduler import Scheduler
from berthline.random_streams import stream_key
from berthline.size_limits import check_sizes

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from berthline.evaluate.forecast.known_past import Jobs
    from berthline.evaluate.forecast.run_time_draws import RunTimes
    from berthline.model.snapshot import Snapshot
    from berthline.model.workload import FloatColumn, Workload
    from berthline.sim.simulate import Result
    from berthline.text_or_path import TextOrPath

DRAWS = 100
LEVEL = 0.8
"""The share of draws inside an interval."""

AHEAD = 8.0
"""Later jobs arrive for this many times the longest wait without later jobs; a job that has not
started by then starts later than the forecast can say."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Forecast:
    """When waiting jobs will start, as known at some instant.

    Attributes:
        time: the instant, in seconds on the clock of the run.
        scheduler: the scheduler from then on.
        knowledge: what it knows about run times.
        seed: of the draws.
        level: the share of draws inside an interval.
        horizon: draws end here; infinity = when all jobs are over.
        run_times: where run times come from: `exact`, `ratios` of run time to estimate or `run
            times` of finished jobs, or `even` if too few have finished.
        finished: number of finished jobs that were drawn from.
        jobs_to_come: whether later jobs were assumed.
        jobs: the numbers of the jobs in the run; -1, -2, ... for jobs that were asked about.
        names: their names in the trace; else their numbers.
        starts: when each job starts in each draw; infinity = not within the horizon.
        correction: by how much intervals are stretched; None = they are quantiles of the draws.
    """

    time: float
    scheduler: str
    knowledge: str
    seed: int
    level: float
    horizon: float
    run_times: str
    finished: int
    jobs_to_come: bool
    jobs: npt.NDArray[np.int64]  # (num_jobs,)
    names: tuple[str, ...]  # (num_jobs,)
    starts: npt.NDArray[np.float64]  # (num_draws, num_jobs)
    correction: Correction | None = None

    def __repr__(self) -> str:
        jobs, draws = counted(len(self), "job"), counted(self.draws, "draw")
        return f"<Forecast of {self.scheduler} at {self.time:,.10g} s: {jobs}, {draws}>"

    @property
    def draws(self) -> int:
        """Number of draws."""
        return len(self.starts)

    def quantile(self, share: float) -> FloatColumn:
        """Return when each job has started in this share of the draws."""
        found: FloatColumn = np.quantile(self.starts, share, axis=0, method="inverted_cdf")
        return found

    @property
    def low(self) -> FloatColumn:
        """Where each job's interval begins."""
        low = self.quantile((1 - self.level) / 2)
        return low if self.correction is None else self.correction.low(self.time, low, self.median)

    @property
    def median(self) -> FloatColumn:
        """The median start of each job."""
        return self.quantile(0.5)

    @property
    def high(self) -> FloatColumn:
        """Where each job's interval ends; infinity = after all that was simulated."""
        high = self.quantile((1 + self.level) / 2)
        return high if self.correction is None else self.correction.high(self.median, high)

    @property
    def not_started(self) -> FloatColumn:
        """The share of draws in which each job does not start within the horizon."""
        share: FloatColumn = np.isinf(self.starts).mean(axis=0)
        return share

    def __len__(self) -> int:
        return len(self.jobs)

    def __iter__(self) -> Any:
        columns = (self.low, self.median, self.high, self.not_started)
        for row, values in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
            low, median, high, not_started = values
            yield JobForecast(
                job=int(self.jobs[row]),
                name=self.names[row],
                time=self.time,
                low=low,
                median=median,
                high=high,
                level=self.level,
                draws=self.draws,
                not_started=not_started,
                run_times=self.run_times,
                jobs_to_come=self.jobs_to_come,
            )

    def of(self, job: int) -> JobForecast:
        """Return the forecast of one job, by its number in the run.

        Raises:
            ConfigError: it did not wait at that instant.
        """
        for one in self:
            if one.job == job:
                return one  # type: ignore[no-any-return]
        raise ConfigError(f"job {job} does not wait at {self.time:,.10g} s")


def forecast(
    snapshot: Snapshot,
    scheduler: Scheduler | TextOrPath | None = None,
    *,
    history: Result | Workload | str | os.PathLike[str] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    level: float = LEVEL,
    jobs: Sequence[int] | None = None,
    asked: Workload | None = None,
    correction: Correction | None = None,
    knowledge: str | None = None,
    horizon: float | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Forecast:
    """Return when the waiting jobs of a snapshot will start, by simulating what may come.

    Nothing is read that is not known at the instant of the snapshot: run times of jobs that have
    not finished may be NaN, unless the knowledge is `exact`.

    Args:
        snapshot: the instant.
        scheduler: the scheduler from then on; None = that of the snapshot.
        history: where jobs that have finished are found, which run times and later jobs are drawn
            from: the Result of the run, a Workload on the same clock, or a run directory. None =
            only jobs of the snapshot: if it leaves out others, no later jobs are assumed.
        draws: number of runs.
        seed: of the draws.
        level: the share of draws inside an interval.
        jobs: the numbers in the run of the jobs to forecast; None = all that wait.
        asked: jobs that are submitted at once and forecast too; their times are ignored.
        correction: stretches the intervals; that of `calibrate` on the past of the run.
        knowledge: as in `simulate`; None = that of the snapshot.
        horizon: draws end here, in seconds on the clock of the run; None = 8 times the longest wait
            that there is without later jobs.
        workers: threads; None = as many as the machine has processors.
        progress: called with the runs done and their number.

    Raises:
        BerthlineError: the inputs are not compatible, or a job does not wait.

    Example:
        >>> import berthline as bl
        >>> result = bl.simulate("synthetic", "uniform:2x8", "sjf+easy", seed=1)
        >>> found = bl.forecast(result.snapshot(20_000.0), history=result, draws=20)
        >>> found.draws
        20
    """
    check_arguments(seed=seed, horizon=horizon)
    check_sizes(draws=draws, workers=workers)
    if not 0 < level < 1:
        raise ConfigError(f"level is {level!r}", expected="a number between 0 and 1")
    if horizon is not None and not horizon > snapshot.now:
        raise ConfigError(
            f"horizon is {horizon:,.10g}",
            expected=f"a time after the snapshot, at {snapshot.now:,.10g} s",
        )
    if not isinstance(scheduler, Scheduler):
        scheduler = Scheduler.parse(snapshot.scheduler if scheduler is None else scheduler)
    knowledge = knowledge or snapshot.knowledge
    rows = _waiting(snapshot, jobs)
    past = past_of(snapshot, history, asked, knowledge=knowledge)
    watched = np.concatenate([rows, past.known + np.arange(past.asked)])
    drawn = _Draws(past)
    end, span = (np.inf if horizon is None else horizon), 0.0
    starts = np.empty((draws, len(watched)))
    if len(watched):
        runner = ManyFutures(snapshot, past, scheduler, knowledge=knowledge, watched=watched)
        end, span = _until(past, runner, drawn, horizon, seed)
        key = stream_key(seed, "forecast")
        futures = [functools.partial(drawn.future, key, number, span) for number in range(draws)]
        found = runner.run_all(futures, horizon=end, workers=workers, progress=progress)
        for number, row in enumerate(found):
            starts[number] = row
    names = snapshot.workload.names
    numbers = np.concatenate([snapshot.number[rows], -1 - np.arange(past.asked)])
    return Forecast(
        time=snapshot.now,
        scheduler=str(scheduler),
        knowledge=knowledge,
        seed=seed,
        level=level,
        horizon=end,
        run_times="exact" if knowledge == "exact" else drawn.run_times.source,
        finished=len(past.finished),
        jobs_to_come=span > 0,
        jobs=numbers,
        names=tuple(
            str(number) if number < 0 or names is None else str(names[row])
            for number, row in zip(numbers.tolist(), watched.tolist(), strict=True)
        ),
        starts=starts,
        correction=correction,
    )


@dataclasses.dataclass(frozen=True, eq=False)
class _Draws:
    """What every draw draws from."""

    past: Past

    @functools.cached_property
    def run_times(self) -> RunTimes:
        """Run times of the jobs that have not finished, longer than their progress."""
        return run_times(self.past, self.past.unknown, self.past.done)

    @functools.cached_property
    def copies(self) -> RunTimes:
        """Run times of later jobs that are copies of these."""
        return run_times(self.past, self.past.unknown, np.zeros(len(self.past.unknown)))

    def future(self, key: int, number: int, span: float) -> Future:
        """Return what one run has drawn."""
        past = self.past
        rng = np.random.default_rng([key, number])
        known, asked = past.known, np.arange(past.known, past.known + past.asked)
        run = past.jobs.run.copy()
        run[past.unknown] = self.run_times.draw(rng)
        again, submit = draw_arrivals(past, span, rng)
        later = past.jobs.run.copy()
        if span > 0:
            later[past.unknown] = self.copies.draw(rng)
        at_once = np.full(past.asked, np.nextafter(past.now, np.inf))
        return Future(
            rows=np.concatenate([asked, again]).astype(np.int32),
            submit=np.concatenate([at_once, submit]),
            run=np.concatenate([run[: known + past.asked], later[again]]),
            seed=int(rng.integers(2**31)),
        )


def _until(
    past: Past, runner: ManyFutures, drawn: _Draws, horizon: float | None, seed: int
) -> tuple[float, float]:
    """Return when draws end, and for how long later jobs arrive."""
    length = length_of(past)
    if horizon is not None:
        return horizon, horizon - past.now if length else 0.0
    if not length:
        return np.inf, 0.0
    key = stream_key(seed, "forecast/alone")
    alone = runner.starts(drawn.future(key, 0, span=0.0), np.inf)
    alone = alone[np.isfinite(alone)]
    longest = float(alone.max()) - past.now if len(alone) else 0.0
    span = min(AHEAD * max(longest, 1.0), MOST_TURNS * length)
    return past.now + span, span


def _waiting(snapshot: Snapshot, jobs: Sequence[int] | None) -> Jobs:
    """Return the jobs of a snapshot that wait, or some of them, by their numbers in the run."""
    waits = np.isin(last_rows(snapshot), (SUBMIT, PREEMPT, REFUSE))
    if jobs is None:
        return np.flatnonzero(waits)
    place = {number: row for row, number in enumerate(snapshot.number.tolist())}
    found = [place.get(int(job), -1) for job in jobs]
    for job, row in zip(jobs, found, strict=True):
        if row < 0 or not waits[row]:
            raise ConfigError(
                f"job {job} does not wait at {snapshot.now:,.10g} s", where="snapshot"
            )
    return np.array(found, np.intp)
