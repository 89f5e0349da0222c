"""Arrival processes: when the jobs of an episode are submitted.

Each takes random numbers and the mean time between submissions (some also take dials), and returns
ascending submission times in seconds, one row per episode. `Cycle` transforms any of them to a
rate that rises and falls: time runs faster where the rate is high, so that the mean over whole
periods does not change.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.traces.generators.dials import Dial
from berthline.traces.generators.draws import running_sums

if TYPE_CHECKING:
    from berthline.traces.generators.dials import Settings
    from berthline.traces.generators.draws import Draws, Gap, Table

HOUR, DAY = 3600.0, 86_400.0
_FEW_SLOTS, _CELLS = 8, 4096
_SLOTS = 360  # of a smooth cycle; divisible by 4, so that a quarter period is a whole number


def poisson(draws: Draws, mean_gap: Gap) -> Table:
    """Return a Poisson process: exponential gaps, independent of each other."""
    return running_sums(draws.exponential("submit"), mean_gap)


def centres(
    draws: Draws, mean_gap: Gap, *, count: int = 6, share: float = 0.8, width: float = 0.03
) -> Table:
    """Return bursts around a few instants of a window, over a sparse uniform background.

    The window lasts `jobs * mean_gap`. This is the burst model of the look-ahead system, whose
    window is its longest run time.

    Args:
        draws: the random numbers.
        mean_gap: the window, divided by the number of jobs.
        count: instants per episode, uniform in the window.
        share: share of jobs that belong to an instant; the others are uniform in the window.
        width: standard deviation around the instant, as a share of the window; times outside the
            window are moved to its edge.
    """
    window = mean_gap * draws.jobs
    where = draws.uniform("submit")
    instants = draws.uniform_of_episodes("instant", count)
    number = (where * (count / max(share, 1e-9))).astype(np.intp)
    np.minimum(number, count - 1, out=number)
    number += np.arange(0, instants.size, count)[:, None]
    place = instants.ravel().take(number)
    spread = draws.normal("spread")
    spread *= width
    place += spread
    anywhere = np.subtract(where, share, out=spread)
    anywhere *= 1 / max(1.0 - share, 1e-9)
    place = np.where(where >= share, anywhere, place)
    np.clip(place, 0.0, 1.0, out=place)
    place.sort(axis=1)
    place *= window
    return place


def per_second(draws: Draws, mean_gap: Gap, *, most: int) -> Table:
    """Return batches: at every tick 1 to `most` jobs, all numbers equally likely.

    A tick is a second in the LSF system. Here it lasts `mean_gap * (1 + most) / 2`, so that the
    mean gap is `mean_gap`.
    """
    bunch = (draws.uniform("submit") * most).astype(np.int64) + 1
    ends = np.cumsum(bunch, axis=1)  # the first job after each bunch
    starts_tick = np.zeros(ends.shape, np.int64)
    inside = ends < draws.jobs
    rows = np.broadcast_to(np.arange(len(ends))[:, None], ends.shape)
    starts_tick[rows[inside], ends[inside]] = 1
    tick = np.cumsum(starts_tick, axis=1)
    return np.multiply(tick, mean_gap * (1 + most) / 2, dtype=np.float64)


def gamma_quantile(normal: Table, shape: float, scale: float) -> Table:
    """Return gamma distributed numbers from normal ones, by Wilson and Hilferty's cube.

    Accurate to about one percent for shapes of 4 and more.
    """
    part = 1.0 / (9.0 * shape)
    root = normal * math.sqrt(part)
    root += 1.0 - part
    np.maximum(root, 0.0, out=root)
    cube: Table = root * root
    cube *= root
    cube *= shape * scale
    return cube


@dataclasses.dataclass(frozen=True, eq=False)
class Cycle:
    """A rate that repeats, constant within slots of equal length.

    Attributes:
        period: seconds until it repeats.
        weights: the rate in each slot, as a multiple of the mean rate; their mean is 1.
    """

    period: float
    weights: npt.NDArray[np.float64]  # (num_slots,)

    @classmethod
    def of(cls, period: float, weights: npt.ArrayLike) -> Cycle:
        """Return the cycle whose slots have rates in these proportions."""
        given = np.asarray(weights, dtype=np.float64)
        return cls(period, given / given.mean())

    def bend(self, times: Table) -> Table:
        """Return the submission times with the cycle, from the times without it.

        By the end of every period as many jobs have been submitted as without the cycle.
        """
        place = times * (1 / self.period)
        begun = np.floor(place)
        place -= begun
        begun *= self.period
        if len(self.weights) <= _FEW_SLOTS:
            begun += np.interp(place, self._passed, self._edges)
            return begun
        place *= _CELLS
        cell = place.astype(np.int32)
        place -= cell
        values, steps = self._table
        place *= steps.take(cell, mode="clip")
        place += values.take(cell, mode="clip")
        begun += place
        return begun

    def unbend(self, times: Table) -> Table:
        """Return the submission times without the cycle: the inverse of `bend`."""
        begun = np.floor(times / self.period)
        place = times - begun * self.period
        return np.asarray((begun + np.interp(place, self._edges, self._passed)) * self.period)

    @functools.cached_property
    def _edges(self) -> npt.NDArray[np.float64]:
        return np.linspace(0.0, self.period, len(self.weights) + 1)

    @functools.cached_property
    def _passed(self) -> npt.NDArray[np.float64]:
        """The cumulative share of a period's jobs at the edges of slots."""
        passed = np.concatenate(([0.0], np.cumsum(self.weights)))
        return np.asarray(passed / passed[-1])

    @functools.cached_property
    def _table(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """The time at which each share of jobs is reached, and its steps: faster than a search."""
        nodes = np.interp(np.linspace(0.0, 1.0, _CELLS + 1), self._passed, self._edges)
        return nodes[:-1], np.diff(nodes)


@functools.lru_cache(maxsize=16)
def on_off(*, high: float, low: float, seconds: float) -> Cycle:
    """Return a rate that alternates between `high` and `low`, `seconds` each, starting high."""
    return Cycle.of(2 * seconds, [high, low])


@functools.lru_cache(maxsize=16)
def diurnal(*, period: float, depth: float, shift: float = 0.0) -> Cycle:
    """Return the rate 1 + depth * sin(2 pi (t / period + shift))."""
    phase = (np.arange(_SLOTS) + 0.5) / _SLOTS + shift
    return Cycle.of(period, 1.0 + depth * np.sin(2 * math.pi * phase))


# --- the same with the signature of generators: (random numbers, mean gap, dials) -----------------

BURST_DIALS = (
    Dial(
        name="burst_centres",
        default=6,
        meaning="number of instants around which jobs arrive in bursts",
        lowest=1,
        highest=10_000,
    ),
    Dial(name="burst_share", default=0.8, meaning="share of jobs in bursts", highest=1),
    Dial(
        name="burst_width",
        default=0.03,
        meaning="standard deviation of a burst, as a share of the time in which all jobs arrive",
        highest=1,
    ),
)
ON_OFF_DIALS = (
    Dial(name="high", default=3.0, meaning="the high rate", lowest=1e-6, highest=1e6),
    Dial(
        name="low",
        default=0.3,
        meaning="the low rate; only the ratio high / low matters",
        highest=1e6,
    ),
    Dial(name="seconds", default=300.0, meaning="duration of each rate", lowest=1, highest=1e8),
)
DIURNAL_DIALS = (
    Dial(name="period", default=DAY, meaning="seconds; one day unless set", lowest=60, highest=1e8),
    Dial(
        name="depth",
        default=0.5,
        meaning="the rate is 1 + depth * sin(2 pi t / period) times its mean",
        highest=1,
    ),
)


def even(draws: Draws, mean_gap: Gap, dials: Settings) -> Table:  # noqa: ARG001 - one signature
    """Return a Poisson process."""
    return poisson(draws, mean_gap)


def at_once(draws: Draws, mean_gap: Gap, dials: Settings) -> Table:  # noqa: ARG001
    """Return 0 for every job."""
    submit = draws.uniform("submit")
    submit.fill(0.0)
    return submit


def about_centres(draws: Draws, mean_gap: Gap, dials: Settings) -> Table:
    """Return bursts around a few instants."""
    return centres(
        draws,
        mean_gap,
        count=int(dials["burst_centres"]),
        share=float(dials["burst_share"]),
        width=float(dials["burst_width"]),
    )


def by_turns(draws: Draws, mean_gap: Gap, dials: Settings) -> Table:
    """Return a Poisson process whose rate alternates between high and low."""
    cycle = on_off(
        high=float(dials["high"]), low=float(dials["low"]), seconds=float(dials["seconds"])
    )
    return cycle.bend(poisson(draws, mean_gap))


def daily(draws: Draws, mean_gap: Gap, dials: Settings) -> Table:
    """Return a Poisson process whose rate is a sine."""
    return _sine(draws, mean_gap, dials, shift=0.0)


def daily_shifted(draws: Draws, mean_gap: Gap, dials: Settings) -> Table:
    """Return the same process as `daily`, started a quarter period later."""
    return _sine(draws, mean_gap, dials, shift=0.25)


def _sine(draws: Draws, mean_gap: Gap, dials: Settings, *, shift: float) -> Table:
    cycle = diurnal(period=float(dials["period"]), depth=float(dials["depth"]), shift=shift)
    return cycle.bend(poisson(draws, mean_gap))
