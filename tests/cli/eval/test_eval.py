"""`berthline eval`: schedulers and run directories, generators and traces, on fresh windows."""

import json

import numpy as np
import polars as pl
import pytest

import berthline as bl
from berthline.evaluate.compare.protocol import RIVALS
from berthline.runs.run_layout import RUN_KINDS
from berthline.traces.formats.parquet import write_parquet

EVAL = ("eval", "sjf+easy", "--windows", "4", "--window-jobs", "60", "--load", "1.3")


@pytest.fixture
def long_trace(tmp_path):
    rng = np.random.default_rng(1)
    jobs = bl.Workload.from_columns(
        submit=np.sort(rng.uniform(0, 40 * 86_400, 900)),
        run=rng.exponential(20_000, 900) + 1,
        estimate=rng.exponential(40_000, 900) + 1,
        gpus=rng.integers(1, 9, 900),
        name="long",
    )
    return write_parquet(jobs, tmp_path / "long.parquet")


def test_json(run):
    outcome = run(*EVAL, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    found = outcome.json
    assert found["run"] == "sjf+easy"
    others = [name for name in RIVALS if name != "sjf+easy"]
    assert [each["scheduler"] for each in found["candidates"]] == others
    best = min(found["candidates"], key=lambda each: each["jct_mean"])["scheduler"]
    assert found["rival"] == best
    assert [cell["part"] for cell in found["cells"]] == ["VAL", "REPORT"]
    assert found["against_rival"]["jct_mean"]["windows"] == 4
    assert found["verdict"].startswith(f"sjf+easy against {best}, the best of 8 rivals on VAL")
    hashes = [cell["schedulers"][0]["log_sha256"] for cell in found["cells"]]
    assert not set(hashes[0]) & set(hashes[1])


def test_measure__counts_jobs_of_each_window(run):
    argv = (*EVAL, "--against", "fcfs")
    whole, part = run(*argv, "--json").json, run(*argv, "--measure", "2000:", "--json").json
    for all_jobs, some in zip(whole["cells"], part["cells"], strict=True):
        assert some["measure"][0] == 2000
        ours, theirs = some["schedulers"][0], all_jobs["schedulers"][0]
        assert 0 < ours["jobs"]["submitted"] < theirs["jobs"]["submitted"]
        assert ours["log_sha256"] == theirs["log_sha256"]
    assert "jobs submitted from 2,000 s on" in run(*argv, "--measure", "2000:").out


def test_table(run):
    outcome = run(*EVAL, "--against", "fcfs,fcfs+easy")
    assert (outcome.code, outcome.err) == (0, "")
    assert "4 VAL windows and as many REPORT windows of 60 jobs" in outcome.out
    assert "Verdict: sjf+easy against fcfs" in outcome.out
    for text in ("rivals on VAL", "JCT p99", "bounded slowdown", "makespan", "GPU use", "oracle"):
        assert text in " ".join(outcome.out.split())
    assert max(map(len, outcome.out.rsplit("again ", 1)[0].splitlines())) <= 80
    again = outcome.out.rsplit("again ", 1)[1].split()
    assert again[:3] == ["berthline", "eval", "sjf+easy"]


def test_run_directory(run, tmp_path):
    out = tmp_path / "run"
    outcome = run(*EVAL, "--against", "fcfs", "--out", str(out), "--json")
    assert sorted(path.name for path in out.iterdir()) == sorted(RUN_KINDS["eval"].files)
    assert json.loads((out / "summary.json").read_text()) == outcome.json
    assert len((out / "metrics.jsonl").read_text().splitlines()) == 2 * 4 * 2
    jobs = pl.read_parquet(out / "jobs.parquet")
    assert jobs.group_by("cell").len()["len"].to_list() == [2 * 4 * 60] * 2
    first = outcome.json
    again = run("eval", str(out), "--against", "fcfs", "--windows", "4", "--json").json
    for found in (again, first):
        for cell in found["cells"]:
            for result in cell["schedulers"]:
                del result["wall_seconds"]
    assert again == first  # the settings of the run are taken


def test_the_best_of_a_comparison_is_judged_under_its_settings(run, tmp_path):
    out = tmp_path / "run"
    argv = ("--schedulers", "fcfs,sqrt-area+easy", "--condition", "restart=30", "--set", "users=3")
    compared = run(
        "compare", "synthetic", "--jobs", "70", "--load", "1.5", *argv, "--out", str(out), "--json"
    ).json
    assert compared["best"]["jct_mean"] == "sqrt-area+easy"
    found = run("eval", str(out), "--against", "fcfs", "--windows", "3", "--json")
    assert (found.code, found.err) == (0, "")
    assert found.json["run"] == "sqrt-area+easy"
    report = found.json["cells"][1]
    assert (report["load"], report["window_jobs"]) == (1.5, [70] * 3)
    assert report["conditions"] == {"restart": 30.0}
    seen = {sha for each in compared["schedulers"] for sha in each["log_sha256"]}
    for cell in found.json["cells"]:
        assert not seen & {sha for each in cell["schedulers"] for sha in each["log_sha256"]}
    other = run(
        "eval", str(out), "--against", "fcfs", "--windows", "2", "--workload", "bursty", "--json"
    ).json
    assert (other["cells"][1]["workload"], other["cells"][1]["load"]) == ("bursty", None)


def test_the_scheduler_of_a_sim_run(run, tmp_path):
    out = tmp_path / "run"
    argv = ("--scheduler", "lcfs+skip", "--jobs", "50", "--cluster", "uniform:2x8:A100")
    run("sim", "synthetic", *argv, "--condition", "restart=5", "--out", str(out))
    found = run("eval", str(out), "--against", "fcfs", "--windows", "2", "--json").json
    assert found["run"] == "lcfs+skip@first-fit"
    assert found["cells"][1]["cluster"] == "uniform:2x8:A100"
    assert found["cells"][1]["conditions"] == {"restart": 5.0}
    assert found["cells"][1]["window_jobs"] == [50, 50]


def test_a_trace_is_split_by_time(run, long_trace, tmp_path):
    argv = ("--workload", str(long_trace), "--cluster", "uniform:2x8", "--windows", "5")
    found = run("eval", "sjf+easy", *argv, "--json").json
    val, report = found["cells"]
    assert (val["workload"], report["workload"]) == ("long-validation", "long-test")
    assert sum(val["window_jobs"]) < 900 * 0.15
    assert sum(report["window_jobs"]) < 900 * 0.35
    wider = run("eval", "sjf+easy", *argv, "--gap", "3d", "--json").json
    assert sum(wider["cells"][1]["window_jobs"]) < sum(report["window_jobs"])
    out = tmp_path / "compared"
    run("compare", str(long_trace), "--cluster", "uniform:2x8", "--out", str(out))
    shown = run("eval", str(out), "--windows", "2", "--against", "fcfs,wfp3+easy").out
    assert "caution    RUN was the best of a comparison" in shown


def test_continuous(run, long_trace):
    argv = ("--workload", str(long_trace), "--cluster", "uniform:2x8", "--continuous")
    outcome = run("eval", "sjf+easy", *argv, "--blocks", "8")
    assert (outcome.code, outcome.err) == (0, "")
    text = " ".join(outcome.out.split())
    assert "a VAL run, and a REPORT run of" in text
    assert "on 8 blocks of the REPORT run: mean JCT" in text
    refused = run("eval", "sjf+easy", *argv, "--windows", "3")
    assert refused.code == 2
    assert "a continuous run has no windows" in refused.err


def test_idle_clusters_are_cautioned(run):
    argv = ("--windows", "6", "--window-jobs", "30", "--load", "0.05", "--against", "fcfs")
    assert "caution    no job ever waited" in run("eval", "sjf", *argv).out


def test_without_run_times(run):
    argv = ("eval", "lcfs", "--windows", "2", "--window-jobs", "40", "--knowledge", "none")
    outcome = run(*argv, "--json")
    assert outcome.code == 0
    assert "left out: fcfs+easy, sjf+easy" in outcome.err
    names = [each["scheduler"] for each in outcome.json["candidates"]]
    assert "las+skip!las" in names
    assert "sjf+easy" not in names


@pytest.mark.parametrize(
    ("argv", "texts"),
    [
        ((), ("RUN is missing",)),
        (("nope",), ("unknown ordering 'nope'",)),
        (("sjf", "--against", "fcfs,,sjf"), ("--against has an empty entry",)),
        (("sjf", "--against", "sjf"), ("--against names no scheduler other than 'sjf'",)),
        (("sjf", "--against", "fcfs,fcfs"), ("'fcfs' is listed twice",)),
        (("sjf", "--windows", "0"), ("--windows is '0'", "1 or more")),
        (("sjf", "--window-jobs", "x"), ("--window-jobs is 'x'",)),
        (("sjf", "--knowledge", "all"), ("--knowledge is 'all'", "one of none")),
        (("sjf", "--workload", "missing.swf"), ("unknown workload 'missing.swf'",)),
        (("sjf", "--gap", "soon"), ("--gap is 'soon'",)),
    ],
)
def test_bad_input(run, argv, texts):
    outcome = run("eval", *argv)
    assert outcome.code == 2
    assert outcome.out == ""
    for text in texts:
        assert text in outcome.err


def test_directories_that_are_no_run(run, tmp_path, long_trace):
    outcome = run("eval", str(tmp_path))
    assert outcome.code == 2
    assert "RUN cannot be evaluated" in outcome.err
    assert "berthline sim, compare, demo, eval" in outcome.err
    few = run("eval", "sjf", "--workload", str(long_trace), "--window-jobs", "50")
    assert few.code == 2
    assert "20 windows of 50 jobs need 1,000" in few.err
    assert "long-validation" in few.err


def test_the_rival_is_chosen_by_the_metric_that_is_asked_for(run):
    words = ("eval", "fcfs", "--windows", "3", "--window-jobs", "80", "--load", "1.3", "--json")
    against = ("--against", "sjf+easy,largest-first+easy,fcfs+easy,smallest-first+skip")
    found = {
        metric: run(*words, *against, "--metric", metric).json
        for metric in ("jct_mean", "utilization", "wait_mean")
    }
    for metric, one in found.items():
        values = {c["scheduler"]: c["value"] for c in one["candidates"]}
        choose = max if metric == "utilization" else min
        assert one["metric"] == metric
        assert one["rival"] == choose(values, key=values.get)
    assert "GPU utilisation" in found["utilization"]["verdict"]
    assert (
        found["jct_mean"]["candidates"][0]["value"]
        == (found["jct_mean"]["candidates"][0]["jct_mean"])
    )
    refused = run("eval", "fcfs", "--metric", "speed")
    assert refused.code == 2
    assert "jct_mean" in refused.err
