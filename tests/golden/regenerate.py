"""Rewrites golden.json: small workloads under many schedulers, their metrics and log hashes.

Run by `make golden`. The file is never edited by hand: a change in it is a change of results, and
the diff of the commit says which. Workloads are drawn from Berthline's own counter-based numbers,
so that no other package's version can move them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import berthline as bl
from berthline.model.cluster import Cluster, NodeGroup
from berthline.random_streams import stream_key, uniform_column

GOLDEN = Path(__file__).with_name("golden.json")
NUM_JOBS = 250

SCHEDULERS = (
    *("fcfs", "sjf", "wfp3", "f1@best-fit", "slurm-multifactor@worst-fit", "random@random"),
    *(
        "fcfs+skip",
        "largest-area+skip@scatter",
        "hrrn+skip@random",
        "smallest-first+skip@worst-fit",
    ),
    *(
        "fcfs+easy",
        "sjf+easy@best-fit",
        "unicep+easy@scatter",
        "fcfs+easy@worst-fit?express-lane:T=600:r=0.2",
    ),
    *("fcfs+conservative", "sjf+conservative@best-fit"),
    "[estimate * sqrt(gpus) - user_usage / 10]+easy?[free_gpus - gpus - 2]",
)

# Kept for each run, from what `berthline sim --json` prints.
KEPT = (
    *("jobs", "makespan", "utilization", "energy_kwh", "fairness", "queue", "load_imbalance"),
    *("deadline_miss_rate", "events", "decisions", "log_sha256"),
)
KEPT_OF_DISTRIBUTIONS = {
    "jct": ("mean", "p99"),
    "wait": ("mean", "max"),
    "bounded_slowdown": ("mean",),
}


def clusters() -> dict[str, Cluster]:
    """Return clusters whose GPU types count for energy only: run times are as the jobs state."""
    found = {
        "pool": Cluster.uniform(nodes=1, gpus_per_node=32, gpu_type="T4"),
        "nodes": Cluster.uniform(nodes=20, gpus_per_node=4, gpu_type="H100"),
        "mixed": Cluster.from_groups(
            [
                NodeGroup(count=2, gpus=8, gpu_type="H100", cpus=64, memory_mib=512, pool="red"),
                NodeGroup(count=3, gpus=4, gpu_type="T4", cpus=16, memory_mib=256, pool="blue"),
                NodeGroup(count=2, gpus=2, gpu_type="P100"),
            ],
            name="mixed",
        ),
    }
    return {name: cluster.with_conditions({"gpu_speeds": 0}) for name, cluster in found.items()}


def workload(cluster: str, total_gpus: int) -> bl.Workload:
    """Return jobs that load the cluster to about 0.9; on `mixed` with limits, pools and types."""

    def draw(name: str) -> np.ndarray:
        return uniform_column(stream_key(1, f"golden {cluster} {name}"), NUM_JOBS)

    gpus = np.array([1, 1, 1, 2, 2, 4, 4, 8, 8, 13])[(draw("gpus") * 10).astype(int)]
    run = 10 + np.rint(2000 * draw("run") ** 4)
    gap = float((gpus * run).mean()) / (0.9 * total_gpus)
    submit = np.floor(np.cumsum(draw("gap") * 2 * gap))
    is_mixed = cluster == "mixed"
    limits = {
        "cpus": (draw("cpus") * 5).astype(int) * gpus,
        "memory_mib": (draw("memory") * 40).astype(int) * gpus,
        "pool": (draw("pool") * 3).astype(int) - 1,
        "gpu_types": np.where(draw("types") < 0.2, (draw("set") * 3).astype(int), -1),
        "pool_names": ("red", "blue"),
        "gpu_type_sets": ("T4", "H100|T4", "A10"),
    }
    return bl.Workload.from_columns(
        submit=submit,
        run=run,
        gpus=gpus,
        estimate=np.rint(run * (0.5 + 2 * draw("estimate"))),
        priority=(draw("priority") * 3).astype(int),
        deadline=np.where(draw("deadline") < 0.5, submit + 3 * run, np.inf),
        user=(draw("user") ** 2 * 7).astype(int),
        name=f"golden-{cluster}",
        **(limits if is_mixed else {}),
    )


def results() -> dict[str, dict[str, Any]]:
    """Return what golden.json should hold: {cluster / scheduler / knowledge: metrics}."""
    found = {}
    for name, cluster in clusters().items():
        jobs = workload(name, cluster.total_gpus)
        for number, scheduler in enumerate(SCHEDULERS):
            knowledge = ("estimate", "exact", "predicted")[number % 3]
            result = bl.simulate(jobs, cluster, scheduler, knowledge=knowledge, seed=11)
            metrics = msgspec.to_builtins(result.metrics())
            found[f"{name} / {result.scheduler} / {knowledge}"] = {
                key: metrics[key] for key in KEPT
            } | {
                key: {part: metrics[key][part] for part in parts}
                for key, parts in KEPT_OF_DISTRIBUTIONS.items()
            }
    return found


def main() -> None:
    rows = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in results().items()]
    GOLDEN.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
    print(f"wrote {len(rows)} results to {GOLDEN.name}")


if __name__ == "__main__":
    main()
