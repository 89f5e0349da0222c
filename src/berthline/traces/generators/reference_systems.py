"""The job generators of four published schedulers, as in their code.

Each keeps the distributions of the original, and its arrival rate unless a load is given. Data that
a Workload cannot represent is left out; choices that had to be made are stated in each function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.errors import ConfigError
from berthline.traces.generators.arrivals import Cycle, diurnal, on_off, per_second, poisson
from berthline.traces.generators.dials import Dial
from berthline.traces.generators.draws import number_of_limits
from berthline.traces.generators.run_times import draw_run_times

if TYPE_CHECKING:
    from berthline.traces.generators.dials import Settings
    from berthline.traces.generators.draws import Draws, Gap, RandomSource, Table

# --- the look-ahead system (MohammedYaseen97/gpu-optimizer): generator `heavy-tailed` -------------

_WIDEST = 8
_GPU_POWER, _PRIORITY_POWER, _HIGHEST_PRIORITY = 0.6, 0.8, 10

LOOKAHEAD_DIALS = (
    Dial(
        name="gpu_correlation",
        default=0.7,
        meaning="weight of the run time in the requested GPUs; the rest is random",
        highest=1,
    ),
    Dial(
        name="priority_correlation",
        default=0.6,
        meaning="weight of a short run time in the priority (1 to 10); the rest is random",
        highest=1,
    ),
    Dial(
        name="longest",
        default=0.0,
        meaning="seconds; the run time of the widest and least urgent jobs, and the time in which "
        "all are submitted unless a load is given; 0 = run_high",
        highest=1e8,
    ),
)


def lookahead_longest(dials: Settings) -> float:
    """Return the longest run time of the original, its unit for everything else.

    Uniform run times end at a fifth of it, so it is not always `run_high`.
    """
    return float(dials["longest"]) or float(dials["run_high"])


def lookahead_sizes(source: RandomSource, total_gpus: int, dials: Settings) -> tuple[Table, Table]:
    """Return run times, and GPUs that grow with them, up to min(8, GPUs of the cluster)."""
    run = draw_run_times(source, dials)
    widest, weight = min(_WIDEST, total_gpus), float(dials["gpu_correlation"])
    # 1 + floor(part ** power * (widest - 1)), where part = run / longest: one more GPU at each of
    # these run times.
    steps = np.arange(1, widest) / max(1, widest - 1)
    by_run = number_of_limits(run, steps ** (1 / _GPU_POWER) * lookahead_longest(dials))
    by_chance = np.floor(source.uniform("gpus") * widest)
    return run, np.rint(1.0 + (1 - weight) * by_chance + weight * by_run)


def lookahead_priorities(source: RandomSource, run: Table, dials: Settings) -> Table:
    """Return priorities 1 to 10, higher for short jobs."""
    weight = float(dials["priority_correlation"])
    # 1 + floor((1 - part) ** power * (highest - 1)): one less beyond each of these run times.
    steps = np.arange(_HIGHEST_PRIORITY - 1, 0, -1) / (_HIGHEST_PRIORITY - 1)
    lost = number_of_limits(run, (1 - steps ** (1 / _PRIORITY_POWER)) * lookahead_longest(dials))
    by_run = _HIGHEST_PRIORITY - 1 - lost
    by_chance = np.floor(source.uniform("priority") * _HIGHEST_PRIORITY)
    return np.rint(1.0 + (1 - weight) * by_chance + weight * by_run)


def lookahead_gap(dials: Settings, jobs: int) -> float:
    """Return the mean gap of the original, whose window of arrivals is the longest run time."""
    return lookahead_longest(dials) / jobs


# --- the D3QN and SAC scheduler (HenryAJX/DRL_Scheduler): generator `drl-scheduler` ---------------

_DRL_PRIORITIES = np.array([0.5, 1.0, 2.5, 5.0])

DRL_DIALS = (
    Dial(
        name="rate",
        default=2.5,
        meaning="jobs per second, unless a load is given; 2.5 is about 600 times the capacity of "
        "the original's 56 GPUs",
        lowest=1e-9,
        highest=1e6,
    ),
)


def drl_priorities(source: RandomSource, run: Table, dials: Settings) -> Table:  # noqa: ARG001
    """Return 0.5, 1, 2.5 or 5, all equally likely."""
    return _DRL_PRIORITIES[(source.uniform("priority") * len(_DRL_PRIORITIES)).astype(np.intp)]


def drl_gap(dials: Settings, jobs: int) -> float:  # noqa: ARG001
    """Return the mean gap at the dial's rate."""
    return 1.0 / float(dials["rate"])


# --- the meta-scheduler (gomede/rlmetadqn-tpds): generator `rlmetadqn` ----------------------------

_BASE_RATE = 1 / 60  # jobs per second
_INTENSITIES = {"low": 1.0, "medium": 2.0, "high": 4.0, "super-high": 6.0}
_META_HIGH, _META_LOW, _META_SECONDS = 3.0, 0.3, 300.0
_META_PERIOD, _META_DEPTH, _META_SHIFT = 3600.0, 0.5, 0.25
_SHAPES: dict[str, Cycle | None] = {
    "base": None,
    "bursty": on_off(high=_META_HIGH, low=_META_LOW, seconds=_META_SECONDS),
    "diurnal": diurnal(period=_META_PERIOD, depth=_META_DEPTH),
    "shifted-diurnal": diurnal(period=_META_PERIOD, depth=_META_DEPTH, shift=_META_SHIFT),
}

META_DIALS = (
    Dial(
        name="shape",
        default="base",
        meaning="how the rate varies: bursty = alternately x3 and x0.3 for 300 s each; diurnal = a "
        "sine with a period of one hour",
        choices=tuple(_SHAPES),
    ),
    Dial(
        name="intensity",
        default="medium",
        meaning="1, 2, 4 or 6 jobs a minute, unless a load is given; bursty has 1.65 times as many",
        choices=tuple(_INTENSITIES),
    ),
)


def meta_arrivals(draws: Draws, mean_gap: Gap, dials: Settings) -> Table:
    """Return a Poisson process whose rate has the dial's shape.

    The original submits for one hour, in steps of 5 s; here the requested number of jobs is
    submitted, at any second.
    """
    cycle = _SHAPES[str(dials["shape"])]
    even = poisson(draws, mean_gap)
    return even if cycle is None else cycle.bend(even)


def meta_gap(dials: Settings, jobs: int) -> float:  # noqa: ARG001
    """Return the mean gap at the dial's intensity."""
    surplus = (_META_HIGH + _META_LOW) / 2 if dials["shape"] == "bursty" else 1.0
    return 1.0 / (_BASE_RATE * _INTENSITIES[str(dials["intensity"])] * surplus)


# --- the LSF host picker (LoboShao/lsf_autohost, first generation): generator `lsf` ---------------

_LSF_MEMORY_MIB = 1024 * np.array([0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 8, 12, 16])

LSF_DIALS = (
    Dial(
        name="jobs_per_second",
        default=50,
        meaning="1 to this many jobs are submitted every second; a load changes the interval",
        lowest=1,
        highest=1_000_000,
    ),
    Dial(
        name="memory_low",
        default=512,
        meaning="MiB; the lower limit of a job's memory, which is 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, "
        "8, 12 or 16 GiB within the limits, all equally likely",
        lowest=1,
        highest=1_000_000,
    ),
    Dial(
        name="memory_high",
        default=4096,
        meaning="MiB; the upper limit of a job's memory",
        lowest=1,
        highest=1_000_000,
    ),
)


def lsf_arrivals(draws: Draws, mean_gap: Gap, dials: Settings) -> Table:
    """Return a batch of jobs every second, or at the interval that gives the load."""
    return per_second(draws, mean_gap, most=int(dials["jobs_per_second"]))


def lsf_gap(dials: Settings, jobs: int) -> float:  # noqa: ARG001
    """Return the mean gap of the original."""
    return 2.0 / (1 + int(dials["jobs_per_second"]))


def lsf_memory(source: RandomSource, dials: Settings) -> dict[str, npt.NDArray[np.int64]]:
    """Return memory from the original's list, within the dials' limits, all equally likely.

    The original has no GPUs: its cores are GPUs here.

    Raises:
        ConfigError: no value on the list is within the limits.
    """
    low, high = int(dials["memory_low"]), int(dials["memory_high"])
    sizes = _LSF_MEMORY_MIB[(low <= _LSF_MEMORY_MIB) & (high >= _LSF_MEMORY_MIB)]
    if not len(sizes):
        raise ConfigError(
            f"memory_low is {low} and memory_high is {high}",
            where="generator 'lsf'",
            expected="limits that include one of "
            + ", ".join(f"{size:g}" for size in _LSF_MEMORY_MIB),
        )
    drawn = sizes[(source.uniform("memory") * len(sizes)).astype(np.intp)]
    return {"memory_mib": drawn.astype(np.int64)}
