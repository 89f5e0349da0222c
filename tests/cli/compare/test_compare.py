"""`berthline compare`: the same jobs for all, a table, JSON, and a run directory."""

import json

import pytest

from berthline.evaluate.compare.cells import window_seeds
from berthline.runs.run_layout import RUN_KINDS

COMPARE = ("compare", "synthetic", "--jobs", "120", "--load", "1.5")


def test_json(run):
    outcome = run(*COMPARE, "--schedulers", "fcfs,sjf+easy", "--windows", "3", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    found = outcome.json
    assert found["baseline"] == "fcfs"
    assert found["windows"] == 3
    assert found["knowledge"] == "estimate"
    assert [result["scheduler"] for result in found["schedulers"]] == ["fcfs", "sjf+easy"]
    for result in found["schedulers"]:
        assert result["jobs"]["submitted"] == 360
        assert len(result["per_window"]["jct_mean"]) == 3
    assert len(set(found["schedulers"][0]["log_sha256"])) == 3  # three different windows


def test_agrees_with_sim(run):
    compared = run(*COMPARE, "--schedulers", "sjf+easy", "--seed", "7", "--json").json
    alone = run("sim", *COMPARE[1:], "--scheduler", "sjf+easy", "--seed", "7", "--json").json
    assert compared["schedulers"][0]["log_sha256"] == [alone["log_sha256"]]


def test_measure__counts_what_sim_counts(run):
    """A comparison measures in its window what one run does, and says so."""
    window = ("--seed", "7", "--measure", "500:2000")
    compared = run(*COMPARE, "--schedulers", "sjf+easy", *window, "--json").json
    alone = run("sim", *COMPARE[1:], "--scheduler", "sjf+easy", *window, "--json").json
    whole = run(*COMPARE, "--schedulers", "sjf+easy", "--seed", "7", "--json").json
    found = compared["schedulers"][0]
    assert compared["measure"] == alone["measure"] == [500, 2000]
    assert 0 < found["jobs"]["submitted"] == alone["jobs"]["submitted"] < 120
    for metric in ("jct", "wait", "utilization", "queue", "makespan"):
        assert found["metrics"][metric] == alone[metric]
    assert found["log_sha256"] == whole["schedulers"][0]["log_sha256"]
    assert compared["bounds"][0]["jobs"] == found["jobs"]["submitted"]
    assert compared["bounds"][0]["mean"] <= found["metrics"]["jct"]["mean"]
    assert "jobs submitted from 500 s to 2,000 s" in run(*COMPARE, *window).out


def test_measure__of_a_continuous_run__blocks_are_within_it(run):
    argv = (*COMPARE, "--schedulers", "fcfs,sjf", "--continuous", "--blocks", "4", "--json")
    whole, part = run(*argv).json, run(*argv, "--measure", "1000:").json
    ratio = part["schedulers"][1]["against_baseline"]["jct_mean"]
    assert ratio["windows"] == 4
    assert ratio["ratio"] != whole["schedulers"][1]["against_baseline"]["jct_mean"]["ratio"]
    fcfs, sjf = (result["metrics"]["jct"]["mean"] for result in part["schedulers"])
    assert (sjf < fcfs) == (ratio["ratio"] < 1)


@pytest.mark.parametrize(
    ("window", "text"), [("20:10", "the measurement window is 20:10"), ("9e9:", "no job of")]
)
def test_measure__nothing_in_it__is_refused(run, window, text):
    outcome = run(*COMPARE, "--measure", window)
    assert outcome.code == 2
    assert text in outcome.err


def test_table(run):
    outcome = run(*COMPARE, "--windows", "8", "--baseline", "fcfs+easy")
    assert (outcome.code, outcome.err) == (0, "")
    assert "against fcfs+easy, with 95 % intervals" in outcome.out
    assert "knowledge estimate, seed 0" in outcome.out
    assert "*" in outcome.out
    assert "caution" not in outcome.out
    assert "960 submitted, 960 completed" in outcome.out
    table = outcome.out.rsplit("again", 1)[0]
    assert max(map(len, table.splitlines())) <= 80


@pytest.mark.parametrize(
    ("windows", "text"), [("1", "one run without blocks"), ("3", "only 3 windows")]
)
def test_few_windows_are_cautioned(run, windows, text):
    assert f"caution    {text}" in run(*COMPARE, "--windows", windows).out


def test_long_names_fit_80_columns(run):
    long = "smallest-area+easy@best-fit?express-lane,[estimate * sqrt(gpus)]+conservative@worst-fit"
    outcome = run(*COMPARE, "--schedulers", f"fcfs,{long}", "--windows", "6")
    table = outcome.out.rsplit("again", 1)[0]
    assert max(map(len, table.splitlines())) <= 80
    assert "smallest-area+easy@best-fit" in table  # not broken within a word
    assert "\n  ?express-lane" in table


def test_trace_is_cut_into_windows(run, trace):
    argv = ["compare", str(trace), "--cluster", "uniform:1x8", "--windows", "2"]
    found = run(*argv, "--json")
    assert found.json["window_jobs"] == [2, 2]
    assert "1 of 5 rows left out" in found.err
    shown = run(*argv)
    assert "1 of 5 rows left out" in shown.out
    assert "1 rejected" in shown.out
    assert "berthline sim says why" in shown.out


def test_run_directory(run, tmp_path):
    out = tmp_path / "run"
    outcome = run(*COMPARE, "--schedulers", "fcfs,sjf", "--out", str(out), "--json")
    files = sorted(path.name for path in out.iterdir())
    assert files == sorted(RUN_KINDS["compare"].files)
    assert json.loads((out / "summary.json").read_text()) == outcome.json
    lines = (out / "metrics.jsonl").read_text().splitlines()
    runs = [json.loads(line) for line in lines]
    assert [(run["scheduler"], run["window"], run["seed"]) for run in runs] == [
        ("fcfs", 0, 0),
        ("sjf", 0, 0),
    ]
    assert [run["log_sha256"] for run in runs] == [
        result["log_sha256"][0] for result in outcome.json["schedulers"]
    ]


@pytest.mark.parametrize(
    ("argv", "texts"),
    [
        (["--schedulers", "fcfs,sjff"], ["unknown ordering 'sjff'", "did you mean 'sjf'?"]),
        (["--schedulers", "fcfs,fcfs+strict"], ["'fcfs+strict' is listed twice"]),
        (["--schedulers", ","], ["--schedulers is empty"]),
        (["--schedulers", "fcfs,,lcfs"], ["--schedulers has an empty entry", "fcfs,lcfs"]),
        (["--schedulers", "fcfs, [min(gpus,4)],"], ["--schedulers has an empty entry"]),
        (["--schedulers", ",fcfs"], ["--schedulers has an empty entry"]),
        (["--baseline", "fcsf"], ["unknown ordering 'fcsf'"]),
        (["--windows", "0"], ["--windows is '0'", "1 or more"]),
        (["--knowledge", "none"], ["needs run times"]),
        (["--cluster", "x"], ["unknown cluster 'x'"]),
        (["--condition", "tik=1"], ["unknown condition 'tik'", "did you mean 'tick'?"]),
    ],
)
def test_bad_options(run, argv, texts):
    outcome = run(*COMPARE, *argv)
    assert outcome.code == 2
    assert outcome.out == ""
    for text in texts:
        assert text in outcome.err


def test_more_windows_than_jobs(run, trace):
    outcome = run("compare", str(trace), "--cluster", "uniform:1x8", "--windows", "9")
    assert outcome.code == 2
    assert "--windows is 9" in outcome.err


def test_one_job_is_no_jobs(run):
    out = run("compare", "synthetic", "--jobs", "1", "--schedulers", "fcfs,[max(gpus,4)]").out
    assert "synthetic, 1 job in one run, on uniform:8x8:V100 (64 GPUs)" in out


def test_own_table__columns_are_told_by_a_map(run, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("when,how_long,cards\n0,10,1\n3,4,2\n")
    argv = ("compare", str(path), "--schedulers", "fcfs", "--map")
    outcome = run(*argv, "submit=when,run=how_long,gpus=cards", "--json")
    assert outcome.json["window_jobs"] == [2]


def test_conditions(run, tmp_path):
    given = ("--condition", "start_delay=50", "--condition", "checkpoint=inf")
    argv = (*COMPARE, "--schedulers", "fcfs,sjf", *given)
    shown = run(*argv, "--out", str(tmp_path / "r"))
    assert "* best\nconditions checkpoint=inf, start_delay=50\n\n" in shown.out
    assert "--condition start_delay=50" in shown.out
    found = run(*argv, "--json").json
    assert found["conditions"] == {"checkpoint": "inf", "start_delay": 50}
    kept = json.loads((tmp_path / "r" / "summary.json").read_text())
    assert kept["conditions"] == found["conditions"]


def test_window_seeds():
    seeds = window_seeds(1, 8)
    assert seeds[0] == 1
    assert len(set(seeds)) == 8
    assert window_seeds(1, 4) == seeds[:4]  # more windows keep the earlier ones
    assert not set(seeds) & set(window_seeds(2, 8))


def test_caution__when_no_job_ever_waits(run):
    idle = ("synthetic", "--jobs", "200", "--load", "0.001", "--schedulers", "fcfs,sjf")
    assert "no job ever waited" in run("compare", *idle).out
    assert "no job ever waited" not in run("compare", *idle, "--load", "20").out


def test_continuous(run):
    argv = (*COMPARE, "--schedulers", "fcfs,sjf+easy", "--continuous")
    found = run(*argv, "--blocks", "8", "--json").json
    assert found["continuous"] is True
    assert found["schedulers"][1]["against_baseline"]["jct_mean"]["windows"] == 8
    shown = run(*argv, "--blocks", "8").out
    assert "120 jobs in one run" in shown
    assert "with 95 % intervals over 8 blocks of jobs" in shown
    assert "caution" not in shown
    assert "only 3 blocks: intervals are rough; use --blocks 8" in run(*argv, "--blocks", "3").out


@pytest.mark.parametrize("option", ["--windows", "--seeds"])
def test_continuous_runs_have_no_windows(run, option):
    outcome = run(*COMPARE, "--continuous", option, "3")
    assert outcome.code == 2
    assert "a continuous run has no windows and one seed" in outcome.err


def test_bound_and_hindsight_are_printed(run):
    outcome = run(*COMPARE, "--windows", "8")
    assert "bound      no scheduler can have a mean JCT below" in outcome.out
    assert "oracle     best in hindsight by mean JCT: " in outcome.out
    assert "% over" in outcome.out


def test_no_verdict_without_the_rest_of_the_picture(run):
    differences = run(*COMPARE, "--windows", "8").out.partition("against fcfs")[2]
    for text in ("mean JCT", "bounded slowdown", "JCT p99", "makespan", "GPU use"):
        assert text in differences


def test_a_horizon_stops_every_run_and_unfinished_jobs_count(run):
    words = ("--jobs", "100", "--load", "1.2", "--seed", "2")
    compared = ("compare", "synthetic", "--schedulers", "fcfs,sjf+easy", *words)
    found = run(*compared, "--horizon", "9000", "--json").json
    for result in found["schedulers"]:
        name = result["scheduler"]
        alone = run("sim", "synthetic", "--scheduler", name, *words, "--horizon", "9000", "--json")
        assert result["jobs"] == alone.json["jobs"]
        assert result["jobs"]["unfinished"] > 0
        assert result["metrics"]["jct"]["mean"] == alone.json["jct"]["mean"]
        assert result["gap_to_bound"] is None, "a bound is for jobs that end"
    assert "at the horizon" in run(*compared, "--horizon", "9000").out
    assert "at the horizon" not in run(*compared).out


def test_mixed_clusters_show_use_weighted_by_flops(run):
    words = ("--schedulers", "fcfs@fastest-type", "--jobs", "100")
    mixed = run("compare", "synthetic", "--cluster", "drl-scheduler-types", *words).out
    assert "FLOPS" in mixed
    assert "FLOPS" not in run("compare", "synthetic", *words).out
    assert "weighted by FLOPS" in run("sim", "synthetic", "--jobs", "20").out
