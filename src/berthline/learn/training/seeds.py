"""Joint results of training runs that differ only in their seed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.evaluate.statistics.interquartile_mean import interquartile_mean_interval

if TYPE_CHECKING:
    from collections.abc import Sequence


def summary_of_seeds(summaries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return interquartile means, over seeds and REPORT episodes, of mean JCT / that of others.

    Args:
        summaries: of the runs; all have the same REPORT episodes.
    """
    first = summaries[0]
    ours = np.array([one["report"]["mean_jct_of_episodes"]["policy"] for one in summaries])
    against: dict[str, Any] = {}
    for name, theirs in first["report"]["mean_jct_of_episodes"].items():
        if name == "policy":
            continue
        ratios = ours / np.array(theirs)
        found = interquartile_mean_interval(ratios)
        worst = float(np.exp(np.log(ratios).mean(axis=1)).max())
        against[name] = {
            "iqm": found.value,
            "low": found.low,
            "high": found.high,
            "worst_seed": worst,
        }
    return {
        "algorithm": first["algorithm"],
        "seat": first["seat"],
        "seeds": [one["seed"] for one in summaries],
        "steps": [one["steps"] for one in summaries],
        "best_heuristic": first["best_heuristic"],
        "mean_jct_against": against,
        "runs": list(summaries),
    }
