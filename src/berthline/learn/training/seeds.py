"""Joint results of training runs that differ only in their seed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.evaluate.metrics.compared_metrics import METRICS
from berthline.evaluate.statistics.interquartile_mean import interquartile_mean_interval

if TYPE_CHECKING:
    from collections.abc import Sequence


def summary_of_seeds(summaries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return interquartile means over seeds and REPORT episodes of a metric / that of others.

    The metric is that of the runs, `metric_against`; mean JCT is always there too.

    Args:
        summaries: of the runs; all have the same REPORT episodes.
    """
    first = summaries[0]
    higher_is_better = METRICS[first["metric"]].higher_is_better
    return {
        "algorithm": first["algorithm"],
        "seat": first["seat"],
        "seeds": [one["seed"] for one in summaries],
        "steps": [one["steps"] for one in summaries],
        "updates": [one["updates"] for one in summaries],
        "metric": first["metric"],
        "remarks": list(dict.fromkeys(text for one in summaries for text in one["remarks"])),
        "best_heuristic": first["best_heuristic"],
        "metric_against": _against(summaries, "metric", higher_is_better=higher_is_better),
        "mean_jct_against": _against(summaries, "mean_jct"),
        "runs": list(summaries),
    }


def _against(
    summaries: Sequence[dict[str, Any]], metric: str, *, higher_is_better: bool = False
) -> dict[str, Any]:
    """Return the ratios of a metric to those of every rival, over all seeds."""
    reports = [one["report"][f"{metric}_of_episodes"] for one in summaries]
    ours = np.array([report["policy"] for report in reports])
    found: dict[str, Any] = {}
    for name, values in reports[0].items():
        if name == "policy":
            continue
        theirs = np.array(values)
        # Equal values have the ratio 1, even if both are 0.
        equal = ours == theirs
        if not (equal | ((ours > 0) & (theirs > 0))).all():
            found[name] = {"iqm": None, "low": None, "high": None, "worst_seed": None}
            continue
        ratios = np.divide(ours, theirs, out=np.ones(ours.shape), where=~equal)
        interval = interquartile_mean_interval(ratios)
        each = np.exp(np.log(ratios).mean(axis=1))
        found[name] = {
            "iqm": interval.value,
            "low": interval.low,
            "high": interval.high,
            "worst_seed": float(each.min() if higher_is_better else each.max()),
        }
    return found
