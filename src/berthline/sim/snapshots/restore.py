"""How a run of the reference simulator begins in the middle: the state of a snapshot.

The rows of the snapshot's log are replayed, then what no row says is set, and what is still to come
is planned. `native/src/core/restore.cpp` does the same.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from berthline.model.schedule import FINISH, REJECT
from berthline.sim.reference import RETURN, TIMER
from berthline.sim.reference_clock import Clock
from berthline.sim.reference_place import never_fits
from berthline.sim.reference_speed import expected_left
from berthline.sim.reference_state import Share, State, Usage
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
    _recall(sim, start)
    for job in list(sim.queue):
        # The cluster may be another one than the one that the job was submitted to.
        reason = never_fits(sim, job)
        if reason is not None:
            sim.write(REJECT, job, reason)
            sim.queue.remove(job)
    _plan(sim, replay, start)


def _recall(sim: Simulation, start: Snapshot) -> None:
    """Set what no row says."""
    memory = start.memory
    if len(memory.submissions):
        sim.submissions = [*memory.submissions.tolist(), *sim.submit[start.num_jobs :]]
        sim.left_out = len(memory.submissions) - start.num_jobs
    sim.max_priority = memory.max_priority
    for job, predicted in enumerate(memory.predicted.tolist()):
        sim.predicted[job] = predicted
        if sim.inputs.knowledge == "predicted":
            sim.estimate[job] = predicted
    for job, (progress, kept, since, rate, planned, delay) in enumerate(memory.progress.tolist()):
        sim.progress[job], sim.kept[job] = progress, kept
        if job in sim.running:
            running = sim.running[job]
            running.since, running.rate = since, rate
            running.planned, running.delay = planned, delay
    if len(memory.idle_since):
        sim.idle_since = memory.idle_since.tolist()
    for user, row in zip(memory.users.tolist(), memory.usage.tolist(), strict=True):
        gpu_seconds, since, num_runs, *runs = row
        usage = sim.usage if user < 0 else sim.user_usage.setdefault(user, Usage())
        usage.gpu_seconds, usage.since = gpu_seconds, since
        sim.finished_runs[None if user < 0 else user] = runs[2 - int(num_runs) :]
    if memory.gittins.shape[1]:
        count, gpu_seconds, index = memory.gittins.tolist()
        sim.gittins.count = [int(number) for number in count]
        sim.gittins.gpu_seconds, sim.gittins.index = gpu_seconds, index
        sim.gittins.finished = memory.gittins_finished
        sim.gittins.next_update = memory.gittins_next_update


def _plan(sim: Simulation, replay: Replay, start: Snapshot) -> None:
    """Plan when running jobs end, others return, and the scheduler decides."""
    for job, running in sim.running.items():
        left = max(sim.run_time[job] - sim.progress[job], 0.0)
        running.expected_end = running.planned + (
            running.delay + expected_left(sim, job) / running.rate
        )
        end = running.planned + (running.delay + left / running.rate)
        # With another run time than the job had in its run, it may be over already.
        sim.happen_at(max(end, start.now), FINISH, job, sim.version[job])
    for time, job in replay.returns:
        sim.happen_at(time, RETURN, job)
    if math.isfinite(start.timer) and not start.decides:
        sim.timer = start.timer
        sim.happen_at(start.timer, TIMER, 0)
