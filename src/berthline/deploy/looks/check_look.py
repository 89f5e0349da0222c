"""Whether a look can be true. One that contradicts itself is journaled, and nothing is done."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from berthline.deploy.systems.contract import JOB_STATES, NODE_STATES, RUNNING, Look
from berthline.errors import BerthlineError

if TYPE_CHECKING:
    from berthline.deploy.systems.contract import JobRecord, NodeRecord

CLOCK_SLACK = 1.0
"""Seconds by which a system's clock may step back between two looks, or run ahead of ours."""
MOST_GPUS = 1024
"""On a node."""
_FAR = 1e12
"""Seconds; later than any date."""


class LookError(BerthlineError):
    """A look contradicts itself."""

    exit_code = 1


def in_order(look: Look) -> Look:
    """Return a look with its jobs by submission and its nodes by name: the order of the journal."""
    return msgspec.structs.replace(
        look,
        jobs=tuple(sorted(look.jobs, key=lambda job: (job.submitted, job.id))),
        nodes=tuple(sorted(look.nodes, key=_natural)),
    )


def _natural(node: NodeRecord) -> tuple[int, str]:
    """Return a key that sorts node2 before node10."""
    return len(node.name), node.name


def check_look(look: Look, *, last_time: float = -math.inf, clock: float = math.inf) -> None:
    """Raise if a look contradicts itself.

    Args:
        look: the look.
        last_time: of the look before.
        clock: what the system's clock says now.

    Raises:
        LookError: it does; the error says what and where.
    """
    if not _is_time(look.time):
        raise LookError(f"the look is of {look.time:g} s", expected="a time of the system's clock")
    if look.time < last_time - CLOCK_SLACK:
        raise LookError(
            f"time runs backwards, from {last_time:,.10g} to {look.time:,.10g} s", where="look"
        )
    if look.time > clock + CLOCK_SLACK:
        raise LookError(
            f"the look is of {look.time:,.10g} s, and the clock says {clock:,.10g} s", where="look"
        )
    limits = _check_nodes(look)
    in_use = dict.fromkeys(limits, 0)
    seen: set[tuple[str, float]] = set()
    for job in look.jobs:
        _check_job(job, look.time)
        if (job.id, job.submitted) in seen:
            raise LookError(f"job {job.id} is there twice", where="look")
        seen.add((job.id, job.submitted))
        if job.state != RUNNING:
            continue
        for name, gpus in job.nodes.items():
            if name not in in_use:
                raise LookError(f"job {job.id} runs on {name!r}, an unknown node", where="look")
            if not 0 <= gpus <= MOST_GPUS:
                raise LookError(f"job {job.id} holds {gpus} GPUs on {name}", where="look")
            in_use[name] += gpus if job.gpu_milli == 1000 else 0
    for name, gpus in in_use.items():
        if gpus > limits[name]:
            raise LookError(
                f"jobs hold {gpus} GPUs on {name}",
                where="look",
                expected=f"at most {limits[name]}, as the node has",
            )


def _check_nodes(look: Look) -> dict[str, int]:
    """Return the GPUs of each node."""
    limits: dict[str, int] = {}
    for node in look.nodes:
        if node.name in limits or not node.name:
            raise LookError(f"node {node.name!r} is there twice or has no name", where="look")
        if not 0 <= node.gpus <= MOST_GPUS or node.state not in NODE_STATES:
            raise LookError(
                f"node {node.name} has {node.gpus} GPUs and is {node.state!r}",
                where="look",
                expected=f"0 to {MOST_GPUS} GPUs, and one of {', '.join(NODE_STATES)}",
            )
        if node.gpus_in_use is not None and not 0 <= node.gpus_in_use <= node.gpus:
            raise LookError(
                f"{node.gpus_in_use} GPUs of node {node.name} are in use",
                where="look",
                expected=f"0 to {node.gpus}, as it has",
            )
        if not (0 <= node.cpus < 2**31 and 0 <= node.memory_mib < 2**38):
            raise LookError(f"node {node.name} has no sensible CPUs or memory", where="look")
        limits[node.name] = node.gpus
    if not limits:
        raise LookError("the look has no nodes", where="look", expected="at least one")
    return limits


def _check_job(job: JobRecord, now: float) -> None:
    wrong = ""
    if not job.id:
        wrong = "a job without an id"
    elif job.state not in JOB_STATES:
        wrong = f"is {job.state!r}"
    elif not _is_time(job.submitted) or job.submitted > now + CLOCK_SLACK:
        wrong = f"was submitted at {job.submitted:g}"
    elif job.started is not None and not (
        _is_time(job.started) and job.started <= now + CLOCK_SLACK
    ):
        wrong = f"started at {job.started:g}"
    elif job.gpus is not None and not 0 <= job.gpus < 2**31:
        wrong = f"asks for {job.gpus} GPUs"
    elif not 1 <= job.gpu_milli <= 1000:
        wrong = f"asks for {job.gpu_milli} thousandths of a GPU"
    elif not (0 <= job.cpus < 2**31 and 0 <= job.memory_mib < 2**38):
        wrong = "asks for no sensible CPUs or memory"
    elif job.estimate is not None and not 0 < job.estimate < _FAR:
        wrong = f"states {job.estimate:g} s"
    elif not math.isfinite(job.priority):
        wrong = f"has the priority {job.priority:g}"
    elif job.deadline is not None and not _is_time(job.deadline):
        wrong = f"has the deadline {job.deadline:g}"
    elif job.state == RUNNING and not job.nodes:
        wrong = "runs on no node"
    elif job.state == RUNNING and job.started is None:
        wrong = "runs since no time"
    if wrong:
        raise LookError(f"job {job.id} {wrong}", where="look")


def _is_time(time: float) -> bool:
    return 0 <= time < _FAR
