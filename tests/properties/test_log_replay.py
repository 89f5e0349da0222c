"""The log is the truth: it gives every metric again, from a Parquet file or replayed row by row."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import polars as pl
import pytest
from tests.agreement.random_model_runs import random_model_run
from tests.agreement.random_runs import random_run
from tests.properties.replayed_log import ReplayedLog

import berthline as bl
from berthline.errors import PolicyError
from berthline.evaluate.metrics.measure import measure
from berthline.model.cluster import Cluster, NodeGroup
from berthline.model.schedule import (
    FINISH,
    KINDS,
    NO_JOB,
    NODE_DOWN,
    NODE_UP,
    PREEMPT,
    PREEMPT_REASONS,
    REFUSE,
    REJECT,
    REJECT_REASONS,
    RESUME,
    START,
    WHOLE_GPUS,
    Schedule,
)

if TYPE_CHECKING:
    from pathlib import Path


def schedule_of(frame: pl.DataFrame, *, horizon: float, decisions: int) -> Schedule:
    """Return the log that a table of its events describes."""
    kind = np.array([KINDS.index(name) for name in frame["kind"]], dtype=np.uint8)
    starts = (kind == START) | (kind == RESUME)
    shares = frame.filter(starts).select("nodes", "gpus")
    counts = shares["nodes"].list.len().to_numpy()
    detail = np.full(len(frame), -1, dtype=np.int32)
    detail[starts] = np.cumsum(counts) - counts
    for reached, reasons in ((REJECT, REJECT_REASONS), (PREEMPT, PREEMPT_REASONS)):
        given = frame.filter(kind == reached)["reason"]
        detail[kind == reached] = [reasons.index(reason) for reason in given]
    about_nodes = (kind == NODE_DOWN) | (kind == NODE_UP)
    detail[about_nodes] = frame.filter(about_nodes)["nodes"].list.first().to_numpy()
    return Schedule(
        time=frame["time"].to_numpy(),
        kind=kind,
        job=frame["job"].fill_null(NO_JOB).to_numpy(),
        detail=detail,
        alloc_node=shares["nodes"].explode().to_numpy() if len(shares) else np.array([], np.int32),
        alloc_gpus=shares["gpus"].explode().to_numpy() if len(shares) else np.array([], np.int32),
        alloc_slot=np.full(counts.sum(), WHOLE_GPUS, dtype=np.int32),
        horizon=horizon,
        decisions=decisions,
    )


@pytest.mark.parametrize("block", range(4))
def test_parquet__gives_every_metric_again(block: int, tmp_path: Path) -> None:
    compared = 0
    for number in range(40):
        run = random_run(6_000_000 + 40 * block + number)
        try:
            result = bl.simulate(
                run.workload,
                run.cluster,
                run.scheduler,
                knowledge=run.knowledge,
                seed=run.seed,
                horizon=run.horizon,
            )
        except PolicyError:
            continue
        result.log.frame().write_parquet(tmp_path / "events.parquet")
        again = schedule_of(
            pl.read_parquet(tmp_path / "events.parquet"),
            horizon=result.log.horizon,
            decisions=result.log.decisions,
        )
        metrics = measure(again, run.workload, run.cluster)
        assert again.sha256() == result.log.sha256()
        assert msgspec.json.encode(metrics) == msgspec.json.encode(result.metrics())
        compared += 1
    assert compared > 30


def test_parquet__gives_the_same_log_again(tmp_path: Path) -> None:
    """With everything a log can hold: parts of GPUs, preemptions, refusals, nodes that go down."""
    kinds: set[int] = set()
    shared = 0
    for number in range(60):
        run = random_model_run(7_000_000 + number)
        log = bl.simulate(
            run.workload,
            run.cluster,
            run.scheduler,
            knowledge=run.knowledge,
            seed=run.seed,
            horizon=run.horizon,
        ).log
        log.frame().write_parquet(tmp_path / "events.parquet")
        again = Schedule.from_frame(
            pl.read_parquet(tmp_path / "events.parquet"),
            horizon=log.horizon,
            decisions=log.decisions,
        )
        for field in dataclasses.fields(Schedule):
            np.testing.assert_array_equal(getattr(again, field.name), getattr(log, field.name))
        assert again.sha256() == log.sha256()
        kinds |= set(log.kind.tolist())
        shared += int((log.alloc_slot != WHOLE_GPUS).sum())
    assert len(kinds) == len(KINDS) - 1, "all but fallbacks"
    assert shared > 50


def troubled_run(seed: int) -> tuple[bl.Workload, bl.Cluster]:
    """Parts of GPUs and jobs without any, on nodes that fail, sleep and differ."""
    rng = np.random.default_rng([seed, 0x7AC])
    num_jobs = int(rng.integers(20, 120))
    gpus = rng.choice([0, 1, 1, 1, 2, 4], num_jobs)
    parts = (gpus == 1) & (rng.random(num_jobs) < 0.5)
    workload = bl.Workload.from_columns(
        submit=np.cumsum(rng.exponential(10.0, num_jobs)),
        run=rng.exponential(150.0, num_jobs) + 1,
        gpus=gpus,
        gpu_milli=np.where(parts, rng.choice([100, 250, 300, 500], num_jobs), 1000),
        cpus=1,
        user=rng.integers(0, 3, num_jobs),
    )
    cluster = Cluster.from_groups(
        [
            NodeGroup(count=2, gpus=4, gpu_type="V100"),
            NodeGroup(count=2, gpus=2, gpu_type="T4", rack="other"),
        ]
    )
    choices: dict[str, tuple[float, float]] = {
        "mtbf": (np.inf, 700.3),
        "rack_mtbf": (np.inf, 2000.7),
        "sleep_after": (np.inf, float(rng.exponential(60.0))),
        "wake_delay": (0, 7.7),
        "requeue_delay": (0, 11.1),
        "refusal_rate": (0, 0.1),
        "interference": (0, 0.2),
        "tick": (0, 5.5),
    }
    conditions = {name: pair[rng.integers(2)] for name, pair in choices.items()}
    fixed = {"mttr": 77.7, "rack_mttr": 55.5, "sleep_w": 21.0, "checkpoint": 30.0, "restart": 3.3}
    return workload, cluster.with_conditions({**conditions, **fixed})


@dataclasses.dataclass
class Integrals:
    """Sums over the time between rows."""

    joules: float = 0.0
    busy: float = 0.0
    up: float = 0.0
    waiting: float = 0.0


def integrate(log: Schedule, workload: bl.Workload, cluster: Cluster) -> Integrals:
    """Add up power and GPUs from row to row, node by node and GPU by GPU."""
    replay = ReplayedLog(log, workload, cluster)
    idle_since = [0.0] * cluster.num_nodes
    found, before = Integrals(), 0.0
    rows = replay.rows()
    for row in range(len(log)):
        now = float(log.time[row])
        _pass(found, replay, idle_since, before, now)
        before = now
        stopped = replay.running.get(int(log.job[row]))
        assert next(rows) == row
        if stopped is not None and log.kind[row] in (FINISH, PREEMPT):
            for node in stopped.allocation:
                idle_since[node] = now
        elif log.kind[row] == NODE_UP:
            idle_since[log.detail[row]] = now
    return found


def _pass(
    found: Integrals, replay: ReplayedLog, idle_since: list[float], begin: float, end: float
) -> None:
    cluster, conditions = replay.cluster, replay.cluster.conditions
    found.waiting += len(replay.waiting) * (end - begin)
    occupied = {node for running in replay.running.values() for node in running.allocation}
    for node in range(cluster.num_nodes):
        if node in replay.down:
            continue
        kind, gpus = cluster.types[cluster.gpu_type[node]], int(cluster.gpus[node])
        found.up += gpus * (end - begin)
        sleeps_from = end
        if node not in occupied:
            sleeps_from = min(max(idle_since[node] + conditions.sleep_after, begin), end)
            found.joules += conditions.sleep_w * (end - sleeps_from)
        shared = list(replay.shared[node].values())
        free = replay.free["gpus"][node]
        watts = (gpus - free - len(shared)) * kind.peak_w + free * kind.idle_w
        watts += sum(kind.idle_w + used / 1000 * (kind.peak_w - kind.idle_w) for used in shared)
        found.joules += watts * (sleeps_from - begin)
        found.busy += (gpus - free - len(shared) + sum(shared) / 1000) * (end - begin)


@pytest.mark.parametrize("scheduler", ["fcfs+skip", "srpt!srpt", "las!las"])
def test_replay__gives_energy_and_utilisation_again(scheduler: str) -> None:
    kinds: set[int] = set()
    asleep = 0
    for seed in range(10):
        workload, cluster = troubled_run(seed)
        result = bl.simulate(
            workload, cluster, scheduler, knowledge="exact", seed=seed, simulator="reference"
        )
        log, metrics = result.log, result.metrics()
        assert metrics.jobs.completed == len(workload)
        last = int(np.flatnonzero(log.kind == FINISH)[-1])
        until_then = slice(0, last + 1)
        log = dataclasses.replace(
            log,
            **{name: getattr(log, name)[until_then] for name in ("time", "kind", "job", "detail")},
        )
        found, all_of_it = integrate(log, workload, cluster), cluster.total_gpus * metrics.makespan
        assert metrics.energy_kwh == pytest.approx(found.joules / 3.6e6, rel=1e-9)
        assert metrics.utilization.gpu == pytest.approx(found.busy / all_of_it, rel=1e-9)
        assert metrics.utilization.available == pytest.approx(found.up / all_of_it, rel=1e-9)
        assert metrics.queue.mean == pytest.approx(found.waiting / metrics.makespan, rel=1e-9)
        kinds |= set(log.kind.tolist())
        awake = cluster.with_conditions({"sleep_after": np.inf})
        asleep += measure(log, workload, awake).energy_kwh > metrics.energy_kwh
    assert {PREEMPT, RESUME, REFUSE, NODE_DOWN, NODE_UP} <= kinds
    assert asleep > 2


def test_table__plain_sums_over_it_are_the_metrics() -> None:
    """The first metrics a reader would work out with a table, done with the table."""
    for number in range(30):
        rng = np.random.default_rng([number, 0x7AB])
        num_jobs = int(rng.integers(5, 80))
        workload = bl.Workload.from_columns(
            submit=np.cumsum(rng.exponential(5.0, num_jobs)),
            run=rng.integers(1, 100, num_jobs),
            gpus=rng.choice([1, 2, 4, 8, 99], num_jobs, p=[0.4, 0.2, 0.2, 0.15, 0.05]),
        )
        result = bl.simulate(workload, "uniform:3x8", "fcfs+easy", knowledge="exact")
        metrics, frame = result.metrics(), result.log.frame()
        jobs = frame.pivot("kind", index="job", values="time")
        for name in ("submit", "start", "finish", "reject"):
            if name not in jobs.columns:
                jobs = jobs.with_columns(pl.lit(None, dtype=pl.Float64).alias(name))
        assert metrics.jobs.submitted == len(jobs)
        assert metrics.jobs.completed == jobs["finish"].is_not_null().sum()
        assert metrics.jobs.rejected == jobs["reject"].is_not_null().sum()
        waits, jcts = jobs["start"] - jobs["submit"], jobs["finish"] - jobs["submit"]
        assert metrics.wait.mean == pytest.approx(waits.mean(), rel=1e-12)
        assert metrics.wait.max == waits.max()
        assert metrics.jct.mean == pytest.approx(jcts.mean(), rel=1e-12)
        assert metrics.jct.p50 == pytest.approx(jcts.median(), rel=1e-12)
        assert metrics.makespan == jobs["finish"].max()
        held = frame.filter(pl.col("kind") == "start").select(
            "job", gpus=pl.col("gpus").list.sum().cast(pl.Float64)
        )
        busy = held.join(jobs, on="job").select(
            (pl.col("gpus") * (pl.col("finish") - pl.col("start"))).sum()
        )
        assert metrics.utilization.gpu == pytest.approx(
            busy.item() / (24 * metrics.makespan), rel=1e-12
        )
        assert metrics.events == len(frame)
