"""A suite of a few dozen short runs, and the content of the tables of one."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import polars as pl

from berthline.experiments.suites.suite_plan import SuitePlan, read_plan

if TYPE_CHECKING:
    from pathlib import Path

SMALL = """
name = "small"
about = "a few short runs"
schedulers = ["fcfs", "random+skip", "sjf+easy"]
policy = true
seeds = 3
val_seeds = 1

[[cells]]
workload = "synthetic"
cluster = "uniform:2x4:V100"
load = [0.9, 1.2]
jobs = 40
perturbations = ["bursts:x2"]

[[cells]]
regimes = "meta"
shape = ["base"]
intensity = ["low"]
gpus = [2, 4]
"""
RUNS = (2 * 2 * 3 + 2 * 3) * 3 + 4 * 3
"""Perturbed and clean cells, seeds, schedulers; and those on VAL."""
TABLES = ("cells.parquet", "jobs.parquet", "metrics.jsonl", "summary.json", "suite.toml")


def small_plan(text: str = SMALL) -> SuitePlan:
    """Return the plan."""
    return read_plan(text.encode(), where="small.toml")


def digest(directory: Path) -> dict[str, str]:
    """Return a hash of the content of every table of a suite."""
    found = {}
    for name in TABLES:
        file = directory / name
        if file.suffix == ".parquet":
            frame = pl.read_parquet(file)
            content = frame.write_json().encode() + repr(frame.schema).encode()
        else:
            content = file.read_bytes()
        found[name] = hashlib.sha256(content).hexdigest()
    return found


def lines(file: Path) -> list[dict]:
    """Return the lines of a JSON Lines file."""
    return [json.loads(line) for line in file.read_text().splitlines()]
