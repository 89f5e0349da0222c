"""The clustering of submissions in bursts, days and weeks, fitted by iteration.

There is no formula for the joint effect of bursts, days, weeks and users. Therefore a fitted
generator draws jobs, they are compared with the trace, and its numbers are corrected, several
times.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt

from berthline.traces.generators.arrivals import HOUR
from berthline.traces.generators.draws import Draws
from berthline.traces.generators.fitted.fitted_arrivals import (
    HOURS_OF_DAY,
    HOURS_OF_WEEK,
    hourly_rates,
)
from berthline.traces.generators.fitted.fitted_draws import draw_once
from berthline.traces.generators.fitted.fitted_draws import work_of as work_drawn
from berthline.traces.generators.fitted.fitted_generator import Bursts, FittedGenerator, Level, Week
from berthline.traces.generators.fitted.fitted_tables import FittedTables
from berthline.traces.generators.fitted.successive_jobs import user_run_correlation

if TYPE_CHECKING:
    from berthline.model.workload import Workload

    Column = npt.NDArray[np.float64]  # (num_jobs,)
    Hours = npt.NDArray[np.float64]  # (num_hours,)

_TRIAL_JOBS = 200_000
_TRIALS, _LAST = 12, 5
_STEP = 0.6
_LEAST_GPU = 0.01
_FEWEST_IN_HOUR, _FEWEST_IN_DAY, _FEWEST_IN_WEEK = 2, 5, 20
_QUARTER = 6  # hours
_FEWEST_DAYS, _FEWEST_WEEKS, _MANY_WEEKS = 14, 3, 8
_WEEKS_TO_COUPLE = 20
_LONGEST_BURST = 20_000.0
_MOST_IN_BURSTS, _MOST_WORK, _MOST_BURST_WORK, _MOST_COUPLING = 0.98, 0.5, 0.7, 0.95
_WIDEST, _MOST_SHIFT, _MOST_KEPT = 4.0, 1.0, 4.0
_MOST_REPEATED = 0.98
_WILD = 3.0  # median deviations; weeks in which a log begins, ends or pauses are not drift
_DEVIATIONS_PER_MEDIAN = 1.4826


@dataclasses.dataclass(frozen=True)
class Spread:
    """Variation of the number of jobs and of their work over days or weeks, of logarithms.

    Attributes:
        jobs: variance of the number of jobs.
        work: variance of the mean work of a job.
        both: covariance of the two.
    """

    jobs: float = 0.0
    work: float = 0.0
    both: float = 0.0


@dataclasses.dataclass(frozen=True)
class Rhythm:
    """How the jobs of a workload cluster in time.

    Attributes:
        dispersion: variance / mean of jobs per hour.
        longer: variance / mean of jobs per quarter of a day.
        hour: covariance of the jobs in an hour and their mean work, of logarithms, within days.
        day: variation within weeks.
        week: variation between weeks.
        same_user: share of jobs that follow a job of the same user.
        repeated: correlation of the logarithms of run times of a user's successive jobs.
    """

    dispersion: float
    longer: float
    hour: float
    day: Spread
    week: Spread
    same_user: float
    repeated: float


def rhythm_of(
    submit: Column, work: Column, user: npt.NDArray[np.integer], run: Column, hour_of_week: float
) -> Rhythm:
    """Return how jobs cluster in time."""
    hour = ((submit - submit[0]) / HOUR).astype(np.intp)
    jobs = _sums(hour)
    done = _sums(hour, weights=work)
    day = (np.arange(len(jobs)) + int(hour_of_week)) // HOURS_OF_DAY
    per_day, day_work = _sums(day, jobs), _sums(day, done)
    week = np.arange(len(per_day)) // 7
    per_week, week_work = _sums(week, per_day), _sums(week, day_work)
    return Rhythm(
        dispersion=_dispersion(jobs),
        longer=_dispersion(_sums(np.arange(len(jobs)) // _QUARTER, jobs)),
        hour=_within(jobs, done, day, _FEWEST_IN_HOUR).both,
        day=_within(per_day, day_work, week, _FEWEST_IN_DAY),
        week=_between(per_week, week_work),
        same_user=float((user[1:] == user[:-1]).mean()),
        repeated=user_run_correlation(user, run),
    )


def _sums(which: npt.NDArray[np.intp], weights: Column | None = None, minlength: int = 0) -> Column:
    return np.bincount(which, weights, minlength).astype(np.float64)


def _dispersion(counts: Hours) -> float:
    return float(counts.var() / counts.mean())


def _within(jobs: Hours, work: Hours, group: npt.NDArray[np.intp], fewest: int) -> Spread:
    """Return the variation of hours within days, or of days within weeks."""
    enough = np.flatnonzero(jobs >= fewest)
    members = np.bincount(group[enough], minlength=int(group[-1]) + 1)
    enough = enough[members[group[enough]] >= 3]
    if len(enough) < _FEWEST_DAYS:
        return Spread()
    which = group[enough]
    logs = np.log(jobs[enough]), np.log(work[enough] / jobs[enough])
    number = np.maximum(np.bincount(which), 1)
    x, y = (values - (_sums(which, values) / number)[which] for values in logs)
    used = np.unique(which)
    lost = len(enough) / (len(enough) - len(used))  # degrees of freedom
    return Spread(
        jobs=float((x * x).mean() * lost),
        work=float((y * y).mean() * lost),
        both=float((x * y).mean() * lost),
    )


def _between(jobs: Hours, work: Hours) -> Spread:
    """Return the variation between weeks; the first and the last may be incomplete."""
    if len(jobs) >= _MANY_WEEKS:
        jobs, work = jobs[1:-1], work[1:-1]
    enough = np.flatnonzero(jobs >= _FEWEST_IN_WEEK)
    if len(enough) < _FEWEST_WEEKS:
        return Spread()
    x, y = (_tamed(v) for v in (np.log(jobs[enough]), np.log(work[enough] / jobs[enough])))
    return Spread(
        # Not of the logarithm, because weeks with the most jobs matter most for waits.
        jobs=float(jobs.var() / jobs.mean() ** 2),
        work=float(y.var()),
        both=float((x * y).mean() - x.mean() * y.mean()),
    )


def _tamed(values: Hours) -> Hours:
    middle = float(np.median(values))
    reach = _WILD * _DEVIATIONS_PER_MEDIAN * float(np.median(np.abs(values - middle)))
    return np.clip(values, middle - reach, middle + reach)


def with_levels(fitted: FittedGenerator, workload: Workload) -> FittedGenerator:
    """Return the generator with bursts, days, weeks and repetition as in the trace."""
    wanted = rhythm_of(
        workload.submit,
        work_of(workload),
        workload.user,
        workload.run,
        fitted.hour_of_week,
    )
    log_work = np.log(work_of(workload))
    per_rank = max(float(log_work.std()), 0.1)  # change of log work per normal rank
    jobs = min(len(workload), _TRIAL_JOBS)
    count = max(1, min(16, _TRIAL_JOBS // jobs))
    weeks = _weeks_of(fitted, workload)
    # The squared shares of both variations between weeks that are not chance; and how much lighter
    # jobs are in weeks with more of them.
    kept = np.array([0.5, 0.5, 0.0])
    tried, kepts = [], []
    for trial in range(_TRIALS):
        fitted = msgspec.structs.replace(fitted, weeks=_shrunk(weeks, kept, per_rank))
        found = _tried(fitted, trial, count, jobs)
        fitted = _corrected(fitted, wanted, found, per_rank)
        kept = _kept(kept, wanted.week, found.week)
        if len(weeks[0]) < _WEEKS_TO_COUPLE:
            kept[2] = 0.0  # a covariance over few weeks is chance
        tried.append(fitted)
        kepts.append(kept)
    fitted = _mean(tried[-_LAST:])
    kept = np.mean(kepts[-_LAST:], axis=0)
    return msgspec.structs.replace(fitted, weeks=_shrunk(weeks, kept, per_rank))


def work_of(workload: Workload) -> Column:
    """Return the GPU-seconds of each job; a job without GPUs counts as a hundredth of a GPU."""
    return np.asarray(workload.run * np.maximum(workload.gpu_amount, _LEAST_GPU))


def _kept(kept: Hours, wanted: Spread, found: Spread) -> Hours:
    off = np.array([wanted.jobs - found.jobs, wanted.work - found.work, found.both - wanted.both])
    scale = np.maximum([wanted.jobs, wanted.work, wanted.jobs], 1e-9)
    return np.clip(kept + _STEP * off / scale, [0.0, 0.0, -1.0], [_MOST_KEPT, _MOST_KEPT, 1.0])


def _weeks_of(fitted: FittedGenerator, workload: Workload) -> tuple[Hours, Hours, Hours]:
    """Return the log rate and log mean work of each week, centred, and its number of jobs."""
    hour = ((workload.submit - workload.submit[0]) / HOUR).astype(np.intp)
    hours = int(hour[-1]) + 1
    week = (np.arange(hours) + int(fitted.hour_of_week)) // HOURS_OF_WEEK
    expected = _sums(week, hourly_rates(fitted.hourly, fitted.daily, fitted.hour_of_week, hours))
    jobs = _sums(week[hour], minlength=len(expected))
    work = _sums(week[hour], work_of(workload), minlength=len(expected))
    enough = jobs >= _FEWEST_IN_WEEK
    if enough.sum() < 2:
        return np.zeros(1), np.zeros(1), np.ones(1)
    rate = np.log(np.maximum(jobs, 1.0) / np.maximum(expected, 1.0))
    heavy = np.log(work[enough] / jobs[enough])
    rate = np.clip(rate - np.median(rate), -_WIDEST, _WIDEST)
    each = np.zeros(len(jobs))
    each[enough] = _tamed(heavy) - np.average(heavy, weights=jobs[enough])
    return rate, each, jobs


def _shrunk(weeks: tuple[Hours, Hours, Hours], kept: Hours, per_rank: float) -> list[Week]:
    """Return the levels of weeks without the variation due to bursts and chance."""
    rate = np.exp(math.sqrt(float(kept[0])) * weeks[0])
    rate /= rate.mean()
    work = (math.sqrt(float(kept[1])) * weeks[1] - float(kept[2]) * weeks[0]) / per_rank
    work -= np.average(work, weights=rate)
    work = np.clip(work, -_MOST_SHIFT, _MOST_SHIFT)
    return [Week(*pair) for pair in zip(rate.tolist(), work.tolist(), strict=True)]


def _tried(fitted: FittedGenerator, trial: int, count: int, jobs: int) -> Rhythm:
    draws = Draws(trial, range(count), jobs=jobs)
    columns = draw_once(FittedTables(fitted), draws, fitted.mean_gap)
    work = np.maximum(work_drawn(columns), _LEAST_GPU * columns["run"])
    rhythms = [
        rhythm_of(
            columns["submit"][row],
            work[row],
            columns["user"][row],
            columns["run"][row],
            fitted.hour_of_week,
        )
        for row in range(count)
    ]
    return _average(rhythms)


def _average(rhythms: list[Rhythm]) -> Rhythm:
    def mean(values: list[float]) -> float:
        return float(np.mean(values))

    def spread(spreads: list[Spread]) -> Spread:
        return Spread(
            *(mean(list(v)) for v in zip(*map(dataclasses.astuple, spreads), strict=True))
        )

    return Rhythm(
        dispersion=float(np.exp(mean([np.log(max(r.dispersion, 1e-9)) for r in rhythms]))),
        longer=float(np.exp(mean([np.log(max(r.longer, 1e-9)) for r in rhythms]))),
        hour=mean([r.hour for r in rhythms]),
        day=spread([r.day for r in rhythms]),
        week=spread([r.week for r in rhythms]),
        same_user=mean([r.same_user for r in rhythms]),
        repeated=mean([r.repeated for r in rhythms]),
    )


def _corrected(
    fitted: FittedGenerator, wanted: Rhythm, found: Rhythm, per_rank: float
) -> FittedGenerator:
    # A log with very few jobs per day or week gives nothing to correct by.
    known = min(wanted.dispersion, wanted.longer, found.dispersion, found.longer) > 0
    short = wanted.dispersion / found.dispersion if known else 1.0
    slower = wanted.longer / wanted.dispersion / (found.longer / found.dispersion) if known else 1.0
    odds = fitted.bursts.share / (1 - fitted.bursts.share) * slower**_STEP
    lighter = (found.hour - wanted.hour + found.day.both - wanted.day.both) / 2
    work = fitted.bursts.work + _STEP * lighter / per_rank
    bursts = Bursts(
        share=float(np.clip(odds / (1 + odds), 0.02, _MOST_IN_BURSTS)),
        jobs=float(np.clip(fitted.bursts.jobs * short**_STEP, 1.0, _LONGEST_BURST)),
        work=float(np.clip(work, -_MOST_BURST_WORK, _MOST_BURST_WORK)),
    )
    same = (1.0 - found.same_user) / max(1.0 - wanted.same_user, 1e-6)
    return msgspec.structs.replace(
        fitted,
        bursts=bursts,
        day=_level(fitted.day, wanted.day, found.day, per_rank),
        series_scale=float(np.clip(fitted.series_scale * same**_STEP, 0.01, 100.0)),
        repeat_run=float(
            np.clip(fitted.repeat_run + wanted.repeated - found.repeated, 0.0, _MOST_REPEATED)
        ),
    )


def _level(level: Level, wanted: Spread, found: Spread, per_rank: float) -> Level:
    if wanted.jobs <= 0:
        return Level(0.0, 0.0, 0.0)
    effect = per_rank * level.work
    jobs = max(0.0, level.sigma**2 + _STEP * (wanted.jobs - found.jobs))
    work = max(0.0, effect**2 + _STEP * (wanted.work - found.work))
    both = level.coupling * effect * level.sigma + _STEP * (wanted.both - found.both)
    sigma = float(np.sqrt(jobs))
    effect = min(float(np.sqrt(work)), _MOST_WORK * per_rank)
    coupling = both / max(sigma * effect, 1e-9)
    return Level(
        sigma=sigma,
        work=effect / per_rank,
        coupling=float(np.clip(coupling, -_MOST_COUPLING, _MOST_COUPLING)),
    )


def _mean(tried: list[FittedGenerator]) -> FittedGenerator:
    """Return the generator with the mean values of several trials."""

    def mean(name: str, part: str | None = None) -> float:
        values = [getattr(f, name) for f in tried]
        return float(np.mean([getattr(v, part) if part else v for v in values]))

    return msgspec.structs.replace(
        tried[-1],
        bursts=Bursts(*(mean("bursts", part) for part in Bursts.__struct_fields__)),
        day=Level(*(mean("day", part) for part in Level.__struct_fields__)),
        series_scale=mean("series_scale"),
        repeat_run=mean("repeat_run"),
    )
