"""make_plan: the options of an environment, checked against each other and resolved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berthline.env.columns import TABLES, resolve_columns
from berthline.env.episodes_source import (
    EpisodeSource,
    GeneratedEpisodes,
    TraceWindows,
    WholeTrace,
)
from berthline.env.experts import NOT_JOB_BY_JOB, expert_scheduler
from berthline.env.job_kinds import JobKinds
from berthline.env.plan import Plan
from berthline.env.rewards import resolve_reward
from berthline.env.starts import GeneratedStarts, OneStart, StartedEpisodes, TraceStarts
from berthline.errors import ConfigError, PolicyError
from berthline.model.snapshot import Snapshot
from berthline.model.workload_rows import without_missing_types
from berthline.policies.formulas import Formula
from berthline.policies.rules import PLACEMENTS_BY_JOB_MIX
from berthline.policies.scheduler import Scheduler
from berthline.sim.simulate import simulate
from berthline.sim.snapshots.resume import checked
from berthline.sim.snapshots.run_in_parts import RunInParts
from berthline.traces.cluster_argument import resolve_cluster
from berthline.traces.offered_load import scale_to_load
from berthline.traces.workload_argument import is_generator, resolve_workload

if TYPE_CHECKING:
    from collections.abc import Callable

    from berthline.env.options import Options
    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload
    from berthline.sim.simulate import Result

MAX_LOOKAHEAD = 64
_NOT_NODE_BY_NODE = ("scatter", "defrag", "balance", "milp-candidates")
"""Placements that may use more nodes than a job needs."""


def make_plan(seat: str, options: Options) -> Plan:
    """Check that the options are compatible, and resolve them.

    Raises:
        BerthlineError: they are not compatible.
    """
    cluster = resolve_cluster(options.cluster)
    if options.conditions:
        cluster = cluster.with_conditions(options.conditions)
    source = _source(seat, options, cluster)
    if options.knowledge == "estimate" and not source.has_estimates:
        name = getattr(options.workload, "name", options.workload)
        raise PolicyError(
            "no job has an estimate",
            where=f"workload {name!r}",
            hint='use knowledge="predicted", "exact" or "none"',
        )
    scheduler = _base_scheduler(seat, options)
    menu = _menu(seat, options)
    columns = resolve_columns(options.features, knowledge=options.knowledge)
    if not any(getattr(columns, table) for table in TABLES):
        raise ConfigError(
            "an observation without columns", where="features", expected="at least one"
        )
    reward = resolve_reward(options.reward, options.reward_weights)
    if reward.needs_horizon and options.horizon_factor is None:
        raise ConfigError(
            f"reward {reward.name!r} without a horizon",
            where="reward",
            expected="a horizon_factor: some terms are divided by the horizon",
            hint="such as horizon_factor=1.3, as in preset='lookahead'",
        )
    kinds = JobKinds(source, cluster)
    plan = Plan(
        seat=seat,
        options=options,
        cluster=cluster,
        source=source,
        scheduler=scheduler,
        columns=columns,
        reward=reward,
        menu=menu,
        experts=tuple(expert_scheduler(seat, text, menu) for text in options.experts),
        kinds=kinds,
        inputs=kinds.inputs(scheduler, options.knowledge),
        lookahead_size=_lookahead_size(options, cluster),
    )
    _check_knowledge(plan)
    _check_unused(options)
    return plan


def _check_unused(options: Options) -> None:
    """Refuse rules that do not exist, even if they are not used."""
    baseline = Scheduler.parse(options.baseline)
    if baseline.placement in ("milp", *PLACEMENTS_BY_JOB_MIX):
        raise ConfigError(
            f"placement {baseline.placement!r}",
            where="baseline",
            expected="a placement other than milp and fgd",
        )
    for text in (*options.window_formulas, options.running_order):
        if text is not None:
            Formula.parse(text)


def _source(seat: str, options: Options, cluster: Cluster) -> EpisodeSource:
    if options.start != "warm" and options.warm_rule is not None:
        raise ConfigError(
            f"warm_rule is {options.warm_rule!r}",
            where=f"start={options.start!r}" if options.start == "empty" else "start",
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
    if isinstance(workload, str) and is_generator(workload):
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
        if options.start == "empty":
            return generator
        starts = (
            GeneratedStarts(generator, _rule_run(_warm_rule(seat, options), options, cluster))
            if options.start == "warm"
            else OneStart(_snapshot(options, cluster))
        )
        return StartedEpisodes(starts, jobs=jobs, generator=generator)
    workload = trace_of(options, cluster)
    if isinstance(options.start, Snapshot):
        return _jobs_after(_snapshot(options, cluster), workload, options)
    if jobs is None and options.split is None and options.start == "empty":
        return WholeTrace(workload)
    windows = TraceWindows(
        workload,
        jobs=jobs,
        part=options.split,
        fractions=options.split_fractions,
        gap_seconds=options.split_gap,
    )
    if options.start == "empty":
        return windows
    run = RunInParts(workload, cluster, _warm_rule(seat, options), knowledge=options.knowledge)
    states = TraceStarts(workload, run, *windows.rows)
    return StartedEpisodes(states, jobs=windows.jobs, trace=workload)


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


def _jobs_after(snapshot: Snapshot, trace: Workload, options: Options) -> StartedEpisodes:
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
    return StartedEpisodes(OneStart(snapshot, first), jobs=jobs, trace=trace)


def trace_of(options: Options, cluster: Cluster) -> Workload:
    """Return the jobs of the trace that options name, before it is split.

    Raises:
        BerthlineError: the options do not fit the trace.
    """
    if isinstance(options.load, tuple):
        raise ConfigError(
            f"load is {options.load}",
            where="a trace",
            expected="one number: a trace is rescaled once",
        )
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
    if options.load is not None:
        workload = scale_to_load(workload, cluster, options.load)
    if options.missing_types == "any":
        workload = without_missing_types(workload, cluster)
    return workload


def _base_scheduler(seat: str, options: Options) -> Scheduler:
    discipline = options.discipline
    if discipline is None:
        discipline = "skip" if options.knowledge == "none" else "easy"
        if seat in ("pick", "pickplace") and options.semantics != "rank":
            discipline = "strict"
    text = f"{options.order}+{discipline}@{options.placement}"
    scheduler = Scheduler.parse(text + (f"?{options.gate}" if options.gate else ""))
    where = f"environment {seat!r}"
    if scheduler.discipline == "rounds" or (
        scheduler.discipline == "conservative"
        and seat in ("place", "pick", "pickplace")
        and options.semantics != "rank"
    ):
        raise ConfigError(
            f"discipline {scheduler.discipline!r}",
            where=where,
            expected="strict, skip or easy"
            + (" (or conservative with semantics='rank')" if seat == "pick" else ""),
        )
    if scheduler.preemption is not None:
        raise ConfigError(
            "a preemption rule", where=where, expected="none: use the environment Preempt"
        )
    if scheduler.placement in ("milp", *PLACEMENTS_BY_JOB_MIX):
        raise ConfigError(
            f"placement {scheduler.placement!r}",
            where=where,
            expected="a placement other than milp and fgd",
        )
    chooses_nodes = seat == "pickplace" or (seat == "place" and not options.placements)
    if chooses_nodes and scheduler.placement in _NOT_NODE_BY_NODE:
        raise ConfigError(
            f"placement {scheduler.placement!r}",
            where=where,
            expected="a placement that works node by node, on the fewest nodes",
            hint="such as best-fit",
        )
    if options.semantics == "wait" and options.gate:
        raise ConfigError("a gate", where='semantics="wait"', expected="no gate")
    return scheduler


def _menu(seat: str, options: Options) -> tuple[Scheduler, ...]:
    if seat == "place":
        menu = tuple(Scheduler.parse(f"fcfs@{rule}") for rule in options.placements)
        for rule in menu:
            if rule.placement in NOT_JOB_BY_JOB:
                raise ConfigError(
                    f"placement {rule.placement!r}",
                    where="placements",
                    expected="rules that place jobs one by one, on as few nodes as possible",
                )
        return menu
    if seat != "meta":
        return ()
    if not options.schedulers:
        raise ConfigError("no schedulers", where="schedulers", expected="at least one")
    menu = tuple(Scheduler.parse(text) for text in options.schedulers)
    for scheduler in menu:
        if scheduler.discipline == "rounds" or scheduler.preemption is not None:
            raise ConfigError(
                f"scheduler {str(scheduler)!r}",
                where="schedulers",
                expected="schedulers without rounds and preemption",
            )
        if scheduler.placement in NOT_JOB_BY_JOB:
            raise ConfigError(
                f"placement {scheduler.placement!r}",
                where=f"scheduler {str(scheduler)!r}",
                expected="a placement that can be switched during a run",
            )
    return menu


def _lookahead_size(options: Options, cluster: Cluster) -> int:
    if options.lookahead is None:
        return 0
    size = options.lookahead_size or min(cluster.total_gpus, MAX_LOOKAHEAD)
    if options.lookahead == "per_gpu" and size != cluster.total_gpus:
        raise ConfigError(
            f"a look-ahead of {size} numbers for {cluster.total_gpus} GPUs",
            where='lookahead="per_gpu"',
            expected="as many numbers as GPUs",
            hint='set lookahead_size, or use "sorted" or "cdf"',
        )
    if options.knowledge == "none" and options.lookahead != "off":
        raise PolicyError(
            "a look-ahead needs run times, but knowledge is 'none'", where="lookahead"
        )
    return size


def _check_knowledge(plan: Plan) -> None:
    """Refuse formulas and schedulers that need run times if these are unknown."""
    if plan.options.knowledge != "none":
        return
    texts = [
        *((table, formula) for table in TABLES for formula in plan.formulas(table)),
        *(("window_formulas", Formula.parse(text)) for text in plan.options.window_formulas),
    ]
    if plan.running_order is not None:
        texts.append(("running_order", plan.running_order))
    texts += [(f"reward term {term.name!r}", term.parse()) for term in plan.reward.terms]
    if plan.options.protect_head:
        raise PolicyError(
            "protecting the head needs run times, but knowledge is 'none'",
            where="protect_head",
            expected="None or False: without run times, any job that fits may pass the head",
        )
    for where, formula in texts:
        if formula.uses_estimate:
            raise PolicyError(
                f"{formula.text!r} needs run times, but knowledge is 'none'", where=where
            )
    for where, schedulers in (("schedulers", plan.menu), ("experts", plan.experts)):
        for scheduler in schedulers:
            if scheduler.needs_run_times:
                raise PolicyError(
                    f"scheduler {str(scheduler)!r} needs run times, but knowledge is 'none'",
                    where=where,
                )
