"""Quotas, pool rules and outages: the parts of a cluster file besides its nodes."""

from __future__ import annotations

import dataclasses
import math

EACH_USER = "*"
"""As the user of a quota: the limit holds for each user separately."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Quota:
    """A limit on the GPUs that some jobs may hold at once.

    Attributes:
        gpus: the limit.
        pool: the jobs of this pool; empty = of all pools.
        user: the jobs of this user; `*` = of each user separately; empty = of all users together.
        gpu_type: only GPUs of this type count; empty = all types.
    """

    gpus: float
    pool: str = ""
    user: str = ""
    gpu_type: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PoolRules:
    """Whether the jobs and the nodes of a pool may borrow and lend.

    Attributes:
        borrow: its jobs may use idle nodes of pools that lend, when their own nodes do not suffice.
        lend: its nodes may be used by jobs of pools that borrow.
    """

    borrow: bool = False
    lend: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outage:
    """Nodes that are down for some time, planned or recorded.

    Attributes:
        down: when they go down, in seconds on the workload's clock.
        up: when they come back; infinity = never.
        nodes: their ids.
    """

    down: float
    up: float = math.inf
    nodes: tuple[int, ...]
