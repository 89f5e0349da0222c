"""FittedGenerator: a generator with the statistics of a trace, as a file of a few numbers.

`fit.py` makes one from a workload. What it contains, and how it draws:

    when      gaps between submissions, some of them in bursts, transformed to the hours of the
              day, the days of the week, a level that changes from day to day, and the levels of
              the trace's weeks, in order from a random one on (fitted_arrivals.py).
    who       users by their share, in series of successive jobs with the user's own lengths.
    how wide  GPUs by the user's own mix of size classes; with some probability a user repeats the
              size of the previous job.
    how long  the rank of a run time within its size class: the user's own level, plus a part that
              the user with some probability approximately repeats from job to job, plus an effect
              of bursts, days and weeks, in which many jobs are lighter. The quantiles of the class
              turn the rank into seconds.
    estimate  an estimate given for run times of that length; repeated with the run time.
    request   pool, GPU types, part of a GPU, CPUs and memory per GPU, priority and deadline
              together, as the user requests them with that size.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from berthline.atomic_write import write_atomically
from berthline.errors import ConfigError, TraceError
from berthline.model.workload import WHOLE_GPU
from berthline.traces.generators.dials import JOBS, LOAD, SEED, set_dials
from berthline.traces.generators.episodes import EpisodeMaker, Episodes
from berthline.traces.generators.fitted.fitted_arrivals import GAP_LEVELS, heavy_variance
from berthline.traces.generators.fitted.fitted_draws import draw_columns
from berthline.traces.generators.fitted.fitted_tables import SERIES_LEVELS, FittedTables

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload

SUFFIX = ".fit.json"
_LAYOUT = 2


class SizeClass(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Jobs of similar width: the sizes with their shares, and run times by normal rank."""

    sizes: list[int]
    shares: list[float]
    ranks: list[float]
    run: list[float]


class UserHabits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One user, or `count` similar users, who together have `share` of the jobs.

    `series` has quantiles (at SERIES_LEVELS) of the number of jobs that the user submits in
    succession, and `requests` has the numbers of the user's requests by size class.
    """

    share: float
    count: int
    classes: dict[int, float]
    level: float
    spread: float
    series: list[float]
    requests: dict[int, list[int]] = {}


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """The request of a job: CPUs and memory per GPU, and a deadline in run times; -1 = none.

    `gpu_milli` is the part of a GPU, in thousandths, that a job on one GPU requests.
    """

    pool: int
    gpu_types: int
    priority: float
    cpus: float
    memory_mib: float
    deadline: float
    gpu_milli: int


class StatedLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Estimates for run times up to `run_up_to`: quantiles, and the share without an estimate."""

    run_up_to: float
    missing: float
    values: list[float]


class Bursts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The share of jobs in bursts, the jobs per burst, and how much lighter these jobs are."""

    share: float
    jobs: float
    work: float


class Level(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A level that changes from day to day.

    `sigma` is the standard deviation of the logarithm of the rate, `work` is how much heavier or
    lighter jobs are, in normal ranks of run times, and `coupling` is the correlation of both.
    """

    sigma: float
    work: float
    coupling: float


class Week(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The level of one week: its rate as a multiple of the mean, and how much heavier jobs are."""

    rate: float
    work: float


class FittedGenerator(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A generator with the statistics of a trace. Make it with `fit`, write it with `save`.

    Attributes:
        layout: version of the file's layout.
        name: of the trace.
        jobs: number of jobs in the trace.
        mean_gap: mean seconds between its submissions.
        mean_work: GPU-seconds per job, as this generator draws them.
        demand: GPUs that would be busy on average if no job ever waited.
        hour_of_week: local time at time 0, in hours after Monday 00:00; 0 if not known.
        hourly: rate in each hour of the day, as a multiple of the mean.
        daily: rate on each day of the week, Monday first, in the same unit.
        day: the level that changes from day to day.
        weeks: the levels of the trace's weeks; an episode begins with any week, and wraps around.
        bursts: how short gaps cluster.
        gaps: quantiles (at GAP_LEVELS) of gaps in mean gaps, without cycle and levels.
        series_scale: factor for lengths of series, since a series may follow one of the same user.
        repeat_size: probability that a user repeats the size of the previous job.
        repeat_run: probability that a user also repeats its run time.
        classes: size classes.
        users: users by their share.
        limits: users' estimates, by run time.
        requests: other requests of jobs; empty = none.
        pool_names: names that requests point to.
        gpu_type_sets: sets of GPU types that requests point to.
        reference_type: the GPU type that run times are on; None = the common one.
    """

    layout: int = _LAYOUT
    name: str
    jobs: int
    mean_gap: float
    mean_work: float
    demand: float
    hour_of_week: float
    hourly: list[float]
    daily: list[float]
    day: Level
    weeks: list[Week]
    bursts: Bursts
    gaps: list[float]
    series_scale: float
    repeat_size: float
    repeat_run: float
    classes: list[SizeClass]
    users: list[UserHabits]
    limits: list[StatedLimits]
    requests: list[Request] = []
    pool_names: list[str] = []
    gpu_type_sets: list[str] = []
    reference_type: str | None = None

    def generate(
        self,
        jobs: int | None = None,
        seed: int = 0,
        *,
        cluster: Cluster | None = None,
        load: float | None = None,
    ) -> Workload:
        """Return a workload like the trace.

        Args:
            jobs: number of jobs; None = as many as the trace.
            seed: selects the random numbers.
            cluster: the cluster that `load` refers to.
            load: offered load on the cluster; None = the trace's own rate.

        Raises:
            ConfigError: a value out of range, or a load without a cluster.
        """
        return self.episodes(cluster, count=1, jobs=jobs, load=load, seed=seed)[0]

    def episodes(
        self,
        cluster: Cluster | None = None,
        *,
        count: int,
        jobs: int | None = None,
        load: float | None = None,
        seed: int = 0,
        first: int = 0,
        dials: Mapping[str, object] | None = None,
    ) -> Episodes:
        """Return many workloads like the trace at once; see `synthetic.episodes`.

        Raises:
            ConfigError: a value out of range, a dial (there are none), or a load without a cluster.
        """
        maker = self.maker(cluster, jobs=jobs, load=load, seed=seed, dials=dials)
        return maker.episodes(count=count, first=first)

    def maker(
        self,
        cluster: Cluster | None = None,
        *,
        jobs: int | None = None,
        load: float | None = None,
        seed: int = 0,
        dials: Mapping[str, object] | None = None,
    ) -> EpisodeMaker:
        """Return a maker of episodes by their numbers; for the arguments see `episodes`.

        Raises:
            ConfigError: a value out of range, a dial (there are none), or a load without a cluster.
        """
        where = f"fitted generator {self.name!r}"
        set_dials((), dials or {}, where=where)
        num_jobs = int(JOBS.convert(self.jobs if jobs is None else jobs, where=where))
        seed = int(SEED.convert(seed, where=where))
        gap_at_load_1 = None if cluster is None else self.mean_work / cluster.total_gpus
        mean_gap = self.mean_gap
        if load is not None:
            if gap_at_load_1 is None:
                raise ConfigError(
                    f"load is {load}, but no cluster is given", where=where, expected="a cluster"
                )
            load = float(LOAD.convert(load, where=where))
            mean_gap = gap_at_load_1 / load
        tables = FittedTables(self)
        return EpisodeMaker(
            name=self.name,
            draw=lambda draws, gap, unread: draw_columns(tables, draws, gap),  # noqa: ARG005
            seed=seed,
            jobs=num_jobs,
            mean_gap=mean_gap,
            gap_at_load_1=gap_at_load_1,
            user_names=tuple(f"user{n}" for n in range(sum(user.count for user in self.users))),
            pool_names=tuple(self.pool_names),
            gpu_type_sets=tuple(self.gpu_type_sets),
            reference_type=self.reference_type,
            has_estimates=any(entry.values for entry in self.limits),
            provenance={
                "generator": "fitted",
                "trace": self.name,
                "jobs": num_jobs,
                "load": load,
                "seed": seed,
                "mean_gap": mean_gap,
            },
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the generator to a file; for use as a WORKLOAD its name must end in `.fit.json`."""
        write_atomically(Path(path), msgspec.json.format(msgspec.json.encode(self), indent=1))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> FittedGenerator:
        """Read a generator from a file.

        Raises:
            TraceError: the file cannot be read, or does not contain a fitted generator.
        """
        try:
            fitted = msgspec.json.decode(Path(path).read_bytes(), type=cls)
        except OSError as error:
            raise TraceError(
                f"cannot read the fitted generator ({error.strerror})", where=str(path)
            ) from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise TraceError(
                f"not a fitted generator: {error}",
                where=str(path),
                expected=f"a file that berthline traces fit wrote, {SUFFIX}",
            ) from None
        fitted._check(str(path))
        return fitted

    def _check(self, where: str) -> None:
        """Refuse a file whose numbers cannot be drawn from."""
        good = (
            self.layout == _LAYOUT
            and self.jobs >= 1
            and self.mean_gap > 0
            and self.mean_work > 0
            and len(self.hourly) == 24
            and len(self.daily) == 7
            and min(self.hourly) > 0
            and min(self.daily) > 0
            and self.day.sigma >= 0
            and -1 <= self.day.coupling <= 1
            and self.weeks
            and min(week.rate for week in self.weeks) > 0
            and heavy_variance(self) <= 1
            and 0 <= self.bursts.share <= 1
            and self.bursts.jobs >= 1
            and len(self.gaps) == len(GAP_LEVELS)
            and min(self.gaps) >= 0
            and self.series_scale > 0
            and all(len(u.series) == len(SERIES_LEVELS) and min(u.series) > 0 for u in self.users)
            and self.users
            and self.classes
            and self.limits
            and all(len(c.sizes) == len(c.shares) > 0 for c in self.classes)
            and all(len(c.ranks) == len(c.run) > 1 and min(c.run) > 0 for c in self.classes)
            and all(min(c.sizes) >= 0 for c in self.classes)
            and all(
                user.count >= 1
                and user.classes
                and set(user.classes) <= set(range(len(self.classes)))
                for user in self.users
            )
            and all(entry.values or entry.missing == 1 for entry in self.limits)
            and self._requests_are_good()
        )
        if not good:
            raise TraceError(
                "the fitted generator has invalid numbers",
                where=where,
                expected=f"a file that berthline traces fit wrote, layout {_LAYOUT}",
                hint="fit the trace again",
            )

    def _requests_are_good(self) -> bool:
        if not self.requests:
            return True
        return all(
            -1 <= request.pool < len(self.pool_names)
            and -1 <= request.gpu_types < len(self.gpu_type_sets)
            and min(request.cpus, request.memory_mib) >= 0
            and 1 <= request.gpu_milli <= WHOLE_GPU
            for request in self.requests
        ) and all(
            set(user.classes) <= set(user.requests)
            and all(
                numbers and min(numbers) >= 0 and max(numbers) < len(self.requests)
                for numbers in user.requests.values()
            )
            for user in self.users
        )
