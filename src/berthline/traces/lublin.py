"""Jobs like those of the model of Lublin and Feitelson (JPDC 2003), for parallel machines.

Sizes: a share of jobs is serial; of the others the logarithm (base 2) of the GPUs is spread evenly
in two stages up to the whole cluster, and a share of all jobs is rounded to a power of two. Run
times: the logarithm is gamma distributed, of one of two gammas, the longer one being likelier for
wide jobs. Arrivals: the logarithm of the gap is gamma distributed, bent to a daily cycle whose
shape is a gamma density over the half hours of the day, highest in the early afternoon.

Parameters are those the authors give for jobs of all kinds together, fitted to four logs of the
1990s. Simplified here: gammas are approximated (Wilson and Hilferty; the density at the middle of
each half hour); a logarithm beyond its limit is cut there instead of drawn again; the cluster's
GPUs need be no power of two; time 0 is midnight; and the gaps are scaled to the load asked for.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from berthline.traces.arrivals import DAY, Cycle, gamma_power, gamma_quantile
from berthline.traces.dials import Dial

if TYPE_CHECKING:
    from berthline.traces.dials import Settings
    from berthline.traces.draws import Draws, Source, Table

_SMALLEST_LOG, _MIDDLE_BELOW_LARGEST, _LOWER_STAGE = 0.8, 2.5, 0.86
_SHORT_GAMMA, _LONG_GAMMA = (4.2, 0.94), (312.0, 0.03)  # shape and scale, of ln seconds
_SHORT_PER_GPU, _SHORT_BASE = -0.0054, 0.78
_LONGEST_LOG = 12.0
_GAP_SHAPE, _GAP_SCALE, _LONGEST_GAP_LOG = 10.2303 * 1.0225, 0.4871, 13.0
_DAY_SHAPE, _DAY_SCALE, _DAY_BEGINS, _HALF_HOURS = 8.1737, 3.9631, 11, 48

LUBLIN_DIALS = (
    Dial(
        name="serial_share",
        default=0.244,
        meaning="jobs that ask for one GPU",
        highest=1,
    ),
    Dial(
        name="power_share",
        default=0.576,
        meaning="jobs that are parallel and ask for a power of two",
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


_CYCLE = _daily_cycle()


def lublin_sizes(source: Source, total_gpus: int, dials: Settings) -> tuple[Table, Table]:
    """Return run times and GPUs."""
    gpus = _gpus(source, total_gpus, dials)
    is_short = source.uniform("run kind") < _SHORT_PER_GPU * gpus + _SHORT_BASE
    normal = source.normal("run")
    run = gamma_quantile(normal, *_LONG_GAMMA)
    np.copyto(run, gamma_quantile(normal, *_SHORT_GAMMA), where=is_short)
    np.minimum(run, _LONGEST_LOG, out=run)
    np.exp(run, out=run)
    np.rint(run, out=run)
    return np.maximum(run, 1.0, out=run), gpus


def _gpus(source: Source, total_gpus: int, dials: Settings) -> Table:
    largest = math.log2(total_gpus)
    smallest = min(_SMALLEST_LOG, largest)
    middle = max(smallest, largest - _MIDDLE_BELOW_LARGEST)
    u = source.uniform("gpus width")
    # Straight with a bend: after the lower stage the slope is the upper one.
    lower, upper = (middle - smallest) / _LOWER_STAGE, (largest - middle) / (1 - _LOWER_STAGE)
    log = u * lower
    log += smallest
    log += np.maximum(u - _LOWER_STAGE, 0.0) * (upper - lower)
    kind = source.uniform("gpus")
    serial = float(dials["serial_share"])
    np.copyto(log, np.rint(log), where=kind < serial + float(dials["power_share"]))
    log *= math.log(2)
    gpus = np.rint(np.exp(log, out=log), out=log)
    np.copyto(gpus, 1.0, where=kind < serial)
    return np.clip(gpus, 1.0, float(total_gpus), out=gpus)


def lublin_arrivals(draws: Draws, mean_gap: float, dials: Settings) -> Table:
    """Return submission times."""
    even = gamma_power(draws, mean_gap, shape=_GAP_SHAPE, scale=_GAP_SCALE, most=_LONGEST_GAP_LOG)
    return _CYCLE.bend(even) if dials["daily_cycle"] == "on" else even
