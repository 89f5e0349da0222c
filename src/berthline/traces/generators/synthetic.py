"""The table of generators: workloads made from a seed and a few dials.

A generator is one entry in `GENERATORS`, which the command line, `generate` and the lists use.
Everything is a pure function of the arguments. Columns have their own random streams, keyed by the
seed and the column, and the streams are the same for all generators: changing one dial never
changes another column, and `bursty` and `diurnal` submit the same jobs at different times.
(`synthetic` itself has older streams; see common_workload.py.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from berthline.argument_types import check_arguments
from berthline.errors import ConfigError, unknown_name
from berthline.traces.cluster_argument import resolve_cluster
from berthline.traces.generators import arrivals, drift, lublin, pods
from berthline.traces.generators import reference_systems as systems
from berthline.traces.generators.common_workload import COMMON_ESTIMATE_DIAL, common_workload
from berthline.traces.generators.dials import set_dials, with_defaults
from berthline.traces.generators.estimates import ESTIMATE_DIALS
from berthline.traces.generators.generator import Generator
from berthline.traces.generators.gpu_mix import GPU_DIALS, draw_gpus
from berthline.traces.generators.job_columns import (
    DEADLINE_DIALS,
    PRIORITY_CORRELATION_DIAL,
    PRIORITY_DIAL,
    USER_DIALS,
)
from berthline.traces.generators.run_times import RUN_DIALS, draw_run_times

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload
    from berthline.text_or_path import TextOrPath
    from berthline.traces.generators.dials import Settings
    from berthline.traces.generators.draws import RandomSource, Table
    from berthline.traces.generators.episodes import Episodes
    from berthline.traces.generators.fitted.fitted_generator import FittedGenerator

    _Sizes = tuple[Table, npt.NDArray[np.int32]]


def generate(
    name: str = "synthetic",
    *,
    cluster: Cluster | TextOrPath,
    jobs: int | None = None,
    load: float | None = None,
    seed: int = 0,
    **dials: object,
) -> Workload:
    """Return a workload made by the generator `name` for a cluster of this size.

    Jobs wider than the cluster are left as drawn; the simulator rejects them with the reason.
    Times keep the generator's own clock: the first job need not be submitted at 0.

    Args:
        name: a key of `GENERATORS`.
        cluster: a Cluster, or a CLUSTER argument such as `"uniform:64x8:V100"`, a cluster file or a
            node list (see `resolve_cluster`); the arrival rate is chosen to give the load.
        jobs: number of jobs; None = 1000.
        load: GPU-seconds requested per GPU-second of the cluster, on average; None = 0.9, or the
            rate of the system that the generator is taken from.
        seed: selects the random numbers.
        **dials: the generator's own settings, as numbers or as their text.

    Raises:
        ConfigError: an unknown generator or dial, or a value out of range.
    """
    check_arguments(name=name)
    return _generator(name).make(
        resolve_cluster(cluster), jobs=jobs, load=load, seed=seed, dials=dials
    )


def episodes(
    generator: str | Generator | FittedGenerator,
    *,
    cluster: Cluster | TextOrPath,
    count: int,
    jobs: int,
    load: float | None = None,
    seed: int = 0,
    first: int = 0,
    **dials: object,
) -> Episodes:
    """Return many workloads of a generator at once, as tables with one row each.

    Episode i depends only on the seed and i, not on how many are made with it, and episode 0 is
    what `generate` returns. (For `synthetic` it has the same distributions, not the same numbers.)

    Args:
        generator: a key of `GENERATORS`, a generator, or one fitted to a trace.
        cluster: as for `generate`.
        count: how many episodes.
        jobs: jobs in each.
        load: as for `generate`; every episode has it on average.
        seed: selects the random numbers.
        first: number of the first episode.
        **dials: as for `generate`.

    Raises:
        ConfigError: an unknown generator or dial, or a value out of range.

    Example:
        >>> batch = episodes("bursty", cluster="philly", count=100, jobs=400)
        >>> batch.columns["run"].shape, len(batch[7])
        ((100, 400), 400)
    """
    entry = _generator(generator) if isinstance(generator, str) else generator
    return entry.episodes(
        resolve_cluster(cluster),
        count=count,
        jobs=jobs,
        load=load,
        seed=seed,
        first=first,
        dials=dials,
    )


def _generator(name: str) -> Generator:
    if name not in GENERATORS:
        what, expected, hint = unknown_name("generator", name, GENERATORS)
        raise ConfigError(what, expected=expected, hint=hint)
    return GENERATORS[name]


_PEOPLE_DIALS = (*USER_DIALS, PRIORITY_DIAL, *DEADLINE_DIALS)
_OWN_PRIORITY_DIALS = (*USER_DIALS, *DEADLINE_DIALS)
_COMMON_DIALS = (*_PEOPLE_DIALS, COMMON_ESTIMATE_DIAL)
_MIX_DIALS = (
    *RUN_DIALS,
    *GPU_DIALS,
    *_PEOPLE_DIALS,
    PRIORITY_CORRELATION_DIAL,
    *ESTIMATE_DIALS,
)
_COMMON_MIX = set_dials((*RUN_DIALS, *GPU_DIALS), {}, where="the common workload")


def _mixed_sizes(source: RandomSource, total_gpus: int, dials: Settings) -> _Sizes:  # noqa: ARG001
    return draw_run_times(source, dials), draw_gpus(source, dials)


def _common_sizes(source: RandomSource, total_gpus: int, dials: Settings) -> _Sizes:  # noqa: ARG001
    return _mixed_sizes(source, total_gpus, _COMMON_MIX)


GENERATORS: dict[str, Generator] = {
    entry.name: entry
    for entry in (
        Generator(
            name="synthetic",
            description="the common workload: Poisson arrivals, lognormal run times, gangs of 1, "
            "2, 4 and 8",
            sizes=_common_sizes,
            arrivals=arrivals.even,
            dials=_COMMON_DIALS,
            exact=common_workload,
        ),
        Generator(
            name="poisson",
            description="jobs like those of the common workload, with all properties adjustable",
            sizes=_mixed_sizes,
            arrivals=arrivals.even,
            dials=_MIX_DIALS,
        ),
        Generator(
            name="bursty",
            description="bursts around a few instants over a uniform background",
            sizes=_mixed_sizes,
            arrivals=arrivals.about_centres,
            dials=(*arrivals.BURST_DIALS, *_MIX_DIALS),
        ),
        Generator(
            name="on-off",
            description="a rate that alternates between high and low",
            sizes=_mixed_sizes,
            arrivals=arrivals.by_turns,
            dials=(*arrivals.ON_OFF_DIALS, *_MIX_DIALS),
        ),
        Generator(
            name="diurnal",
            description="a rate that rises and falls like a sine, rising first",
            sizes=_mixed_sizes,
            arrivals=arrivals.daily,
            dials=(*arrivals.DIURNAL_DIALS, *_MIX_DIALS),
        ),
        Generator(
            name="shifted-diurnal",
            description="like diurnal, a quarter period later: starts at the maximum and falls",
            sizes=_mixed_sizes,
            arrivals=arrivals.daily_shifted,
            dials=(*arrivals.DIURNAL_DIALS, *_MIX_DIALS),
        ),
        Generator(
            name="batch",
            description="all jobs submitted at once, at time 0; takes no load",
            sizes=_mixed_sizes,
            arrivals=arrivals.at_once,
            dials=_MIX_DIALS,
            load=None,
        ),
        Generator(
            name="lublin",
            description="sizes, run times and daily cycle like the Lublin-Feitelson model",
            sizes=lublin.lublin_sizes,
            arrivals=lublin.lublin_arrivals,
            dials=(*lublin.LUBLIN_DIALS, *_PEOPLE_DIALS, *ESTIMATE_DIALS),
        ),
        Generator(
            name="drift",
            description="phases of short jobs and of long ones, by turns, all with the same load",
            sizes=drift.drift_sizes,
            arrivals=drift.drift_arrivals,
            dials=(*drift.DRIFT_DIALS, *_MIX_DIALS),
        ),
        Generator(
            name="openb",
            description="pods with parts of GPUs, CPUs and memory, shaped like those of Alibaba's "
            "openb trace",
            sizes=pods.pod_sizes,
            arrivals=arrivals.even,
            dials=(*RUN_DIALS, *_PEOPLE_DIALS, *ESTIMATE_DIALS),
            requests=pods.pod_requests,
        ),
        Generator(
            name="heavy-tailed",
            description="as in the look-ahead system: few long and wide jobs among many short "
            "ones, submitted in bursts within 10,000 s unless a load is given",
            sizes=systems.lookahead_sizes,
            arrivals=arrivals.about_centres,
            dials=(
                *systems.LOOKAHEAD_DIALS,
                *arrivals.BURST_DIALS,
                *with_defaults(RUN_DIALS, run_times="heavy-tailed", run_low=1.0, run_high=10_000.0),
                *_OWN_PRIORITY_DIALS,
                *ESTIMATE_DIALS,
            ),
            load=None,
            own_gap=systems.lookahead_gap,
            priorities=systems.lookahead_priorities,
        ),
        Generator(
            name="drl-scheduler",
            description="as in the D3QN and SAC scheduler: normal run times, 1 to 8 GPUs, 2.5 jobs "
            "a second unless a load is given",
            sizes=_mixed_sizes,
            arrivals=arrivals.even,
            dials=(
                *systems.DRL_DIALS,
                *with_defaults(RUN_DIALS, run_times="normal", run_low=1.0, run_high=1e8),
                *with_defaults(GPU_DIALS, gpu_mix="1-8"),
                *with_defaults(_OWN_PRIORITY_DIALS, users=3, user_skew=0.0),
                *ESTIMATE_DIALS,
            ),
            load=None,
            own_gap=systems.drl_gap,
            priorities=systems.drl_priorities,
        ),
        Generator(
            name="rlmetadqn",
            description="as in the meta-scheduler: single-GPU jobs of 30 to 900 s with deadlines, "
            "2 a minute unless a load is given",
            sizes=_mixed_sizes,
            arrivals=systems.meta_arrivals,
            dials=(
                *systems.META_DIALS,
                *with_defaults(RUN_DIALS, run_times="uniform", run_low=30.0, run_high=900.0),
                *with_defaults(GPU_DIALS, gpu_mix="single"),
                *_PEOPLE_DIALS,
                *ESTIMATE_DIALS,
            ),
            load=None,
            own_gap=systems.meta_gap,
        ),
        Generator(
            name="lsf",
            description="as in the LSF host picker: short jobs in batches every second, up to 50 "
            "unless a load is given; its cores are GPUs here",
            sizes=_mixed_sizes,
            arrivals=systems.lsf_arrivals,
            dials=(
                *systems.LSF_DIALS,
                *with_defaults(RUN_DIALS, run_times="uniform", run_low=20.0, run_high=120.0),
                *with_defaults(GPU_DIALS, gpu_mix="1-4"),
                *_PEOPLE_DIALS,
                *ESTIMATE_DIALS,
            ),
            load=None,
            own_gap=systems.lsf_gap,
            requests=systems.lsf_memory,
        ),
    )
}
"""Every generator by its name."""
