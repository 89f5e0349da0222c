"""Alibaba's traces: PAI (2020), openb (2023), DLRM (2025) and spot jobs (2026)."""
