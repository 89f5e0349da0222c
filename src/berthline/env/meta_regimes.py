"""The regimes of the preset `rlmetadqn`: what a meta-scheduler is evaluated on."""

from __future__ import annotations

import itertools
from typing import Any

_INTENSITY_JOBS = {"low": 60, "medium": 120, "high": 240}
_SUPER_HIGH_JOBS = 360
_SHAPES = {"base": 1.0, "bursty": 1.65, "diurnal": 1.0, "shifted-diurnal": 1.0}
"""Jobs per hour at each intensity, and the factor of each shape."""


def meta_regimes(*, super_high: bool = False) -> list[dict[str, Any]]:
    """Return the regimes of the preset `rlmetadqn`: options to make an environment with.

    The 48 are every shape of arrivals, at every intensity but the highest, on 2, 4, 8 and 16 GPUs,
    with the jobs of one hour.

    Args:
        super_high: append the original's 8 additional regimes of the highest intensity, on 4 and 16
            GPUs.

    Example:
        >>> regimes = meta_regimes()
        >>> len(regimes), regimes[0]["cluster"], regimes[0]["dials"], regimes[0]["episode_jobs"]
        (48, 'uniform:1x2:V100', {'shape': 'base', 'intensity': 'low'}, 60)
        >>> len(meta_regimes(super_high=True))
        56
    """
    cells = list(itertools.product(_SHAPES, _INTENSITY_JOBS.items(), (2, 4, 8, 16)))
    if super_high:
        cells += itertools.product(_SHAPES, [("super-high", _SUPER_HIGH_JOBS)], (4, 16))
    return [
        {
            "preset": "rlmetadqn",
            "cluster": f"uniform:1x{gpus}:V100",
            "dials": {"shape": shape, "intensity": intensity},
            "episode_jobs": round(jobs * _SHAPES[shape]),
        }
        for shape, (intensity, jobs), gpus in cells
    ]
