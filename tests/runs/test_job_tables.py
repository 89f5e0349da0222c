"""The tables in the run directory of a comparison: what became of every job, logs, inputs."""

import json

import numpy as np
import polars as pl
import pytest

import berthline as bl
from berthline.model.cluster import Cluster
from berthline.model.schedule import Schedule
from berthline.runs.job_outcomes import job_outcomes
from berthline.runs.job_tables import JobOutcomes

SCHEDULERS = ("fcfs", "sjf+easy")
COMPARE = ("compare", "synthetic", "--jobs", "150", "--load", "1.2", "--windows", "3")
TYPES = {
    "cell": pl.UInt16,
    "scheduler": pl.Categorical,
    "window": pl.UInt16,
    "job": pl.UInt32,
    "submit": pl.Float64,
    "wait": pl.Float32,
    "jct": pl.Float32,
    "run_time": pl.Float64,
    "bounded_slowdown": pl.Float32,
    "gpus": pl.Float64,
    "priority": pl.Float64,
    "user": pl.Categorical,
    "state": pl.Categorical,
}


@pytest.fixture
def compared(run, tmp_path):
    out = tmp_path / "run"
    argv = ("--schedulers", ",".join(SCHEDULERS), "--set", "users=3", "--out", str(out))
    assert run(*COMPARE, *argv).code == 0
    return out


def test_jobs(compared):
    jobs = pl.read_parquet(compared / "jobs.parquet")
    assert dict(jobs.schema) == TYPES
    assert len(jobs) == 2 * 3 * 150
    lines = [json.loads(line) for line in (compared / "metrics.jsonl").read_text().splitlines()]
    assert len(lines) == 6
    for line in lines:
        rows = jobs.filter(scheduler=line["scheduler"], window=line["window"])
        assert rows["job"].to_list() == list(range(150))
        assert rows["wait"].mean() == pytest.approx(line["wait"]["mean"], rel=1e-5)
        assert rows["jct"].max() == pytest.approx(line["jct"]["max"], rel=1e-6)
        slowdown = rows["bounded_slowdown"].mean()
        assert slowdown == pytest.approx(line["bounded_slowdown"]["mean"], rel=1e-5)
        assert set(rows["state"]) == {"completed"}
    assert set(jobs["user"]) <= {"user0", "user1", "user2"}


def test_what_was_run_can_be_run_again(compared):
    cluster = Cluster.parse(str(compared / "cluster.toml"))
    workload = bl.load_trace(compared / "workload.parquet")
    events = pl.read_parquet(compared / "events.parquet")
    first = json.loads((compared / "metrics.jsonl").read_text().splitlines()[0])
    for name in SCHEDULERS:
        log = bl.simulate(workload, cluster, name).log
        rows = events.filter(pl.col("scheduler") == name).drop("scheduler")
        assert Schedule.from_frame(rows).sha256() == log.sha256()
    assert bl.simulate(workload, cluster, "fcfs").log.sha256() == first["log_sha256"]


def test_same_command__same_files(run, tmp_path):
    for name in ("one", "two"):
        assert run(*COMPARE, "--out", str(tmp_path / name)).code == 0
    for file in ("jobs.parquet", "events.parquet", "cluster.toml", "workload.parquet"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_rejected_jobs_have_no_times(run, trace, tmp_path):
    out = tmp_path / "run"
    assert run("compare", str(trace), "--cluster", "uniform:1x8", "--out", str(out)).code == 0
    jobs = pl.read_parquet(out / "jobs.parquet")
    rejected = jobs.filter(state="rejected")
    assert len(rejected) == jobs["scheduler"].n_unique()
    for column in ("wait", "jct", "bounded_slowdown"):
        assert rejected[column].null_count() == len(rejected)
        assert jobs.filter(state="completed")[column].null_count() == 0


def test_unfinished_jobs_are_censored():
    workload = bl.Workload.from_columns(submit=[0, 0, 50], run=[100, 100, 20], gpus=1)
    result = bl.simulate(workload, "uniform:1x1", "fcfs", horizon=150)
    found = job_outcomes(result.log, workload)
    again = JobOutcomes.from_bytes(found.to_bytes())
    for outcomes in (found, again):
        assert outcomes.wait.tolist() == [0, 100, 100]
        assert outcomes.jct.tolist() == [100, 150, 100]
        assert outcomes.bounded_slowdown.tolist() == [1, 1.5, 5]
        assert outcomes.state.tolist() == [0, 1, 1]
    assert again.wait.dtype == np.float32


def test_pools_of_jobs(run, tmp_path):
    cluster = tmp_path / "pools.toml"
    cluster.write_text('[[nodes]]\ncount = 2\ngpus = 4\npool = "a"\n')
    trace = tmp_path / "pools.csv"
    trace.write_text("submit,run,gpus,pool\n0,10,1,a\n1,10,1,\n2,10,1,a\n")
    out = tmp_path / "run"
    argv = ("--cluster", str(cluster), "--map", "submit=submit,run=run,gpus=gpus,pool=pool")
    outcome = run("compare", str(trace), *argv, "--schedulers", "fcfs", "--out", str(out))
    assert (outcome.code, outcome.err) == (0, "")
    assert pl.read_parquet(out / "jobs.parquet")["pool"].to_list() == ["a", None, "a"]


def test_columns_of_the_workload_are_not_rounded(run, tmp_path):
    """Priorities of 0.5, parts of a GPU and long run times stand there as they were given."""
    rows = [(0, 16_777_217.5, 1, 0.5), (1, 100.25, 0.3, 2.5), (2, 50, 2, -1e12), (3, 60, 1, 7)]
    lines = "\n".join(",".join(map(str, row)) for row in rows)
    (tmp_path / "jobs.csv").write_text(f"submit,run,gpus,priority\n{lines}\n")
    for verb in (("sim",), ("compare", "--schedulers", "fcfs,static-priority")):
        out = tmp_path / verb[0]
        words = ("--cluster", "uniform:1x4:V100", "--out", str(out))
        answer = run(verb[0], str(tmp_path / "jobs.csv"), *verb[1:], *words)
        assert answer.code == 0, answer.err
        jobs = pl.read_parquet(out / "jobs.parquet").head(4)
        assert jobs["priority"].to_list() == [0.5, 2.5, -1e12, 7]
        assert jobs["gpus"].to_list() == [1, 0.3, 2, 1]
        assert jobs["run_time"].to_list() == [16_777_217.5, 100.25, 50, 60]
