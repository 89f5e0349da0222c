"""Jobs like those of the model of Lublin and Feitelson (JPDC 2003), for parallel machines.

Sizes: a share of jobs is serial; for the others log2(GPUs) has a two-stage uniform distribution up
to the whole cluster, and a share of all jobs is rounded to a power of two. Run times: the logarithm
has one of two gamma distributions; the longer one is more likely for wide jobs. Arrivals: the
logarithm of the gap is gamma distributed, transformed to a daily cycle whose shape is a gamma
density over the half hours of the day, highest in the early afternoon.

Parameters are those that the authors give for jobs of all kinds together, fitted to four logs of
the 1990s. Simplifications: gammas are approximated (Wilson and Hilferty; the density at the middle
of each half hour; quantiles from a table); a logarithm beyond its limit is clipped instead of drawn
again; the number of GPUs does not have to be a power of two; time 0 is midnight; and the gaps are
scaled to the requested load.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from berthline.traces.generators.arrivals import DAY, Cycle, gamma_quantile
from berthline.traces.generators.dials import Dial
from berthline.traces.generators.draws import Lattice, exp, normal_quantile, running_sums
from berthline.traces.generators.quantile_table import QuantileTable

if TYPE_CHECKING:
    from berthline.traces.generators.dials import Settings
    from berthline.traces.generators.draws import Draws, Gap, RandomSource, Table
    from berthline.traces.generators.quantile_table import Quantile

_SMALLEST_LOG, _MIDDLE_BELOW_LARGEST, _LOWER_STAGE = 0.8, 2.5, 0.86
_SHORT_GAMMA, _LONG_GAMMA = (4.2, 0.94), (312.0, 0.03)  # shape and scale, of ln seconds
_SHORT_PER_GPU, _SHORT_BASE = -0.0054, 0.78
_LONGEST_LOG = 12.0
_GAP_SHAPE, _GAP_SCALE, _LONGEST_GAP_LOG = 10.2303 * 1.0225, 0.4871, 13.0
_TINY, _LARGEST = 1e-12, 1.0 - 2.0**-53  # no division by shares of 0; the last below 1
_DAY_SHAPE, _DAY_SCALE, _DAY_BEGINS, _HALF_HOURS = 8.1737, 3.9631, 11, 48

LUBLIN_DIALS = (
    Dial(
        name="serial_share",
        default=0.244,
        meaning="share of jobs that request one GPU",
        highest=1,
    ),
    Dial(
        name="power_share",
        default=0.576,
        meaning="share of jobs that are parallel and request a power of two",
        highest=1,
    ),
    Dial(
        name="daily_cycle",
        default="on",
        meaning="whether submissions follow the time of day",
        choices=("on", "off"),
    ),
)


def _daily_cycle() -> Cycle:
    half_hours = np.arange(_DAY_BEGINS, _DAY_BEGINS + _HALF_HOURS, dtype=np.float64)
    density = half_hours ** (_DAY_SHAPE - 1) * np.exp(-half_hours / _DAY_SCALE)
    return Cycle.of(DAY, np.roll(density, _DAY_BEGINS - 1))


def _exp_gamma(shape: float, scale: float, most: float) -> Quantile:
    return lambda u: exp(np.minimum(gamma_quantile(normal_quantile(u), shape, scale), most))


_CYCLE = _daily_cycle()
_RUN = QuantileTable(
    [_exp_gamma(*_LONG_GAMMA, _LONGEST_LOG), _exp_gamma(*_SHORT_GAMMA, _LONGEST_LOG)]
)
_GAP = QuantileTable([_exp_gamma(_GAP_SHAPE, _GAP_SCALE, _LONGEST_GAP_LOG)])


def lublin_sizes(source: RandomSource, total_gpus: int, dials: Settings) -> tuple[Table, Table]:
    """Return run times and GPUs."""
    gpus = _gpus(source, total_gpus, dials)
    share = gpus * _SHORT_PER_GPU
    share += _SHORT_BASE
    np.maximum(share, 0.0, out=share)
    # One number chooses the gamma, and its position within the choice is the probability in it.
    u = source.uniform("run")
    is_short = u < share
    over = np.where(is_short, share, 1.0 - share)
    place = u - share
    place += is_short * share
    place /= np.maximum(over, _TINY, out=over)
    run = _RUN.at(np.minimum(place, _LARGEST, out=place), is_short)
    np.rint(run, out=run)
    return np.maximum(run, 1.0, out=run), gpus


def _gpus(source: RandomSource, total_gpus: int, dials: Settings) -> Table:
    largest = math.log2(total_gpus)
    smallest = min(_SMALLEST_LOG, largest)
    middle = max(smallest, largest - _MIDDLE_BELOW_LARGEST)
    serial = float(dials["serial_share"])
    power = min(float(dials["power_share"]), 1.0 - serial)
    other = 1.0 - serial - power
    # One number decides both kind and width: below `serial`, then a power of two, then any width.
    u = source.uniform("gpus")
    width = np.where(
        u < serial + power,
        (u - serial) * (1 / max(power, _TINY)),
        (u - (serial + power)) * (1 / max(other, _TINY)),
    )
    # Piecewise linear: after the lower stage the slope is `upper`.
    lower, upper = (middle - smallest) / _LOWER_STAGE, (largest - middle) / (1 - _LOWER_STAGE)
    log = width * lower
    log += smallest
    width -= _LOWER_STAGE
    np.maximum(width, 0.0, out=width)
    width *= upper - lower
    log += width
    powers = np.exp2(np.arange(math.ceil(largest) + 1, dtype=np.float64))
    number = np.rint(log)
    number *= u >= serial
    gpus: Table = powers.take(number.astype(np.intp), mode="clip")
    free = np.flatnonzero(u >= serial + power)  # few, and exponentials are slow
    gpus.ravel()[free] = np.rint(np.exp2(log.ravel()[free]))
    return np.clip(gpus, 1.0, float(total_gpus), out=gpus)


def lublin_arrivals(draws: Draws, mean_gap: Gap, dials: Settings) -> Table:
    """Return submission times."""
    gaps = _GAP.at(draws.uniform("submit"))
    even = running_sums(gaps, mean_gap / _mean_gap())
    return _CYCLE.bend(even) if dials["daily_cycle"] == "on" else even


@functools.cache
def _mean_gap() -> float:
    return float(_GAP.at(Lattice().uniform("submit")).mean())
