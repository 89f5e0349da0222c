"""The real run in an exported run directory, and its table on the page of a report."""

from __future__ import annotations

import polars as pl
import pytest
from tests.evaluate.real_runs.test_sim_to_real import REAL

from berthline.evaluate.real_runs.exported_run import exported_run
from berthline.evaluate.real_runs.sim_to_real import sim_to_real
from berthline.policies.scheduler import Scheduler
from berthline.report.page.real_table import real_table
from berthline.runs.job_tables import input_writers
from berthline.runs.open_run import open_run
from berthline.runs.run_directory import RunDirectory
from berthline.sim.simulate import Result


def written(path, cycles):
    """Write the run as an export has it, with cycles of (number, time, mode)."""
    result = Result(
        log=REAL.log,
        workload=REAL.workload,
        cluster=REAL.cluster,
        scheduler=Scheduler.parse(REAL.scheduler),
        knowledge="estimate",
        seed=0,
        wall_seconds=0.0,
    )
    frame = pl.DataFrame(cycles, schema=["cycle", "time", "mode"], orient="row")
    files = input_writers(REAL.workload, REAL.cluster)
    RunDirectory(path, verb="deploy").write(
        command="berthline deploy export",
        config={"scheduler": REAL.scheduler, "knowledge": "estimate", "seed": 0},
        seed=0,
        summary=result.summary(),
        metrics=[],
        log=REAL.log,
        workload=REAL.workload,
        files=files | {"decisions.parquet": frame.write_parquet},
    )
    return open_run(path)


def test_cycles_that_acted_are_the_tick(tmp_path):
    cycles = [(1, 0.5, "shadow"), (3, 4.0, "act"), (3, 4.0, "act"), (7, 12.0, "act")]
    found = exported_run(written(tmp_path / "run", cycles))
    assert (found.tick, found.phase) == (2, 4)
    assert found.scheduler == "fcfs+strict"
    assert sim_to_real(found).jct_real == pytest.approx(sim_to_real(REAL).jct_real)


def test_without_cycles_that_acted_decisions_are_at_every_event(tmp_path):
    assert exported_run(written(tmp_path / "run", [(1, 0.5, "shadow")])).tick == 0


def test_the_page_of_a_real_run_has_a_table(tmp_path):
    run = written(tmp_path / "run", [(1, 0.5, "act")])
    page = real_table(run)
    for words in ("best fixed rule", "sjf, simulated", "pairs of jobs started", "none decided"):
        assert words in page
