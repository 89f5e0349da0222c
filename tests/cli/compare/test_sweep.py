"""`berthline compare` over several workloads, clusters, loads and seeds."""

import json

import polars as pl
import pytest

SMALL = ("--jobs", "80", "--schedulers", "fcfs,sjf+easy")


def test_cells_are_workloads_by_clusters_by_loads(run, tmp_path):
    out = tmp_path / "run"
    argv = ("--cluster", "uniform:4x8,uniform:8x4", "--loads", "0.7,1.1", "--windows", "2")
    outcome = run("compare", "synthetic", "bursty", *SMALL, *argv, "--out", str(out), "--json")
    assert (outcome.code, outcome.err) == (0, "")
    cells = outcome.json["cells"]
    assert [(cell["workload"], cell["cluster"], cell["load"]) for cell in cells] == [
        (workload, cluster, load)
        for workload in ("synthetic", "bursty")
        for cluster in ("uniform:4x8:V100", "uniform:8x4:V100")
        for load in (0.7, 1.1)
    ]
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert len(lines) == 8 * 2 * 2
    for line in lines:
        cell = cells[line["cell"]]
        assert (line["workload"], line["load"]) == (cell["workload"], cell["load"])
        number = ["fcfs", "sjf+easy"].index(line["scheduler"])
        values = cell["schedulers"][number]["per_window"]["jct_mean"]
        assert values[line["window"]] == line["jct"]["mean"]
    jobs = pl.read_parquet(out / "jobs.parquet")
    assert jobs.group_by("cell").len()["len"].to_list() == 8 * [2 * 2 * 80]


def test_a_cell_is_what_a_comparison_by_itself_is(run):
    swept = run("compare", "synthetic", *SMALL, "--loads", "0.8,1.2", "--json").json["cells"]
    alone = run("compare", "synthetic", *SMALL, "--load", "1.2", "--json").json
    for found in (swept[1], alone):
        for result in found["schedulers"]:
            del result["wall_seconds"]
    assert swept[1] == alone


def test_a_trace_is_scaled_to_each_load(run, trace):
    argv = ("--cluster", "uniform:1x8", "--loads", "0.5,2")
    cells = run("compare", str(trace), *argv, "--json").json["cells"]
    fast, slow = (cell["schedulers"][0]["metrics"]["makespan"] for cell in cells)
    assert fast > slow
    assert "1 of 5 rows left out" in run("compare", str(trace), *argv).out


def test_seeds_are_averaged_in_each_window(run, tmp_path):
    argv = ("compare", "synthetic", "--jobs", "80", "--schedulers", "fcfs,random+skip")
    argv += ("--condition", "mtbf=20000", "--windows", "2")
    out = tmp_path / "run"
    found = run(*argv, "--seeds", "3", "--out", str(out), "--json").json
    assert (found["seeds"], found["windows"]) == (3, 2)
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert len(lines) == 2 * 3 * 2
    for number, result in enumerate(found["schedulers"]):
        for window in range(2):
            runs = [
                line
                for line in lines
                if line["scheduler"] == result["scheduler"] and line["window"] == window
            ]
            assert len({line["seed"] for line in runs}) == 3
            assert len({line["log_sha256"] for line in runs}) == 3
            mean = sum(line["jct"]["mean"] for line in runs) / 3
            assert result["per_window"]["jct_mean"][window] == pytest.approx(mean)
        assert result["against_baseline"]["jct_mean"]["windows"] == 2
        single = run(*argv, "--json").json["schedulers"][number]
        assert result["log_sha256"][0] == single["log_sha256"][0]  # the first seed is --seed


def test_printed(run):
    outcome = run("compare", "synthetic", *SMALL, "--loads", "1.2,2")
    assert outcome.out.count("against fcfs:") == 2
    assert "all 2 together, 2 windows: changes against fcfs" in outcome.out
    assert max(map(len, outcome.out.rsplit("again", 1)[0].splitlines())) <= 80
    assert "at load 1.2" in outcome.out
    assert "at load 2" in outcome.out
    assert "--loads 1.2,2" in outcome.out


@pytest.mark.parametrize(
    ("argv", "texts"),
    [
        ((), ("WORKLOAD",)),
        (("synthetic", "synthetic"), ("WORKLOAD has 'synthetic' twice",)),
        (("synthetic", "--loads", "0.7,x"), ("--loads has 'x'", "more than 0")),
        (("synthetic", "--loads", "0.7,0.70"), ("--loads has '0.7' twice",)),
        (("synthetic", "--loads", "0.7", "--load", "1"), ("--load and --loads",)),
        (("synthetic", "--cluster", "uniform:1x8,"), ("--cluster", "empty entry")),
        (("synthetic", "--cluster", "uniform:1x8,uniform:1x8"), ("--cluster", "twice")),
        (("synthetic", "--cluster", "uniform:1x8,nowhere"), ("unknown cluster 'nowhere'",)),
        (("synthetic", "--seeds", "0"), ("--seeds is '0'", "1 or more")),
        (("synthetic", "--workers", "0"), ("--workers is '0'", "1 or more")),
    ],
)
def test_bad_input(run, argv, texts):
    outcome = run("compare", *argv)
    assert outcome.code == 2
    assert outcome.out == ""
    for text in texts:
        assert text in outcome.err
