"""Metrics of a controller for Prometheus, a Grafana dashboard, and alert rules."""
