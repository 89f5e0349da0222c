"""SimulatedAdapter: a simulated cluster in this process, behind the contract.

Its clock stands still except in `wait`, so that a run is the same each time.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from berthline.deploy.systems.contract import Abilities, GuardOrders

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berthline.deploy.systems.contract import Action, Look, Outcome
    from berthline.deploy.systems.simulated.simulated_cluster import SimulatedCluster

HEARTBEAT_LIMIT = 30.0
"""New jobs are held for so long after a heartbeat, in seconds of the cluster."""


def abilities_of(cluster: SimulatedCluster) -> Abilities:
    """Return what a simulated cluster can do."""
    return Abilities(
        places=True,
        holds=True,
        ranks=cluster.ranks,
        preempts=True,
        checks_capacity=True,
        requeue_delay=cluster.cluster.conditions.requeue_delay,
        identity="its id and its submission",
    )


class SimulatedAdapter:
    """A simulated cluster behind the contract.

    Args:
        cluster: the cluster.
        heartbeat_limit: seconds of its clock.
        holds_new: whether new jobs are held while the controller lives, as the hook of a real
            system does; without it the controller has to hold each one.
    """

    def __init__(
        self,
        cluster: SimulatedCluster,
        *,
        heartbeat_limit: float = HEARTBEAT_LIMIT,
        holds_new: bool = True,
    ) -> None:
        self.cluster = cluster
        self.abilities = abilities_of(cluster)
        self.name = f"simulated {cluster.cluster.name}"
        self._limit, self._holds_new = heartbeat_limit, holds_new

    @property
    def is_over(self) -> bool:
        """Whether every job has come and gone."""
        return self.cluster.is_over

    def look(self) -> Look:
        """Return what the cluster says now."""
        return self.cluster.look()

    def do(self, actions: Sequence[Action]) -> list[Outcome]:
        """Do these things now."""
        return self.cluster.do(actions)

    def clock(self) -> float:
        """Return the time on the cluster's clock."""
        return self.cluster.now

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.cluster.advance(self.cluster.now + seconds)

    def beat(self) -> None:
        """Let the cluster hold new jobs for a while."""
        if self._holds_new:
            self.cluster.holds_until = self.cluster.now + self._limit

    def leave(self) -> None:
        """Let new jobs flow natively from now on."""
        self.cluster.holds_until = -math.inf

    def guard(self) -> GuardOrders | None:
        """Return None: the cluster is in this process, so no guard could reach it."""
        return None

    def close(self) -> None:
        """Do nothing."""
