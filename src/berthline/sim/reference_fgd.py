"""Fragmentation gradient descent in the reference simulator (Weng et al., ATC 2023).

How fragmented a node is depends on the jobs to come, which are taken to be like those submitted so
far: its free GPUs count as fragments for a typical job that cannot use them. A job goes where the
weighted sum over typical jobs grows least.
All amounts are whole numbers (thousandths of GPUs times jobs), so that both simulators agree.
"""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING

from berthline.model.schedule import WHOLE_GPUS
from berthline.sim.reference_state import NEW_SLOT, Free

if TYPE_CHECKING:
    from berthline.sim.inputs import TypicalJob
    from berthline.sim.reference import Simulation


def fragments(
    sim: Simulation, node: int, whole: int, slots: list[int], cpus: int, memory_mib: int
) -> int:
    """Return the thousandths of free GPUs that typical jobs cannot use, times their numbers.

    Args:
        sim: the run.
        node: the node.
        whole: its unused GPUs.
        slots: what is left of its shared GPUs, in thousandths.
        cpus: its free CPU cores.
        memory_mib: its free memory.
    """
    result = 0
    for typical in typical_jobs(sim):
        # A gang larger than the node never fits on it alone: for the authors, all its GPUs are
        # fragments then. `fgd-gangs` asks for the part of the gang that fills the node.
        gpus = typical.gpus
        if sim.scheduler.placement == "fgd-gangs":
            gpus = min(gpus, sim.total.gpus[node])
        fits = bool(sim.inputs.may_use[typical.job_class][node]) and whole >= gpus
        if typical.gpu_milli < 1000:
            fits = bool(sim.inputs.may_use[typical.job_class][node]) and (
                whole > 0 or any(left >= typical.gpu_milli for left in slots)
            )
        if typical.cpus and sim.total.cpus[node]:
            fits = fits and cpus * typical.gpus >= typical.cpus * gpus
        if typical.memory_mib and sim.total.memory_mib[node]:
            fits = fits and memory_mib * typical.gpus >= typical.memory_mib * gpus
        unusable = sum(left for left in slots if not fits or left < typical.gpu_milli)
        result += typical.count * (unusable + (0 if fits else 1000 * whole))
    return result


def typical_jobs(sim: Simulation) -> tuple[TypicalJob, ...]:
    """Return the latest mix of the jobs submitted so far."""
    latest = bisect.bisect_right(sim.inputs.mixes, sim.arrived, key=lambda mix: mix.jobs)
    return sim.inputs.mixes[latest - 1].typical


def growth(sim: Simulation, job: int, node: int, pieces: int, free: Free) -> tuple[int, int]:
    """Return the growth of the node's fragments if it takes `pieces` of the job.

    For a part of a GPU, also return the shared GPU with the least growth: ties go to the lowest
    number, an unused GPU comes last.
    """
    whole, slots = free.gpus[node], free.shared[node]
    cpus, memory_mib = free.cpus[node], free.memory_mib[node]
    before = fragments(sim, node, whole, list(slots.values()), cpus, memory_mib)
    parts = max(sim.gpus[job], 1)
    cpus -= -(-sim.cpus[job] * pieces // parts)
    memory_mib -= -(-sim.memory_mib[job] * pieces // parts)
    milli = sim.gpu_milli[job]
    if sim.gpus[job] == 0 or milli == 1000:
        taken = pieces if sim.gpus[job] else 0
        left = list(slots.values())
        return fragments(sim, node, whole - taken, left, cpus, memory_mib) - before, WHOLE_GPUS
    options = []
    for slot in sorted(slots):
        if slots[slot] >= milli:
            left = [amount - milli * (other == slot) for other, amount in slots.items()]
            after = fragments(sim, node, whole, left, cpus, memory_mib)
            options.append((after - before, slot))
    best = min(options, default=None)
    if whole > 0:
        left = [*slots.values(), 1000 - milli]
        after = fragments(sim, node, whole - 1, left, cpus, memory_mib)
        if best is None or after - before < best[0]:
            best = (after - before, NEW_SLOT)
    assert best is not None, "the node has room for the job"
    return best
