"""Generators: workloads made from a seed and a few dials, and the table of them.

A generator is a function and one entry in `GENERATORS`; the command line, `generate` and the lists
know it from there. Everything is a pure function of the arguments.

The `synthetic` generator draws its base columns (GPUs, run time, submission, in this order) from
`numpy.random.default_rng(seed)` and nothing else from that stream, so they are the common workload
that published numbers refer to. Every further column has a stream of its own, keyed by the seed
and the column: turning one dial never changes another column.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping

import numpy as np

from berthline.errors import ConfigError, unknown_name
from berthline.model.cluster import Cluster
from berthline.model.workload import Workload
from berthline.traces.dials import JOBS, LOAD, SEED, Dial, set_dials

Settings = Mapping[str, int | float]


@dataclasses.dataclass(frozen=True)
class Generator:
    """A way to make workloads.

    Attributes:
        name: what the WORKLOAD argument calls it.
        description: one line for lists.
        function: makes the workload from (cluster, jobs, load, seed, values of all dials).
        dials: its settings beyond jobs, load and seed.
    """

    name: str
    description: str
    function: Callable[[Cluster, int, float, int, Settings], Workload]
    dials: tuple[Dial, ...]

    def make(
        self,
        cluster: Cluster,
        *,
        jobs: int | None = None,
        load: float | None = None,
        seed: int = 0,
        dials: Mapping[str, object],
    ) -> Workload:
        """Return a workload, with None and dials not given at their defaults.

        Raises:
            ConfigError: an unknown dial, or a value out of range.
        """
        where = f"generator {self.name!r}"
        return self.function(
            cluster,
            int(JOBS.convert(JOBS.default if jobs is None else jobs, where=where)),
            float(LOAD.convert(LOAD.default if load is None else load, where=where)),
            int(SEED.convert(seed, where=where)),
            set_dials(self.dials, dials, where=where),
        )


def generate(
    name: str = "synthetic",
    *,
    cluster: Cluster,
    jobs: int = 1000,
    load: float = 0.9,
    seed: int = 0,
    **dials: object,
) -> Workload:
    """Return a workload made by the generator `name` for a cluster of this size.

    Jobs wider than the cluster are left as drawn; the simulator rejects them with the reason.
    Times keep the generator's own clock: the first job need not be submitted at 0.

    Args:
        name: a key of `GENERATORS`.
        cluster: the arrival rate is set so that this cluster is loaded as asked.
        jobs: how many jobs.
        load: GPU-seconds asked for per GPU-second of the cluster, on average.
        seed: selects the random numbers.
        **dials: the generator's own settings, as numbers or as their text.

    Raises:
        ConfigError: an unknown generator or dial, or a value out of range.
    """
    if name not in GENERATORS:
        what, expected, hint = unknown_name("generator", name, GENERATORS)
        raise ConfigError(what, expected=expected, hint=hint)
    return GENERATORS[name].make(cluster, jobs=jobs, load=load, seed=seed, dials=dials)


_GPU_CHOICES = np.array([1, 2, 4, 8])
_GPU_SHARES = np.array([0.6, 0.15, 0.1, 0.15])
_MEAN_GPUS = float(_GPU_CHOICES @ _GPU_SHARES)

_MEDIAN_RUN = 1200.0  # seconds
_RUN_SIGMA = 1.5
_SHORTEST_RUN, _LONGEST_RUN = 10.0, 604_800.0  # seconds; one week
# GPU-seconds, of run times before they are rounded and clipped; GPUs and run time are independent.
_MEAN_WORK = _MEAN_GPUS * _MEDIAN_RUN * math.exp(_RUN_SIGMA**2 / 2)

# Positions in this tuple key the streams, so new columns are added at the end.
_STREAMS = ("user", "priority", "deadline", "estimate")


def _stream(seed: int, column: str) -> np.random.Generator:
    """Return the random stream of one column.

    A spawn key, unlike a longer seed, cannot collide with the stream of any other seed.
    """
    key = np.random.SeedSequence(seed, spawn_key=(_STREAMS.index(column),))
    return np.random.default_rng(key)


def _synthetic(cluster: Cluster, jobs: int, load: float, seed: int, dials: Settings) -> Workload:
    low, high = float(dials["deadline_low"]), float(dials["deadline_high"])
    if low > high:
        raise ConfigError(
            f"deadline_low is {low:g} and deadline_high is {high:g}",
            where="generator 'synthetic'",
            expected="deadline_low no larger than deadline_high",
        )
    base = np.random.default_rng(seed)
    gpus = base.choice(_GPU_CHOICES, jobs, p=_GPU_SHARES)
    drawn = base.lognormal(math.log(_MEDIAN_RUN), _RUN_SIGMA, jobs)
    run = np.clip(np.rint(drawn), _SHORTEST_RUN, _LONGEST_RUN)
    mean_gap = _MEAN_WORK / (load * cluster.total_gpus)
    submit = np.rint(np.cumsum(base.exponential(mean_gap, jobs)))

    num_users = int(dials["users"])
    popularity = np.arange(1, num_users + 1, dtype=np.float64) ** -float(dials["user_skew"])
    user = _stream(seed, "user").choice(num_users, jobs, p=popularity / popularity.sum())
    priority = _stream(seed, "priority").integers(0, int(dials["priorities"]), jobs)
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
        user_names=tuple(f"user{number}" for number in range(num_users)),
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


GENERATORS: dict[str, Generator] = {
    entry.name: entry
    for entry in (
        Generator(
            "synthetic",
            "the common workload: Poisson arrivals, lognormal run times, gangs of 1, 2, 4 and 8",
            _synthetic,
            (
                Dial(
                    name="users",
                    default=16,
                    meaning="how many users submit jobs",
                    lowest=1,
                    highest=1_000_000,
                ),
                Dial(
                    name="user_skew",
                    default=1.0,
                    meaning="the k-th user has a share like 1/k**user_skew; 0 = all equal",
                    highest=10,
                ),
                Dial(
                    name="priorities",
                    default=4,
                    meaning="priorities are 0 to this minus 1, all equally likely",
                    lowest=1,
                    highest=1_000_000,
                ),
                Dial(
                    name="deadline_low",
                    default=1.2,
                    meaning="the tightest deadline: submission plus this many run times",
                    highest=1e6,
                ),
                Dial(
                    name="deadline_high",
                    default=2.0,
                    meaning="the loosest deadline: submission plus this many run times",
                    highest=1e6,
                ),
                Dial(
                    name="estimate_error",
                    default=0.0,
                    meaning="estimate = run * exp(error * |N(0, 1)|), rounded up; 0 = exact",
                    highest=10,
                ),
            ),
        ),
    )
}
"""Every generator by its name."""
