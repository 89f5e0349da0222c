"""Cells of a comparison: every workload on every cluster at every load.

A generator makes one workload per window, each with its own seed; the first is the one that
`simulate` makes with that seed. A trace is read once and cut into consecutive windows.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from berthline.errors import ConfigError
from berthline.evaluate.compare.grid import Cell
from berthline.evaluate.metrics.energy_rate import EnergyRate
from berthline.model.workload import Workload
from berthline.text_or_path import TextOrPath, text_of
from berthline.traces.cluster_argument import resolve_cluster
from berthline.traces.offered_load import scale_to_load
from berthline.traces.stated_cluster import DEFAULT_CLUSTER, default_cluster
from berthline.traces.workload_argument import is_generator, resolve_workload

if TYPE_CHECKING:
    from berthline.model.cluster import Cluster

    OneWorkload = Workload | TextOrPath | Sequence[Workload]
    OneCluster = Cluster | TextOrPath


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class CellSettings:
    """What all cells of a comparison share; the attributes are parameters of `compare`."""

    windows: int = 1
    jobs: int | None = None
    seed: int = 0
    format: str | None = None
    settings: Mapping[str, object] = dataclasses.field(default_factory=dict)
    conditions: Mapping[str, float] = dataclasses.field(default_factory=dict)
    energy_rate: EnergyRate | TextOrPath | None = None
    energy_period: float | None = None
    remark: Callable[[str], None] | None = None


def cells_of(
    workloads: Sequence[OneWorkload],
    clusters: Sequence[OneCluster | None],
    loads: Sequence[float | None],
    common: CellSettings,
) -> list[Cell]:
    """Return the cells: workloads, in each clusters, in each loads.

    Raises:
        BerthlineError: a workload or cluster cannot be used, or is given twice.
    """
    _check_once("workload", workloads)
    _check_once("cluster", clusters)
    _check_once("loads", loads)
    named = {index: each for index, each in enumerate(clusters) if each is not None}
    known = {index: resolve_cluster(each, common.remark) for index, each in named.items()}
    cells = []
    for given in workloads:
        nodes = [
            known[index] if index in known else _stated_cluster(given, common)
            for index in range(len(clusters))
        ]
        if common.conditions:
            nodes = [cluster.with_conditions(common.conditions) for cluster in nodes]
        maker = _Generated(given, common) if _is_generator(given) else _Cut(given, common)
        cells += [maker.cell(cluster, load) for cluster in nodes for load in loads]
    return cells


def _stated_cluster(given: OneWorkload, common: CellSettings) -> Cluster:
    """Return the cluster that a trace states, else the default."""
    first = next(iter(_windows_given(given)), None)
    return resolve_cluster(
        DEFAULT_CLUSTER if first is None else default_cluster(first, common.format)
    )


def window_seeds(seed: int, windows: int) -> list[int]:
    """Return a seed for each window: `seed` itself, then seeds derived from it.

    With consecutive seeds, comparisons with seeds 1 and 2 would share all but one of their windows.
    """
    import numpy as np

    derived = np.random.SeedSequence(seed).generate_state(windows - 1, np.uint64)
    return [seed, *(int(word) for word in derived)]


def run_seeds(seed: int, count: int) -> list[int]:
    """Return the seeds that each window is run with: `seed` itself, then seeds derived from it."""
    import numpy as np

    # Not those of window_seeds: a run must not share its randomness with the jobs of a window.
    derived = np.random.SeedSequence((seed, 1)).generate_state(count - 1, np.uint32)
    return [seed, *(int(word) for word in derived)]


def cell_of(
    workloads: Sequence[Workload],
    cluster: Cluster,
    *,
    windows: int = 1,
    load: float | None = None,
    energy_rate: EnergyRate | None = None,
) -> Cell:
    """Return the cell whose windows are cut from these workloads, `windows` from each.

    Raises:
        ConfigError: no workload, or more windows than jobs.
    """
    if not workloads:
        raise ConfigError("no workload to compare on", expected="one workload or more")
    fewest = min(map(len, workloads))
    if not 1 <= windows <= fewest:
        raise ConfigError(
            f"`windows` is {windows}", expected=f"1 to {fewest}: every window needs a job"
        )

    def window(number: int) -> tuple[Workload, float]:
        workload, part = workloads[number // windows], number % windows
        if windows == 1:
            return workload, 0.0
        first, last = (len(workload) * i // windows for i in (part, part + 1))
        return workload.window(first, last), float(workload.submit[first])

    return Cell(
        workload=workloads[0].name,
        source=workloads[0],
        cluster=cluster,
        load=load,
        windows=len(workloads) * windows,
        window=window,
        energy_rate=energy_rate,
    )


class _Cut:
    """Cells whose windows are cut from a trace, which is read once for all of them."""

    def __init__(self, given: OneWorkload, common: CellSettings) -> None:
        self._given, self._common = given, common
        self._traces: list[Workload] | None = None

    def cell(self, cluster: Cluster, load: float | None) -> Cell:
        """Return the cell on a cluster at a load."""
        common = self._common
        if self._traces is None:
            self._traces = [
                resolve_workload(
                    one,
                    cluster=cluster,
                    jobs=common.jobs,
                    format=common.format,
                    settings=common.settings,
                )
                for one in _windows_given(self._given)
            ]
        traces = self._traces
        if load is not None:
            traces = [scale_to_load(trace, cluster, load) for trace in traces]
        rate = _rate(common, traces[0]) if traces else None
        return cell_of(traces, cluster, windows=common.windows, load=load, energy_rate=rate)


class _Generated:
    """Cells whose windows are generated when they are needed."""

    def __init__(self, given: Any, common: CellSettings) -> None:
        self._given, self._common = given, common
        self._seeds = window_seeds(common.seed, max(common.windows, 1))

    def cell(self, cluster: Cluster, load: float | None) -> Cell:
        """Return the cell on a cluster at a load."""
        common = self._common
        if common.windows < 1:
            raise ConfigError(f"`windows` is {common.windows}", expected="1 or more")

        def window(number: int) -> tuple[Workload, float]:
            workload = resolve_workload(
                self._given,
                cluster=cluster,
                jobs=common.jobs,
                load=load,
                seed=self._seeds[number],
                format=common.format,
                settings=common.settings,
            )
            return workload, 0.0

        first, _ = window(0)  # before any run, because it may be impossible
        return Cell(
            workload=first.name,
            source=first,
            cluster=cluster,
            load=load,
            windows=common.windows,
            window=lambda number: (first, 0.0) if number == 0 else window(number),
            energy_rate=_rate(common, first),
        )


def _windows_given(given: Any) -> list[Any]:
    is_one = isinstance(given, Workload | str | os.PathLike) or not isinstance(given, Sequence)
    return [given] if is_one else list(given)


def _is_generator(given: Any) -> bool:
    return isinstance(given, str | os.PathLike) and is_generator(given)


def _rate(common: CellSettings, workload: Workload) -> EnergyRate | None:
    """Return the energy rate of a workload: as given, or read from a file and put on its clock."""
    rate = common.energy_rate
    if rate is None or isinstance(rate, EnergyRate):
        return rate
    period = common.energy_period or math.inf
    return EnergyRate.for_workload(text_of("energy_rate", rate), workload, period=period)


def _check_once(what: str, given: Sequence[Any]) -> None:
    """Raise if a text, path or number is given twice; objects are not compared."""
    texts = [one for one in given if isinstance(one, str | os.PathLike | float | int)]
    if not given or not all(map(str, texts)):
        raise ConfigError(f"`{what}` is missing, or has an empty entry", expected="one or more")
    for number, text in enumerate(texts):
        if text in texts[:number]:
            shown = f"{text:g}" if isinstance(text, float | int) else str(text)
            raise ConfigError(f"`{what}` has {shown!r} twice", expected="each once")
