"""The metrics computed again, by plain loops over seconds, jobs and GPUs: slow but simple."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections import defaultdict
from typing import TYPE_CHECKING

from berthline.model.schedule import KINDS, PREEMPT_REASONS, WHOLE_GPUS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from berthline.model.cluster import Cluster
    from berthline.model.schedule import Schedule
    from berthline.model.workload import Workload


@dataclasses.dataclass
class Seconds:
    """The state in every second [s, s + 1) before the end, and sums over them.

    With a window, only its seconds count in what is not about jobs.
    """

    end: float
    times: dict[str, dict[int, list[float]]]
    """{kind: {job (or node): times}}"""
    counted: list[int]
    waiting: list[int]
    """Number of waiting jobs; one more entry for the end itself."""
    watts: list[float]
    """Power of the cluster."""
    busy: list[float]
    """GPU-seconds held, by node."""
    up: float
    """GPU-seconds of nodes that were up."""
    job_gpu_seconds: dict[int, float]
    job_joules: dict[int, float]
    active_users: list[int]
    fragmentation: list[float]


ALWAYS = (0.0, math.inf)


def second_by_second(
    log: Schedule, workload: Workload, cluster: Cluster, window: tuple[float, float] = ALWAYS
) -> Seconds:
    """Replay a log whose events, horizon and sleep_after are whole seconds."""
    times: dict[str, dict[int, list[float]]] = {kind: defaultdict(list) for kind in KINDS}
    for row in range(len(log)):
        kind = KINDS[log.kind[row]]
        who = log.detail[row] if kind.startswith("node") else log.job[row]
        times[kind][int(who)].append(float(log.time[row]))
    counted = sorted(set(times["submit"]) - set(times["reject"]))
    left = [job for job in counted if job not in times["finish"]]
    cut = bool(left) or len(times["submit"]) < len(workload)
    last_finish = max((t for (t,) in times["finish"].values()), default=0.0)
    end = log.horizon if math.isfinite(log.horizon) and cut else last_finish

    nodes = range(cluster.num_nodes)
    seen = Seconds(
        end,
        times,
        counted,
        [],
        [],
        [0.0] * len(nodes),
        0.0,
        defaultdict(float),
        defaultdict(float),
        [],
        [],
    )
    waiting: set[int] = set()
    running: dict[int, list[tuple[int, int, int]]] = {}
    down: set[int] = set()
    idle_since: dict[int, float] = dict.fromkeys(nodes, 0.0)
    row = 0
    for second in range(int(end) + 1):
        while row < len(log) and log.time[row] == second:
            kind, job = KINDS[log.kind[row]], int(log.job[row])
            if kind == "submit":
                waiting.add(job)
            elif kind in ("start", "resume"):
                waiting.remove(job)
                running[job] = _allocation(log, row)
                for node, _, _ in running[job]:
                    idle_since.pop(node, None)
            elif kind == "reject":
                waiting.remove(job)
            elif kind in ("preempt", "finish"):
                for node, _, _ in running.pop(job):
                    if not any(node == other for held in running.values() for other, _, _ in held):
                        idle_since[node] = second
                if kind == "preempt":
                    waiting.add(job)
            elif kind == "node down":
                down.add(int(log.detail[row]))
            elif kind == "node up":
                down.remove(int(log.detail[row]))
                idle_since[int(log.detail[row])] = second
            row += 1
        inside = window[0] <= second < window[1]
        if inside:
            seen.waiting.append(len(waiting))
        if second == end:
            break
        users = {int(workload.user[job]) for job in (*waiting, *running)}
        seen.active_users.append(len(users))
        watts = 0.0
        for node in nodes:
            if node in down:
                assert not any(node == n for held in running.values() for n, _, _ in held)
                continue
            seen.up += cluster.gpus[node] * inside
            if node in idle_since and second - idle_since[node] >= cluster.conditions.sleep_after:
                watts += cluster.conditions.sleep_w
                continue
            watts += _node_watts(seen, node, running, workload, cluster, inside=inside)
        if inside:
            seen.watts.append(watts)
            seen.fragmentation.append(_fragmentation(down, running, workload, cluster))
    return seen


def _fragmentation(
    down: set[int],
    running: dict[int, list[tuple[int, int, int]]],
    workload: Workload,
    cluster: Cluster,
) -> float:
    """Nodes partly in use / nodes with something free, of those that are up."""
    partly = with_free = 0
    for node in set(range(cluster.num_nodes)) - down:
        held = sum(
            1000 * gpus if slot == WHOLE_GPUS else int(workload.gpu_milli[job])
            for job, rows in running.items()
            for where, gpus, slot in rows
            if where == node
        )
        with_free += held < 1000 * cluster.gpus[node]
        partly += 0 < held < 1000 * cluster.gpus[node]
    return partly / with_free if with_free else 0.0


def _node_watts(
    seen: Seconds,
    node: int,
    running: dict[int, list[tuple[int, int, int]]],
    workload: Workload,
    cluster: Cluster,
    *,
    inside: bool,
) -> float:
    """Return the power of a node that is awake, GPU by GPU; also record what its jobs use."""
    kind = cluster.types[cluster.gpu_type[node]]
    whole = 0
    shared: dict[int, int] = defaultdict(int)
    for job, held in running.items():
        for where, gpus, slot in held:
            if where != node:
                continue
            if slot == WHOLE_GPUS:
                whole += gpus
                share = float(gpus)
            else:
                shared[slot] += int(workload.gpu_milli[job])
                share = workload.gpu_milli[job] / 1000
            seen.busy[node] += share * inside
            seen.job_gpu_seconds[job] += share
            seen.job_joules[job] += share * kind.peak_w
    free = int(cluster.gpus[node]) - whole - len(shared)
    assert free >= 0
    assert all(0 <= slot < cluster.gpus[node] for slot in shared)
    assert all(milli <= 1000 for milli in shared.values())
    return (
        whole * kind.peak_w
        + free * kind.idle_w
        + sum(kind.idle_w + (kind.peak_w - kind.idle_w) * m / 1000 for m in shared.values())
    )


def by_the_second(
    log: Schedule, workload: Workload, cluster: Cluster, window: tuple[float, float] = ALWAYS
) -> dict[str, object]:
    """Compute the metrics again by plain loops; all events of the log are at whole seconds."""
    seen = second_by_second(log, workload, cluster, window)
    times, end = seen.times, seen.end
    within = {job for job, (t,) in times["submit"].items() if window[0] <= t < window[1]}
    counted = [job for job in seen.counted if job in within]
    whole = len(seen.watts)
    assert window != ALWAYS or whole == end

    def happened(kind: str) -> int:
        return sum(window[0] <= t < window[1] for each in times[kind].values() for t in each)

    left = [job for job in counted if job not in times["finish"]]
    jct, wait, slowdown, bounded = {}, {}, {}, {}
    for job in counted:
        jct[job] = times["finish"].get(job, [end])[0] - workload.submit[job]
        wait[job] = times["start"].get(job, [end])[0] - workload.submit[job]
        slowdown[job] = jct[job] / workload.run[job]
        bounded[job] = max(1.0, jct[job] / max(10.0, workload.run[job]))
    rho = {job: value for job, value in rhos(seen, workload, cluster).items() if job in within}
    by_user = defaultdict(list)
    for job in counted:
        by_user[int(workload.user[job])].append(bounded[job])
    means = [statistics.fmean(values) for values in by_user.values()]
    deadlines = [job for job in counted if math.isfinite(workload.deadline[job])]
    missed = [job for job in deadlines if missed_deadline(seen, workload, job)]
    priorities = sorted({float(workload.priority[job]) for job in counted})
    tflops = [cluster.types[kind].tflops for kind in cluster.gpu_type]
    reasons = [
        int(log.detail[row])
        for row in range(len(log))
        if KINDS[log.kind[row]] == "preempt" and window[0] <= log.time[row] < window[1]
    ]
    total_flops = sum(g * f for g, f in zip(cluster.gpus, tflops, strict=True))
    starved = [j for j in counted if wait[j] > 86_400 and wait[j] > 10 * workload.run[j]]
    behind = []
    for job in starved:
        start = workload.submit[job] + wait[job]
        later = [wait[k] for k in counted if k > job and workload.submit[k] < start]
        if wait[job] > 14 * 86_400 and later and wait[job] > 10 * statistics.fmean(later):
            behind.append(job)
    longest = max(counted, key=lambda job: (wait[job], -job), default=None)
    expected: dict[str, object] = {
        "jobs": {
            "submitted": len(within),
            "completed": len(within & set(times["finish"])),
            "rejected": len(within & set(times["reject"])),
            "unfinished": len(left),
        },
        "jct": tail(jct.values()),
        "wait": tail(wait.values()),
        "slowdown": tail(slowdown.values()),
        "bounded_slowdown": tail(bounded.values()),
        "makespan": end - window[0]
        if left
        else max((times["finish"][job][0] - window[0] for job in counted), default=0.0),
        "utilization": {
            "gpu": sum(seen.busy) / (cluster.total_gpus * whole) if whole else 0.0,
            "flops": sum(b * f for b, f in zip(seen.busy, tflops, strict=True))
            / (total_flops * whole)
            if whole
            else 0.0,
            "available": seen.up / (cluster.total_gpus * whole) if whole else 1.0,
        },
        "energy_kwh": math.fsum(seen.watts) / 3.6e6,
        "energy_per_job_kwh": sum(seen.job_joules[job] for job in counted)
        / 3.6e6
        / max(1, len(counted)),
        "fairness": {
            "jain": sum(means) ** 2 / (len(means) * sum(x * x for x in means))
            if means
            else math.nan,
            "rho": tail(rho.values()),
        },
        "starvation": None
        if longest is None
        else {
            "wait": float(wait[longest]),
            "job": longest,
            "name": str(longest),
            "starved": len(starved),
            "left_behind": len(behind),
            "starves": bool(behind),
        },
        "queue": {
            "mean": statistics.fmean(seen.waiting[:whole]) if whole else 0.0,
            "max": max(seen.waiting),
        },
        "preemptions": len(reasons),
        "preemptions_by_reason": {
            name: reasons.count(code) for code, name in enumerate(PREEMPT_REASONS)
        },
        "lost_gpu_hours": lost_gpu_seconds(log, seen, workload, cluster, set(counted)) / 3600,
        "refusals": happened("refuse"),
        "outages": happened("node down"),
        "deadline_miss_rate": len(missed) / len(deadlines) if deadlines else None,
        "load_imbalance": statistics.pstdev(
            b / (gpus * whole) for b, gpus in zip(seen.busy, cluster.gpus.tolist(), strict=True)
        )
        if whole
        else 0.0,
        "fragmentation": statistics.fmean(seen.fragmentation) if whole else 0.0,
        "events": len(log),
        "decisions": log.decisions,
        "fallbacks": log.fallbacks,
        "log_sha256": log.sha256(),
    }
    if len(priorities) <= 16:
        expected["by_priority"] = {
            f"{priority:g}": {
                "jobs": len(members),
                "jct": tail(jct[job] for job in members),
                "wait": tail(wait[job] for job in members),
                "bounded_slowdown": tail(bounded[job] for job in members),
            }
            for priority in priorities
            for members in [[job for job in counted if workload.priority[job] == priority]]
        }
    return expected


def lost_gpu_seconds(
    log: Schedule, seen: Seconds, workload: Workload, cluster: Cluster, counted: set[int]
) -> float:
    """Return lost GPU-seconds, in runs too short for a checkpoint and without delays at a start.

    A preemption loses everything that a job did since the last end of a round, where all is saved.
    Of the other stretches, the first seconds are lost, up to the time of a restart.
    """
    conditions = cluster.conditions
    assert conditions.start_delay == conditions.wake_delay == 0
    stretches: dict[int, list[tuple[float, float, bool, str]]] = defaultdict(list)
    begun: dict[int, tuple[float, bool]] = {}
    for row in range(len(log)):
        kind, job, now = KINDS[log.kind[row]], int(log.job[row]), float(log.time[row])
        if kind in ("start", "resume"):
            begun[job] = now, kind == "resume"
        elif kind in ("preempt", "finish"):
            begin, again = begun.pop(job)
            why = PREEMPT_REASONS[log.detail[row]] if kind == "preempt" else "finish"
            stretches[job].append((begin, now, again, why))
    for job, (begin, again) in begun.items():
        stretches[job].append((begin, seen.end, again, "still running"))
    lost = 0.0
    for job, parts in stretches.items():
        if job not in counted:
            continue
        gpus = workload.gpus[job] * workload.gpu_milli[job] / 1000
        ran = sum(stop - begin for begin, stop, _, _ in parts)
        assert conditions.checkpoint > 4 * ran, "no GPU type here is four times as fast"
        loses = False
        for begin, stop, again, why in reversed(parts):
            if why not in ("finish", "still running"):
                loses = why != "end of its round"
            restart = min(conditions.restart, stop - begin) if again else 0.0
            lost += gpus * (stop - begin if loses else restart)
    return lost


def rhos(seen: Seconds, workload: Workload, cluster: Cluster) -> dict[int, float]:
    """Finish-time fairness of every counted job."""
    found = {}
    for job in seen.counted:
        submit, finish = int(workload.submit[job]), seen.times["finish"].get(job, [seen.end])[0]
        during = seen.active_users[submit : int(finish)]
        users = statistics.fmean(during) if during else 1.0
        gpus = workload.gpus[job] * workload.gpu_milli[job] / 1000
        alone = workload.run[job] * max(1.0, users * gpus / cluster.total_gpus)
        found[job] = float((finish - submit) / alone)
    return found


def missed_deadline(seen: Seconds, workload: Workload, job: int) -> bool:
    """Whether the job is known to have missed its deadline."""
    finish = seen.times["finish"].get(job, [seen.end + 0.5])[0]
    return bool(finish > workload.deadline[job])


def tail(values: Iterable[float]) -> dict[str, float]:
    """Mean, percentiles and maximum."""
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


def _allocation(log: Schedule, row: int) -> list[tuple[int, int, int]]:
    """(node, GPUs, shared GPU) of the start in a row: up to the first row of the next start."""
    first = int(log.detail[row])
    last = len(log.alloc_node)
    for other in range(row + 1, len(log)):
        if KINDS[log.kind[other]] in ("start", "resume"):
            last = int(log.detail[other])
            break
    return [
        (int(log.alloc_node[i]), int(log.alloc_gpus[i]), int(log.alloc_slot[i]))
        for i in range(first, last)
    ]
