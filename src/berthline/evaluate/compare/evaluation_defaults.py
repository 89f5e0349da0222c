"""What `evaluate` uses where neither the caller nor the run says anything. Light: help shows it."""

from __future__ import annotations

WORKLOAD, CLUSTER, KNOWLEDGE = "synthetic", "uniform:8x8:V100", "estimate"
WINDOWS = 20
GAP_SECONDS = 86_400.0
