"""Reading the run directory of a suite."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from berthline.errors import ConfigError
from berthline.experiments.suites.suite_plan import SuitePlan, read_plan
from berthline.runs.run_layout import CELLS, FAILURES, SUITE, SUMMARY

if TYPE_CHECKING:
    import os


@dataclasses.dataclass(frozen=True)
class SuiteRun:
    """A suite that was run.

    Attributes:
        path: its run directory.
        plan: the plan as run.
        cells: one row for each run: cells.parquet.
        summary: summary.json.
        failures: the lines of failures.jsonl; empty = nothing failed.
    """

    path: Path
    plan: SuitePlan
    cells: pl.DataFrame
    summary: dict[str, Any]
    failures: list[dict[str, Any]]


def read_suite(directory: str | os.PathLike[str]) -> SuiteRun:
    """Return a suite that was run.

    Raises:
        ConfigError: the directory is not that of a complete suite, or is damaged.
    """
    import polars as pl

    path = Path(directory)
    try:
        plan = read_plan((path / SUITE).read_bytes(), where=str(path / SUITE))
        summary = json.loads((path / SUMMARY).read_bytes())
        cells = pl.read_parquet(path / CELLS)
        failed = path / FAILURES
        lines = failed.read_text(encoding="utf-8").splitlines() if failed.is_file() else []
        return SuiteRun(path, plan, cells, summary, [json.loads(line) for line in lines])
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        raise ConfigError(
            f"cannot read the suite: {error}",
            where=str(path),
            expected="the run directory of a complete suite",
            hint="to complete an interrupted one, run it again with `resume`",
        ) from None
