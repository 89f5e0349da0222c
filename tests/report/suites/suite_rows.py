"""Suites by hand: a table of runs with chosen values."""

from __future__ import annotations

import types
from pathlib import Path

import polars as pl

from berthline.experiments.suites.suite_plan import CellTable, SuitePart, SuitePlan
from berthline.experiments.suites.suite_tables import flat_names
from berthline.report.suites.shown_suite import ShownSuite

FACTS = {
    "suite": "own", "shape": "", "intensity": "", "gpus": 4, "perturbation": "", "twin": "",
    "workload": "synthetic", "cluster": "uniform:1x4:V100", "load": None, "part": "",
    "training_seed": None, "num_jobs": 10, "limited": False, "error": None,
}  # fmt: skip


def row(cell, scheduler, seed, jct, **more):
    """Return a row: a run of a scheduler in a cell, with its mean JCT."""
    metrics = dict.fromkeys(flat_names(), 1.0) | {"log_sha256": "0", "starvation_name": ""}
    times = {"jct_mean": jct, "jct_p99": jct}
    own = {"cell": cell, "regime": cell, "scheduler": scheduler, "seed": seed}
    return {**FACTS, **metrics, **times, **own, **more}


def suite_of(rows, *, schedulers, parts=(), path=Path(), page="", **plan):
    """Return the results of a suite with these rows."""
    kinds = {"error": pl.String, "training_seed": pl.Int64, "load": pl.Float64}
    frame = pl.DataFrame(rows, infer_schema_length=None, schema_overrides=kinds)
    asked = SuitePlan(
        name="own",
        about="by hand",
        page=page,
        schedulers=list(schedulers),
        seeds=1 + max(one["seed"] for one in rows),
        cells=[CellTable(workload="synthetic", cluster="uniform:1x4:V100")],
        parts=[SuitePart(name=name, **given) for name, given in parts],
        **plan,
    )
    return ShownSuite(types.SimpleNamespace(path=path), asked, frame, [])
