"""`berthline demo`: a comparison on a bundled workload, and a gate tuned in seconds."""
