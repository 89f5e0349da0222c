"""Requests for GPUs as traces write them, fractions included, as what a workload can hold.

A workload holds whole GPUs, or a part of one GPU in thousandths. So 0.25 GPUs stay what they are;
1.5 GPUs, and several workers on a part of a GPU each, are rounded up to whole ones, and a part
finer than a thousandth to the next thousandth. How many jobs that changes is counted.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from berthline.model.workload import WHOLE_GPU, FloatColumn

FRACTIONS_ROUNDED_UP = "fractional GPUs rounded up to whole ones"
"""The key of `provenance["rounded"]` for jobs that ask for such as 1.5 GPUs."""

PARTS_ROUNDED_UP = "parts of a GPU rounded up to thousandths"
"""The key of `provenance["rounded"]` for jobs that ask for such as a third of a GPU."""

_NOISE = 1e-6  # thousandths of a GPU: 0.29 * 1000 is not 290 in floats


@dataclasses.dataclass(frozen=True, eq=False)
class GpuRequests:
    """What jobs ask for.

    Attributes:
        gpus: whole GPUs, or 1 for a job on part of one; 0 = none.
        gpu_milli: thousandths of each.
        asked: GPUs before rounding.
    """

    gpus: FloatColumn  # (num_rows,)
    gpu_milli: npt.NDArray[np.int16]  # (num_rows,)
    asked: FloatColumn  # (num_rows,)

    @classmethod
    def of(cls, per_worker: FloatColumn, workers: FloatColumn | int = 1) -> GpuRequests:
        """Return the requests of jobs with so many workers, each with so many GPUs."""
        gpus = np.ceil(per_worker) * workers
        asked = per_worker * workers
        is_part = (asked > 0) & (asked < 1) & (gpus == 1)
        if not is_part.any():
            return cls(gpus, np.full(len(asked), WHOLE_GPU, np.int16), asked)
        milli = np.maximum(np.ceil(asked * WHOLE_GPU - _NOISE), 1)
        return cls(gpus, np.where(is_part, milli, WHOLE_GPU).astype(np.int16), asked)

    def rounded(self, used: npt.NDArray[np.bool_]) -> dict[str, int]:
        """Return how many of the jobs used got more than they asked for, by what was done."""
        more = self.gpus * self.gpu_milli - self.asked * WHOLE_GPU
        changed = used & (more > _NOISE)
        if not changed.any():
            return {}
        on_one = self.gpus == 1  # where all but the last part of a thousandth is kept
        counts = {FRACTIONS_ROUNDED_UP: changed & ~on_one, PARTS_ROUNDED_UP: changed & on_one}
        return {what: int(jobs.sum()) for what, jobs in counts.items() if jobs.any()}
