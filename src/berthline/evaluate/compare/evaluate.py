"""evaluate: a scheduler or a run on held-out windows, against the best of its rivals.

The protocol is that of protocol.py: the rival is chosen on VAL windows, and the verdict is about
REPORT windows.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from berthline.argument_types import check_arguments
from berthline.evaluate.compare.compare import (
    remark_on_formulas,
    with_baseline,
)
from berthline.evaluate.compare.evaluation_defaults import (
    KNOWLEDGE,
    WINDOWS,
    WORKLOAD,
)
from berthline.evaluate.compare.grid import Cell, Grid, Progress
from berthline.evaluate.compare.kept_results import keep_results, make_runs
from berthline.evaluate.compare.protocol import (
    RIVALS,
    Evaluation,
    distinct_rivals,
    evaluation_of,
    generated_cells,
    trace_cells,
)
from berthline.evaluate.compare.run_argument import JudgedRun, read_run_argument
from berthline.evaluate.compare.run_mode import (
    ASKED_WINDOWS,
    RunMode,
    mode_for,
    requested_mode,
    with_replicates,
)
from berthline.evaluate.compare.run_record import RunSettings
from berthline.evaluate.metrics.compared_metrics import check_metric
from berthline.evaluate.metrics.measurement_window import MeasurementWindow
from berthline.evaluate.statistics.blocks import BLOCKS
from berthline.model.conditions import json_conditions
from berthline.policies.given import given_of
from berthline.runs.run_directory import open_directory
from berthline.runs.run_output import RunOutput
from berthline.sim.policy_runner import nameable
from berthline.size_limits import check_sizes
from berthline.text_or_path import text_of
from berthline.traces.cluster_argument import resolve_cluster
from berthline.traces.generators.dials import JOBS
from berthline.traces.offered_load import scale_to_load
from berthline.traces.split import gap_in_words, usual_gap
from berthline.traces.stated_cluster import default_cluster
from berthline.traces.workload_argument import is_generator, resolve_workload

if TYPE_CHECKING:
    from berthline.engines.engine import Engine
    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload
    from berthline.text_or_path import TextOrPath


@dataclasses.dataclass(frozen=True, eq=False)
class EvaluationResult:
    """The result of `evaluate`.

    Attributes:
        evaluation: the figures: rivals on VAL, comparisons on REPORT.
        caution: a reason to doubt the verdict; empty = none.
        inputs: the workload and cluster of VAL and of REPORT.
        policies: how policies that are Python objects decided, in sentences.
    """

    evaluation: Evaluation
    caution: str
    inputs: Sequence[Cell]
    policies: Sequence[str] = ()

    @property
    def verdict(self) -> str:
        """The verdict in a sentence."""
        from berthline.evaluate.compare.verdict_sentence import verdict_sentence

        return verdict_sentence(self.evaluation)

    def summary(self) -> dict[str, Any]:
        """Return plain data, as in summary.json."""
        return {
            **msgspec.structs.asdict(self.evaluation),
            "verdict": self.verdict,
            **({"policies": list(self.policies)} if self.policies else {}),
            "cells": [
                {**msgspec.structs.asdict(cell), "conditions": json_conditions(cell.conditions)}
                for cell in self.evaluation.cells
            ],
        }


def evaluate(
    run: TextOrPath | Any,
    *,
    against: Sequence[TextOrPath | Any] | None = None,
    metric: str | None = None,
    workload: Workload | TextOrPath | None = None,
    cluster: Cluster | TextOrPath | None = None,
    windows: int | None = None,
    window_jobs: int | None = None,
    continuous: bool | None = None,
    jitter: int = 0,
    blocks: int = BLOCKS,
    gap_seconds: float | None = None,
    knowledge: str | None = None,
    conditions: Mapping[str, float] | None = None,
    load: float | None = None,
    seed: int = 0,
    format: str | None = None,  # noqa: A002 - the same name as in load_trace
    settings: Mapping[str, object] | None = None,
    measure: tuple[float, float] | None = None,
    workers: int | None = 1,
    engine: Engine | None = None,
    out: TextOrPath | RunOutput | None = None,
    force: bool = False,
    resume: bool = False,
    remark: Callable[[str], None] | None = None,
    progress: Progress | None = None,
) -> EvaluationResult:
    """Evaluate a scheduler or a run on held-out windows, as `berthline eval` does.

    The best rival is chosen on VAL windows; the verdict is about REPORT windows. A generator makes
    the two with different seeds; a trace is split by time.

    Args:
        run: a scheduler's text, a learned policy, or a run directory: the scheduler of a `sim` run,
            or the one with the lowest mean JCT of a `compare` run; with the settings of that run.
            Or a policy: a `Policy`, or a function, a network or a model that can be one; with the
            settings of its environment.
        against: the rivals; None = a random choice, fcfs, fcfs+easy and heuristics.
        metric: what the rival is chosen by and the verdict begins with: jct_mean, jct_p99,
            bounded_slowdown_mean, wait_mean, makespan or utilization; None = that of a training
            run, or jct_mean.
        workload: a Workload or a WORKLOAD argument; None = that of the run, or `synthetic`.
        cluster: a Cluster or a CLUSTER argument; None = that of the run, or what the header of a
            trace states, or `uniform:8x8:V100`.
        windows: number of VAL windows and of REPORT windows; None = 20, where the run is not
            continuous.
        window_jobs: jobs in each window; None = 1000, or all that the trace has.
        continuous: one VAL run and one REPORT run instead of windows, evaluated in blocks of jobs;
            None = where REPORT has enough jobs (`run_mode.ENOUGH_JOBS`) and neither `windows` nor
            `window_jobs` is given. A generator makes as many jobs as 20 windows have.
        jitter: number of jittered replicates of both runs, as in `compare`.
        blocks: number of blocks.
        gap_seconds: time without jobs between the parts of a trace; None = a day, or less for a
            short trace (see `usual_gap`).
        knowledge: what schedulers know of run times; None = as in the run, or `estimate`.
        conditions: replace some of the cluster's conditions.
        load: offered load; None = that of the run, or as the workload is.
        seed: for generators, for everything random in a run, and for the intervals.
        format: format of a trace file; None = recognise it.
        settings: dials of a generator, or options of a trace format.
        measure: a measurement window (from, to) in seconds on the clock of each window.
        workers: number of processes that make the runs; None = as many as are worth starting.
        engine: where they are, such as `Engine("ray", "10.0.0.1:6379")`; None = this machine.
        out: write a run directory. Finished runs survive an interruption.
        force: replace an earlier evaluation there.
        resume: resume an interrupted evaluation there.
        remark: called with sentences about omitted rivals and about assumptions.
        progress: called after each run with (done, total, label).

    Raises:
        BerthlineError: the inputs are incompatible, or something cannot be read or written.

    Example:
        >>> found = evaluate("sjf+easy", against=["fcfs"], windows=2, window_jobs=50)
        >>> found.evaluation.rival
        'fcfs'
    """
    check_arguments(
        against=against, seed=seed, conditions=conditions, settings=settings, measure=measure
    )
    check_sizes(windows=windows, window_jobs=window_jobs, workers=workers)
    check_sizes(optional=False, lowest=2, blocks=blocks)
    run, against = nameable(run), against and [nameable(one) for one in against]
    judged = read_run_argument(text_of("run", run))
    metric = metric or judged.metric
    check_metric(metric)
    given = {
        "workload": workload,
        "cluster": cluster,
        "knowledge": knowledge,
        "load": load,
        "format": format,
        "window_jobs": window_jobs,
    }
    resolved = _resolve(given, settings or {}, judged)
    if resolved["cluster"] is None:
        resolved["cluster"] = default_cluster(resolved["workload"], resolved["format"], remark)
    if against is not None:
        rivals = [text_of("against", one) for one in against]
    elif resolved["knowledge"] == "none":
        rivals = _without_run_times(remark)
    else:
        rivals = list(RIVALS)
    names, _ = with_baseline([judged.scheduler, *distinct_rivals(judged.scheduler, rivals)], None)
    remark_on_formulas(names, remark)
    output = RunOutput.of(out, "berthline.evaluate(...)")
    directory = open_directory(
        None if output is None else text_of("out", output.path),
        verb="eval",
        force=force,
        resume=resume,
    )
    measured = None if measure is None else MeasurementWindow.checked(measure)
    policies = [one.sentence for one in map(given_of, names) if one is not None]
    if remark is not None:
        for sentence in policies:
            remark(sentence)
    cells, mode = _cells_and_mode(
        resolved,
        conditions or {},
        mode=requested_mode(windows, continuous=continuous, jitter=jitter)
        or (None if window_jobs is None else RunMode(continuous=False, reason=ASKED_WINDOWS)),
        windows=windows,
        seed=seed,
        gap_seconds=gap_seconds,
        measure=measured,
        remark=remark,
    )
    grid = Grid(
        with_replicates(cells, jitter, seed=seed, knowledge=resolved["knowledge"]),
        names,
        [seed],
        RunSettings(
            knowledge=resolved["knowledge"],
            keeps_jobs=directory is not None or mode.continuous,
            measure=measured,
        ),
        continuous=mode.continuous,
        blocks=blocks,
        jitter=jitter,
        mode=mode.reason,
    )
    asked: Mapping[str, Any] = {
        "windows": windows,
        "continuous": continuous,
        "jitter": jitter,
        "blocks": blocks,
        "gap": None if gap_seconds is None else f"{gap_seconds:g}s",
        "seed": seed,
        "measure": None if measure is None else f"{measure[0]:g}:{measure[1]:g}",
    }
    config = {
        **(asked if output is None or output.config is None else output.config),
        **{key: _plain(value) for key, value in resolved.items()},
        "run": judged.scheduler,
        "metric": metric,
        "against": names[1:],
        "conditions": cells[0].cluster.conditions.changed(),
    }
    results = make_runs(grid, directory, config, workers=workers, progress=progress, engine=engine)
    found = EvaluationResult(
        evaluation_of(results, metric),
        _caution(judged, resolved["workload"]),
        grid.cells,
        policies,
    )
    if directory is not None and output is not None:
        keep_results(
            directory, results, command=output.command, config=config, summary=found.summary()
        )
    return found


def _resolve(
    given: Mapping[str, Any], settings: Mapping[str, object], judged: JudgedRun
) -> dict[str, Any]:
    """Return workload, cluster and their settings: as given, else the run's, else the defaults.

    The settings of a run's workload do not apply to another workload.
    """
    of_run = dict(judged.settings)
    if given["workload"] is not None:
        kept = ("cluster", "knowledge", "conditions")
        of_run = {name: value for name, value in of_run.items() if name in kept}
    if given["cluster"] is not None:
        of_run.pop("conditions", None)
    usual = {"workload": WORKLOAD, "cluster": None, "knowledge": KNOWLEDGE}
    blank: dict[str, Any] = {
        "load": None,
        "format": None,
        "map": None,
        "window_jobs": None,
        "set": {},
    }
    asked = {name: value for name, value in given.items() if value is not None}
    dials = {name: str(value) for name, value in settings.items() if name != "mapping"}
    if dials:
        asked["set"] = dials
    if "mapping" in settings:
        asked["map"] = settings["mapping"]
    return {**blank, **usual, **of_run, **asked}


def _cells_and_mode(
    resolved: Mapping[str, Any],
    conditions: Mapping[str, float],
    *,
    mode: RunMode | None,
    windows: int | None,
    seed: int,
    gap_seconds: float | None,
    measure: MeasurementWindow | None,
    remark: Callable[[str], None] | None,
) -> tuple[list[Cell], RunMode]:
    """Return the VAL and the REPORT cell, and whether they are continuous runs.

    Raises:
        BerthlineError: the workload or the cluster cannot be used, or has too few jobs.
    """
    cells = _cell_maker(resolved, conditions, seed=seed, gap_seconds=gap_seconds, remark=remark)
    asked: int | None = resolved["window_jobs"]
    if mode is not None and not mode.continuous:
        return cells(windows or WINDOWS, asked), mode
    whole = asked
    if is_generator(resolved["workload"]) and (mode is None or asked is None):
        whole = WINDOWS * (asked or int(JOBS.default))
    runs = cells(windows or 1, whole)
    if mode is None:
        mode = mode_for(runs[1:], measure, f"{WINDOWS} windows")
        if not mode.continuous:
            runs = cells(WINDOWS, asked)
    return runs, mode


def _cell_maker(
    resolved: Mapping[str, Any],
    conditions: Mapping[str, float],
    *,
    seed: int,
    gap_seconds: float | None,
    remark: Callable[[str], None] | None,
) -> Callable[[int, int | None], list[Cell]]:
    """Return a function of the number of windows, and of jobs in each, that makes both cells."""
    cluster = resolve_cluster(resolved["cluster"], remark)
    for changes in (resolved.get("conditions"), conditions):
        cluster = cluster.with_conditions(changes) if changes else cluster
    load, settings = resolved["load"], dict(resolved["set"])
    if resolved["map"] is not None:
        settings["mapping"] = resolved["map"]

    def make(seed: int, jobs: int | None, load: float | None) -> Workload:
        return resolve_workload(
            resolved["workload"],
            cluster=cluster,
            jobs=jobs,
            load=load,
            seed=seed,
            format=resolved["format"],
            settings=settings,
        )

    if is_generator(resolved["workload"]):
        return lambda windows, jobs: generated_cells(
            lambda seed: make(seed, jobs, load), cluster, seed=seed, windows=windows, load=load
        )
    trace = make(seed, None, None)
    if load is not None:
        trace = scale_to_load(trace, cluster, load)
    if gap_seconds is None:
        gap_seconds = usual_gap(trace)
        if remark is not None and gap_in_words(gap_seconds):
            remark(gap_in_words(gap_seconds))
    gap = gap_seconds  # not None from here on, also for the type checker
    return lambda windows, jobs: trace_cells(
        trace,
        cluster,
        windows=windows,
        window_jobs=jobs,
        gap_seconds=gap,
        load=load,
    )


def _without_run_times(remark: Callable[[str], None] | None) -> list[str]:
    """Return the default rivals that need no run times, and report those left out."""
    from berthline.policies.scheduler import Scheduler

    needing = [name for name in RIVALS if Scheduler.parse(name).needs_run_times]
    if remark is not None:
        remark(f"these rivals need run times and are left out: {', '.join(needing)}")
    return [name for name in RIVALS if name not in needing]


def _caution(judged: JudgedRun, workload: Workload | TextOrPath) -> str:
    """Return a reason to doubt the verdict; empty = none."""
    if judged.verb not in ("compare", "demo") or is_generator(workload):
        return ""
    return "RUN was the best of a comparison; if that used this trace, RUN has seen REPORT jobs"


def _plain(value: Any) -> Any:
    """Return a value for config.toml; objects are written as their names."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return getattr(value, "name", value)
