"""The common workload of the generator `synthetic`, to which published numbers refer.

It draws its base columns (GPUs, run time, submission, in this order) from
`numpy.random.default_rng(seed)` and nothing else from that stream. Every other column has its own
stream, keyed by the seed and the column: changing one dial never changes another column.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from berthline.model.workload import Workload
from berthline.traces.generators.dials import Dial
from berthline.traces.generators.gpu_mix import MIXES
from berthline.traces.generators.job_columns import check_deadlines, user_names, user_shares

if TYPE_CHECKING:
    from berthline.model.cluster import Cluster
    from berthline.traces.generators.dials import Settings

_GPU_CHOICES = np.array(list(MIXES["common"]))
_GPU_SHARES = np.array(list(MIXES["common"].values()))
_MEAN_GPUS = float(_GPU_CHOICES @ _GPU_SHARES)

_MEDIAN_RUN = 1200.0  # seconds
_RUN_SIGMA = 1.5
_SHORTEST_RUN, _LONGEST_RUN = 10.0, 604_800.0  # seconds; one week
# GPU-seconds, before run times are rounded and clipped; GPUs and run time are independent.
_MEAN_WORK = _MEAN_GPUS * _MEDIAN_RUN * math.exp(_RUN_SIGMA**2 / 2)

COMMON_ESTIMATE_DIAL = Dial(
    name="estimate_error",
    default=0.0,
    meaning="estimates are run * exp(error * |N(0, 1)|), never too short; 0 = exact",
    highest=10,
)

# Positions in this tuple are the keys of the streams, so new columns are added at the end.
_STREAMS = ("user", "priority", "deadline", "estimate")


def _stream(seed: int, column: str) -> np.random.Generator:
    """Return the random stream of one column.

    A spawn key, unlike a longer seed, cannot collide with the stream of any other seed.
    """
    key = np.random.SeedSequence(seed, spawn_key=(_STREAMS.index(column),))
    return np.random.default_rng(key)


def common_workload(
    cluster: Cluster, jobs: int, load: float, seed: int, dials: Settings
) -> Workload:
    """Return the common workload for a cluster of this size."""
    check_deadlines(dials, where="generator 'synthetic'")
    base = np.random.default_rng(seed)
    gpus = base.choice(_GPU_CHOICES, jobs, p=_GPU_SHARES)
    drawn = base.lognormal(math.log(_MEDIAN_RUN), _RUN_SIGMA, jobs)
    run = np.clip(np.rint(drawn), _SHORTEST_RUN, _LONGEST_RUN)
    mean_gap = _MEAN_WORK / (load * cluster.total_gpus)
    submit = np.rint(np.cumsum(base.exponential(mean_gap, jobs)))

    shares = user_shares(dials)
    user = _stream(seed, "user").choice(len(shares), jobs, p=shares)
    priority = _stream(seed, "priority").integers(0, int(dials["priorities"]), jobs)
    low, high = float(dials["deadline_low"]), float(dials["deadline_high"])
    deadline = submit + run * _stream(seed, "deadline").uniform(low, high, jobs)
    # Users state a limit at which the job would be killed, so an estimate is never too short.
    excess = np.abs(_stream(seed, "estimate").standard_normal(jobs))
    estimate = np.ceil(run * np.exp(float(dials["estimate_error"]) * excess))
    return Workload.from_columns(
        submit=submit,
        run=run,
        gpus=gpus,
        estimate=estimate,
        priority=priority,
        deadline=deadline,
        user=user,
        user_names=user_names(len(shares)),
        name="synthetic",
        provenance={
            "generator": "synthetic",
            "jobs": jobs,
            "load": load,
            "seed": seed,
            "gpus": cluster.total_gpus,
            "dials": dict(dials),
        },
        # Published makespans count from the generator's time 0, not from the first job.
        rebase=False,
    )
