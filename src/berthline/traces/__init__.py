"""Traces and generators: everything that makes a Workload.

- `load.py`: `load_trace`, a file in, a Workload out
- `formats/`: one module per trace format, and the table of them
- `reading/`: code that formats share: files, text tables, dates, columns, errors with line numbers
- `generators/`: workloads drawn from a seed; `generators/fitted/` learns one from a trace
- `inspect/`: demand, arrivals, and the cluster inferred from a log
- `node_lists/`: clusters from the node lists of trace publishers
- `workload_argument.py`, `cluster_argument.py`: what WORKLOAD and CLUSTER mean
- `catalog.py`, `fetch.py`: public traces and where to get them
- `split.py`, `anonymize.py`, `offered_load.py`: workloads made from other workloads

A reader never drops a row silently: `Workload.provenance` counts dropped rows by reason.
"""
