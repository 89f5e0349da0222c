"""Defaults of `evaluate`. This module must import quickly, because help texts show them."""

from __future__ import annotations

WORKLOAD, CLUSTER, KNOWLEDGE = "synthetic", "uniform:8x8:V100", "estimate"
WINDOWS = 20
GAP_SECONDS = 86_400.0
