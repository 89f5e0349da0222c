"""The function that runs a learned policy, as `simulate` sees it.

A learned policy observes its environment, so its runner is in a layer above the simulators
(`deploy/run_policy.py`). `berthline/when_imported.py`, above both, passes it down to here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from berthline.model.cluster import Cluster
    from berthline.model.schedule import Schedule
    from berthline.model.workload import Workload
    from berthline.policies.learned import Learned


class PolicyRunner(Protocol):
    """Lets a policy schedule a workload, and returns the log."""

    def __call__(
        self,
        learned: Learned,
        workload: Workload,
        cluster: Cluster,
        *,
        knowledge: str,
        seed: int,
        decision_seconds: list[float] | None = None,
    ) -> Schedule:
        """Run the policy; see `deploy.run_policy.run_policy`."""


class _Registered:
    load: Callable[[], PolicyRunner]


def register_policy_runner(load: Callable[[], PolicyRunner]) -> None:
    """Register the runner of learned policies.

    Args:
        load: returns the runner; called when a policy is run, so that nothing is imported earlier.
    """
    _Registered.load = load


def policy_runner() -> PolicyRunner:
    """Return the runner of learned policies."""
    return _Registered.load()
