"""make_source: where the jobs of episodes come from, and the states in which episodes begin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berthline.env.episodes_source import (
    EpisodeSource,
    GeneratedEpisodes,
    TraceWindows,
    WholeTrace,
)
from berthline.env.sources.starts import (
    GeneratedStarts,
    OneStart,
    StartedEpisodes,
    TraceStarts,
    starting_rows,
)
from berthline.errors import ConfigError
from berthline.model.snapshot import Snapshot
from berthline.model.workload_rows import without_missing_types
from berthline.policies.scheduler import Scheduler
from berthline.sim.simulate import simulate
from berthline.sim.snapshots.resume import checked
from berthline.sim.snapshots.run_in_parts import RunInParts
from berthline.traces.offered_load import scale_to_load
from berthline.traces.workload_argument import is_generator, resolve_workload

if TYPE_CHECKING:
    from collections.abc import Callable

    from berthline.env.options import Options
    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload
    from berthline.sim.simulate import Result

BUSIEST = 0.8
"""The highest load of the jobs of a trace that came before an episode."""


def make_source(seat: str, options: Options, cluster: Cluster) -> EpisodeSource:
    """Return where the jobs of every episode come from, and the states in which they begin.

    Raises:
        BerthlineError: the options do not fit each other, or the workload.
    """
    is_trace = not (isinstance(options.workload, str) and is_generator(options.workload))
    may_be_warm = options.start == "warm" or (options.start is None and is_trace)
    if options.warm_rule is not None and not may_be_warm:
        raise ConfigError(
            f"warm_rule is {options.warm_rule!r}",
            where="start" if isinstance(options.start, Snapshot) else "start='empty'",
            expected='warm_rule only with start="warm"',
        )
    workload, jobs = options.workload, options.episode_jobs
    # The default changes nothing, so that a complete list of options is accepted.
    for name in ("split_gap", "split_fractions"):
        value = getattr(options, name)
        if options.split is None and value != getattr(type(options), name):
            raise ConfigError(
                f"{name} is {value:g}" if isinstance(value, float) else f"{name} is {value}",
                where="no split",
                expected=f"{name} only with a split",
                hint='such as split="train"',
            )
    if isinstance(workload, str) and not is_trace:
        if options.split is not None or options.slice is not None or jobs is None:
            what = "no episode_jobs"
            if options.split is not None or options.slice is not None:
                what = f"{'slice' if options.split is None else f'split {options.split!r}'}"
            raise ConfigError(
                f"{what} given for a generator",
                where=workload,
                expected="split and slice only with a trace, and episode_jobs with a generator",
            )
        generator = GeneratedEpisodes(
            workload, cluster, jobs=jobs, load=options.load, dials=dict(options.dials)
        )
        if options.start in ("empty", None):
            return generator
        starts = (
            GeneratedStarts(generator, _rule_run(_warm_rule(seat, options), options, cluster))
            if options.start == "warm"
            else OneStart(_snapshot(options, cluster))
        )
        return StartedEpisodes(starts, generator=generator)
    trace = trace_of(options, cluster)
    if isinstance(options.start, Snapshot):
        return _jobs_after(_snapshot(options, cluster), trace, options, cluster)
    is_warm = options.start == "warm" or (options.start is None and jobs is not None)
    if jobs is None and options.split is None and not is_warm:
        return WholeTrace(trace if options.load is None else _at_load(trace, options, cluster))
    if is_warm and options.load is not None:
        trace = _before_episodes(trace, options.load, cluster)
    windows = TraceWindows(
        trace,
        jobs=jobs,
        load=options.load,
        gpus=cluster.total_gpus,
        part=options.split,
        fractions=options.split_fractions,
        gap_seconds=options.split_gap,
    )
    if not is_warm:
        return windows
    rows = starting_rows(trace, *windows.rows)
    if not len(rows):
        if options.start is None:
            return windows
        raise ConfigError(
            "no time to begin at",
            where='start="warm"',
            expected="jobs before the first that comes, and more than episode_jobs jobs",
        )
    run = RunInParts(trace, cluster, _warm_rule(seat, options), knowledge=options.knowledge)
    return StartedEpisodes(TraceStarts(trace, run, rows), windows=windows)


def _at_load(trace: Workload, options: Options, cluster: Cluster) -> Workload:
    """Return a trace whose only episode is all of it, at the load of the episode."""
    if isinstance(options.load, tuple):
        raise ConfigError(
            f"load is {options.load}",
            where="an episode of the whole trace",
            expected="one number: there is only one episode",
            hint="with episode_jobs, each episode draws its load",
        )
    assert options.load is not None
    return scale_to_load(trace, cluster, options.load)


def _before_episodes(
    trace: Workload, load: float | tuple[float, float], cluster: Cluster
) -> Workload:
    """Return a trace at the load of its episodes, for the run of the rule before they begin.

    Above BUSIEST the queue would grow without end, and episodes would differ by when they begin.
    """
    return scale_to_load(trace, cluster, min(float(np.mean(load)), BUSIEST))


def _warm_rule(seat: str, options: Options) -> Scheduler:
    """Return the scheduler that has kept the cluster busy before a warm start."""
    text = options.warm_rule
    if text is None:
        discipline = options.discipline or ("skip" if options.knowledge == "none" else "easy")
        text = f"{options.order}+{discipline}@{options.placement}"
        text += f"?{options.gate}" if options.gate else ""
    rule = Scheduler.parse(text)
    if rule.learned is not None:
        raise ConfigError(
            f"warm_rule is {text!r}", where=f"environment {seat!r}", expected="a rule"
        )
    return rule


def _rule_run(rule: Scheduler, options: Options, cluster: Cluster) -> Callable[[Workload], Result]:
    """Return the function that runs a workload by a rule."""
    return lambda workload: simulate(workload, cluster, rule, knowledge=options.knowledge)


def _snapshot(options: Options, cluster: Cluster) -> Snapshot:
    """Return the snapshot in which episodes begin, if the cluster is its own."""
    assert isinstance(options.start, Snapshot)
    snapshot = checked(options.start, options.conditions)
    own = snapshot.cluster
    if not np.array_equal(own.gpus, cluster.gpus) or not np.array_equal(
        own.gpu_type, cluster.gpu_type
    ):
        raise ConfigError(
            f"a cluster of {cluster.num_nodes} nodes",
            where="start",
            expected=f"the cluster of the snapshot, of {own.num_nodes} nodes",
            hint="leave out `cluster`",
        )
    if np.isnan(snapshot.workload.run).any():
        raise ConfigError(
            "a snapshot with jobs of unknown run time",
            where="start",
            expected="run times of all jobs, to simulate what comes",
        )
    return snapshot


def _jobs_after(
    snapshot: Snapshot, trace: Workload, options: Options, cluster: Cluster
) -> StartedEpisodes:
    """Return episodes of the jobs of a trace that come after a snapshot."""
    first = int(np.searchsorted(trace.submit, snapshot.now, side="right"))
    there_are = len(trace) - first
    jobs = there_are if options.episode_jobs is None else options.episode_jobs
    if options.split is not None:
        raise ConfigError(
            f"split {options.split!r} with a snapshot",
            where="start",
            expected="no split: the jobs that come are those after the snapshot",
        )
    if not 1 <= jobs <= there_are:
        raise ConfigError(
            f"episodes of {jobs:,} jobs, but {there_are:,} come after {snapshot.now:,.10g} s",
            where=f"workload {trace.name!r}",
            expected="jobs on the clock of the snapshot, and at most as many episode_jobs",
        )
    windows = TraceWindows(trace, jobs=jobs, load=options.load, gpus=cluster.total_gpus)
    return StartedEpisodes(OneStart(snapshot, first), windows=windows)


def trace_of(options: Options, cluster: Cluster) -> Workload:
    """Return the jobs of the trace that options name, as recorded, before it is split.

    Raises:
        BerthlineError: the options do not fit the trace.
    """
    is_named = isinstance(options.workload, str)
    settings = {key: str(value) for key, value in options.dials.items()} if is_named else None
    workload = resolve_workload(options.workload, cluster=cluster, settings=settings)
    if options.slice is not None:
        first, end = options.slice
        if end > len(workload):
            raise ConfigError(
                f"slice is {options.slice}",
                where=workload.name,
                expected=f"jobs 0 to {len(workload):,}",
            )
        workload = workload.window(first, end)
    if options.missing_types == "any":
        workload = without_missing_types(workload, cluster)
    return workload
