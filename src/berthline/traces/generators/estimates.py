"""Estimate error models: how users estimate the run times of their jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berthline.traces.generators.dials import Dial
from berthline.traces.generators.draws import exp

if TYPE_CHECKING:
    from collections.abc import Callable

    from berthline.traces.generators.dials import Settings
    from berthline.traces.generators.draws import RandomSource, Table

_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86_400.0
HUMAN_LIMITS = np.array(
    [
        *(minutes * _MINUTE for minutes in (5, 10, 15, 30)),
        *(hours * _HOUR for hours in (1, 2, 3, 4, 6, 8, 12, 18)),
        *(days * _DAY for days in (1, 2, 3, 5, 7, 14, 30)),
    ]
)
"""Seconds. Time limits that people request: in the HPC2N and CTC logs about twenty round values
make up most requests, and these are among the most frequent."""


def _exact(source: RandomSource, run: Table, dials: Settings) -> Table:  # noqa: ARG001 - one signature
    return run


def _factor(source: RandomSource, run: Table, dials: Settings) -> Table:  # noqa: ARG001
    return np.asarray(np.ceil(run * float(dials["estimate_factor"])))


def _over(source: RandomSource, run: Table, dials: Settings) -> Table:
    error = float(dials["estimate_error"])
    if error == 0:
        return run
    return np.asarray(np.ceil(run * exp(error * np.abs(source.normal("estimate")))))


def _lognormal(source: RandomSource, run: Table, dials: Settings) -> Table:
    error = float(dials["estimate_error"])
    return np.asarray(np.maximum(1.0, np.rint(run * exp(error * source.normal("estimate")))))


def _human(source: RandomSource, run: Table, dials: Settings) -> Table:
    wanted = _over(source, run, dials)
    number = np.searchsorted(HUMAN_LIMITS, wanted)
    longest = len(HUMAN_LIMITS) - 1
    limit = HUMAN_LIMITS[np.minimum(number, longest)]
    return np.where(number > longest, np.ceil(wanted / _DAY) * _DAY, limit)


ESTIMATES: dict[str, Callable[[RandomSource, Table, Settings], Table]] = {
    "exact": _exact,
    "factor": _factor,
    "over": _over,
    "lognormal": _lognormal,
    "human": _human,
}
"""Every error model by its name."""

ESTIMATE_DIALS = (
    Dial(
        name="estimates",
        default="over",
        meaning="exact; factor: run * estimate_factor; over: run * exp(error * |N(0, 1)|), never "
        "too short; lognormal: run * exp(error * N(0, 1)); human: over, rounded up to a limit "
        "that people request, such as 1 h or 1 d",
        choices=tuple(ESTIMATES),
    ),
    Dial(
        name="estimate_error",
        default=0.0,
        meaning="error of the models over, lognormal and human; 0 = none",
        highest=10,
    ),
    Dial(
        name="estimate_factor",
        default=2.0,
        meaning="the factor of the model factor",
        lowest=0.01,
        highest=1000,
    ),
)


def draw_estimates(source: RandomSource, run: Table, dials: Settings) -> Table:
    """Return estimates in whole seconds, 1 or more, according to the dials.

    Args:
        source: random numbers.
        run: true run times, 1 or more. This array is returned if estimates have no error.
        dials: the error model and its settings.
    """
    return ESTIMATES[str(dials.get("estimates", "over"))](source, run, dials)
