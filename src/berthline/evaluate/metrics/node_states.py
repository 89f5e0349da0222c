"""Node states: when nodes were down, and when they slept."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from berthline.model.schedule import NODE_DOWN, NODE_UP

if TYPE_CHECKING:
    from berthline.evaluate.metrics.stretches import Clock, Stretches
    from berthline.model.cluster import Cluster
    from berthline.model.schedule import Schedule
    from berthline.model.workload import FloatColumn, IntColumn


class NodeTimes(NamedTuple):
    """Intervals in which single nodes were in some state."""

    node: IntColumn
    begin: FloatColumn
    stop: FloatColumn

    def per_node(self, num_nodes: int, clock: Clock | None = None) -> FloatColumn:
        """Return the total length of each node's intervals, in seconds or in units of `clock`."""
        if not self.node.size:
            return np.zeros(num_nodes)
        begin, stop = self.begin, self.stop
        if clock is not None:
            begin, stop = clock(begin), clock(stop)
        lengths = np.bincount(self.node, stop - begin, minlength=num_nodes)
        return lengths.astype(np.float64)


NEVER = NodeTimes(np.array([], np.int32), np.array([]), np.array([]))


def down_times(log: Schedule, end: float) -> NodeTimes:
    """Return when nodes were down, up to the end of the log."""
    rows = np.flatnonzero((log.kind == NODE_DOWN) | (log.kind == NODE_UP))
    if not rows.size:
        return NEVER
    rows = rows[np.argsort(log.detail[rows], kind="stable")]
    node, time = log.detail[rows], np.minimum(log.time[rows], end)
    until = np.full(len(rows), end)
    np.copyto(until[:-1], time[1:], where=node[1:] == node[:-1])
    down = log.kind[rows] == NODE_DOWN
    return NodeTimes(node[down], time[down], until[down])


def sleep_times(
    log: Schedule, cluster: Cluster, ran: Stretches, down: NodeTimes, end: float
) -> NodeTimes:
    """Return when nodes slept, up to the end of the log.

    A node falls asleep when no job has been on it for `sleep_after` seconds, counted from 0 or
    from when it last came up if that is later, and sleeps until its next start, or until it goes
    down.

    Args:
        log: the run's log.
        cluster: the nodes and their conditions.
        ran: from `stretches`.
        down: from `down_times`.
        end: end of the log in seconds.
    """
    patience = cluster.conditions.sleep_after
    if not np.isfinite(patience):
        return NEVER
    counts = np.diff(ran.first)
    clock_zero = np.zeros(cluster.num_nodes)
    begin = np.concatenate([np.repeat(ran.begin, counts), down.begin, clock_zero])
    stop = np.concatenate([np.repeat(ran.stop, counts), down.stop, clock_zero])
    node = np.concatenate([log.alloc_node, down.node, np.arange(cluster.num_nodes, dtype=np.int32)])
    time, node = np.concatenate([begin, stop]), np.concatenate([node, node])
    # At equal times a begin sorts before a stop, so no node is idle for an instant in between.
    order = np.lexsort((time, node))
    time, node = time[order], node[order]
    idle = np.where(order < len(begin), 1, -1).cumsum() == 0
    until = np.full(len(time), end)
    np.copyto(until[:-1], time[1:], where=node[1:] == node[:-1])
    asleep = idle & (until - time > patience)
    return NodeTimes(node[asleep], time[asleep] + patience, until[asleep])
