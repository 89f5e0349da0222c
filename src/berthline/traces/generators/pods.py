"""Pods like those of Alibaba's openb trace: parts of GPUs, CPUs and memory, drawn together.

The shapes are those of the trace (`SHAPES`). It states no run times that a scheduler could have
known, so these follow the dials of run times.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from berthline.model.workload import WHOLE_GPU
from berthline.traces.generators.draws import choose
from berthline.traces.generators.gpu_mix import limits_of
from berthline.traces.generators.run_times import draw_run_times

if TYPE_CHECKING:
    from berthline.traces.generators.dials import Settings
    from berthline.traces.generators.draws import RandomSource, Table

SHAPES: tuple[tuple[int, int, int, int, int], ...] = (
    (857, 1, 1000, 11300, 49152),
    (1213, 1, 1000, 11400, 48128),
    (700, 1, 1000, 3152, 5600),
    (390, 1, 1000, 18708, 64512),
    (310, 1, 1000, 9810, 41560),
    (441, 1, 1000, 12000, 24576),
    (470, 0, 0, 12500, 57344),
    (330, 0, 0, 32000, 49152),
    (288, 0, 0, 8000, 30517),
    (1078, 1, 810, 3152, 5600),
    (390, 1, 470, 11908, 47104),
    (360, 1, 470, 8000, 30517),
    (208, 1, 320, 4000, 22888),
    (120, 1, 320, 8000, 30517),
    (253, 1, 650, 11908, 47104),
    (202, 1, 230, 4000, 30517),
    (147, 1, 460, 6000, 12288),
    (75, 1, 590, 3152, 5600),
    (98, 1, 160, 4000, 15258),
    (147, 1, 550, 4152, 10600),
    (16, 2, 1000, 16200, 66560),
    (15, 4, 1000, 32200, 132096),
    (22, 8, 1000, 64200, 263168),
    (22, 8, 1000, 88000, 327680),
)
"""Number among 8,152 pods; GPUs, thousandths of each; thousandths of a core; MiB.

The most frequent shapes of openb_pod_list_default, rare ones added to their neighbours.
"""
SIZES, SIZE_SHARES = (1.0, 0.5, 0.75, 1.25), (0.85, 0.05, 0.05, 0.05)
"""Factors on CPUs and memory, and how often each is drawn: the trace has about 130 kinds of
pods."""

_MILLI = 1000


def pod_sizes(source: RandomSource, total_gpus: int, dials: Settings) -> tuple[Table, Table]:  # noqa: ARG001
    """Return run times, and GPUs with their parts."""
    return draw_run_times(source, dials), _amounts()[_drawn_shapes(source)]


def pod_requests(source: RandomSource, dials: Settings) -> dict[str, npt.NDArray[Any]]:  # noqa: ARG001
    """Return what pods ask for besides: whole cores, rounded up, because nodes have whole ones."""
    shape, size = _drawn_shapes(source), _drawn_factors(source)
    _, gpus, gpu_milli, cpu_milli, memory_mib = np.array(SHAPES, np.int64).T
    gpu_milli = np.where(gpus > 0, gpu_milli, WHOLE_GPU)
    return {
        "gpus": gpus.astype(np.int32)[shape],
        "gpu_milli": gpu_milli.astype(np.int32)[shape],
        "cpus": np.ceil(cpu_milli[shape] * size / _MILLI).astype(np.int32),
        "memory_mib": np.rint(memory_mib[shape] * size).astype(np.int64),
    }


def _drawn_shapes(source: RandomSource) -> npt.NDArray[np.int32]:
    return choose(source.uniform("gpus"), *_limits(tuple(weight for weight, *_ in SHAPES)))


def _drawn_factors(source: RandomSource) -> Table:
    return np.array(SIZES)[choose(source.uniform("size"), *_limits(SIZE_SHARES))]


@functools.lru_cache(maxsize=4)
def _limits(shares: tuple[float, ...]) -> tuple[Table, npt.NDArray[np.int32]]:
    limits, _ = limits_of(np.array(shares, np.float64))
    return limits, np.arange(len(shares), dtype=np.int32)


@functools.cache
def _amounts() -> Table:
    _, gpus, gpu_milli, _, _ = np.array(SHAPES, np.float64).T
    return np.asarray(gpus * gpu_milli / WHOLE_GPU)
