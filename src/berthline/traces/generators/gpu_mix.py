"""GPU mix: how many GPUs jobs request, and how that is correlated with their run time."""

from __future__ import annotations

import functools
import math
import re
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from berthline.traces.generators.dials import Dial
from berthline.traces.generators.draws import choose

if TYPE_CHECKING:
    from berthline.traces.generators.dials import Settings
    from berthline.traces.generators.draws import RandomSource

MIXES: dict[str, dict[int, float]] = {
    "common": {1: 0.6, 2: 0.15, 4: 0.1, 8: 0.15},
    "philly": {1: 60_522, 2: 1_217, 4: 1_461, 8: 1_136, 16: 106, 32: 30},
    "venus": {1: 50_278, 2: 5_377, 4: 7_378, 8: 26_041, 16: 4_673, 32: 2_420},
    "single": {1: 1.0},
}
"""Shares of GPUs per job: in the common workload; as counts of the most frequent sizes in the
Philly trace (Sep to Nov 2017) and in the Helios Venus trace (to Aug 2020); and always one GPU."""

_MOST_GPUS = 100_000
_RANGE = re.compile(r"(\d{1,6})-(\d{1,6})")


def read_mix(text: str) -> dict[int, float] | None:
    """Return the share of each number of GPUs, or None if the text is not a mix.

    Args:
        text: the name of a mix; `LOW-HIGH`, all equally likely; or `GPUS:SHARE,GPUS:SHARE,...`,
            where shares need not add up to 1.

    Example:
        >>> read_mix("1:3,8:1")
        {1: 3.0, 8: 1.0}
    """
    if text in MIXES:
        return MIXES[text]
    span = _RANGE.fullmatch(text)
    if span:
        low, high = int(span[1]), int(span[2])
        good = 1 <= low <= high <= _MOST_GPUS
        return dict.fromkeys(range(low, high + 1), 1.0) if good else None
    mix: dict[int, float] = {}
    for part in text.split(","):
        gpus, _, share = part.partition(":")
        try:
            size, weight = int(gpus), float(share)
        except ValueError:
            return None
        if size in mix or not (1 <= size <= _MOST_GPUS and 0 < weight < math.inf):
            return None
        mix[size] = weight
    return dict(sorted(mix.items()))


GPU_DIALS = (
    Dial(
        name="gpu_mix",
        default="common",
        meaning="GPUs per job: a named mix, a range such as 1-8, or shares such as 1:0.7,8:0.3",
        choices=tuple(MIXES),
        check=lambda text: read_mix(text) is not None,
        form="LOW-HIGH; or GPUS:SHARE,...",
    ),
    Dial(
        name="gpu_correlation",
        default=0.0,
        meaning="correlation of GPUs and run time: 1 = the longest jobs are the widest, -1 = the "
        "narrowest",
        lowest=-1,
        highest=1,
    ),
)


def draw_gpus(source: RandomSource, dials: Settings) -> npt.NDArray[np.int32]:
    """Return GPUs per job, according to the dials."""
    sizes = _sizes(str(dials["gpu_mix"]))
    return choose_with(source, "gpus", sizes, float(dials["gpu_correlation"]))


class Choices(NamedTuple):
    """Some ordered choices.

    Attributes:
        values: the value of each choice.
        limits: cumulative shares of all choices but the last.
        scores: `limits` as normal quantiles.
    """

    values: npt.NDArray[np.int32]
    limits: npt.NDArray[np.float64]
    scores: npt.NDArray[np.float64]


def choose_with(
    source: RandomSource, column: str, choices: Choices, correlation: float
) -> npt.NDArray[np.int32]:
    """Return for each job the value of one of the choices, correlated with its run time.

    The correlation is that of the underlying normal numbers (a Gaussian copula), so the shares of
    the choices do not change.

    Args:
        source: random numbers.
        column: the random column of the choice.
        choices: the values to choose from, with their shares.
        correlation: from -1 to 1.
    """
    if correlation == 0:
        return choose(source.uniform(column), choices.limits, choices.values)
    own = source.normal(column) * math.sqrt(1 - correlation**2)
    return choose(own + correlation * source.normal("run"), choices.scores, choices.values)


@functools.lru_cache(maxsize=64)
def _sizes(text: str) -> Choices:
    mix = read_mix(text) or {}
    sizes = np.array(list(mix), dtype=np.int32)
    return Choices(sizes, *limits_of(np.array(list(mix.values()), dtype=np.float64)))


def limits_of(
    shares: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return cumulative shares of all choices but the last, and their normal quantiles."""
    limits = np.cumsum(shares / shares.sum())[:-1]
    normal = NormalDist()
    inside = np.clip(limits, 2.0**-53, 1 - 2.0**-53)
    return limits, np.array([normal.inv_cdf(float(limit)) for limit in inside])
