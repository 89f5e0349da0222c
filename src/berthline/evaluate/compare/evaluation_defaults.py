"""Defaults of `evaluate`. This module must import quickly, because help texts show them."""

from __future__ import annotations

WORKLOAD, KNOWLEDGE = "synthetic", "estimate"
WINDOWS = 20
