"""The functions that run learned policies, as `simulate`, `resume` and `decide` see them.

A learned policy observes its environment, so its runner is in a layer above the simulators
(`deploy/run_policy.py`). `berthline/when_imported.py`, above both, passes it down to here.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from berthline.model.cluster import Cluster
    from berthline.model.schedule import Schedule
    from berthline.model.snapshot import Snapshot
    from berthline.model.workload import Workload
    from berthline.policies.learned import Learned


class PolicyDecision(Protocol):
    """One decision of a policy; see `deploy.run_policy.Decided`."""

    @property
    def log(self) -> Schedule:
        """The log of the snapshot, and the rows of the decision."""

    @property
    def questions(self) -> int:
        """How many questions the policy was asked."""


class PolicyRunner(Protocol):
    """Lets policies schedule; `deploy/run_policy.py` says what the arguments are."""

    def run(
        self,
        learned: Learned,
        workload: Workload,
        cluster: Cluster,
        *,
        knowledge: str,
        seed: int,
        horizon: float | None = None,
        start: Snapshot | None = None,
        progress: Callable[[int], None] | None = None,
        decision_seconds: list[float] | None = None,
    ) -> Schedule:
        """Let a policy schedule a workload, and return the log."""

    def decide(
        self,
        learned: Learned,
        snapshot: Snapshot,
        *,
        knowledge: str,
        seed: int,
        expects_jobs: bool = True,
    ) -> PolicyDecision:
        """Let a policy make the decision of a snapshot's instant, and nothing else."""

    def remember(
        self,
        learned: Learned,
        workload: Workload,
        cluster: Cluster,
        *,
        knowledge: str,
        seed: int,
        at: float,
        start: Snapshot | None = None,
    ) -> dict[str, Any]:
        """Return what the seat of a policy remembers at an instant of its run."""

    def policy_of(self, given: Any) -> Any:
        """Return what names a scheduler; a function, a network or a model becomes a policy."""


class _Registered:
    load: Callable[[], PolicyRunner]


def register_policy_runner(load: Callable[[], PolicyRunner]) -> None:
    """Register the runner of learned policies.

    Args:
        load: returns the runner; called when a policy is run, so that nothing is imported earlier.
    """
    _Registered.load = load


def nameable(given: Any) -> Any:
    """Return what names a scheduler; a function, a network or a model becomes a policy.

    The name of a policy means something as long as it exists, so keep what is returned.
    """
    is_object = callable(given) or hasattr(given, "predict")
    if isinstance(given, str | os.PathLike) or not is_object:
        return given
    return policy_runner().policy_of(given)


def policy_runner() -> PolicyRunner:
    """Return the runner of learned policies."""
    return _Registered.load()
