"""decide: one decision on a snapshot, and why the other jobs do not start.

Run times of unfinished jobs are hidden from the decision unless it is made under `exact` knowledge:
a live cluster does not know them, so no decision may depend on them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from berthline.argument_types import check_arguments
from berthline.counted import counted
from berthline.model.schedule import (
    KINDS,
    PREEMPT,
    PREEMPT_REASONS,
    REJECT,
    REJECT_REASONS,
    RESUME,
    START,
    Schedule,
)
from berthline.model.snapshot import Snapshot
from berthline.model.workload_rows import job_name
from berthline.policies.scheduler import Scheduler
from berthline.sim.inputs import Inputs
from berthline.sim.policy_runner import policy_runner
from berthline.sim.simulate import check_simulator
from berthline.sim.snapshots.resume import checked, resumed_inputs, scheduler_for

if TYPE_CHECKING:
    from berthline.sim.reasons.reason_codes import Finding
    from berthline.text_or_path import TextOrPath


@dataclasses.dataclass(frozen=True)
class Action:
    """One row of a decision.

    Attributes:
        kind: what happens to the job: one of the KINDS of a log's rows, such as `start`, `resume`
            or `preempt`.
        job: its id in the snapshot.
        name: its name.
        gpus: GPUs taken on each node, by node id, if it starts.
        slots: of a job on part of a GPU: the number of the shared GPU on its node.
        reason: why it is preempted or rejected.
    """

    kind: str
    job: int
    name: str
    gpus: Mapping[int, int] = dataclasses.field(default_factory=dict)
    slots: tuple[int, ...] = ()
    reason: str = ""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Decision:
    """What a scheduler decides at the instant of a snapshot.

    Attributes:
        snapshot: the state before.
        scheduler: who decides.
        knowledge: what it knows about run times.
        log: the rows of the snapshot, then those of the decision.
    """

    snapshot: Snapshot
    scheduler: Scheduler
    knowledge: str
    log: Schedule
    _inputs: Inputs

    def __repr__(self) -> str:
        done = counted(len(self.log) - len(self.snapshot.log), "action")
        return f"<Decision of {self.scheduler} at {self.snapshot.now:,.10g} s: {done}>"

    @cached_property
    def actions(self) -> tuple[Action, ...]:
        """What is done, in order."""
        first = len(self.snapshot.log)
        return tuple(self._action(row) for row in range(first, len(self.log)))

    @property
    def starts(self) -> tuple[Action, ...]:
        """The jobs that start, or start again, in order."""
        return tuple(one for one in self.actions if one.kind in (KINDS[START], KINDS[RESUME]))

    @property
    def preemptions(self) -> tuple[Action, ...]:
        """The jobs that stop, in order."""
        return tuple(one for one in self.actions if one.kind == KINDS[PREEMPT])

    @property
    def holds(self) -> tuple[int, ...]:
        """The waiting jobs whose gate is closed, by id."""
        from berthline.sim.reasons.reason_codes import Reason

        return tuple(
            job for job, found in self.reasons.items() if found.reason == Reason.GATE_CLOSED
        )

    @cached_property
    def reasons(self) -> dict[int, Finding]:
        """Why each job that still waits does not start now, by its id.

        They are found by the reference simulator, which takes longer than the decision.
        """
        from berthline.sim.reasons.find_reason import reasons_of_decision

        return reasons_of_decision(self._inputs, self.log, self.snapshot.now)

    def _action(self, row: int) -> Action:
        log = self.log
        kind, job, detail = int(log.kind[row]), int(log.job[row]), int(log.detail[row])
        gpus: dict[int, int] = {}
        slots: tuple[int, ...] = ()
        if kind in (START, RESUME):
            gpus = log.allocation(row)
            if self.snapshot.workload.gpu_milli[job] < 1000:
                slots = (int(log.alloc_slot[detail]),)
        names = {PREEMPT: PREEMPT_REASONS, REJECT: REJECT_REASONS}.get(kind)
        return Action(
            kind=KINDS[kind],
            job=job,
            name=job_name(self.snapshot.workload, job),
            gpus=gpus,
            slots=slots,
            reason=names[detail] if names else "",
        )


def decide(
    snapshot: Snapshot,
    scheduler: Scheduler | TextOrPath | None = None,
    *,
    knowledge: str | None = None,
    seed: int | None = None,
    conditions: Mapping[str, float] | None = None,
    simulator: str = "native",
) -> Decision:
    """Return what a scheduler decides at the instant of a snapshot.

    Args:
        snapshot: the state.
        scheduler: as in `simulate`; None = that of the snapshot.
        knowledge: as in `simulate`; None = that of the snapshot.
        seed: as in `simulate`; None = that of the snapshot.
        conditions: as in `simulate`.
        simulator: as in `simulate`.

    Raises:
        BerthlineError: the snapshot contradicts itself, or the scheduler cannot decide on it, for
            instance because it needs run times that are not known.
    """
    snapshot = checked(snapshot, conditions)
    seed = snapshot.seed if seed is None else seed
    check_arguments(seed=seed, conditions=conditions)
    scheduler = scheduler_for(snapshot, scheduler)
    check_simulator(scheduler, simulator)
    inputs = resumed_inputs(
        snapshot,
        snapshot.workload,
        scheduler,
        knowledge=knowledge,
        seed=seed,
        horizon=None,
        is_decision=True,
    )
    start = inputs.start
    assert start is not None
    if inputs.scheduler.learned is not None:
        decided = policy_runner().decide(
            inputs.scheduler.learned, start, knowledge=inputs.knowledge, seed=start.seed
        )
        log = decided.log
    elif simulator == "native":
        from berthline.sim.native import decide_once

        log = decide_once(inputs)
    else:
        from berthline.sim.reference import decide_once as decide_by_definition

        log = decide_by_definition(inputs)
    return Decision(snapshot, inputs.scheduler, inputs.knowledge, log, inputs)
