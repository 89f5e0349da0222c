"""`berthline whatif`: from an accounting log to an answer, and nothing written on the way."""

import json

import numpy as np
import pytest
from tests.evaluate.whatif.sacct_text import sacct_text, whole_seconds

import berthline as bl
from berthline.errors import ConfigError
from berthline.evaluate.whatif.period import DAY, WEEK, LogClock, read_period

CLUSTER = "uniform:4x8"


@pytest.fixture(scope="module")
def text():
    jobs = bl.generate(
        "poisson",
        cluster=CLUSTER,
        jobs=900,
        load=0.9,
        seed=1,
        estimates="human",
        estimate_error=1,
        run_median=5000,
        run_high=86_400,
    )
    return sacct_text(bl.simulate(whole_seconds(jobs), CLUSTER, "fcfs+easy"))


@pytest.fixture
def log(tmp_path, text):
    path = tmp_path / "jobs.sacct"
    path.write_text(text)
    return path


def test_an_answer_for_people(run, log):
    done = run("whatif", str(log))
    assert done.code == 0
    lines = [line for line in done.out.splitlines() if not line.startswith("again")]
    assert max(map(len, lines)) <= 80
    for said in (
        "read-only",
        "in short",
        "32 GPUs on 4 nodes, inferred from the log",
        "the time limits, as on the cluster",
        "fcfs+easy: first come, first served, with backfill",
        "fidelity    good",
        "makespan",
        "slowdown",
    ):
        assert said in done.out, said
    assert f"again      berthline whatif {log} --seed 0" in done.out


def test_json_is_the_same_answer(run, log):
    found = run("whatif", str(log), "--schedulers", "sjf+easy", "--json").json
    assert found["today"] == "fcfs+easy"
    assert [each["scheduler"] for each in found["outcomes"]] == ["fcfs+easy", "sjf+easy"]
    assert found["fidelity"]["within_2x"] > 0.99
    assert found["from"] < found["to"]
    assert {finding["what"] for finding in found["cluster"]["findings"]} >= {"nodes", "GPUs"}


def test_nothing_is_written_without_out(run, log, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("whatif", str(log))
    assert [entry.name for entry in tmp_path.iterdir()] == ["jobs.sacct"]


def test_out_is_a_run_directory(run, log, tmp_path):
    done = run("whatif", str(log), "--schedulers", "sjf+easy", "--out", str(tmp_path / "run"))
    assert done.code == 0
    names = {entry.name for entry in (tmp_path / "run").iterdir()}
    assert names == {
        "config.toml",
        "meta.json",
        "metrics.jsonl",
        "summary.json",
        "cluster.toml",
    }
    assert bl.Cluster.parse(str(tmp_path / "run" / "cluster.toml")).total_gpus == 32
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["today"] == "fcfs+easy"
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == 2


def test_the_inferred_cluster_can_be_corrected_and_given_back(run, log, tmp_path):
    found = run("whatif", str(log), "--schedulers", "sjf+easy", "--json").json
    (tmp_path / "mine.toml").write_text(found["cluster_toml"].replace("gpus = 8", "gpus = 16"))
    again = run(
        *("whatif", str(log), "--cluster", str(tmp_path / "mine.toml")),
        *("--schedulers", "sjf+easy", "--json"),
    ).json
    assert again["cluster"]["gpus"] == 64
    assert again["cluster"]["findings"] == []
    assert again["cluster_toml"] is None


def test_users_and_partitions_may_have_any_name(run, log):
    log.write_text(log.read_text().replace("|user1|gpu|", "|a very long name [indeed]|gpu|"))
    done = run("whatif", str(log), "--schedulers", "sjf+easy")
    assert done.code == 0
    assert "a very long name" in done.out


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (("--from", "yesterday"), "--from is 'yesterday'"),
        (("--from", "2024-03-09", "--to", "2024-03-08"), "ends before it begins"),
        (("--from", "2030-01-01"), "no job of the log is in this period"),
        (("--week", "2", "--last", "7d"), "given twice"),
        (("--week", "0"), "--week is '0'"),
        (("--last", "soon"), "--last is 'soon'"),
        (("--last", "1h"), "jobs of the period can be used"),
        (("--schedulers", "sfj+easy"), "sfj"),
        (("--schedulers", ""), "--schedulers is empty"),
        (("--today", "sfj"), "sfj"),
        (("--knowledge", "all"), "--knowledge is 'all'"),
        (("--knowledge", "none", "--schedulers", "sjf+easy"), "needs run times"),
        (("--force",), "--force has no effect without --out"),
    ],
)
def test_what_makes_no_sense_is_refused(run, log, options, what):
    done = run("whatif", str(log), *options)
    assert done.code == 2
    assert done.err.startswith("error: ")
    assert what in done.err
    assert "Traceback" not in done.err
    assert done.out == ""


def test_a_log_without_starts_is_refused(run, tmp_path, log):
    rows = [line.split("|") for line in log.read_text().splitlines()]
    drop = rows[0].index("Start")
    log.write_text("\n".join("|".join(row[:drop] + row[drop + 1 :]) for row in rows) + "\n")
    done = run("whatif", str(log))
    assert done.code == 2
    assert "does not say when jobs started" in done.err
    assert run("whatif", str(tmp_path / "none.txt")).code == 2


def test_period__weeks_dates_and_the_end():
    zero = 1_709_510_400.0  # 2024-03-04 in UTC
    clock, length = LogClock(zero, "UTC"), 3 * WEEK
    none = {"begin": None, "end": None, "week": None, "last": None}
    assert read_period(clock, length, **none) == (2 * WEEK + 1, length + 1)
    assert read_period(clock, length, **{**none, "week": 2}) == (WEEK, 2 * WEEK)
    assert read_period(clock, length, **{**none, "last": "36h"}) == pytest.approx(
        (length + 1 - 1.5 * DAY, length + 1)
    )
    assert read_period(clock, length, **{**none, "begin": "2024-03-06"}) == (
        2 * DAY,
        2 * DAY + WEEK,
    )
    dates = {"begin": "2024-03-06T12:00", "end": "5d"}
    assert read_period(clock, length, **{**none, **dates}) == (2.5 * DAY, 5 * DAY)
    assert clock.show(2.5 * DAY) == "2024-03-06 12:00"


def test_period__dates_are_those_on_the_clusters_wall():
    clock = LogClock(1_709_510_400.0, "Asia/Shanghai")
    assert clock.read("begin", "2024-03-04T08:00") == 0
    assert clock.show(0) == "2024-03-04 08:00"
    assert LogClock(None, None).show(36 * 3600) == "day 1.5"
    with pytest.raises(ConfigError, match="the log has no dates"):
        LogClock(None, None).read("begin", "2024-03-04")
    assert np.isfinite(LogClock(0.0, "somewhere/else").read("begin", "2024-03-04"))


@pytest.mark.parametrize("suffix", [".swf", ".parquet"])
def test_a_converted_log_is_a_log(run, log, tmp_path, suffix):
    copy = tmp_path / f"copy{suffix}"
    assert run("traces", "convert", str(log), "--out", str(copy)).code == 0
    done = run("whatif", str(copy), "--cluster", CLUSTER, "--json")
    assert done.code == 0, done.err
    original = run("whatif", str(log), "--cluster", CLUSTER, "--json").json
    assert done.json["replay"]["jobs"] == original["replay"]["jobs"]
    if suffix == ".parquet":  # SWF has no priorities, so that today's scheduler may be another
        assert done.json["outcomes"] == original["outcomes"]


def test_an_exported_run_is_a_log(run, tmp_path):
    out = tmp_path / "run.swf"
    argv = ["--jobs", "600", "--scheduler", "fcfs+easy", "--cluster", CLUSTER]
    assert run("export", "swf", "synthetic", *argv, "--out", str(out)).code == 0
    done = run("whatif", str(out), "--json")
    assert done.code == 0, done.err
    assert done.json["replay"]["jobs"] > 0
