"""sim_to_real: the jobs of a real run simulated, and how far the simulation is from it.

A simulation knows the jobs, their measured run times, the delays of starts and stops, and how often
decisions were made. It does not know when anything started.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from berthline.evaluate.metrics.job_table import completion_times, job_table
from berthline.model.schedule import START
from berthline.sim.simulate import simulate

if TYPE_CHECKING:
    from berthline.model.cluster import Cluster
    from berthline.model.schedule import Schedule
    from berthline.model.workload import FloatColumn, Workload

FIXED_RULES = ("static-equal", "static-priority", "edf", "sjf", "dynamic-heuristic")
"""The orders that a meta-policy chooses from; a real run is compared with the best of them."""


class RealRun(NamedTuple):
    """A run on a real system.

    Attributes:
        workload: its jobs; run times are those of their processes.
        log: when they held GPUs.
        cluster: its nodes.
        scheduler: who decided.
        knowledge: what it knew of run times.
        tick: seconds between decisions; 0 = at every event.
        phase: when one of these decisions was made, on the clock of the log.
        start_delay: mean seconds between a start and its process.
        stop_delay: mean seconds between the end of a process and free GPUs.
        keeps_progress: a preempted job goes on where it was.
    """

    workload: Workload
    log: Schedule
    cluster: Cluster
    scheduler: str
    knowledge: str = "estimate"
    tick: float = 0.0
    phase: float = 0.0
    start_delay: float = 0.0
    stop_delay: float = 0.0
    keeps_progress: bool = True

    def simulated(
        self, scheduler: str | None = None, *, run: FloatColumn | None = None
    ) -> Schedule:
        """Return the log of a simulation of the same jobs.

        Args:
            scheduler: another scheduler; None = that of the run.
            run: other run times of the processes; None = the measured ones.
        """
        # Simulated decisions are made at multiples of the tick, so the clock is shifted.
        shift = (-self.phase) % self.tick if self.tick else 0.0
        workload = dataclasses.replace(
            self.workload,
            submit=self.workload.submit + shift,
            deadline=self.workload.deadline + shift,
            run=(self.workload.run if run is None else run) + self.stop_delay,
            history=None,
        )
        conditions = {
            "start_delay": self.start_delay,
            "tick": self.tick,
            "restart": 0.0,
            "checkpoint": 0.0 if self.keeps_progress else np.inf,
        }
        log = simulate(
            workload,
            self.cluster,
            scheduler or self.scheduler,
            knowledge=self.knowledge,
            conditions=conditions,
        ).log
        return dataclasses.replace(log, time=log.time - shift)

    def mean_jct(self, log: Schedule) -> float:
        """Return the mean JCT of a log of these jobs."""
        return float(completion_times(job_table(log, self.workload), self.workload).mean())


class SimToReal(msgspec.Struct, frozen=True, kw_only=True):
    """How close simulations come to a real run.

    Attributes:
        jobs: how many there are.
        jct_real: mean JCT, in seconds.
        jct_simulated: mean JCT simulated with the measured run times.
        error: jct_simulated / jct_real - 1.
        jct_from_estimates: mean JCT simulated with the stated run times, as before the run.
        error_from_estimates: jct_from_estimates / jct_real - 1.
        pairs: pairs of jobs whose starts can be compared.
        pairs_in_order: those that started in the same order.
        start_delay: seconds, measured.
        stop_delay: seconds, measured.
        tick: seconds between decisions.
    """

    jobs: int
    jct_real: float
    jct_simulated: float
    error: float
    jct_from_estimates: float
    error_from_estimates: float
    pairs: int
    pairs_in_order: int
    start_delay: float
    stop_delay: float
    tick: float


def sim_to_real(run: RealRun) -> SimToReal:
    """Simulate the jobs of a real run and compare."""
    simulated = run.simulated()
    estimates = np.where(np.isnan(run.workload.estimate), run.workload.run, run.workload.estimate)
    stated = run.simulated(run=estimates)
    real_jct, jct, stated_jct = (run.mean_jct(log) for log in (run.log, simulated, stated))
    pairs, same = same_order(
        starts(run.log, len(run.workload)), starts(simulated, len(run.workload))
    )
    return SimToReal(
        jobs=len(run.workload),
        jct_real=real_jct,
        jct_simulated=jct,
        error=jct / real_jct - 1,
        jct_from_estimates=stated_jct,
        error_from_estimates=stated_jct / real_jct - 1,
        pairs=pairs,
        pairs_in_order=same,
        start_delay=run.start_delay,
        stop_delay=run.stop_delay,
        tick=run.tick,
    )


def starts(log: Schedule, jobs: int) -> FloatColumn:
    """Return the place of each job in the order of first starts; NaN = it did not start."""
    found = np.full(jobs, np.nan)
    rows = log.job[log.kind == START]
    found[rows] = np.arange(len(rows))
    return found


def same_order(first: FloatColumn, second: FloatColumn) -> tuple[int, int]:
    """Return how many pairs of jobs there are, and how many have the same order in both."""
    both = ~(np.isnan(first) | np.isnan(second))
    one, other = first[both], second[both]
    agree = np.sign(one[:, None] - one) * np.sign(other[:, None] - other)
    upper = np.triu(np.ones(agree.shape, np.bool_), 1)
    return int(upper.sum()), int((agree[upper] > 0).sum())
