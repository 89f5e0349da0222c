"""Windows of a search: TRAIN to learn from, VAL to choose on, REPORT to measure once.

For a generator, each part has its own seeds; VAL and REPORT have those of `berthline eval`. A trace
is split by time, with gaps between the parts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from berthline.evaluate.compare.protocol import generated_cells, spread_windows, trace_cells
from berthline.model.workload import Workload
from berthline.size_limits import check_sizes
from berthline.traces.split import split_by_time

if TYPE_CHECKING:
    from berthline.evaluate.compare.grid import Cell
    from berthline.model.cluster import Cluster

PARTS = ("train", "val", "report")

Key = tuple[str, int]
"""A part and the number of a window in it."""


@dataclasses.dataclass(frozen=True, eq=False)
class SearchWindows:
    """The windows of a search.

    Attributes:
        counts: number of windows in each part.
        window: returns the jobs of a window.
        source: a workload with the provenance of the windows.
    """

    counts: dict[str, int]
    window: Callable[[Key], Workload]
    source: Workload

    @classmethod
    def generated(
        cls,
        make: Callable[[int], Workload],
        cluster: Cluster,
        *,
        seed: int,
        train: int,
        judged: int,
    ) -> SearchWindows:
        """Return windows of a generator.

        Args:
            make: generates a workload from a seed.
            cluster: the nodes.
            seed: all seeds are derived from it.
            train: number of TRAIN windows.
            judged: number of VAL windows, and of REPORT windows.
        """
        check_sizes(train_windows=train, windows=judged)
        cells = generated_cells(make, cluster, seed=seed, windows=judged, load=None)
        words = np.random.SeedSequence((seed, 3)).generate_state(train, np.uint64)

        def window(key: Key) -> Workload:
            part, number = key
            return make(int(words[number])) if part == "train" else _of(cells, key)

        return cls({"train": train, "val": judged, "report": judged}, window, cells[0].source)

    @classmethod
    def of_trace(
        cls,
        trace: Workload,
        cluster: Cluster,
        *,
        train: int,
        judged: int,
        window_jobs: int | None,
        gap_seconds: float,
    ) -> SearchWindows:
        """Return windows of a trace.

        Args:
            trace: all of its jobs.
            cluster: the nodes.
            train: number of TRAIN windows.
            judged: number of VAL windows, and of REPORT windows.
            window_jobs: jobs in each; None = each part is cut into windows of equal size.
            gap_seconds: time without jobs between the parts.

        Raises:
            ConfigError: a part has too few jobs.
        """
        check_sizes(train_windows=train, windows=judged, window_jobs=window_jobs)
        cells = trace_cells(
            trace,
            cluster,
            windows=judged,
            window_jobs=window_jobs,
            gap_seconds=gap_seconds,
            load=None,
        )
        jobs = split_by_time(trace, gap_seconds=gap_seconds).train
        if window_jobs is not None:
            train = min(train, max(len(jobs) // window_jobs, 1))
        cuts = spread_windows(len(jobs), train, window_jobs, where=jobs.name)

        def window(key: Key) -> Workload:
            part, number = key
            return jobs.window(*cuts[number]) if part == "train" else _of(cells, key)

        return cls({"train": train, "val": judged, "report": judged}, window, trace)

    def keys(self, part: str) -> list[Key]:
        """Return all windows of a part."""
        return [(part, number) for number in range(self.counts[part])]


def _of(cells: list[Cell], key: Key) -> Workload:
    part, number = key
    return cells[PARTS.index(part) - 1].window(number)[0]
