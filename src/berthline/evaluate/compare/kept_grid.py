"""Resuming a comparison: which runs of a grid are already in the file of finished runs."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from berthline.evaluate.compare.run_record import FinishedRun, RunRecord
from berthline.package_version import package_version
from berthline.runs.job_tables import JobOutcomes
from berthline.runs.kept_runs import KeptRun, KeptRuns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from berthline.evaluate.compare.grid import Grid, RunIndex
    from berthline.evaluate.metrics.energy_rate import EnergyRate
    from berthline.model.workload import Workload


class KeptGrid:
    """The finished runs of a grid, in a file.

    Args:
        path: the file; it is created when the first run is added.
        asked: every setting that affects the results, as plain data.

    Raises:
        ConfigError: the file holds runs with other settings, or cannot be read.
    """

    def __init__(self, path: Path, asked: Mapping[str, Any]) -> None:
        self.path = path
        self._runs = KeptRuns(path, asked)
        self._keys: dict[RunIndex, bytes] = {}

    def __len__(self) -> int:
        return len(self._runs)

    def runs_on(
        self, grid: Grid, cell: int, window: int, workload: Workload
    ) -> Iterator[tuple[RunIndex, FinishedRun]]:
        """Yield the kept runs of a window, and record the keys of all its runs."""
        shared = _key_of_window(grid, cell, workload)
        for place in grid.runs_of(cell, window):
            key = _key_of_run(shared, grid.schedulers[place.scheduler], grid.seeds[place.seed])
            self._keys[place] = key
            # Logs are not kept: runs whose log is needed are made again.
            if (found := self._runs.find(key)) and not grid.keeps_log(place):
                record = msgspec.msgpack.decode(found.record, type=RunRecord)
                jobs = None if found.jobs is None else JobOutcomes.from_bytes(found.jobs)
                yield place, FinishedRun(record, jobs)

    def add(self, place: RunIndex, run: FinishedRun) -> None:
        """Append a run that has just finished.

        Raises:
            OutputError: the disk is full, or the directory cannot be written.
        """
        jobs = None if run.jobs is None else run.jobs.to_bytes()
        self._runs.add(KeptRun(self._keys[place], msgspec.msgpack.encode(run.record), jobs))

    def close(self) -> None:
        """Close the file; it is not deleted."""
        self._runs.close()


def _key_of_window(grid: Grid, cell: int, workload: Workload) -> hashlib._Hash:
    """Return a hash of what all runs of a window share."""
    from berthline.model.write_cluster_file import cluster_text

    place = grid.cells[cell]
    digest = hashlib.sha256()
    texts = (
        package_version(),
        repr(grid.settings),
        cluster_text(place.cluster),
        _rate_text(place.energy_rate),
        workload.reference_type,
        repr((workload.user_names, workload.pool_names, workload.gpu_type_sets)),
        repr(workload.ran_on_types),
    )
    for text in texts:
        digest.update(text.encode() + b"\0")
    for field in dataclasses.fields(workload):
        column = getattr(workload, field.name)
        if isinstance(column, np.ndarray) and field.name != "names":
            digest.update(np.ascontiguousarray(column).data)
    return digest


def _rate_text(rate: EnergyRate | None) -> str:
    return "" if rate is None else repr((list(rate.times), list(rate.values), rate.period))


def _key_of_run(shared: hashlib._Hash, scheduler: str, seed: int) -> bytes:
    from berthline.policies.scheduler import Scheduler

    digest = shared.copy()
    digest.update(f"{Scheduler.parse(scheduler)!r}\0{seed}".encode())
    return digest.digest()
