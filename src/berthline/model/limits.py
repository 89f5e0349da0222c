"""Quotas, pool rules and outages: what a cluster file says besides its nodes."""

from __future__ import annotations

import dataclasses
import math

EACH_USER = "*"
"""As the user of a quota: every user has this limit for itself."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Quota:
    """A limit on the GPUs that some jobs may hold at once.

    Attributes:
        gpus: the limit.
        pool: the jobs of this pool; empty = of all pools.
        user: the jobs of this user; `*` = of each user by itself; empty = of all users together.
        gpu_type: only GPUs of this type count; empty = all types.
    """

    gpus: float
    pool: str = ""
    user: str = ""
    gpu_type: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PoolRules:
    """What the jobs and the nodes of a pool may do beyond the pool.

    Attributes:
        borrow: its jobs may use idle nodes of pools that lend, when their own nodes do not do.
        lend: its nodes may be used by jobs of pools that borrow.
    """

    borrow: bool = False
    lend: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outage:
    """Nodes that are down for a while, as planned or as it happened.

    Attributes:
        down: when they go down, in seconds on the workload's clock.
        up: when they come back; infinity = never.
        nodes: their ids.
    """

    down: float
    up: float = math.inf
    nodes: tuple[int, ...]
