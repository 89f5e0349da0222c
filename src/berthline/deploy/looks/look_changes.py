"""A look as its difference to the one before: what a journal keeps of it."""

from __future__ import annotations

import math
import zlib

import msgspec

from berthline.deploy.looks.check_look import in_order
from berthline.deploy.systems.contract import JobRecord, Look, NodeRecord, QuotaRecord


class LookChange(msgspec.Struct, frozen=True, omit_defaults=True, array_like=False):
    """What is new in a look.

    Attributes:
        time: of the look.
        jobs: jobs that are new or differ.
        gone: (id, submission) of those that are no longer there.
        nodes: nodes that are new or differ.
        gone_nodes: names of those that are no longer there.
        quotas: all quotas, if they differ.
        whole: this is all of the look.
    """

    time: float
    jobs: tuple[JobRecord, ...] = ()
    gone: tuple[tuple[str, float], ...] = ()
    nodes: tuple[NodeRecord, ...] = ()
    gone_nodes: tuple[str, ...] = ()
    quotas: tuple[QuotaRecord, ...] | None = None
    whole: bool = False


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(LookChange).decode


def whole(look: Look) -> LookChange:
    """Return all of a look."""
    return LookChange(
        time=look.time, jobs=look.jobs, nodes=look.nodes, quotas=look.quotas, whole=True
    )


def change(before: Look, look: Look) -> LookChange:
    """Return the difference between two looks that are in order."""
    old = {(job.id, job.submitted): job for job in before.jobs}
    new = {(job.id, job.submitted) for job in look.jobs}
    if len(new) < len(look.jobs) or len(old) < len(before.jobs):
        return whole(look)
    if any(math.isnan(job.submitted) for job in (*before.jobs, *look.jobs)):
        return whole(look)  # no key, because it differs from itself
    old_nodes = {node.name: node for node in before.nodes}
    new_nodes = {node.name for node in look.nodes}
    if len(new_nodes) < len(look.nodes) or len(old_nodes) < len(before.nodes):
        return whole(look)
    jobs = tuple(
        job
        for job in look.jobs
        if (was := old.get((job.id, job.submitted))) is not job and was != job
    )
    return LookChange(
        time=look.time,
        jobs=jobs,
        gone=tuple(key for key in old if key not in new),
        nodes=tuple(
            node
            for node in look.nodes
            if (had := old_nodes.get(node.name)) is not node and had != node
        ),
        gone_nodes=tuple(name for name in old_nodes if name not in new_nodes),
        quotas=look.quotas if look.quotas != before.quotas else None,
    )


def changed(before: Look | None, change: LookChange) -> Look:
    """Return the look that differs from another one in this way."""
    if change.whole or before is None:
        return Look(
            time=change.time, jobs=change.jobs, nodes=change.nodes, quotas=change.quotas or ()
        )
    jobs = {(job.id, job.submitted): job for job in before.jobs}
    for key in change.gone:
        del jobs[key]
    jobs |= {(job.id, job.submitted): job for job in change.jobs}
    nodes = {node.name: node for node in before.nodes}
    for name in change.gone_nodes:
        del nodes[name]
    nodes |= {node.name: node for node in change.nodes}
    return in_order(
        Look(
            time=change.time,
            jobs=tuple(jobs.values()),
            nodes=tuple(nodes.values()),
            quotas=before.quotas if change.quotas is None else change.quotas,
        )
    )


def packed(change: LookChange) -> bytes:
    """Return a change as bytes."""
    return zlib.compress(_encode(change), 6)


def unpacked(data: bytes) -> LookChange:
    """Return the change that `packed` made bytes of.

    Raises:
        ValueError: they are damaged.
    """
    try:
        return _decode(zlib.decompress(data))
    except (zlib.error, msgspec.MsgspecError) as error:
        raise ValueError(str(error)) from None
