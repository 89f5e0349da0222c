"""When one job will start."""

from __future__ import annotations

import msgspec


class JobForecast(msgspec.Struct, frozen=True, kw_only=True):
    """When one job will start, as known at some instant.

    Attributes:
        job: its number in the run.
        name: its name in the trace; else its number.
        time: the instant.
        low: the (1 - level) / 2 quantile of its starts over draws.
        median: the median of its starts.
        high: the (1 + level) / 2 quantile; infinity = after all that was simulated.
        level: the share of draws inside.
        draws: number of draws.
        not_started: the share of draws in which it did not start within the horizon.
        run_times: where run times come from, as in Forecast.
        jobs_to_come: whether later jobs were assumed.
    """

    job: int
    name: str
    time: float
    low: float
    median: float
    high: float
    level: float
    draws: int
    not_started: float
    run_times: str
    jobs_to_come: bool
