"""The log is the truth: written to a Parquet file and read back, it gives every metric again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
import polars as pl
import pytest
from tests.agreement.random_runs import random_run

import berthline as bl
from berthline.errors import PolicyError
from berthline.evaluate.metrics import measure
from berthline.model.schedule import KINDS, REJECT, REJECT_REASONS, START, Schedule

if TYPE_CHECKING:
    from pathlib import Path


def schedule_of(frame: pl.DataFrame, *, horizon: float, decisions: int) -> Schedule:
    """Return the log that a table of its events describes."""
    kind = np.array([KINDS.index(name) for name in frame["kind"]], dtype=np.uint8)
    first = frame["nodes"].list.len().fill_null(0).cum_sum().shift(1, fill_value=0)
    detail = np.full(len(frame), -1, dtype=np.int32)
    detail[kind == START] = first.to_numpy()[kind == START]
    reasons = [REJECT_REASONS.index(reason) for reason in frame["reason"].drop_nulls()]
    detail[kind == REJECT] = reasons
    shares = frame.filter(pl.col("nodes").is_not_null()).select("nodes", "gpus")
    return Schedule(
        time=frame["time"].to_numpy(),
        kind=kind,
        job=frame["job"].to_numpy(),
        detail=detail,
        alloc_node=shares["nodes"].explode().to_numpy() if len(shares) else np.array([], np.int32),
        alloc_gpus=shares["gpus"].explode().to_numpy() if len(shares) else np.array([], np.int32),
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
