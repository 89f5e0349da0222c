"""Run directories for tests: real runs, small, laid out as `berthline compare --out` does."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import polars as pl

import berthline as bl
from berthline.evaluate.compare import compare
from berthline.report.job_rows import job_rows
from berthline.traces.parquet import write_parquet

SCHEDULERS = ("fcfs", "fcfs+easy", "sjf+easy", "sjf+easy@best-fit", "smallest-area+easy")


def many_schedulers(count: int) -> list[str]:
    orders = ("fcfs", "sjf", "f1", "wfp3", "smallest-first", "largest-first", "smallest-area")
    texts = [f"{order}{rest}" for rest in ("+easy", "", "+skip") for order in orders]
    return texts[:count]


def write_run(
    path: Path,
    *,
    schedulers=SCHEDULERS,
    windows=6,
    jobs=300,
    loads=(0.9,),
    clusters=("uniform:4x8:V100",),
    name=None,
    set=None,
) -> Path:
    """Write a run directory; several loads or clusters make several cells."""
    path.mkdir(parents=True)
    cells, tables = [], []
    for cluster in clusters:
        for load in loads:
            made = [
                bl.generate("synthetic", cluster=cluster, jobs=jobs, load=load, seed=seed, **(set or {}))
                for seed in range(windows)
            ]
            found = compare(made, cluster, list(schedulers))
            cell = json.loads(msgspec.json.encode(found))
            cell["load"] = load
            if name:
                cell["workload"] = name
            for number, workload in enumerate(made):
                for scheduler in schedulers:
                    log = bl.simulate(workload, cluster, scheduler).log
                    if not cells and number == 0:
                        tables.append((scheduler, log.frame()))
                    rows = job_rows(log, workload).with_columns(
                        pl.lit(len(cells), dtype=pl.UInt16).alias("cell"),
                        pl.lit(scheduler).alias("scheduler"),
                        pl.lit(number, dtype=pl.UInt16).alias("window"),
                    )
                    (path / "parts").mkdir(exist_ok=True)
                    rows.write_parquet(path / "parts" / f"{len(cells)}-{number}-{hash(scheduler)}")
            if not cells:
                write_parquet(made[0], path / "workload.parquet")
            cells.append(cell)
    parts = sorted((path / "parts").iterdir())
    pl.concat([pl.read_parquet(part) for part in parts]).write_parquet(path / "jobs.parquet")
    for part in parts:
        part.unlink()
    (path / "parts").rmdir()
    pl.concat(
        frame.select(pl.lit(scheduler).alias("scheduler"), pl.all()) for scheduler, frame in tables
    ).write_parquet(path / "events.parquet")
    nodes, gpus = clusters[0].split(":")[1].split("x")
    (path / "cluster.toml").write_text(
        f'name = "test"\n[[nodes]]\ncount = {nodes}\ngpus = {gpus}\ngpu_type = "V100"\n'
    )
    summary = cells[0] if len(cells) == 1 else {"cells": cells, "overall": {}}
    (path / "summary.json").write_text(json.dumps(summary))
    (path / "config.toml").write_text('workload = "synthetic"\n')
    meta = {
        "berthline": "0.1.0",
        "verb": "compare",
        "command": "berthline compare synthetic",
        "seed": 0,
        "written": "2026-01-01T00:00:00+00:00",
        "python": "3.11",
        "machine": {"system": "Linux", "architecture": "x86_64", "cores": 2},
        "workload": {"name": name or "synthetic", "jobs": jobs, "provenance": {}},
    }
    (path / "meta.json").write_text(json.dumps(meta))
    return path
