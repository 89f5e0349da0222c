"""Cells of a comparison, from options: every workload on every cluster at every load.

A generator makes a workload for every window, each with a seed of its own; the first is the one
`berthline sim` makes. A trace is read once and cut into consecutive windows.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from berthline.cli.conditions import with_conditions
from berthline.cli.energy_rate import read_energy_rate
from berthline.cli.output import note
from berthline.cli.traces_file import format_options
from berthline.errors import ConfigError

if TYPE_CHECKING:
    from berthline.cli.compare import Compare
    from berthline.evaluate.grid import Cell
    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload


def cells_of(options: Compare) -> list[Cell]:
    """Return the cells that the options ask for: workloads, in each clusters, in each loads.

    Raises:
        BerthlineError: a workload or cluster cannot be used, or one is there twice.
    """
    from berthline.traces.workload_argument import is_generator

    clusters = clusters_of(options)
    loads = read_loads(options)
    _check_once("WORKLOAD", options.workload)
    traces: dict[str, Workload] = {}
    return [
        _generated(options, text, cluster, load)
        if is_generator(text)
        else _cut(options, text, cluster, load, traces)
        for text in options.workload
        for cluster in clusters
        for load in loads
    ]


def clusters_of(options: Compare) -> list[Cluster]:
    """Return the clusters of `--cluster A,B`, with the conditions asked for.

    Raises:
        ConfigError: one cannot be used, or is there twice.
    """
    from berthline.traces.cluster_argument import resolve_cluster

    text = options.cluster
    names = [text] if Path(text).exists() else [part.strip() for part in text.split(",")]
    _check_once("--cluster", names)
    return [with_conditions(resolve_cluster(name, note), options.condition) for name in names]


def read_loads(options: Compare) -> list[float | None]:
    """Return the loads of `--loads`, or the one of `--load`; None = as the workload is.

    Raises:
        ConfigError: one is no load or there twice, or both options are given.
    """
    if options.loads is None:
        return [options.load]
    if options.load is not None:
        raise ConfigError("--load and --loads are both given", expected="one of them")
    loads: list[float | None] = []
    for text in options.loads.split(","):
        try:
            load = float(text)
        except ValueError:
            load = -1.0
        if not 0 < load < float("inf"):
            raise ConfigError(
                f"--loads has {text.strip()!r}", expected="numbers, more than 0: 0.7,0.8,0.9"
            )
        loads.append(load)
    _check_once("--loads", [f"{load:g}" for load in loads])
    return loads


def window_seeds(seed: int, windows: int) -> list[int]:
    """Return a seed for each window: `seed` itself, then seeds derived from it.

    Neighbouring numbers would make runs with seeds 1 and 2 share all but one of their windows.
    """
    import numpy as np

    derived = np.random.SeedSequence(seed).generate_state(windows - 1, np.uint64)
    return [seed, *(int(word) for word in derived)]


def _cut(
    options: Compare,
    text: str,
    cluster: Cluster,
    load: float | None,
    traces: dict[str, Workload],
) -> Cell:
    """Return a cell whose windows are cut from a trace, which is read once for all cells."""
    from berthline.evaluate.compare import cell_of
    from berthline.traces.offered_load import scale_to_load
    from berthline.traces.workload_argument import resolve_workload

    if text not in traces:
        traces[text] = resolve_workload(
            text,
            cluster=cluster,
            jobs=options.jobs,
            format=options.format,
            settings=format_options(options.map, options.set),
        )
    workload = traces[text] if load is None else scale_to_load(traces[text], cluster, load)
    rate = read_energy_rate(options.energy_rate, options.energy_period, workload)
    return cell_of([workload], cluster, windows=options.windows, load=load, energy_rate=rate)


def _generated(options: Compare, text: str, cluster: Cluster, load: float | None) -> Cell:
    """Return a cell whose windows are generated when their turn comes."""
    from berthline.evaluate.grid import Cell
    from berthline.traces.workload_argument import resolve_workload

    seeds = window_seeds(options.seed, options.windows)
    settings = format_options(options.map, options.set)

    def window(number: int) -> tuple[Workload, float]:
        workload = resolve_workload(
            text,
            cluster=cluster,
            jobs=options.jobs,
            load=load,
            seed=seeds[number],
            format=options.format,
            settings=settings,
        )
        return workload, 0.0

    first, _ = window(0)  # before any work, because it may be impossible
    rate = read_energy_rate(options.energy_rate, options.energy_period, first)
    return Cell(
        workload=first.name,
        source=first,
        cluster=cluster,
        load=load,
        windows=options.windows,
        window=lambda number: (first, 0.0) if number == 0 else window(number),
        energy_rate=rate,
    )


def _check_once(what: str, texts: list[str] | tuple[str, ...]) -> None:
    if not texts or not all(texts):
        raise ConfigError(f"{what} is missing, or has an empty entry", expected="one or more")
    for number, text in enumerate(texts):
        if text in texts[:number]:
            raise ConfigError(f"{what} has {text!r} twice", expected="each once")
