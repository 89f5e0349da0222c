"""RunInParts: a run whose state at any instant costs little, however long the run is.

`take_snapshot` reads all of a run up to the instant. Here the run is made part by part, each
continued from the state at the end of the one before, so only one part is read.
"""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING

import numpy as np

from berthline.changed_copy import changed_copy
from berthline.sim.inputs import failures_until
from berthline.sim.simulate import simulate
from berthline.sim.snapshots.resume import resume
from berthline.sim.snapshots.take import take_jobs, take_snapshot

if TYPE_CHECKING:
    from berthline.model.cluster import Cluster
    from berthline.model.snapshot import Snapshot
    from berthline.model.workload import Workload
    from berthline.policies.scheduler import Scheduler
    from berthline.sim.simulate import Result

PART_JOBS = 1024
"""Jobs that are submitted in a part."""


class RunInParts:
    """The run of a scheduler, as far as its states have been asked for.

    Args:
        workload: the jobs.
        cluster: the nodes.
        scheduler: a rule.
        knowledge: as in `simulate`.
        seed: as in `simulate`.
        part_jobs: jobs that are submitted in a part; more if they come at the same instant.
    """

    def __init__(
        self,
        workload: Workload,
        cluster: Cluster,
        scheduler: Scheduler,
        *,
        knowledge: str,
        seed: int = 0,
        part_jobs: int = PART_JOBS,
    ) -> None:
        self._workload, self._cluster, self._scheduler = workload, cluster, scheduler
        self._knowledge, self._seed = knowledge, seed
        # A part ends with all jobs of an instant, and not before time has passed.
        submit = workload.submit
        ends = np.searchsorted(submit, submit[part_jobs - 1 :: part_jobs], side="right")
        ends = np.unique([*ends[submit[ends - 1] > 0], len(workload)])
        self._bounds: list[int] = [0, *ends.tolist()]
        self._times: list[float] = submit[ends - 1].tolist()  # the last instant of each part
        self._parts: list[Result] = []
        self._failures_until = failures_until(workload, None)

    def snapshot(self, at: float) -> Snapshot:
        """Return the state at an instant, up to the last submission: see `take_snapshot`."""
        part = bisect.bisect_left(self._times, at)
        while len(self._parts) <= part:
            self._run_next()
        return self._state(part, at)

    def _state(self, part: int, at: float) -> Snapshot:
        found = take_snapshot(self._parts[part], at)
        memory = changed_copy(found.memory, failures_until=self._failures_until)
        return changed_copy(found, memory=memory)

    def _run_next(self) -> None:
        part = len(self._parts)
        jobs = take_jobs(self._workload, slice(self._bounds[part], self._bounds[part + 1]))
        end = self._times[part]
        if part == 0:
            result = simulate(
                jobs,
                self._cluster,
                self._scheduler,
                knowledge=self._knowledge,
                seed=self._seed,
                horizon=end or None,
            )
        else:
            before = self._state(part - 1, self._times[part - 1])
            result = resume(before, self._scheduler, arrivals=jobs, horizon=end)
        self._parts.append(result)
