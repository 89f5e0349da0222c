"""The metrics once more, by plain loops over seconds, jobs and nodes: slow, hard to get wrong."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

import numpy as np

from berthline.model.schedule import START

if TYPE_CHECKING:
    from collections.abc import Iterable

    from berthline.model.cluster import Cluster
    from berthline.model.schedule import Schedule
    from berthline.model.workload import Workload


def by_the_second(log: Schedule, workload: Workload, cluster: Cluster) -> dict[str, object]:
    """Work the metrics out again by plain loops; all events of the log are at whole seconds."""
    at: dict[str, dict[int, float]] = {"submit": {}, "start": {}, "finish": {}, "reject": {}}
    for row in range(len(log)):
        at[list(at)[log.kind[row]]][int(log.job[row])] = float(log.time[row])
    counted = sorted(set(at["submit"]) - set(at["reject"]))
    left = [job for job in counted if job not in at["finish"]]
    cut = bool(left) or len(at["submit"]) < len(workload)
    last_finish = max(at["finish"].values(), default=0.0)
    end = log.horizon if math.isfinite(log.horizon) and cut else last_finish

    jct = {job: at["finish"].get(job, end) - workload.submit[job] for job in counted}
    wait = {job: at["start"].get(job, end) - workload.submit[job] for job in counted}
    slowdown = {job: jct[job] / workload.run[job] for job in counted}
    bounded = {job: max(1.0, jct[job] / max(10.0, workload.run[job])) for job in counted}

    allocations = _allocations(log)
    busy = [0] * cluster.num_nodes
    joules = flops = 0.0
    lengths = []
    for second in range(int(end)):
        for node in range(cluster.num_nodes):
            gpu_type = cluster.types[cluster.gpu_type[node]]
            held = sum(
                allocations[job].get(node, 0)
                for job, start in at["start"].items()
                if start <= second < at["finish"].get(job, end)
            )
            assert held <= cluster.gpus[node]
            busy[node] += held
            flops += held * gpu_type.tflops
            joules += held * gpu_type.peak_w + (cluster.gpus[node] - held) * gpu_type.idle_w
        lengths.append(_waiting(at, counted, second))
    total_flops = sum(
        gpus * cluster.types[kind].tflops
        for gpus, kind in zip(cluster.gpus, cluster.gpu_type, strict=True)
    )
    by_user: dict[int, list[float]] = {}
    for job in counted:
        by_user.setdefault(int(workload.user[job]), []).append(bounded[job])
    means = [statistics.fmean(values) for values in by_user.values()]
    deadlines = [job for job in counted if math.isfinite(workload.deadline[job])]
    missed = [job for job in deadlines if at["finish"].get(job, end + 0.5) > workload.deadline[job]]
    priorities = sorted({float(workload.priority[job]) for job in counted})
    expected: dict[str, object] = {
        "jobs": {
            "submitted": len(at["submit"]),
            "completed": len(at["finish"]),
            "rejected": len(at["reject"]),
            "unfinished": len(left),
        },
        "jct": _tail(jct.values()),
        "wait": _tail(wait.values()),
        "slowdown": _tail(slowdown.values()),
        "bounded_slowdown": _tail(bounded.values()),
        "makespan": end if left else last_finish,
        "utilization": {
            "gpu": sum(busy) / (cluster.total_gpus * end) if end else 0.0,
            "flops": flops / (total_flops * end) if end else 0.0,
        },
        "energy_kwh": joules / 3.6e6,
        "fairness": {
            "jain": sum(means) ** 2 / (len(means) * sum(x * x for x in means))
            if means
            else math.nan
        },
        "queue": {
            "mean": statistics.fmean(lengths) if lengths else 0.0,
            "max": max([*lengths, _waiting(at, counted, end)]),
        },
        "preemptions": 0,
        "deadline_miss_rate": len(missed) / len(deadlines) if deadlines else None,
        "load_imbalance": statistics.pstdev(
            b / (gpus * end) for b, gpus in zip(busy, cluster.gpus.tolist(), strict=True)
        )
        if end
        else 0.0,
        "events": len(log),
        "decisions": log.decisions,
        "log_sha256": log.sha256(),
    }
    if len(priorities) <= 16:
        expected["by_priority"] = {
            f"{priority:g}": {
                "jobs": len(members),
                "jct": _tail(jct[job] for job in members),
                "wait": _tail(wait[job] for job in members),
                "bounded_slowdown": _tail(bounded[job] for job in members),
            }
            for priority in priorities
            for members in [[job for job in counted if workload.priority[job] == priority]]
        }
    return expected


def _waiting(at: dict[str, dict[int, float]], counted: list[int], now: float) -> int:
    return sum(
        job in at["submit"] and at["submit"][job] <= now < at["start"].get(job, math.inf)
        for job in counted
    )


def _tail(values: Iterable[float]) -> dict[str, float]:
    ordered = sorted(values)
    if not ordered:
        return dict.fromkeys(("mean", "p50", "p95", "p99", "max"), math.nan)

    def percentile(p: float) -> float:
        place = p / 100 * (len(ordered) - 1)
        low = int(place)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (place - low) * (ordered[high] - ordered[low])

    return {
        "mean": statistics.fmean(ordered),
        "p50": percentile(50),
        "p95": percentile(95),
        "p99": percentile(99),
        "max": ordered[-1],
    }


def _allocations(log: Schedule) -> dict[int, dict[int, int]]:
    """Return {job: {node: gpus}} of every start."""
    return {
        int(log.job[row]): log.allocation(int(row)) for row in np.flatnonzero(log.kind == START)
    }
