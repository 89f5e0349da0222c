"""A real run in words: the metrics, and how close the simulation came, for terminals and pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from berthline.number_text import duration

if TYPE_CHECKING:
    from berthline.evaluate.real_runs.real_metrics import RealMetrics
    from berthline.evaluate.real_runs.sim_to_real import SimToReal


def metric_lines(metrics: RealMetrics) -> dict[str, str]:
    """Return the metrics as lines."""

    def told(value: float | None, form: str) -> str:
        return "not measured" if value is None else form.format(value)

    met = metrics.deadlines_met
    entropy = metrics.meta_entropy
    return {
        "JCT": f"mean {duration(metrics.jct_mean)}, p95 {duration(metrics.jct_p95)},"
        f" p99 {duration(metrics.jct_p99)}, variation {metrics.jct_variation:.2f}",
        "slowdown": f"{metrics.slowdown:.2f}",
        "deadlines met": "no job has one" if met is None else f"{met:.1%}",
        "fairness": f"Jain {metrics.jain:.3f} over JCTs",
        "queue": f"mean {metrics.queue_mean:.1f}, longest {metrics.queue_max}"
        + (", exploded" if metrics.queue_exploded else ""),
        "GPUs held": f"{metrics.gpus_held:.1%}",
        "GPU utilization": told(metrics.gpu_utilization, "{:.1%}"),
        "power": told(metrics.power_w, "{:.0f} W"),
        "energy": told(metrics.energy_kwh, "{:.4f} kWh")
        + f"; by the model of the GPU type {metrics.energy_model_kwh:.4f} kWh",
        "decision": told(metrics.decision_s and 1000 * metrics.decision_s, "median {:.2f} ms"),
        "meta-policy": "none decided" if entropy is None else f"entropy {entropy:.2f} bits",
        "best fixed rule": f"{metrics.best_fixed}, simulated; gap {metrics.gap_to_best_fixed:+.1%}",
    }


def closeness_lines(found: SimToReal) -> dict[str, str]:
    """Return how close the simulation came, as lines."""
    return {
        "delays": f"start {1000 * found.start_delay:.0f} ms, stop {1000 * found.stop_delay:.0f} ms",
        "simulated": f"JCT {duration(found.jct_simulated)}, {found.error:+.1%}"
        f" of the real one; from estimates {found.error_from_estimates:+.1%}",
        "order": f"{found.pairs_in_order:,} of {found.pairs:,} pairs of jobs started"
        " in the same order",
    }
