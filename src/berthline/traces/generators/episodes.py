"""Episodes: many generated workloads of equal length, as tables with one row each."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from berthline.model.workload import Workload
from berthline.traces.generators.dials import Dial
from berthline.traces.generators.draws import Draws, Gap, Numbers

Columns = Mapping[str, npt.NDArray[Any]]
"""Tables by name, each with one row per episode and one column per job."""

COUNT = Dial(name="count", default=1, meaning="how many episodes", lowest=1, highest=10**8)
FIRST = Dial(name="first", default=0, meaning="number of the first episode", highest=2**62)

_BLOCK = 1 << 14  # jobs; small tables stay in the cache, and their memory is reused immediately
_FEW_BLOCKS = 3  # up to this many, joining them takes longer than blocks save


@dataclasses.dataclass(frozen=True, eq=False)
class Episodes:
    """Generated workloads that differ only in their random numbers.

    Indexing and iteration give workloads; a batch of environments reads the tables themselves.

    Attributes:
        name: of the generator.
        first: number of the first episode.
        columns: by name, one row per episode, one column per job: submit, run, gpus, estimate,
            priority, deadline, user and, for some generators, gpu_milli, cpus, memory_mib, pool
            and gpu_types. Jobs are in order of submission, and times count from the generator's
            time 0. Estimates without error are the same array as the run times.
        user_names: names that `user` points to.
        provenance: how they were made.
        pool_names: names that `pool` points to.
        gpu_type_sets: sets of GPU types that `gpu_types` points to.
        reference_type: the GPU type that run times are on; None = the common one.
    """

    name: str
    first: int
    columns: Columns  # each (num_episodes, num_jobs)
    user_names: tuple[str, ...]
    provenance: Mapping[str, Any]
    pool_names: tuple[str, ...] = ()
    gpu_type_sets: tuple[str, ...] = ()
    reference_type: str | None = None

    def __len__(self) -> int:
        return len(self.columns["submit"])

    def __getitem__(self, index: int) -> Workload:
        """Return one episode, counted from 0, as a workload."""
        rows: dict[str, Any] = {key: table[index] for key, table in self.columns.items()}
        if self.reference_type is not None:
            rows["reference_type"] = self.reference_type
        number = self.first + (index if index >= 0 else index + len(self))
        return Workload.from_columns(
            **rows,
            user_names=self.user_names,
            pool_names=self.pool_names,
            gpu_type_sets=self.gpu_type_sets,
            name=self.name,
            provenance={**self.provenance, **({"episode": number} if number else {})},
            rebase=False,
        )

    def __iter__(self) -> Iterator[Workload]:
        return (self[index] for index in range(len(self)))


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class EpisodeMaker:
    """Makes episodes by their numbers: a generator with all its settings.

    Attributes:
        name: of the generator.
        draw: draws columns from (random numbers, mean gap, names of unread columns, which it may
            leave out).
        seed: selects the random numbers.
        jobs: jobs in each episode.
        mean_gap: seconds between submissions on average, unless a load is given.
        gap_at_load_1: the mean gap at a load of 1; None = no load can be given.
        user_names: names that `user` points to.
        provenance: how the episodes are made.
        pool_names: names that `pool` points to.
        gpu_type_sets: sets of GPU types that `gpu_types` points to.
        reference_type: the GPU type that run times are on.
        has_estimates: whether any job may have an estimate.
    """

    name: str
    draw: Callable[[Draws, Gap, Container[str]], Columns]
    seed: int
    jobs: int
    mean_gap: float
    gap_at_load_1: float | None
    user_names: tuple[str, ...]
    provenance: Mapping[str, Any]
    pool_names: tuple[str, ...] = ()
    gpu_type_sets: tuple[str, ...] = ()
    reference_type: str | None = None
    has_estimates: bool = True

    def episodes(self, *, count: int, first: int = 0) -> Episodes:
        """Return episodes `first` to `first + count - 1`.

        Raises:
            ConfigError: a number is out of range.
        """
        where = f"generator {self.name!r}"
        count = int(COUNT.convert(count, where=where))
        first = int(FIRST.convert(first, where=where))
        return Episodes(
            name=self.name,
            first=first,
            columns=self.columns(np.arange(first, first + count, dtype=np.int64)),
            user_names=self.user_names,
            provenance=self.provenance,
            pool_names=self.pool_names,
            gpu_type_sets=self.gpu_type_sets,
            reference_type=self.reference_type,
        )

    def columns(
        self,
        numbers: Numbers,
        load: float | npt.NDArray[np.float64] | None = None,
        unread: Container[str] = (),
    ) -> dict[str, npt.NDArray[Any]]:
        """Return the columns of the episodes with these numbers; each depends only on its number.

        Args:
            numbers: of the episodes, in any order.
            load: one for all episodes, or one for each; None = use `mean_gap`.
            unread: columns that may be left out.
        """
        gap: Gap = self.mean_gap
        if load is not None and self.gap_at_load_1 is not None:
            gap = self.gap_at_load_1 / load
            gap = gap if isinstance(gap, float) else gap[:, None]
        step = max(1, _BLOCK // self.jobs)
        if len(numbers) <= _FEW_BLOCKS * step:
            return dict(self.draw(Draws(self.seed, numbers, jobs=self.jobs), gap, unread))
        return self._in_blocks(numbers, gap, unread, step)

    def _in_blocks(
        self, numbers: Numbers, gap: Gap, unread: Container[str], step: int
    ) -> dict[str, npt.NDArray[Any]]:
        """Draw a few episodes at a time; the result is the same."""
        tables: dict[str, npt.NDArray[Any]] = {}
        for begin in range(0, len(numbers), step):
            draws = Draws(self.seed, numbers[begin : begin + step], jobs=self.jobs)
            own_gap = gap if isinstance(gap, float) else gap[begin : begin + step]
            drawn = self.draw(draws, own_gap, unread)
            tables = tables or _new_tables(drawn, len(numbers))
            for key, table in drawn.items():
                tables[key][begin : begin + step] = table
        return tables


def _new_tables(like: Columns, count: int) -> dict[str, npt.NDArray[Any]]:
    """Return tables of `count` rows in one block of memory: large blocks use large pages."""
    sizes = {key: table[0].nbytes * count for key, table in like.items()}
    memory = np.empty(sum(size + -size % 8 for size in sizes.values()), np.uint8)
    tables, begin = {}, 0
    for key, table in like.items():
        part = memory[begin : begin + sizes[key]]
        tables[key] = part.view(table.dtype).reshape(count, table.shape[1])
        begin += sizes[key] + -sizes[key] % 8
    return tables
