"""Episodes: many generated workloads of equal length, as tables with one row each."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from berthline.model.workload import Workload
from berthline.traces.dials import Dial
from berthline.traces.draws import Draws

Columns = Mapping[str, npt.NDArray[Any]]
"""Tables by name, each with one row per episode and one column per job."""

COUNT = Dial(name="count", default=1, meaning="how many episodes", lowest=1, highest=10**8)
FIRST = Dial(name="first", default=0, meaning="number of the first episode", highest=2**62)

_BLOCK = 16_000  # jobs; small tables stay in the cache, and memory for them is reused at once


@dataclasses.dataclass(frozen=True, eq=False)
class Episodes:
    """Generated workloads that differ in nothing but their random numbers.

    Indexing and iteration give workloads; a batch of environments reads the tables themselves.

    Attributes:
        name: of the generator.
        first: number of the first episode.
        columns: by name, one row per episode, one column per job: submit, run, gpus, estimate,
            priority, deadline, user and, of some generators, gpu_milli, cpus, memory_mib, pool and
            gpu_types. Rows are in the order of submission, and times count from the generator's
            time 0.
        user_names: names that `user` points to.
        provenance: what made them.
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
        """Return one episode, the first is 0, as a workload."""
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


def draw_in_blocks(
    draw: Callable[[Draws], Columns], *, seed: int, first: int, count: int, jobs: int
) -> Columns:
    """Return the columns of all episodes, drawn a few at a time; it makes no difference to them."""
    tables: dict[str, npt.NDArray[Any]] = {}
    step = max(1, _BLOCK // jobs)
    draws = Draws(seed, first=first, count=min(step, count), jobs=jobs)
    for begin in range(0, count, step):
        end = min(begin + step, count)
        if end - begin < step:
            draws = Draws(seed, first=first + begin, count=end - begin, jobs=jobs)
        elif begin:
            draws.move_to(first + begin)
        for key, block in draw(draws).items():
            if key not in tables:
                tables[key] = np.empty((count, jobs), block.dtype)
            tables[key][begin:end] = block
    return tables
