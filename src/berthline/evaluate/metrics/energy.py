"""Energy: the exact integral of the GPUs' power over the log, in total and for each job.

Power of a node whose GPUs draw `idle_w` at rest and `peak_w` at most:

- up and awake: for each GPU `idle_w + (peak_w - idle_w) x u`, where u is the share of it that jobs
  hold: 1 for a GPU held whole, 0 for a free one;
- asleep: `sleep_w` of the conditions, for the whole node;
- down: nothing.

Power is linear in u, so the integral needs no steps in time: it follows from how long each node was
in each state and from the GPU-seconds held on it. CPUs, network and cooling are not included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from berthline.evaluate.metrics.job_table import job_table
from berthline.evaluate.metrics.node_states import down_times, sleep_times
from berthline.evaluate.metrics.stretches import shares, stretches
from berthline.evaluate.metrics.utilization import busy_gpu_seconds, of_node

if TYPE_CHECKING:
    from berthline.evaluate.metrics.energy_rate import EnergyRate
    from berthline.evaluate.metrics.job_table import JobCounts
    from berthline.evaluate.metrics.measurement_window import MeasurementWindow
    from berthline.evaluate.metrics.stretches import Clock, Stretches
    from berthline.model.cluster import Cluster
    from berthline.model.schedule import Schedule
    from berthline.model.workload import FloatColumn, Workload

JOULES_PER_KWH = 3.6e6


class NodeSeconds(NamedTuple):
    """How long each node was in which state."""

    busy: FloatColumn  # (num_nodes,)
    """GPU-seconds held by jobs."""
    down: FloatColumn  # (num_nodes,)
    asleep: FloatColumn  # (num_nodes,)
    whole: float
    """Length of the run."""


def node_seconds(
    log: Schedule,
    workload: Workload,
    cluster: Cluster,
    ran: Stretches,
    end: float,
    clock: Clock | None = None,
) -> NodeSeconds:
    """Return how long each node was in which state, in seconds or in units of `clock`.

    Args:
        log: the run's log.
        workload: the jobs of that run.
        cluster: the nodes it ran on.
        ran: from `stretches`.
        end: end of the log in seconds.
        clock: what to count instead of seconds.
    """
    down = down_times(log, end)
    asleep = sleep_times(log, cluster, ran, down, end)
    whole = end if clock is None else float(np.diff(clock(np.array([0.0, end])))[0])
    return NodeSeconds(
        busy=busy_gpu_seconds(log, workload, cluster, ran, clock),
        down=down.per_node(cluster.num_nodes, clock),
        asleep=asleep.per_node(cluster.num_nodes, clock),
        whole=whole,
    )


def energy_kwh(seconds: NodeSeconds, cluster: Cluster) -> float:
    """Return the energy that the GPUs used over [0, end], in kWh.

    Formula: sum over nodes of (peak_w x busy GPU-seconds + idle_w x GPU-seconds up, awake and not
    held + sleep_w x seconds asleep) / 3.6e6, with the watts of the node's GPU type. Jobs hold GPUs
    until their finish, unfinished ones until the end; rejected ones hold none.
    """
    idle_w = of_node(cluster, [kind.idle_w for kind in cluster.types])
    peak_w = of_node(cluster, [kind.peak_w for kind in cluster.types])
    awake = seconds.whole - seconds.down - seconds.asleep
    joules = idle_w @ (cluster.gpus * awake - seconds.busy) + peak_w @ seconds.busy
    joules += cluster.conditions.sleep_w * seconds.asleep.sum()
    return float(joules) / JOULES_PER_KWH


def held_kwh(busy: FloatColumn, cluster: Cluster) -> float:
    """Return the energy of all jobs together, in kWh: the sum of `job_energy_kwh`."""
    peak_w = of_node(cluster, [kind.peak_w for kind in cluster.types])
    return float(peak_w @ busy) / JOULES_PER_KWH


def energy_per_job_kwh(of_jobs: float, counts: JobCounts) -> float:
    """Return the energy of the jobs per counted job, in kWh.

    Formula: sum over jobs of peak_w x GPUs held x seconds / 3.6e6 / counted jobs. Unfinished jobs:
    what they held so far. Rejected jobs: left out. The power of free GPUs is not included.

    Args:
        of_jobs: energy of all counted jobs: `held_kwh`, or a sum of `job_energy_kwh`.
        counts: from `job_counts`.
    """
    return of_jobs / max(counts.submitted - counts.rejected, 1)


def job_energy_kwh(
    log: Schedule, workload: Workload, cluster: Cluster, ran: Stretches
) -> FloatColumn:
    """Return the energy of each job in kWh, (num_jobs,); 0 for a job that held no GPU.

    Formula: sum over its stretches and nodes of peak_w x GPUs x seconds, with a part of a GPU as
    that part. The power of GPUs (or parts of them) that no job holds belongs to no job.
    """
    peak_w = of_node(cluster, [kind.peak_w for kind in cluster.types])
    joules = np.zeros(len(workload))
    for part in shares(log, workload, ran):
        np.add.at(joules, part.job, part.gpu_seconds() * peak_w[part.node])
    return joules / JOULES_PER_KWH


def energy_cost(
    log: Schedule,
    workload: Workload,
    cluster: Cluster,
    rate: EnergyRate,
    *,
    window: MeasurementWindow | None = None,
) -> float:
    """Return the cost of the energy of a run, or its carbon, in the unit of the rate.

    Formula: integral over [0, end] of power(t) x rate(t), exact over the steps of the rate.

    Args:
        log: the run's log.
        workload: the jobs of that run.
        cluster: the nodes it ran on.
        rate: price or carbon per kWh over time.
        window: count only energy used in it; None = over [0, end].
    """
    table = job_table(log, workload)
    ran = stretches(log, table)

    def clock(time: FloatColumn) -> FloatColumn:
        return rate.integral(time if window is None else window.clock(time))

    counted = node_seconds(log, workload, cluster, ran, table.end, clock)
    return energy_kwh(counted, cluster)
