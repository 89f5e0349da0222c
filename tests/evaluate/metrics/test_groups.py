"""Groups: tables by user, pool, size and priority against plain loops over jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest
from tests.evaluate.metrics.by_the_second import missed_deadline, rhos, second_by_second, tail
from tests.evaluate.schedules import random_case, schedule

from berthline.errors import ConfigError
from berthline.evaluate.metrics.distribution import distribution
from berthline.evaluate.metrics.groups import ANY_POOL, GroupMetrics, averaged, group_table
from berthline.evaluate.metrics.measure import measure
from berthline.model.cluster import Cluster
from berthline.model.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Callable


def size(workload: Workload, job: int) -> str:
    gpus = int(workload.gpus[job])
    if gpus == 0:
        return "no GPU"
    if workload.gpu_milli[job] < 1000:
        return "part of a GPU"
    if gpus <= 2:
        return ("1 GPU", "2 GPUs")[gpus - 1]
    top = 4
    while top < gpus:
        top *= 2
    return f"{top // 2 + 1} to {top} GPUs"


KEYS: dict[str, Callable[[Workload, int], str]] = {
    "user": lambda workload, job: workload.user_names[workload.user[job]],
    "pool": lambda workload, job: (
        ANY_POOL if workload.pool[job] < 0 else workload.pool_names[workload.pool[job]]
    ),
    "size": size,
}


@pytest.mark.parametrize("by", KEYS)
def test_group_table__random_runs__equal_sums_over_jobs(by: str):
    for seed in range(40):
        log, workload, cluster = random_case(seed)
        seen = second_by_second(log, workload, cluster)
        rho = rhos(seen, workload, cluster)
        members: dict[str, list[int]] = {}
        for job in seen.counted:
            members.setdefault(KEYS[by](workload, job), []).append(job)
        found = group_table(log, workload, cluster, by=by)
        assert {row.group for row in found} == set(members)
        assert len(found) == len(members)
        for row in found:
            jobs = members[row.group]
            finish = {job: seen.times["finish"].get(job, [seen.end])[0] for job in jobs}
            start = {job: seen.times["start"].get(job, [seen.end])[0] for job in jobs}
            jct = {job: finish[job] - workload.submit[job] for job in jobs}
            bounded = [max(1.0, jct[job] / max(10.0, workload.run[job])) for job in jobs]
            due = [job for job in jobs if np.isfinite(workload.deadline[job])]
            missed = sum(missed_deadline(seen, workload, job) for job in due)
            expected = {
                "jobs": len(jobs),
                "completed": sum(job in seen.times["finish"] for job in jobs),
                "jct": tail(jct.values()),
                "wait": tail(start[job] - workload.submit[job] for job in jobs),
                "bounded_slowdown": tail(bounded),
                "rho": tail(rho[job] for job in jobs),
                "gpu_seconds": sum(seen.job_gpu_seconds.get(job, 0.0) for job in jobs),
                "energy_kwh": sum(seen.job_joules.get(job, 0.0) for job in jobs) / 3.6e6,
                "preemptions": sum(len(seen.times["preempt"].get(job, [])) for job in jobs),
                "deadline_miss_rate": missed / len(due) if due else None,
            }
            ours = msgspec.to_builtins(row)
            assert list(ours) == ["group", *expected]
            for name, value in expected.items():
                if value is not None:
                    value = pytest.approx(value, rel=1e-9, abs=1e-12)
                assert ours[name] == value, (seed, name)


@pytest.mark.parametrize("by", ["user", "pool", "size", "priority"])
def test_group_table__adds_up_to_the_metrics(by: str):
    for seed in range(40):
        log, workload, cluster = random_case(seed)
        m = measure(log, workload, cluster)
        found = group_table(log, workload, cluster, by=by)
        counted = m.jobs.submitted - m.jobs.rejected
        assert sum(row.jobs for row in found) == counted
        assert sum(row.completed for row in found) == m.jobs.completed
        assert sum(row.preemptions for row in found) == m.preemptions
        energy = sum(row.energy_kwh for row in found)
        assert energy == pytest.approx(m.energy_per_job_kwh * counted, rel=1e-9)
        if by == "priority":
            assert [row.group for row in found] == list(m.by_priority)
            for row in found:
                same = m.by_priority[row.group]
                assert (row.jobs, row.jct.max, row.wait.max) == (
                    same.jobs,
                    same.jct.max,
                    same.wait.max,
                )


def test_group_table__sizes__are_in_order_and_reach_far():
    gpus = [0, 1, 1, 2, 3, 4, 5, 8, 9, 16, 17, 1000, 2**20]
    n = len(gpus)
    jobs = Workload.from_columns(
        submit=np.zeros(n), run=1, gpus=gpus, gpu_milli=[1000, 10, *[1000] * 11], cpus=1
    )
    rows = [(0, "submit", job) for job in range(n)]
    found = group_table(
        schedule(rows, horizon=1), jobs, Cluster.uniform(nodes=1, gpus_per_node=2**20), by="size"
    )
    assert {row.group: row.jobs for row in found} == {
        "no GPU": 1,
        "part of a GPU": 1,
        "1 GPU": 1,
        "2 GPUs": 1,
        "3 to 4 GPUs": 2,
        "5 to 8 GPUs": 2,
        "9 to 16 GPUs": 2,
        "17 to 32 GPUs": 1,
        "513 to 1024 GPUs": 1,
        "524289 to 1048576 GPUs": 1,
    }


def test_group_table__two_users_of_one_name__are_two_rows():
    jobs = Workload.from_columns(
        submit=[0, 0], run=1, gpus=1, user=[0, 1], user_names=("same", "same")
    )
    rows = [(0, "submit", 0), (0, "submit", 1)]
    found = group_table(
        schedule(rows, horizon=1), jobs, Cluster.uniform(nodes=1, gpus_per_node=1), by="user"
    )
    assert [(row.group, row.jobs) for row in found] == [("same", 1), ("same", 1)]


def test_group_table__no_counted_job__is_empty():
    jobs = Workload.from_columns(submit=[0], run=1, gpus=9)
    log = schedule([(0, "submit", 0), (0, "reject", 0, 2)])
    cluster = Cluster.uniform(nodes=1, gpus_per_node=1)
    for by in ("user", "pool", "size", "priority"):
        assert group_table(log, jobs, cluster, by=by) == []


def test_group_table__json__reads_back():
    log, workload, cluster = random_case(3)
    found = group_table(log, workload, cluster, by="user")
    text = msgspec.json.encode(found)
    assert msgspec.json.decode(text, type=list[GroupMetrics]) == found


def test_group_table__unknown_grouping__is_refused():
    log, workload, cluster = random_case(3)
    with pytest.raises(ConfigError, match="unknown grouping 'users'") as caught:
        group_table(log, workload, cluster, by="users")
    assert "user" in caught.value.hint


def test_averaged__sums_and_means_over_the_windows_that_have_the_group():
    tables = []
    for seed in range(6):
        log, workload, cluster = random_case(seed)
        tables.append(group_table(log, workload, cluster, by="size"))
    rows = {row.group: row for row in averaged(tables)}
    assert set(rows) == {row.group for table in tables for row in table}
    for label, found in rows.items():
        members = [row for table in tables for row in table if row.group == label]
        assert found.jobs == sum(row.jobs for row in members)
        assert found.gpu_seconds == pytest.approx(sum(row.gpu_seconds for row in members))
        assert found.jct.p95 == pytest.approx(np.mean([row.jct.p95 for row in members]))


def test_averaged__groups_stay_in_their_order():
    def table(*labels: str) -> list[GroupMetrics]:
        nothing = distribution(np.array([1.0]))
        return [
            GroupMetrics(
                group=label,
                jobs=1,
                completed=1,
                jct=nothing,
                wait=nothing,
                bounded_slowdown=nothing,
                rho=nothing,
                gpu_seconds=1.0,
                energy_kwh=1.0,
                preemptions=0,
                deadline_miss_rate=None,
            )
            for label in labels
        ]

    sizes = averaged([table("1 GPU", "5 to 8 GPUs"), table("2 GPUs", "9 to 16 GPUs")])
    assert [row.group for row in sizes] == ["1 GPU", "2 GPUs", "5 to 8 GPUs", "9 to 16 GPUs"]
    priorities = averaged([table("-1", "10"), table("-1", "0.5", "2 to 3")])
    assert [row.group for row in priorities] == ["-1", "0.5", "2 to 3", "10"]
    merged = averaged([table("zoe", "ann"), table("ann", "bob")])
    assert [row.group for row in merged] == ["zoe", "ann", "bob"]
    assert merged[1].jobs == 2
    assert merged[0].deadline_miss_rate is None
