"""real_metrics: what the published tables of real systems show, for one real run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from berthline.evaluate.metrics.fairness import jain_index
from berthline.evaluate.metrics.job_table import completion_times, job_table
from berthline.evaluate.metrics.measure import measure
from berthline.evaluate.real_runs.sim_to_real import FIXED_RULES

if TYPE_CHECKING:
    from berthline.evaluate.real_runs.sim_to_real import RealRun

EXPLODED = 200
"""A queue that was ever longer has exploded."""
_SECONDS_PER_KWH = 3.6e6

Samples = Sequence[tuple[float, Sequence[Mapping[str, float | None]]]]


class RealMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """The metrics of one real run. Times are seconds; None = it was not measured.

    Attributes:
        jct_mean: submission to end, mean.
        jct_p95: the same, 95th percentile.
        jct_p99: the same, 99th percentile.
        jct_variation: standard deviation over mean.
        slowdown: JCT over run time, mean.
        deadlines_met: share of jobs with a deadline.
        jain: Jain's index over JCTs, between 1/n and 1 (all alike).
        queue_mean: waiting jobs, mean over time.
        queue_max: the longest queue.
        queue_exploded: it was longer than 200 jobs.
        gpus_held: share of GPU time that jobs held.
        gpu_utilization: as telemetry measured it, mean over GPUs and time.
        power_w: of all GPUs together as telemetry measured it, mean.
        energy_kwh: as telemetry measured it.
        energy_model_kwh: by the power of the GPU type in the cluster file.
        decision_s: time of a decision, median.
        decision_p99_s: the same, 99th percentile.
        meta_entropy: of the choices of a meta-policy, in bits: 0 = always the same.
        best_fixed: the fixed rule with the best mean JCT, simulated on the same jobs.
        gap_to_best_fixed: mean JCT over that of the best fixed rule, minus 1.
        fixed: mean JCT of each fixed rule, simulated.
    """

    jct_mean: float
    jct_p95: float
    jct_p99: float
    jct_variation: float
    slowdown: float
    deadlines_met: float | None
    jain: float
    queue_mean: float
    queue_max: int
    queue_exploded: bool
    gpus_held: float
    gpu_utilization: float | None
    power_w: float | None
    energy_kwh: float | None
    energy_model_kwh: float
    decision_s: float | None
    decision_p99_s: float | None
    meta_entropy: float | None
    best_fixed: str
    gap_to_best_fixed: float
    fixed: dict[str, float]


def real_metrics(
    run: RealRun,
    *,
    samples: Samples = (),
    decision_seconds: Sequence[float] = (),
    choices: Mapping[str, int] | None = None,
) -> RealMetrics:
    """Return the metrics of a real run.

    Args:
        run: the run.
        samples: of telemetry.
        decision_seconds: the time of each decision.
        choices: of a meta-policy: how often it chose which rule.
    """
    metrics = measure(run.log, run.workload, run.cluster)
    jct = completion_times(job_table(run.log, run.workload), run.workload)
    fixed = {rule: run.mean_jct(run.simulated(rule)) for rule in FIXED_RULES}
    best = min(fixed, key=lambda rule: fixed[rule])
    missed = metrics.deadline_miss_rate
    power = [(time, _total(gpus, "power_w")) for time, gpus in samples]
    use = [
        value for _, gpus in samples for gpu in gpus if (value := gpu["utilization"]) is not None
    ]
    known = [(time, value) for time, value in power if value is not None]
    seconds = np.array(decision_seconds)
    return RealMetrics(
        jct_mean=metrics.jct.mean,
        jct_p95=metrics.jct.p95,
        jct_p99=metrics.jct.p99,
        jct_variation=float(jct.std() / jct.mean()),
        slowdown=metrics.slowdown.mean,
        deadlines_met=None if missed is None else 1 - missed,
        jain=jain_index(jct),
        queue_mean=metrics.queue.mean,
        queue_max=int(metrics.queue.max),
        queue_exploded=metrics.queue.max > EXPLODED,
        gpus_held=metrics.utilization.gpu,
        gpu_utilization=float(np.mean(use)) if use else None,
        power_w=float(np.mean([value for _, value in known])) if known else None,
        energy_kwh=energy_of(known) if len(known) > 1 else None,
        energy_model_kwh=metrics.energy_kwh,
        decision_s=float(np.median(seconds)) if seconds.size else None,
        decision_p99_s=float(np.quantile(seconds, 0.99)) if seconds.size else None,
        meta_entropy=None if choices is None else entropy(choices),
        best_fixed=best,
        gap_to_best_fixed=metrics.jct.mean / fixed[best] - 1,
        fixed=fixed,
    )


def entropy(choices: Mapping[str, int]) -> float:
    """Return the entropy of choices in bits.

    Formula: -sum p log2 p over the rules, where p is the share of decisions that chose the rule.

    Example:
        >>> entropy({"sjf": 2, "edf": 2}), entropy({"sjf": 9})
        (1.0, 0.0)
    """
    total = sum(choices.values())
    shares = [count / total for count in choices.values() if count]
    return sum(share * math.log2(1 / share) for share in shares)


def energy_of(power: Sequence[tuple[float, float]]) -> float:
    """Return the energy in kWh of samples (time, watts), by the trapezoidal rule."""
    time, watts = np.array(power).T
    return float(np.trapezoid(watts, time)) / _SECONDS_PER_KWH


def _total(gpus: Sequence[Mapping[str, float | None]], key: str) -> float | None:
    """Return the sum over GPUs; None if one of them does not tell."""
    values = [gpu[key] for gpu in gpus]
    return None if None in values else float(sum(value or 0.0 for value in values))
