"""calibrate: how often starts were inside the intervals that a forecast would have given.

A forecast is made at random instants of a run, from what was known then, and compared with when the
jobs that waited did start. Instants are between events, so no job starts at them. Each forecast is
counted a second time, corrected by what the earlier ones missed.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt

from berthline.argument_types import check_arguments
from berthline.errors import ConfigError
from berthline.evaluate.forecast.correction import Correction, Forecasts, correction_of
from berthline.evaluate.forecast.forecast import DRAWS, LEVEL, forecast
from berthline.evaluate.metrics.job_table import job_table
from berthline.random_streams import stream_key
from berthline.size_limits import check_sizes

if TYPE_CHECKING:
    from collections.abc import Callable

    from berthline.sim.simulate import Result

    Floats = npt.NDArray[np.float64]

POINTS = 200
FIRST_SHARE = 0.2
"""Of the run's time, the first part is only history."""

BLOCKS = 10
"""Of neighbouring instants, for the standard error."""

WAITS = {
    "up to 10 min": 600.0,
    "10 min to 1 h": 3600.0,
    "1 h to 6 h": 6 * 3600.0,
    "6 h to 1 d": 86400.0,
    "more than 1 d": np.inf,
}
"""Classes of the wait that was left."""

FEWEST = 30
"""A class with fewer forecasts is not named as the worst."""


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """How often starts were inside their intervals.

    Attributes:
        name: of the class of forecasts.
        forecasts: number of forecasts.
        inside: the share of starts inside.
        earlier: the share before the interval.
        later: the share after it.
        open: the share of intervals without an end.
        width: the median length of the intervals that have an end, in seconds.
    """

    name: str
    forecasts: int
    inside: float
    earlier: float
    later: float
    open: float
    width: float


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """How often starts were inside their intervals, over many instants of a run.

    Attributes:
        level: the share of starts that should be inside.
        all: of all forecasts.
        error: the standard error of the share inside. Forecasts of neighbouring instants are not
            independent, so the instants are cut into BLOCKS in order of time.
        by_wait: by the time that the job still had to wait; this is not known in advance, and
            long waits are more often later than forecast for that reason alone.
        worst: the class of `by_place` furthest from the level.
        by_place: by the median forecast of the time left, which is known in advance.
        corrected: of the forecasts that could be corrected by earlier ones; None = too few.
        uncorrected: of the same forecasts as they were.
        correction: what all of them together call for, for forecasts after them.
        points: number of instants.
        draws: number of draws of each forecast.
        seed: of instants and draws.
    """

    level: float
    all: Coverage
    error: float
    by_wait: list[Coverage]
    by_place: list[Coverage]
    worst: Coverage | None
    corrected: Coverage | None
    uncorrected: Coverage | None
    correction: Correction | None
    points: int
    draws: int
    seed: int


def calibrate(
    result: Result,
    *,
    points: int = POINTS,
    draws: int = DRAWS,
    level: float = LEVEL,
    seed: int = 0,
    until: float | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Calibration:
    """Return how often starts of a run were inside the intervals forecast at random instants.

    Args:
        result: the run.
        points: number of instants.
        draws: number of draws of each forecast.
        level: the share of draws inside an interval.
        seed: of instants and draws.
        until: instants are before this time, and only what is known then is used, for a forecast
            of this instant; None = the whole run.
        workers: as in `forecast`.
        progress: called with the forecasts done and their number.

    Raises:
        ConfigError: no job waited after the first fifth of the run.

    Example:
        >>> import berthline as bl
        >>> result = bl.simulate("synthetic", "uniform:2x8", "sjf+easy", seed=1)
        >>> found = bl.calibrate(result, points=20, draws=20)
        >>> later = bl.forecast(
        ...     result.snapshot(20_000.0), history=result, draws=20, correction=found.correction
        ... )
    """
    check_arguments(seed=seed)
    if result.start is not None:
        raise ConfigError(
            "the run began in the middle, so its past is not complete",
            expected="a run that began with an empty cluster",
        )
    check_sizes(points=points, draws=draws, workers=workers)
    start = job_table(result.log, result.workload).start
    start = np.where(np.isnan(start), np.inf, start)
    over = _end(result, until)
    # What is not known yet must not be read.
    start = np.where(start <= over, start, np.inf) if until is not None else start
    times = instants(result, start, points, seed, until)
    rows: list[npt.NDArray[np.float64]] = []
    for number, time in enumerate(times):
        found = forecast(
            result.snapshot(time),
            history=result,
            draws=draws,
            level=level,
            seed=stream_key(seed, f"calibrate/{number}") % 2**31,
            workers=workers,
        )
        begun = (start[found.jobs], found.low, found.median, found.high)
        rows.append(np.stack([np.full(len(found), number), np.full(len(found), time), *begun]))
        if progress is not None:
            progress(number + 1, len(times))
    made = Forecasts(*np.concatenate(rows, axis=1))
    judged = made.of(made.low < over)
    if not len(judged.low):
        raise ConfigError(
            "no forecast can be judged: all are after the last submission",
            where=result.workload.name,
        )
    table, point = _table_of(judged, over), judged.instant
    is_corrected, again = _corrected(made, times, level)
    by_place = table.by(judged.median - judged.time)
    large = [each for each in by_place if each.forecasts >= FEWEST]
    return Calibration(
        level=level,
        all=table.coverage("all"),
        error=_error(table.inside, point),
        by_wait=table.by(table.wait),
        by_place=by_place,
        worst=max(large, key=lambda each: abs(each.inside - level), default=None),
        corrected=_coverage(again, made, is_corrected, over),
        uncorrected=_coverage(made, made, is_corrected, over),
        correction=correction_of(made, now=np.inf if until is None else over, level=level),
        points=len(times),
        draws=draws,
        seed=seed,
    )


def _table_of(made: Forecasts, over: float) -> _Table:
    """Return forecasts as they are counted.

    Jobs are submitted until `over`: what starts after it cannot tell, as none come any more.
    """
    left = over - made.time
    wait, low, _, high = (np.minimum(each - made.time, left) for each in made[2:])
    return _Table(wait, low, high, high == left)


def _corrected(
    made: Forecasts, times: list[float], level: float
) -> tuple[npt.NDArray[np.bool_], Forecasts]:
    """Return which forecasts earlier ones of the run can correct, and all after that."""
    low, high = made.low.copy(), made.high.copy()
    is_corrected = np.zeros(len(low), np.bool_)
    for number, time in enumerate(times):
        found = correction_of(made.of(made.instant < number), now=time, level=level)
        if found is None:
            continue
        own = made.instant == number
        is_corrected |= own
        low[own] = found.low(time, made.low[own], made.median[own])
        high[own] = found.high(made.median[own], made.high[own])
    return is_corrected, made._replace(low=low, high=high)


def _coverage(
    made: Forecasts, first: Forecasts, rows: npt.NDArray[np.bool_], over: float
) -> Coverage | None:
    """Return the coverage of some forecasts, if they count as they were at first."""
    rows = rows & (first.low < over)
    return _table_of(made.of(rows), over).coverage("all") if rows.any() else None


def verdict(found: Calibration) -> str:
    """Return in words whether the intervals are as wide as they should be."""
    inside, level, error = found.all.inside, found.level, found.error
    measured = (
        f"{inside:.0%} (standard error {error:.0%}) of starts are inside {level:.0%} intervals"
    )
    if abs(inside - level) <= 2 * error:
        words = "not distinguishable from the level"
    else:
        words = "intervals are too short" if inside < level else "intervals are longer than needed"
    worst = ""
    if found.worst is not None:
        worst = (
            f"; worst: {found.worst.inside:.0%}, where {found.worst.name} of waiting was forecast"
        )
    return f"{measured}: {words}{worst}"


def _end(result: Result, until: float | None = None) -> float:
    """Return until when jobs are submitted in a run."""
    end = min(float(result.workload.submit[-1]), result.log.horizon)
    return end if until is None else min(end, until)


def instants(
    result: Result, start: Floats, points: int, seed: int, until: float | None = None
) -> list[float]:
    """Return random instants of the last part of a run at which jobs wait, ascending."""
    submit = result.workload.submit
    submit = submit[submit <= _end(result, until)]
    start = start[: len(submit)]
    over = _end(result, until)
    first = float(submit[0]) + FIRST_SHARE * (over - float(submit[0]))
    # Times at which at least one job waits: the union of all waits.
    order = np.argsort(submit, kind="stable")
    begin = np.maximum(submit[order], first)
    end = np.minimum(np.maximum.accumulate(start[order]), over)
    gap = np.append(True, begin[1:] > end[:-1])
    lows, highs = begin[gap], np.append(end[:-1][gap[1:]], end[-1])
    length = np.maximum(highs - lows, 0.0)
    if not length.sum() > 0:
        raise ConfigError(
            "no job waited after the first fifth of the run", where=result.workload.name
        )
    rng = np.random.default_rng([stream_key(seed, "instants")])
    chosen = np.sort(rng.random(points)) * length.sum()
    piece = np.searchsorted(np.cumsum(length), chosen, side="right")
    before = np.cumsum(length)[piece] - length[piece]
    found: list[float] = (lows[piece] + chosen - before).tolist()
    return found


@dataclasses.dataclass(frozen=True, eq=False)
class _Table:
    """The wait left of each forecast job, and its interval."""

    wait: npt.NDArray[np.float64]
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]
    open: npt.NDArray[np.bool_]

    @property
    def inside(self) -> npt.NDArray[np.bool_]:
        return (self.wait >= self.low) & (self.wait <= self.high)

    def by(self, seconds: npt.NDArray[np.float64]) -> list[Coverage]:
        """Return the coverage by classes of a time."""
        place = np.searchsorted([*WAITS.values()], seconds, side="left")
        return [
            self.coverage(name, place == number)
            for number, name in enumerate(WAITS)
            if (place == number).any()
        ]

    def coverage(self, name: str, mask: npt.NDArray[np.bool_] | None = None) -> Coverage:
        if mask is None:
            mask = np.ones(len(self.wait), np.bool_)
        wait, low, high = self.wait[mask], self.low[mask], self.high[mask]
        ends = ~self.open[mask]
        return Coverage(
            name=name,
            forecasts=int(mask.sum()),
            inside=float(self.inside[mask].mean()),
            earlier=float((wait < low).mean()),
            later=float((wait > high).mean()),
            open=float(1 - ends.mean()),
            width=float(np.median(high[ends] - low[ends])) if ends.any() else np.inf,
        )


def _error(inside: npt.NDArray[np.bool_], point: npt.NDArray[np.float64]) -> float:
    """Return the standard error of a share, with blocks of instants as the independent units."""
    number = np.unique(point, return_inverse=True)[1].reshape(-1)
    blocks = min(BLOCKS, int(number[-1]) + 1)
    if blocks < 2:
        return float("nan")
    block = number * blocks // (int(number[-1]) + 1)
    residual = np.bincount(block, weights=inside - inside.mean())
    return float(np.sqrt((residual**2).sum() * blocks / (blocks - 1)) / len(inside))
