"""A forecast in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berthline.cli.output import clock, counted

if TYPE_CHECKING:
    from berthline.evaluate.forecast.job_forecast import JobForecast

DRAWN_FROM = {
    "exact": "run times as they are known",
    "ratios": "run times drawn from the estimates and their errors for finished jobs",
    "run times": "run times drawn from those of finished jobs",
    "even": "run times drawn uniformly up to the estimates, as few jobs had finished",
}


def interval_in_words(found: JobForecast) -> str:
    """Return an interval and what it was drawn from, in words."""
    high = clock(found.high) if np.isfinite(found.high) else "an unknown time"
    middle = clock(found.median) if np.isfinite(found.median) else "an unknown time"
    return (
        f"between {clock(found.low)} and {high}\n({found.level:.0%} of "
        f"{counted(found.draws, 'run')}, half of them by {middle})"
    )


def drawn_from(found: JobForecast) -> str:
    """Return where run times and later jobs of a forecast come from, in words."""
    come = "future jobs as in the past" if found.jobs_to_come else "no future jobs"
    return f"{DRAWN_FROM[found.run_times]}; {come}"
