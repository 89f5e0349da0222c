"""Figures and reports, made from workloads and schedule logs. Needs the extra `report`."""
