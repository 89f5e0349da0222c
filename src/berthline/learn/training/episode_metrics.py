"""Names of metrics: environments and comparisons call them differently."""

from __future__ import annotations

EPISODE_METRICS = {
    "mean_jct": "jct_mean",
    "p99_jct": "jct_p99",
    "mean_wait": "wait_mean",
    "mean_bounded_slowdown": "bounded_slowdown_mean",
    "utilization": "utilization",
    "makespan": "makespan",
}
"""Metrics of an episode: their names in environments, and in comparisons."""

NAME_IN_EPISODES = {name: episode for episode, name in EPISODE_METRICS.items()}
"""The same by their names in comparisons."""
