"""Inspecting a workload: its demand, when jobs arrive, and the cluster that its log describes."""
