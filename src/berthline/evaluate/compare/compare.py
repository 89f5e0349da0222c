"""compare: several schedulers on the same windows of jobs, against one of them as the baseline.

Every scheduler runs every window from an empty cluster, with the same knowledge and seed, so that
differences are due to the schedulers. Windows that start empty flatter schedulers that keep GPUs
idle; a continuous run has no such windows, and is evaluated in blocks of its jobs. It is the
default where there are enough jobs (run_mode.py).
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

import msgspec

from berthline.argument_types import check_arguments
from berthline.errors import ConfigError
from berthline.evaluate.compare.cells import CellSettings, cells_of, run_seeds
from berthline.evaluate.compare.comparison import Comparison
from berthline.evaluate.compare.grid import Cell, Grid, Progress
from berthline.evaluate.compare.judge import comparison_of
from berthline.evaluate.compare.kept_results import keep_results, make_runs
from berthline.evaluate.compare.overall import Overall, overall_of
from berthline.evaluate.compare.run_mode import mode_for, requested_mode, with_replicates
from berthline.evaluate.compare.run_record import RunSettings
from berthline.evaluate.metrics.groups import check_grouping
from berthline.evaluate.metrics.measurement_window import MeasurementWindow
from berthline.evaluate.statistics.blocks import BLOCKS
from berthline.model.conditions import json_conditions
from berthline.runs.run_directory import open_directory
from berthline.runs.run_output import RunOutput, argument_name
from berthline.sim.policy_runner import nameable
from berthline.size_limits import check_sizes
from berthline.text_or_path import text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from berthline.engines.engine import Engine
    from berthline.evaluate.metrics.energy_rate import EnergyRate
    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload
    from berthline.text_or_path import TextOrPath


@dataclasses.dataclass(frozen=True, eq=False)
class Comparisons:
    """Comparisons of the same schedulers in several cells.

    Attributes:
        cells: one comparison for each workload, cluster and load.
        overall: the combined result of all cells; None = there is only one.
        inputs: the workload and cluster of each cell.
    """

    cells: list[Comparison]
    overall: Overall | None
    inputs: Sequence[Cell]

    def summary(self) -> dict[str, Any]:
        """Return plain data, as in summary.json: a comparison, or `cells` and `overall`."""
        cells = [
            {**msgspec.structs.asdict(each), "conditions": json_conditions(each.conditions)}
            for each in self.cells
        ]
        return cells[0] if self.overall is None else {"cells": cells, "overall": self.overall}


class CompareOptions(TypedDict, total=False):
    """The optional parameters of `compare` except `loads`; `compare` documents them."""

    baseline: TextOrPath | None
    knowledge: str
    jobs: int | None
    load: float | None
    seed: int
    seeds: int
    windows: int | None
    continuous: bool | None
    jitter: int
    blocks: int
    conditions: Mapping[str, float] | None
    format: str | None
    settings: Mapping[str, object] | None
    simulator: str
    energy_rate: EnergyRate | TextOrPath | None
    energy_period: float | None
    by: Sequence[str]
    measure: tuple[float, float] | None
    horizon: float | None
    workers: int | None
    engine: Engine | None
    out: TextOrPath | RunOutput | None
    force: bool
    resume: bool
    remark: Callable[[str], None] | None
    progress: Progress | None


@overload
def compare(  # type: ignore[overload-overlap]
    workload: Workload | TextOrPath,
    cluster: Cluster | TextOrPath | None,
    schedulers: Sequence[TextOrPath],
    *,
    loads: None = None,
    **options: Unpack[CompareOptions],
) -> Comparison: ...


@overload
def compare(
    workload: Sequence[Workload | TextOrPath | Sequence[Workload]],
    cluster: Cluster | TextOrPath | Sequence[Cluster | TextOrPath] | None,
    schedulers: Sequence[TextOrPath],
    *,
    loads: Sequence[float] | None = None,
    **options: Unpack[CompareOptions],
) -> Comparisons: ...


@overload
def compare(
    workload: Workload | TextOrPath,
    cluster: Sequence[Cluster | TextOrPath],
    schedulers: Sequence[TextOrPath],
    *,
    loads: Sequence[float] | None = None,
    **options: Unpack[CompareOptions],
) -> Comparisons: ...


@overload
def compare(
    workload: Workload | TextOrPath,
    cluster: Cluster | TextOrPath | None,
    schedulers: Sequence[TextOrPath],
    *,
    loads: Sequence[float],
    **options: Unpack[CompareOptions],
) -> Comparisons: ...


def compare(
    workload: Workload | TextOrPath | Sequence[Workload | TextOrPath | Sequence[Workload]],
    cluster: Cluster | TextOrPath | Sequence[Cluster | TextOrPath] | None,
    schedulers: Sequence[TextOrPath],
    *,
    baseline: TextOrPath | None = None,
    knowledge: str = "estimate",
    jobs: int | None = None,
    load: float | None = None,
    loads: Sequence[float] | None = None,
    seed: int = 0,
    seeds: int = 1,
    windows: int | None = None,
    continuous: bool | None = None,
    jitter: int = 0,
    blocks: int = BLOCKS,
    conditions: Mapping[str, float] | None = None,
    format: str | None = None,  # noqa: A002 - the same name as in load_trace
    settings: Mapping[str, object] | None = None,
    simulator: str = "native",
    energy_rate: EnergyRate | TextOrPath | None = None,
    energy_period: float | None = None,
    by: Sequence[str] = (),
    measure: tuple[float, float] | None = None,
    horizon: float | None = None,
    workers: int | None = 1,
    engine: Engine | None = None,
    out: TextOrPath | RunOutput | None = None,
    force: bool = False,
    resume: bool = False,
    remark: Callable[[str], None] | None = None,
    progress: Progress | None = None,
) -> Comparison | Comparisons:
    """Run every scheduler on the same windows and compare each with the baseline.

    One workload on one cluster gives a `Comparison`. A list of workloads, a list of clusters or
    `loads` give `Comparisons`: every workload on every cluster at every load, each by itself and
    all combined.

    Args:
        workload: the jobs: a Workload, or a WORKLOAD argument such as `"trace.swf"` or
            `"synthetic"` (see `resolve_workload`); or a list of them. A list within the list is
            one workload whose windows are given.
        cluster: a Cluster, or a CLUSTER argument such as `"uniform:64x8:V100"`, a cluster file or a
            node list (see `resolve_cluster`); or a list of them. None = for each workload what the
            trace states, else `uniform:8x8:V100`.
        schedulers: their texts, such as `["fcfs", "sjf+easy@best-fit"]`; learned ones also as
            paths, and policies that are Python objects (see `Policy`).
        baseline: one of them, or another that is then run first; None = the first.
        knowledge: what the schedulers know of run times: none, estimate, predicted or exact.
        jobs: number of jobs to generate, or to take from the start of a trace; None = 1000, or all.
        load: offered load; None = the default of a generator, or the trace as it is.
        loads: several loads, each as for `load`.
        seed: for generators, for everything random in a run, and for the intervals.
        seeds: number of seeds that each window is run with; its values are means over them.
        windows: number of independent runs: a generator makes that many workloads; a trace is cut
            into that many consecutive windows of equal size (to within one job), each on an empty
            cluster from time 0. None = one run over the whole workload.
        continuous: evaluate one run over the whole workload in blocks of jobs; False = without
            blocks, so without intervals; None = in blocks where there are enough jobs
            (`run_mode.ENOUGH_JOBS`) and nothing else is requested.
        jitter: number of jittered replicates of a continuous run (`jitter.jittered`): values are
            means over them, and intervals take them into account.
        blocks: number of blocks.
        conditions: replace some of the clusters' conditions, such as `{"restart": 30}`.
        format: format of trace files; None = recognise it.
        settings: dials of generators, or options of trace formats.
        simulator: `native` or `reference`.
        energy_rate: price or carbon per kWh over time, on the clock of each workload; or a CSV
            file of it. Windows cut from a workload keep their time in it.
        energy_period: an energy rate from a file repeats after this many seconds.
        by: also compare groups of jobs: `user`, `pool`, `size`, `priority`.
        measure: a measurement window (from, to) in seconds on the clock of each window, which
            excludes a warm-up and a cool-down: only jobs submitted in it count.
        horizon: stop every run at this time on the clock of its window; unfinished jobs count with
            the time they have spent so far. None = until every job has ended.
        workers: number of processes that make the runs; 1 = only this one, None = as many as are
            worth starting. The results are the same.
        engine: where they are, such as `Engine("ray", "10.0.0.1:6379")`; None = this machine.
        out: write a run directory, as `berthline compare` does. Finished runs survive an
            interruption.
        force: replace an earlier comparison there.
        resume: resume an interrupted comparison there; the other parameters must be the same.
        remark: called with a sentence if a node list omits something, a value is a guess, or a
            formula is constant or has no finite value.
        progress: called after each run with (done, total, label).

    Raises:
        ConfigError: something other than workloads, no or duplicate schedulers, more windows or
            blocks than jobs, several windows in a continuous run, an unknown grouping, no job in
            the measurement window, or a directory that must not be replaced.
        BerthlineError: a scheduler cannot be used with the workload, cluster or knowledge.

    Example:
        >>> found = compare("synthetic", "uniform:8x8:V100", ["fcfs", "sjf+easy"], jobs=200)
        >>> found.best.jct_mean
        'sjf+easy'
        >>> sweep = compare(["synthetic"], "uniform:8x8:V100", ["fcfs"], jobs=99, loads=[0.7, 0.9])
        >>> [cell.load for cell in sweep.cells]
        [0.7, 0.9]
    """
    check_arguments(
        schedulers=schedulers, loads=loads, seed=seed, conditions=conditions, settings=settings,
        energy_period=energy_period, by=by, measure=measure,
    )  # fmt: skip
    check_sizes(windows=windows, workers=workers)
    check_sizes(optional=False, seeds=seeds)
    check_sizes(optional=False, lowest=2, blocks=blocks)
    schedulers = [nameable(one) for one in schedulers]
    names, reference = with_baseline(schedulers, nameable(baseline))
    remark_on_formulas(names, remark)
    for grouping in by:
        check_grouping(grouping)
    if loads is not None and load is not None:
        raise ConfigError("`load` and `loads` are both given", expected="one of them")
    if energy_period is not None and energy_rate is None:
        raise ConfigError("`energy_period` has no effect without `energy_rate`")
    workloads: Any = workload if _is_list(workload) else [workload]
    clusters: Any = cluster if _is_list(cluster) else [cluster]
    output = RunOutput.of(out, "berthline.compare(...)")
    directory = open_directory(
        None if output is None else text_of("out", output.path),
        verb="compare",
        force=force,
        resume=resume,
    )
    given = [load] if loads is None else list(loads)
    common = CellSettings(
        windows=1 if windows is None else windows,
        jobs=jobs,
        seed=seed,
        format=format,
        settings=settings or {},
        conditions=conditions or {},
        energy_rate=energy_rate,
        energy_period=energy_period,
        remark=remark,
    )
    mode = requested_mode(windows, continuous=continuous, jitter=jitter, seeds=seeds)
    measured = None if measure is None else MeasurementWindow.checked(measure)
    cells = cells_of(workloads, clusters, given, common)
    if mode is None:
        mode = mode_for(cells, measured, "one run without intervals")
    grid = Grid(
        with_replicates(cells, jitter, seed=seed, knowledge=knowledge),
        names,
        run_seeds(seed, seeds),
        RunSettings(
            knowledge=knowledge,
            simulator=simulator,
            by=tuple(by),
            keeps_jobs=directory is not None or mode.continuous,
            measure=measured,
            horizon=horizon,
        ),
        continuous=mode.continuous,
        blocks=blocks,
        jitter=jitter,
        mode=mode.reason,
    )
    asked: Mapping[str, Any] = {
        "workload": [argument_name(one) for one in workloads],
        "cluster": ",".join(argument_name(one) for one in clusters),
        "schedulers": names,
        "baseline": names[reference],
        "windows": windows,
        "continuous": continuous,
        "jitter": jitter,
        "blocks": blocks,
        "knowledge": knowledge,
        "jobs": jobs,
        "load": load,
        "loads": None if loads is None else ",".join(f"{one:g}" for one in loads),
        "seed": seed,
        "seeds": seeds,
        "set": {name: str(value) for name, value in (settings or {}).items()},
        "format": format,
        "measure": None if measure is None else f"{measure[0]:g}:{measure[1]:g}",
        "horizon": horizon,
        "by": list(by),
        "energy_rate": None if energy_rate is None else argument_name(energy_rate),
        "energy_period": energy_period,
    }
    config = {
        **(asked if output is None or output.config is None else output.config),
        "schedulers": names,
        "baseline": names[reference],
        "conditions": grid.cells[0].cluster.conditions.changed(),
    }
    results = make_runs(grid, directory, config, workers=workers, progress=progress, engine=engine)
    judged = [comparison_of(results, cell, reference) for cell in range(len(grid.cells))]
    found = Comparisons(judged, overall_of(judged) if len(judged) > 1 else None, grid.cells)
    if directory is not None and output is not None:
        keep_results(
            directory, results, command=output.command, config=config, summary=found.summary()
        )
    is_sweep = _is_list(workload) or _is_list(cluster) or loads is not None
    return found if is_sweep else found.cells[0]


def _is_list(given: object) -> bool:
    return isinstance(given, Sequence) and not isinstance(given, str)


def remark_on_formulas(names: Sequence[str], remark: Callable[[str], None] | None) -> None:
    """Tell about formulas of these schedulers that are constant or have no finite value."""
    from berthline.policies.formula_checks import idle_formulas
    from berthline.policies.scheduler import Scheduler

    if remark is not None:
        for sentence in {s: None for name in names for s in idle_formulas(Scheduler.parse(name))}:
            remark(sentence)


def with_baseline(
    schedulers: Sequence[TextOrPath], baseline: TextOrPath | None
) -> tuple[list[str], int]:
    """Return the schedulers to run and which of them is the baseline.

    Two texts are the same scheduler if their full forms are equal, such as `sjf` and `sjf+strict`.

    Raises:
        ConfigError: the list is empty, or a scheduler is listed twice.
        PolicyError: one is not a scheduler.
    """
    from berthline.policies.scheduler import Scheduler

    if isinstance(schedulers, str | os.PathLike) or not schedulers:
        raise ConfigError(
            f"schedulers is {schedulers!r}",
            expected="a list of schedulers, such as ['fcfs', 'sjf+easy']",
        )
    names = [text_of("scheduler", one) for one in schedulers]
    in_full = [str(Scheduler.parse(name)) for name in names]
    for index, text in enumerate(in_full):
        if text in in_full[:index]:
            earlier = names[in_full.index(text)]
            raise ConfigError(
                f"scheduler {names[index]!r} is listed twice",
                where="" if earlier == names[index] else f"as {earlier!r} before",
                expected="each scheduler once",
            )
    if baseline is None:
        return names, 0
    wanted = str(Scheduler.parse(baseline))
    if wanted in in_full:
        return names, in_full.index(wanted)
    return [text_of("baseline", baseline), *names], 0
