"""Generator: a way to make workloads, one at a time or very many short ones at once.

A generator consists of a function that draws the sizes of jobs (run time and GPUs), an arrival
process, and dials; the other columns are drawn the same way for all generators (job_columns.py,
estimates.py). Everything is a pure function of the arguments: see draws.py for what a random number
depends on. Times are whole seconds, which hides rounding errors.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Container, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from berthline.errors import ConfigError
from berthline.model.cluster import Cluster
from berthline.model.workload import Workload
from berthline.traces.generators.dials import JOBS, LOAD, SEED, Dial, Settings, set_dials
from berthline.traces.generators.draws import Draws, Gap, Lattice, RandomSource, Table
from berthline.traces.generators.episodes import Columns, EpisodeMaker, Episodes
from berthline.traces.generators.estimates import draw_estimates
from berthline.traces.generators.job_columns import (
    check_deadlines,
    draw_deadlines,
    draw_priorities,
    draw_users,
    user_names,
)

Sizes = Callable[[RandomSource, int, Settings], tuple[Table, Table | npt.NDArray[np.int32]]]
"""Draws (run times, GPUs) from random numbers, the GPUs of the cluster and the dials."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Generator:
    """A way to make workloads.

    Attributes:
        name: its name as a WORKLOAD argument.
        description: one line for lists.
        sizes: draws run times and GPUs.
        arrivals: draws submission times from (random numbers, mean gap, dials).
        dials: its settings besides jobs, load and seed.
        load: the default load; None = the rate of the system it is taken from.
        own_gap: the mean gap of that system from (dials, jobs); if this and `load` are None, no
            load can be set: all jobs are submitted at once.
        priorities: draws priorities from (random numbers, run times, dials).
        requests: draws other columns from (random numbers, dials), such as memory; they replace
            the GPUs of `sizes`, which then are those of a job with its parts of GPUs. None = no
            other columns.
        exact: makes a single workload in another way, to match published numbers.
    """

    name: str
    description: str
    sizes: Sizes
    arrivals: Callable[[Draws, Gap, Settings], Table]
    dials: tuple[Dial, ...]
    load: float | None = 0.9
    own_gap: Callable[[Settings, int], float] | None = None
    priorities: Callable[[RandomSource, Table, Settings], Table] = (
        lambda source, run, dials: draw_priorities(source, dials)  # noqa: ARG005
    )
    requests: Callable[[RandomSource, Settings], dict[str, npt.NDArray[Any]]] | None = None
    exact: Callable[[Cluster, int, float, int, Settings], Workload] | None = None

    def make(
        self,
        cluster: Cluster,
        *,
        jobs: int | None = None,
        load: float | None = None,
        seed: int = 0,
        dials: Mapping[str, object],
    ) -> Workload:
        """Return a workload; None and omitted dials mean the defaults.

        Raises:
            ConfigError: an unknown dial, or a value out of range.
        """
        where = f"generator {self.name!r}"
        num_jobs = int(JOBS.convert(JOBS.default if jobs is None else jobs, where=where))
        number = int(SEED.convert(seed, where=where))
        settings = set_dials(self.dials, dials, where=where)
        if self.exact is not None:
            rate = float(LOAD.convert(LOAD.default if load is None else load, where=where))
            return self.exact(cluster, num_jobs, rate, number, settings)
        return self.episodes(cluster, count=1, jobs=num_jobs, load=load, seed=number, dials=dials)[
            0
        ]

    def episodes(
        self,
        cluster: Cluster,
        *,
        count: int,
        jobs: int,
        load: float | None = None,
        seed: int = 0,
        first: int = 0,
        dials: Mapping[str, object],
    ) -> Episodes:
        """Return `count` episodes at once; see `berthline.traces.generators.synthetic.episodes`.

        Raises:
            ConfigError: an unknown dial, or a value out of range.
        """
        maker = self.maker(cluster, jobs=jobs, load=load, seed=seed, dials=dials)
        return maker.episodes(count=count, first=first)

    def maker(
        self,
        cluster: Cluster,
        *,
        jobs: int,
        load: float | None = None,
        seed: int = 0,
        dials: Mapping[str, object],
    ) -> EpisodeMaker:
        """Return a maker of episodes by their numbers; for the arguments see `episodes`.

        Raises:
            ConfigError: an unknown dial, or a value out of range.
        """
        where = f"generator {self.name!r}"
        jobs = int(JOBS.convert(jobs, where=where))
        seed = int(SEED.convert(seed, where=where))
        settings = set_dials(self.dials, dials, where=where)
        check_deadlines(settings, where=where)
        gap_at_load_1 = self._gap_at_load_1(cluster, load, settings)
        mean_gap = 0.0
        if gap_at_load_1 is not None:
            if load is None and self.load is None and self.own_gap is not None:
                mean_gap = self.own_gap(settings, jobs)
                load = gap_at_load_1 / mean_gap
            else:
                load = float(LOAD.convert(self.load if load is None else load, where=where))
                mean_gap = gap_at_load_1 / load
        return EpisodeMaker(
            name=self.name,
            draw=functools.partial(self._columns, cluster.total_gpus, settings),
            seed=seed,
            jobs=jobs,
            mean_gap=mean_gap,
            gap_at_load_1=gap_at_load_1,
            user_names=user_names(int(settings["users"])),
            provenance={
                "generator": self.name,
                "jobs": jobs,
                "load": load,
                "seed": seed,
                "gpus": cluster.total_gpus,
                "dials": dict(settings),
            },
        )

    def _gap_at_load_1(
        self, cluster: Cluster, load: float | None, settings: Settings
    ) -> float | None:
        """Return the mean gap at a load of 1; None = all jobs are submitted at once."""
        if self.load is not None or self.own_gap is not None:
            key = tuple(sorted(settings.items()))
            return mean_work(self.sizes, cluster.total_gpus, key) / cluster.total_gpus
        if load is not None:
            raise ConfigError(
                f"load is {load}",
                where=f"generator {self.name!r}",
                expected="no load: all jobs are submitted at once",
                hint="omit `load`",
            )
        return None

    def _columns(
        self,
        total_gpus: int,
        settings: Settings,
        draws: Draws,
        mean_gap: Gap,
        unread: Container[str],
    ) -> Columns:
        run, gpus = self.sizes(draws, total_gpus, settings)
        submit = self.arrivals(draws, mean_gap, settings)
        submit = np.rint(submit, out=submit)
        columns: dict[str, npt.NDArray[Any]] = {
            "submit": submit,
            "run": run,
            "gpus": gpus.astype(np.int32, copy=False),
        }
        if "estimate" not in unread:
            columns["estimate"] = draw_estimates(draws, run, settings)
        if "priority" not in unread:
            columns["priority"] = self.priorities(draws, run, settings)
        if "deadline" not in unread:
            columns["deadline"] = draw_deadlines(draws, submit, run, settings)
        columns["user"] = draw_users(draws, settings)
        if self.requests is not None:
            columns |= self.requests(draws, settings)
        return columns


@functools.lru_cache(maxsize=256)
def mean_work(sizes: Sizes, total_gpus: int, dials: tuple[tuple[str, Any], ...]) -> float:
    """Return the mean GPU-seconds of a job."""
    run, gpus = sizes(Lattice(), total_gpus, dict(dials))
    return float((run * gpus).mean())
