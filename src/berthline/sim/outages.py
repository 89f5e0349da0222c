"""Outages: when nodes go down and come back, computed before the run.

Three sources are merged for each node: the cluster's list, random failures of the node, and
random failures of its rack. Times to failure are exponential with mean `mtbf`, times to repair with
mean `mttr`; each node and rack has its own draws. If two outages of a node overlap, it comes back
when both are over.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.errors import ConfigError
from berthline.random_streams import stream_key, uniform_columns

if TYPE_CHECKING:
    from berthline.model.cluster import Cluster

MAX_OUTAGES = 5_000_000


@dataclasses.dataclass(frozen=True, eq=False)
class Outages:
    """Changes of nodes, by time, then ups before downs, then by node.

    Attributes:
        time: seconds on the workload's clock.
        node: node id.
        up: 1 = comes back, 0 = goes down.
    """

    time: npt.NDArray[np.float64]  # (num_changes,)
    node: npt.NDArray[np.int32]  # (num_changes,)
    up: npt.NDArray[np.uint8]  # (num_changes,)


def outages(cluster: Cluster, *, seed: int, until: float) -> Outages:
    """Return the changes of nodes up to a time; no node fails at random after it.

    Raises:
        ConfigError: there would be too many failures to simulate.
    """
    conditions = cluster.conditions
    down: list[npt.NDArray[np.float64]] = []
    up: list[npt.NDArray[np.float64]] = []
    nodes: list[npt.NDArray[np.int32]] = []

    def add(members: npt.ArrayLike, begin: npt.ArrayLike, end: npt.ArrayLike) -> None:
        members, begin, end = np.asarray(members, np.int32), np.asarray(begin), np.asarray(end)
        nodes.append(np.repeat(members, len(begin)))
        down.append(np.tile(begin, len(members)))
        up.append(np.tile(end, len(members)))

    fails = math.isfinite(conditions.mtbf) or math.isfinite(conditions.rack_mtbf)
    if not (cluster.outages or fails or (cluster.mtbf > 0).any()):
        return _no_outages()
    for outage in cluster.outages:
        add(outage.nodes, [outage.down], [outage.up])
    mtbf = np.where(cluster.mtbf > 0, cluster.mtbf, conditions.mtbf)
    mttr = np.where(cluster.mttr > 0, cluster.mttr, conditions.mttr)
    num_racks = len(cluster.rack_names)
    expected = (until / mtbf[np.isfinite(mtbf)]).sum()
    if np.isfinite(conditions.rack_mtbf):
        expected += cluster.num_nodes * until / conditions.rack_mtbf
    if expected > MAX_OUTAGES:
        raise ConfigError(
            f"nodes would fail about {expected:.2g} times",
            expected=f"up to {MAX_OUTAGES:,} failures in a run",
            hint="mtbf and rack_mtbf are in seconds",
        )
    for node in np.flatnonzero(np.isfinite(mtbf)).tolist():
        add([node], *_failures(stream_key(seed, "node"), node, mtbf[node], mttr[node], until))
    if np.isfinite(conditions.rack_mtbf):
        for rack in range(num_racks):
            add(
                np.flatnonzero(cluster.rack == rack),
                *_failures(
                    stream_key(seed, "rack"),
                    rack,
                    conditions.rack_mtbf,
                    conditions.rack_mttr,
                    until,
                ),
            )
    if not nodes:  # racks may fail, but there are none
        return _no_outages()
    return _merged(np.concatenate(nodes), np.concatenate(down), np.concatenate(up))


def _no_outages() -> Outages:
    none = np.zeros(0)
    return Outages(none, none.astype(np.int32), none.astype(np.uint8))


def _failures(
    key: int, number: int, mtbf: float, mttr: float, until: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return when one node or rack goes down and comes back."""
    count = 16
    while True:
        draws = -np.log1p(-uniform_columns(key, number, 2 * count))
        steps = draws * np.tile([mtbf, mttr], count)
        times = np.cumsum(steps)
        if times[-1] > until:
            begin, end = times[0::2], times[1::2]
            return begin[begin <= until], end[begin <= until]
        count *= 2


def _merged(
    node: npt.NDArray[np.int32], down: npt.NDArray[np.float64], up: npt.NDArray[np.float64]
) -> Outages:
    """Return the changes of each node after merging its overlapping outages."""
    times: list[float] = []
    which: list[int] = []
    ups: list[int] = []
    order = np.lexsort((down, node))
    current, begin, end = -1, 0.0, -1.0

    def close() -> None:
        if current >= 0:
            times.append(begin)
            which.append(current)
            ups.append(0)
            if np.isfinite(end):
                times.append(end)
                which.append(current)
                ups.append(1)

    for i in order.tolist():
        if int(node[i]) == current and down[i] <= end:
            end = max(end, float(up[i]))
            continue
        close()
        current, begin, end = int(node[i]), float(down[i]), float(up[i])
    close()
    time, number, is_up = np.array(times), np.array(which, np.int32), np.array(ups, np.uint8)
    order = np.lexsort((number, 1 - is_up, time))
    return Outages(time[order], number[order], is_up[order])
