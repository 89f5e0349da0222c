"""`berthline export`: what is written, where, and that it comes back."""

from __future__ import annotations

import csv
import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import berthline as bl
from berthline.evaluate.metrics.job_table import job_table
from berthline.report.exports.batsim import COLUMNS, interval_set
from berthline.sim.simulate import simulate
from berthline.traces.load import load_trace

CLUSTER = "uniform:4x8:V100"
SIM = ("synthetic", "--cluster", CLUSTER, "--jobs", "300", "--load", "1.1", "--seed", "3")


class TestSwf:
    def test_the_same_run_comes_back(self, run, tmp_path):
        out = tmp_path / "run.swf"
        given = run("export", "swf", *SIM, "--scheduler", "sjf+easy", "--out", str(out))
        assert (given.code, given.err) == (0, "")
        again = simulate(load_trace(out), CLUSTER, "sjf+easy", seed=3)
        rows = [line.split() for line in out.read_text().splitlines() if line[0] != ";"]
        waits = [int(row[2]) for row in rows]
        assert max(waits) > 0
        found = job_table(again.log, again.workload).start - again.workload.submit
        assert found.tolist() == waits

    def test_a_run_directory_gives_the_same_file(self, run, tmp_path):
        directory = tmp_path / "run"
        run("sim", *SIM, "--scheduler", "sjf+easy", "--out", str(directory))
        for source, name in (((str(directory),), "a.swf"), (SIM, "b.swf")):
            more = () if len(source) == 1 else ("--scheduler", "sjf+easy")
            out = str(tmp_path / name)
            assert run("export", "swf", *source, *more, "--out", out).code == 0
        assert (tmp_path / "a.swf").read_bytes() == (tmp_path / "b.swf").read_bytes()

    def test_rejected_jobs_have_no_wait(self, run, trace, tmp_path):
        out = tmp_path / "out.swf"
        outcome = run("export", "swf", str(trace), "--cluster", "uniform:1x8", "--out", str(out))
        assert outcome.code == 0
        assert "1 of 5 rows left out" in outcome.out
        rows = [line.split() for line in out.read_text().splitlines() if line[0] != ";"]
        assert [(row[4], row[2]) for row in rows] == [
            ("2", "0"),
            ("16", "-1"),
            ("8", "80"),
            ("1", "129"),
        ]


class TestBatsim:
    @pytest.fixture
    def written(self, run, tmp_path):
        outcome = run("export", "batsim", *SIM, "--out", str(tmp_path / "b"), "--json")
        assert outcome.code == 0
        return tmp_path / "b"

    def test_jobs(self, written):
        with (written / "jobs.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert tuple(rows[0]) == COLUMNS
        assert len(rows) == 300
        taken: dict[int, float] = {}
        for row in sorted(rows, key=lambda row: float(row["starting_time"])):
            start, finish = float(row["starting_time"]), float(row["finish_time"])
            submit = float(row["submission_time"])
            assert row["final_state"] == "COMPLETED_SUCCESSFULLY"
            assert float(row["waiting_time"]) == start - submit
            assert float(row["stretch"]) == pytest.approx((finish - submit) / (finish - start))
            gpus = numbers(row["allocated_resources"])
            assert len(gpus) == int(row["requested_number_of_resources"])
            assert max(gpus) < 32
            assert all(taken.get(gpu, 0.0) <= start for gpu in gpus)
            taken |= dict.fromkeys(gpus, finish)

    def test_workload_and_platform(self, written):
        workload = json.loads((written / "workload.json").read_bytes())
        assert workload["nb_res"] == 32
        assert len(workload["jobs"]) == 300
        for job in workload["jobs"]:
            profile = workload["profiles"][job["profile"]]
            assert profile["type"] == "delay"
            assert job.get("walltime", np.inf) >= profile["delay"] > 0
            assert 1 <= job["res"] <= 32
        root = ET.parse(written / "platform.xml").getroot()
        hosts = [host.attrib["id"] for host in root.iter("host")]
        assert hosts[0] == "master_host"
        assert hosts[1:] == [f"node{n}_gpu{g}" for n in range(4) for g in range(8)]

    def test_a_second_export_needs_force(self, run, written):
        again = ("export", "batsim", *SIM, "--out", str(written))
        assert run(*again).code == 2
        assert run(*again, "--force").code == 0
        (written / "mine.txt").write_text("")
        outcome = run(*again, "--force")
        assert outcome.code == 2
        assert "--out holds 'mine.txt'" in outcome.err


def numbers(text: str) -> list[int]:
    found: list[int] = []
    for part in text.split():
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def test_interval_sets_come_back() -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        some = sorted(set(rng.integers(0, 40, rng.integers(1, 30)).tolist()))
        assert numbers(interval_set(some)) == some


class TestRunDirectories:
    def test_the_trace_is_not_needed_any_more(self, run, trace, tmp_path):
        directory = tmp_path / "run"
        run("sim", str(trace), "--cluster", "uniform:1x8", "--out", str(directory))
        trace.unlink()
        outcome = run("export", "swf", str(directory), "--out", str(tmp_path / "x.swf"))
        assert (outcome.code, outcome.err) == (0, "")

    def test_files_from_elsewhere_are_refused(self, run, trace, tmp_path):
        for name, source in (("a", (str(trace),)), ("b", SIM)):
            run("sim", *source, "--out", str(tmp_path / name))
        foreign = (tmp_path / "b" / "workload.parquet").read_bytes()
        (tmp_path / "a" / "workload.parquet").write_bytes(foreign)
        export = ("export", "swf", str(tmp_path / "a"), "--out", str(tmp_path / "x.swf"))
        outcome = run(*export)
        assert outcome.code == 2
        assert "events.parquet is of other jobs than workload.parquet" in outcome.err
        (tmp_path / "a" / "workload.parquet").unlink()
        assert "there is no workload.parquet" in run(*export).err

    def test_options_that_it_says_itself_are_refused(self, run, tmp_path):
        directory = tmp_path / "run"
        run("sim", *SIM, "--out", str(directory))
        out = ("--out", str(tmp_path / "x.swf"))
        outcome = run("export", "swf", str(directory), "--seed", "7", *out)
        assert outcome.code == 2
        assert "--seed is given, but the run directory determines it" in outcome.err
        outcome = run("export", "swf", str(directory), "--scheduler", "sjf", *out)
        assert outcome.code == 2
        assert "but the run used 'fcfs+strict@first-fit'" in outcome.err
        assert run("export", "swf", str(directory), "--scheduler", "fcfs", *out).code == 0

    def test_of_a_comparison_needs_a_scheduler(self, run, tmp_path):
        directory = tmp_path / "run"
        options = ("--jobs", "100", "--load", "1.2", "--cluster", CLUSTER, "--out", str(directory))
        assert run("compare", "synthetic", "--schedulers", "fcfs,sjf+easy", *options).code == 0
        out = tmp_path / "out.swf"
        outcome = run("export", "swf", str(directory), "--out", str(out))
        assert outcome.code == 2
        assert "expected: --scheduler with one of fcfs, sjf+easy" in outcome.err
        outcome = run(
            "export", "swf", str(directory), "--scheduler", "sjf+easy", "--out", str(out), "--json"
        )
        assert outcome.json["scheduler"] == "sjf+easy@first-fit"
        outcome = run("explain", "longest", str(directory), "--scheduler", "sjf+easy", "--quick")
        assert outcome.code == 0
        assert "under sjf+easy@first-fit" in outcome.out


def test_perfetto_of_a_run_directory(run, tmp_path) -> None:
    directory = tmp_path / "run"
    run("sim", *SIM, "--scheduler", "sjf", "--out", str(directory))
    out = tmp_path / "t.json.gz"
    outcome = run("export", "perfetto", str(directory), "--out", str(out), "--json")
    assert outcome.code == 0
    assert outcome.json["bytes"] == out.stat().st_size
    starts = int(bl.open_run(directory).log.is_start.sum())
    assert outcome.json["events"] > starts


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("gantt", "synthetic", "--out", "x.json"), "WHAT is 'gantt'"),
        (("perfetto", "synthetic", "--out", "x.txt"), "--out is 'x.txt'"),
        (("perfetto", "nothing", "--out", "x.json"), "unknown workload 'nothing'"),
        (("swf", "synthetic", "--out", "no/x.swf"), "the directory of --out does not exist"),
        (("perfetto", "synthetic"), "--out is missing"),
    ],
)
def test_mistakes(run, monkeypatch, tmp_path, words, message) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = run("export", *words)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err
