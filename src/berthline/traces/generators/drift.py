"""Drift: jobs of two kinds by turns, so that what was right for the last hours is wrong now.

Every `phase_jobs` jobs the kind changes: mostly short jobs on few GPUs, or long jobs of the common
mix. Jobs of a phase come as fast as gives every phase the same load. Where in a phase an episode
begins is random.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from berthline.traces.generators.dials import Dial
from berthline.traces.generators.draws import Lattice, running_sums
from berthline.traces.generators.gpu_mix import draw_gpus
from berthline.traces.generators.run_times import draw_run_times

if TYPE_CHECKING:
    from berthline.traces.generators.dials import Settings
    from berthline.traces.generators.draws import Draws, Gap, RandomSource, Table

DRIFT_DIALS = (
    Dial(
        name="phase_jobs",
        default=64,
        meaning="jobs in a phase, after which they are of the other kind",
        lowest=1,
        highest=1_000_000,
    ),
    Dial(
        name="short_factor",
        default=0.05,
        meaning="run times in the phases of short jobs, as a share of those in the others",
        lowest=1e-6,
        highest=1,
    ),
    Dial(
        name="long_share",
        default=0.1,
        meaning="share of jobs in the phases of short jobs that are of the long kind",
        highest=1,
    ),
)
_SHORT_MIX = "1:0.8,2:0.15,4:0.05"


def drift_sizes(
    source: RandomSource,
    total_gpus: int,  # noqa: ARG001
    dials: Settings,
) -> tuple[Table, npt.NDArray[np.int32]]:
    """Return run times and GPUs, of the kind that each job has."""
    run, gpus = draw_run_times(source, dials), draw_gpus(source, dials)
    narrow = draw_gpus(source, {**dials, "gpu_mix": _SHORT_MIX})
    is_short = _is_short_phase(source, dials)
    is_short &= source.uniform("kind") >= float(dials["long_share"])
    lowest = math.ceil(float(dials["run_low"]))
    shorter = np.maximum(np.rint(run * float(dials["short_factor"])), lowest)
    return np.where(is_short, shorter, run), np.where(is_short, narrow, gpus)


def drift_arrivals(draws: Draws, mean_gap: Gap, dials: Settings) -> Table:
    """Return a Poisson process whose rate gives every phase the same load."""
    short, long = _gaps(tuple(sorted(dials.items())))
    gaps = draws.exponential("submit")
    gaps *= np.where(_is_short_phase(draws, dials), short, long)
    return running_sums(gaps, mean_gap)


def _is_short_phase(source: RandomSource, dials: Settings) -> npt.NDArray[np.bool_]:
    phase = int(dials["phase_jobs"])
    begin = np.floor(source.uniform("phase")[:, :1] * 2 * phase)
    return np.asarray((begin + np.arange(source.jobs)) // phase % 2 == 0)


@functools.lru_cache(maxsize=64)
def _gaps(dials: tuple[tuple[str, Any], ...]) -> tuple[float, float]:
    """Return the mean gaps in both kinds of phases, relative to the mean over both."""
    settings = dict(dials)
    run, gpus = drift_sizes(source := Lattice(), 0, settings)
    is_short, work = _is_short_phase(source, settings), run * gpus
    short, long = float(work[is_short].mean()), float(work[~is_short].mean())
    return 2 * short / (short + long), 2 * long / (short + long)
