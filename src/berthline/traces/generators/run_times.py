"""Run-time distributions: each is an increasing function of the random column `run`, in seconds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from berthline.errors import ConfigError
from berthline.traces.generators.dials import Dial
from berthline.traces.generators.draws import exp, round_within

if TYPE_CHECKING:
    from collections.abc import Callable

    from berthline.traces.generators.dials import Settings
    from berthline.traces.generators.draws import RandomSource, Table

SHORT_SHARE = 0.85
SHORTEST, SHORT_ENDS = 0.01, 0.08
"""The heavy-tailed mixture: a share SHORT_SHARE of run times is uniform between these two fractions
of the longest; the rest is log-uniform from there to the longest."""


def _lognormal(source: RandomSource, dials: Settings) -> Table:
    median, sigma = float(dials["run_median"]), float(dials["run_sigma"])
    return source.lognormal("run", median=median, sigma=sigma)


def _heavy_tailed(source: RandomSource, dials: Settings) -> Table:
    u = source.uniform("run")
    part = u * ((SHORT_ENDS - SHORTEST) / SHORT_SHARE)
    part += SHORTEST
    long = np.flatnonzero(u >= SHORT_SHARE)  # few, and exponentials are slow
    slope = math.log(SHORT_ENDS) / (1.0 - SHORT_SHARE)
    part.ravel()[long] = exp((1.0 - u.ravel()[long]) * slope)
    part *= float(dials["run_high"])
    return part


def _uniform(source: RandomSource, dials: Settings) -> Table:
    low, high = float(dials["run_low"]), float(dials["run_high"])
    return np.floor(low + (high - low + 1) * source.uniform("run"))


def _normal(source: RandomSource, dials: Settings) -> Table:
    return np.asarray(float(dials["run_mean"]) + float(dials["run_std"]) * source.normal("run"))


RUN_TIMES: dict[str, Callable[[RandomSource, Settings], Table]] = {
    "lognormal": _lognormal,
    "heavy-tailed": _heavy_tailed,
    "uniform": _uniform,
    "normal": _normal,
}
"""Every distribution by its name."""

RUN_DIALS = (
    Dial(
        name="run_times",
        default="lognormal",
        meaning="distribution of run times; heavy-tailed: 85 % uniform between 1 and 8 % of "
        "run_high, 15 % log-uniform from there to run_high",
        choices=tuple(RUN_TIMES),
    ),
    Dial(
        name="run_median",
        default=1200.0,
        meaning="seconds; median of lognormal run times",
        lowest=1,
        highest=1e8,
    ),
    Dial(
        name="run_sigma",
        default=1.5,
        meaning="standard deviation of the logarithm of lognormal run times",
        highest=5,
    ),
    Dial(
        name="run_mean",
        default=3000.0,
        meaning="seconds; mean of normal run times, before they are clipped",
        lowest=1,
        highest=1e8,
    ),
    Dial(
        name="run_std",
        default=2500.0,
        meaning="seconds; standard deviation of normal run times, before they are clipped",
        highest=1e8,
    ),
    Dial(
        name="run_low",
        default=10.0,
        meaning="seconds; shortest run time of all distributions",
        lowest=1,
        highest=1e8,
    ),
    Dial(
        name="run_high",
        default=604_800.0,
        meaning="seconds; longest run time of all distributions",
        lowest=1,
        highest=1e8,
    ),
)


def draw_run_times(source: RandomSource, dials: Settings) -> Table:
    """Return run times in whole seconds, 1 or more, according to the dials.

    Raises:
        ConfigError: the shortest run time is longer than the longest.
    """
    low, high = float(dials["run_low"]), float(dials["run_high"])
    if low > high:
        raise ConfigError(
            f"run_low is {low:g} and run_high is {high:g}",
            where="run times",
            expected="run_low no larger than run_high",
        )
    run = RUN_TIMES[str(dials["run_times"])](source, dials)
    return round_within(run, math.ceil(low), math.floor(high))
