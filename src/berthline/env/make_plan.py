"""make_plan: the options of an environment, checked against each other and resolved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from berthline.env.columns import TABLES, resolve_columns
from berthline.env.experts import NOT_JOB_BY_JOB, credit_expert, expert_scheduler
from berthline.env.job_kinds import JobKinds
from berthline.env.plan import Plan
from berthline.env.rewards import resolve_reward
from berthline.env.sources.make_source import make_source
from berthline.errors import ConfigError, PolicyError
from berthline.policies.formulas import Formula
from berthline.policies.rules import PLACEMENTS_BY_JOB_MIX
from berthline.policies.scheduler import Scheduler
from berthline.traces.cluster_argument import resolve_cluster

if TYPE_CHECKING:
    from berthline.env.options import Options
    from berthline.model.cluster import Cluster

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
    source = make_source(seat, options, cluster)
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
        credit=None
        if options.credit is None
        else credit_expert(seat, options.credit, menu, options.semantics),
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
    for where, schedulers in (("schedulers", plan.menu), ("experts", plan.asked)):
        for scheduler in schedulers:
            if scheduler.needs_run_times:
                raise PolicyError(
                    f"scheduler {str(scheduler)!r} needs run times, but knowledge is 'none'",
                    where=where,
                )
