"""How a run of the reference simulator begins in the middle: the state of a snapshot.

The rows of the snapshot's log are replayed, and what is still to come is planned.
`native/src/core/restore.cpp` does the same.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from berthline.model.schedule import FINISH, REJECT
from berthline.sim.reference import RETURN, TIMER
from berthline.sim.reference_clock import Clock
from berthline.sim.reference_place import never_fits
from berthline.sim.reference_state import Share, State
from berthline.sim.snapshots.replay import Replay

if TYPE_CHECKING:
    from berthline.model.snapshot import Snapshot
    from berthline.sim.reference import Simulation


def restore(sim: Simulation, start: Snapshot) -> None:
    """Put a simulation that has not begun into the state of a snapshot, and plan ends of jobs."""
    replay = Replay(sim.inputs, start.log)
    replay.advance_until_decision(start.now)
    for name in vars(State(sim.inputs)):
        setattr(sim, name, getattr(replay, name))
    log = start.log
    columns = (log.time, log.kind, log.job, log.detail)
    sim.log = list(zip(*(column.tolist() for column in columns), strict=True))
    shares = (log.alloc_node, log.alloc_gpus, log.alloc_slot)
    sim.allocated = [Share(*share) for share in zip(*(s.tolist() for s in shares), strict=True)]
    sim.decisions = log.decisions
    sim.arrived = start.num_jobs
    sim.outages_left = int((sim.inputs.outages.time > start.now).sum())
    sim.carried = replay.touched
    sim.env = Clock(start.now)
    for job in list(sim.queue):
        # The cluster may be another one than the one that the job was submitted to.
        reason = never_fits(sim, job)
        if reason is not None:
            sim.write(REJECT, job, reason)
            sim.queue.remove(job)
    _plan(sim, replay, start)


def _plan(sim: Simulation, replay: Replay, start: Snapshot) -> None:
    """Plan when running jobs end, others return, and the scheduler decides."""
    for job, running in sim.running.items():
        left = max(sim.run_time[job] - sim.progress[job], 0.0)
        end = running.planned + (running.delay + left / running.rate)
        # With another run time than the job had in its run, it may be over already.
        sim.happen_at(max(end, start.now), FINISH, job, sim.version[job])
    for time, job in replay.returns:
        sim.happen_at(time, RETURN, job)
    if math.isfinite(start.timer) and not start.decides:
        sim.timer = start.timer
        sim.happen_at(start.timer, TIMER, 0)
