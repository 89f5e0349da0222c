"""Data that everything else shares: workload, cluster, GPU types, schedule log."""
