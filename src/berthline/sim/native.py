"""The native simulator: hands the inputs to the C++ core and wraps the log it returns."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from berthline import _native
from berthline.model.schedule import Schedule
from berthline.sim.inputs import FIRST_PREDICTION, Inputs, endless_preemption

if TYPE_CHECKING:
    from collections.abc import Callable

    from berthline.model.snapshot import Snapshot
    from berthline.policies.formulas import Formula
    from berthline.policies.scheduler import Scheduler

_NATIVE_PLACEMENT = {"first-available": "first-fit", "milp": "best-fit"}
"""The core's name of a placement, where it differs."""


def run(
    inputs: Inputs,
    progress: Callable[[int], None] | None = None,
    decision_seconds: list[float] | None = None,
) -> Schedule:
    """Simulate the inputs and return the log.

    Args:
        inputs: the run.
        progress: called periodically with the number of jobs that have arrived.
        decision_seconds: the time of each decision is appended here.
    """
    if inputs.start is not None:
        arrays = _native.resume(run_arguments(inputs), snapshot_arguments(inputs.start), progress)
    else:
        arrays = _native.run(run_arguments(inputs), progress, decision_seconds is not None)
    if arrays.pop("is_endless"):
        raise endless_preemption(inputs)
    if decision_seconds is not None:
        decision_seconds.extend(arrays.pop("decision_seconds"))
    return Schedule(**arrays, horizon=inputs.horizon)


def run_arguments(inputs: Inputs) -> dict[str, Any]:
    """Return the inputs as the core reads them; job columns must outlive its run."""
    outages = inputs.outages
    return {
        "jobs": _jobs(inputs),
        "cluster": _cluster(inputs),
        "conditions": vars(inputs.cluster.conditions),
        "scheduler": scheduler_arguments(inputs),
        "quotas": {
            "limit": inputs.quotas.limit,
            "gpu_type": inputs.quotas.gpu_type,
            "set_begin": inputs.quotas.set_begin,
            "members": inputs.quotas.members,
        },
        "outages": list(
            zip(outages.time.tolist(), outages.node.tolist(), outages.up.tolist(), strict=True)
        ),
        "mixes": [
            (mix.jobs, [dataclasses.astuple(job) for job in mix.typical]) for mix in inputs.mixes
        ],
        "plan": inputs.plan,
        "predicted": inputs.knowledge == "predicted",
        "first_prediction": FIRST_PREDICTION,
        "max_preemptions": inputs.max_preemptions,
        "placement_key": inputs.placement_key,
        "refusal_key": inputs.refusal_key,
        "horizon": inputs.horizon,
        "was_interrupted": inputs.start is not None and inputs.start.was_interrupted,
        "remembers": False,
    }


def snapshot_arguments(start: Snapshot, earlier: Snapshot | None = None) -> dict[str, Any]:
    """Return a snapshot as the core reads it.

    Args:
        start: the snapshot.
        earlier: the one that its memory is about, whose rows and jobs come first; None = itself.
    """
    log, memory, of = start.log, start.memory, earlier or start
    return {
        "now": start.now,
        "known": start.num_jobs,
        "decides": of.decides,
        "timer": of.timer,
        "decisions": log.decisions,
        "time": log.time,
        "kind": log.kind,
        "job": log.job,
        "detail": log.detail,
        "alloc_node": np.ascontiguousarray(log.alloc_node),
        "alloc_gpus": np.ascontiguousarray(log.alloc_gpus),
        "alloc_slot": np.ascontiguousarray(log.alloc_slot),
        "memory_at": of.now,
        "memory_rows": len(of.log),
        "memory_known": of.num_jobs,
        "predicted": memory.predicted,
        "progress": memory.progress,
        "idle_since": memory.idle_since,
        "submissions": memory.submissions,
        "users": memory.users,
        "usage": memory.usage,
        "max_priority": memory.max_priority,
        "gittins_count": memory.gittins[0].astype(np.int64),
        "gittins_gpu_seconds": memory.gittins[1],
        "gittins_index": memory.gittins[2],
        "gittins_finished": memory.gittins_finished,
        "gittins_next_update": memory.gittins_next_update,
        "wake": memory.wake,
        "committed": memory.committed,
        "ruler": memory.ruler,
        "decisions_left": memory.decisions_left,
        "ask_again": memory.ask_again,
        "holds": memory.holds,
        "held_until": memory.held_until,
        "gpu_holders": memory.gpu_holders,
        "checked_again": memory.checked_again,
    }


def decide_once(inputs: Inputs) -> Schedule:
    """Make the decision of the instant at which the inputs start; return the log up to it."""
    assert inputs.start is not None
    arrays = _native.decide(run_arguments(inputs), snapshot_arguments(inputs.start))
    return Schedule(**arrays, horizon=inputs.start.now)


def remember(inputs: Inputs, earlier: Snapshot | None = None) -> dict[str, Any]:
    """Return what no row says about the state in which the inputs start, as columns of Memory.

    Also `decides` and `timer` of a Snapshot, if the scheduler of the inputs made its decisions.

    Args:
        inputs: with a start.
        earlier: the snapshot that the memory of the start is about; None = the start.
    """
    assert inputs.start is not None
    arguments = {**run_arguments(inputs), "remembers": True}
    found: dict[str, Any] = _native.remember(arguments, snapshot_arguments(inputs.start, earlier))
    return found


def _jobs(inputs: Inputs) -> dict[str, Any]:
    workload = inputs.workload
    return {
        "submit": workload.submit,
        "run": workload.run,
        "estimate": np.ascontiguousarray(inputs.estimate),
        "gpus": workload.gpus,
        "gpu_milli": workload.gpu_milli,
        "cpus": workload.cpus,
        "memory_mib": workload.memory_mib,
        "priority": workload.priority,
        "deadline": workload.deadline,
        "user": workload.user,
        "job_class": inputs.job_class,
        "reference_speed": inputs.reference_speed,
        "quota_set": inputs.quotas.job_set,
        "draw": inputs.draw,
        "random": inputs.random,
    }


def _cluster(inputs: Inputs) -> dict[str, Any]:
    cluster = inputs.cluster
    return {
        "gpus": cluster.gpus,
        "cpus": cluster.cpus,
        "memory_mib": cluster.memory_mib,
        "speed": inputs.node_speed,
        "rack": cluster.rack,
        "gpu_type": cluster.gpu_type,
        "may_use": inputs.may_use.view("u1"),
        "class_reason": inputs.class_reason,
        "borrow_class": inputs.borrow_class,
    }


def scheduler_parts(scheduler: Scheduler) -> dict[str, Any]:
    """Return the parts of a scheduler that can be switched during a run, as the core reads them."""
    return {
        **_formula("order", scheduler.order),
        **_formula("gate", scheduler.gate),
        **_formula("node_order", scheduler.node_order),
        "discipline": scheduler.discipline,
        "placement": _NATIVE_PLACEMENT.get(scheduler.placement, scheduler.placement),
    }


def scheduler_arguments(inputs: Inputs) -> dict[str, Any]:
    """Return the scheduler as the core reads it."""
    scheduler = inputs.scheduler
    rule = scheduler.preemption
    return {
        **scheduler_parts(scheduler),
        **_formula("index", rule.index if rule else None),
        "round_seconds": scheduler.round_seconds,
        "preemption": rule.name if rule else "none",
        "margin": rule.margin if rule else 0.0,
        "min_run": inputs.min_run,
        "max_restarts": rule.max_restarts if rule else 0.0,
        "every": rule.every if rule else 0.0,
        "moves": rule.moves if rule else 0,
    }


def formula_pair(formula: Formula | None) -> tuple[list[tuple[str, Any]], str]:
    """Return a formula's instructions and when it changes, as the core reads them."""
    if formula is None:
        return [], "never"
    instructions = [(operation, operand) for operation, operand, _ in formula.bytecode()]
    return instructions, formula.changes


def _formula(name: str, formula: Formula | None) -> dict[str, Any]:
    instructions, changes = formula_pair(formula)
    return {name: instructions, f"{name}_changes": changes}
