"""What no row of a snapshot says, set in the state of the reference simulator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from berthline.sim.reference_speed import expected_left
from berthline.sim.reference_state import Usage

if TYPE_CHECKING:
    from berthline.model.snapshot import Snapshot
    from berthline.sim.reference import Simulation


def recall(sim: Simulation, start: Snapshot) -> None:
    """Set what no row of a snapshot says, once its rows have been applied."""
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
    for job, run in sim.running.items():
        run.expected_end = run.planned + (run.delay + expected_left(sim, job) / run.rate)
