"""Fragmentation: the share of nodes with free GPUs that are partly in use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.model.schedule import WHOLE_GPUS
from berthline.model.workload import WHOLE_GPU

if TYPE_CHECKING:
    from collections.abc import Iterator

    from berthline.evaluate.metrics.node_states import NodeTimes
    from berthline.evaluate.metrics.stretches import Clock, Stretches
    from berthline.model.cluster import Cluster
    from berthline.model.schedule import Schedule
    from berthline.model.workload import FloatColumn, Workload

_STRETCHES_PER_CHUNK = 32_768
_DOWN = 2**40
"""Thousandths of GPUs in use on a node that is down: more than any node has, so nothing is free."""

_Longs = npt.NDArray[np.int64]


def mean_fragmentation(
    log: Schedule,
    workload: Workload,
    cluster: Cluster,
    ran: Stretches,
    down: NodeTimes,
    end: float,
    clock: Clock | None = None,
) -> float:
    """Return the time average of the cluster's fragmentation over [0, end], between 0 and 1.

    Formula: integral of (nodes partly in use / nodes with a free GPU or part of one) / end, and 0
    while nothing is free: the average of the word `fragmentation`. A node counts as partly in use
    when jobs hold some of its GPUs, or part of one, but not all; a node that is down counts as
    neither. 0 for an empty run.

    Args:
        log: the run's log.
        workload: the jobs of that run.
        cluster: the nodes it ran on.
        ran: from `stretches`.
        down: from `down_times`.
        end: end of the log in seconds.
        clock: what to count instead of seconds.
    """
    count = (lambda time: time) if clock is None else clock
    first, last = (float(time) for time in count(np.array([0.0, end])))
    if not last > first:
        return 0.0
    capacity = WHOLE_GPU * cluster.gpus.astype(np.int64)
    used = np.zeros(cluster.num_nodes, np.int64)
    partly, with_free, area = 0, cluster.num_nodes, 0.0
    value, since = 0.0, first
    for time, node, change in _changes(log, workload, ran, down):
        # numpy sorts 16-bit integers in linear time.
        small = node.astype(np.uint16) if cluster.num_nodes <= 2**16 else node
        order = np.argsort(small, kind="stable")
        node, change = node[order], change[order]
        begins = np.flatnonzero(np.diff(node, prepend=-1))
        total = change.cumsum()
        # The cumulative sum continues over nodes: subtract what earlier nodes have added.
        earlier = used[node[begins]] - total[begins] + change[begins]
        after = total + np.repeat(earlier, np.diff(begins, append=len(node)))
        before, limit = after - change, capacity[node]
        used[node] = after  # for repeated indices the last value stays
        is_free, was_free = after < limit, before < limit
        is_partly, was_partly = is_free & (after > 0), was_free & (before > 0)
        changes = np.empty((2, len(node)), np.int8)
        changes[0, order] = is_free.view(np.int8) - was_free.view(np.int8)
        changes[1, order] = is_partly.view(np.int8) - was_partly.view(np.int8)
        frees = with_free + changes[0].cumsum(dtype=np.int32)
        parts = partly + changes[1].cumsum(dtype=np.int32)
        values = np.divide(parts, frees, out=np.zeros(len(parts)), where=frees > 0)
        times = count(time)
        # Not a dot product: libraries sum those in an order that depends on the number of cores.
        area += value * float(times[0] - since) + float((values[:-1] * np.diff(times)).sum())
        partly, with_free = int(parts[-1]), int(frees[-1])
        value, since = float(values[-1]), float(times[-1])
    area += value * (last - since)
    return area / (last - first)


def _changes(
    log: Schedule, workload: Workload, ran: Stretches, down: NodeTimes
) -> Iterator[tuple[FloatColumn, _Longs, _Longs]]:
    """Yield what is taken and released on nodes, in time order: time, node, change.

    In chunks of time, to bound memory.
    """
    stops = np.argsort(ran.stop, kind="stable").astype(np.int32)
    cuts = np.append(ran.begin[_STRETCHES_PER_CHUNK::_STRETCHES_PER_CHUNK], np.inf)
    start_cuts = np.append(0, np.searchsorted(ran.begin, cuts))
    stop_cuts = np.append(0, np.searchsorted(ran.stop, cuts, sorter=stops))
    bounds = np.append(-np.inf, cuts)
    for k in range(len(cuts)):
        starting = np.arange(start_cuts[k], start_cuts[k + 1])
        stopping = stops[stop_cuts[k] : stop_cuts[k + 1]]
        parts = [
            _of_stretches(log, workload, ran, starting, ran.begin[starting], 1),
            _of_stretches(log, workload, ran, stopping, ran.stop[stopping], -1),
        ]
        for instant, sign in ((down.begin, 1), (down.stop, -1)):
            rows = np.flatnonzero((instant >= bounds[k]) & (instant < bounds[k + 1]))
            amount = np.full(len(rows), sign * _DOWN)
            parts.append((instant[rows], down.node[rows].astype(np.int64), amount))
        time, node, change = (np.concatenate(column) for column in zip(*parts, strict=True))
        if len(time):
            order = np.argsort(time, kind="stable")
            yield time[order], node[order], change[order]


def _of_stretches(
    log: Schedule,
    workload: Workload,
    ran: Stretches,
    chosen: npt.NDArray[np.integer],
    time: FloatColumn,
    sign: int,
) -> tuple[FloatColumn, _Longs, _Longs]:
    """Return what some stretches take (or release) on each of their nodes."""
    counts = ran.first[chosen + 1] - ran.first[chosen]
    ends = counts.cumsum()
    rows = np.arange(ends[-1] if len(ends) else 0) + np.repeat(
        ran.first[chosen] - (ends - counts), counts
    )
    amount = log.alloc_gpus[rows].astype(np.int64) * (sign * WHOLE_GPU)
    shared = np.flatnonzero(log.alloc_slot[rows] != WHOLE_GPUS)
    if len(shared):
        job = np.repeat(ran.job[chosen], counts)[shared]
        amount[shared] = sign * workload.gpu_milli[job].astype(np.int64)
    return np.repeat(time, counts), log.alloc_node[rows].astype(np.int64), amount
