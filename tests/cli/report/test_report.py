"""`berthline report`, `report figures` and `report curve`."""

import json

import polars as pl
import pytest

from berthline.number_text import duration
from berthline.report.figures.figure_table import COMPARISON_FIGURES
from berthline.report.run_results import mean, results_of
from berthline.runs.open_run import open_run

pytest.importorskip("matplotlib", reason="the extra 'report' is not installed")


META = '{"berthline": "0", "verb": "compare"}'


@pytest.fixture
def directory(run, tmp_path):
    out = tmp_path / "run"
    arguments = ("--schedulers", "fcfs,sjf+easy", "--windows", "3", "--jobs", "60")
    assert run("compare", "synthetic", *arguments, "--out", str(out)).code == 0
    return out


@pytest.mark.parametrize("form", ["figures", "curve"])
def test_help_of_the_other_forms(run, form):
    outcome = run("report", form, "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert f"\n  berthline report {form} " in outcome.out
    _usage, *rest = outcome.out.splitlines()
    assert max(map(len, rest)) <= 80


def test_help_names_every_kind_of_figure(run):
    words = run("report", "figures", "--help").out.replace(",", " ").replace(".", " ").split()
    assert set(COMPARISON_FIGURES) <= set(words)


COMPARE = '{"berthline": "0", "verb": "compare"}'


class TestPage:
    def test_prints_the_verdict_and_where_it_is(self, run, directory):
        outcome = run("report", str(directory))
        assert (outcome.code, outcome.err) == (0, "")
        assert "has the lowest mean JCT" in outcome.out
        assert str(directory / "report.html") in outcome.out.replace("\n", "")
        assert (directory / "report.html").read_text().startswith("<!DOCTYPE html>")
        names = {path.name for path in (directory / "figures").iterdir()}
        assert {"cdf.png", "cdf.csv", "gantt.png", "losses.csv"} <= names
        # the run may still be replaced, with its report
        again = run("compare", "synthetic", "--jobs", "9", "--out", str(directory), "--force")
        assert again.code == 0
        assert not (directory / "report.html").exists()

    def test_json(self, run, directory):
        found = run("report", str(directory), "--json").json
        assert found["report"] == str(directory / "report.html")
        assert found["verdict"]
        assert found["not_drawn"]["load"] == "the run has one load"
        assert all(name.endswith((".png", ".csv")) for name in found["figures"])

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (None, "there is no such directory"),
            ({}, "there is no meta.json"),
            ({"meta.json": "{}", "config.toml": ""}, "meta.json names no kind of run"),
            ({"meta.json": META, "config.toml": "=="}, "config.toml cannot be read"),
            ({"meta.json": META, "config.toml": ""}, "there is no summary.json"),
            ({"meta.json": META, "config.toml": "", "summary.json": "[1"}, "cannot be read"),
            ({"meta.json": META, "config.toml": "", "summary.json": "{}"}, "cannot be read"),
            ({"meta.json": META, "config.toml": "", "summary.json": "3"}, "cannot be read"),
            (
                {"meta.json": META, "config.toml": "", "summary.json": '{"cells": []}'},
                "cannot be read",
            ),
        ],
    )
    def test_what_is_no_run(self, run, tmp_path, content, words):
        path = tmp_path / "elsewhere"
        if content is not None:
            path.mkdir()
            for name, text in content.items():
                (path / name).write_text(text)
        outcome = run("report", str(path))
        assert outcome.code == 2
        assert words in outcome.err
        assert "expected: a run directory" in outcome.err
        assert "Traceback" not in outcome.err

    def test_a_damaged_table_is_named(self, run, directory):
        (directory / "jobs.parquet").write_bytes(b"PAR1 and nothing else")
        outcome = run("report", str(directory))
        assert outcome.code == 2
        assert "jobs.parquet" in outcome.err


class TestFigures:
    def test_some_in_another_format(self, run, directory, tmp_path):
        folder = tmp_path / "paper"
        outcome = run(
            "report", "figures", str(directory), "--only", "cdf,oracle,load",
            "--format", "svg", "--out", str(folder),
        )  # fmt: skip
        assert (outcome.code, outcome.err) == (0, "")
        names = sorted(path.name for path in folder.iterdir())
        assert names == ["cdf.csv", "cdf.svg", "oracle.csv", "oracle.svg"]
        assert "not drawn: the run has one load" in outcome.out

    def test_unknown_names(self, run, directory):
        outcome = run("report", "figures", str(directory), "--only", "gant")
        assert outcome.code == 2
        assert "did you mean 'gantt'?" in outcome.err
        assert run("report", "figures", str(directory), "--format", "bmp").code == 2

    def test_nothing_to_draw(self, run, directory):
        outcome = run("report", "figures", str(directory), "--only", "load")
        assert outcome.code == 2
        assert "there is nothing to draw: load: the run has one load" in outcome.err


class TestCurve:
    @pytest.fixture
    def files(self, tmp_path):
        for seed in (1, 2):
            rows = [f"{step},{seed * step},x" for step in range(0, 50, 10)]
            (tmp_path / f"ppo-{seed}.csv").write_text("step,reward,note\n" + "\n".join(rows))
        (tmp_path / "sac.csv").write_text("step,reward,note\n0,5,a\n40,100,b\n")
        return [str(tmp_path / name) for name in ("ppo-1.csv", "ppo-2.csv", "sac.csv")]

    def test_seeds_together(self, run, files, tmp_path):
        out = tmp_path / "curve.png"
        outcome = run("report", "curve", *files, "--out", str(out), "--json")
        assert outcome.json["curves"] == ["ppo", "sac"]
        assert out.read_bytes().startswith(b"\x89PNG")
        rows = pl.read_csv(out.with_suffix(".csv")).filter(pl.col("curve") == "ppo")
        assert rows["x"].to_list() == [0, 10, 20, 30, 40]
        assert rows["mean"].to_list() == [0, 15, 30, 45, 60]
        assert rows["low"].to_list() == [0, 10, 20, 30, 40]
        assert rows["high"].to_list() == [0, 20, 40, 60, 80]
        assert rows["seeds"].to_list() == [2] * 5

    def test_smooth(self, run, files, tmp_path):
        out = tmp_path / "curve.pdf"
        assert run("report", "curve", files[0], "--smooth", "2", "--out", str(out)).code == 0
        assert pl.read_csv(out.with_suffix(".csv"))["mean"].to_list() == [0, 5, 15, 25, 35]

    def test_errors(self, run, files, tmp_path):
        outcome = run(
            "report", "curve", files[0], "--y", "rewards", "--out", str(tmp_path / "a.png")
        )
        assert outcome.code == 2
        assert "did you mean 'reward'?" in outcome.err
        missing = run("report", "curve", str(tmp_path / "none.csv"))
        assert missing.code == 2
        assert "cannot be read as CSV" in missing.err
        own = run("report", "curve", files[2], "--out", str(tmp_path / "sac.png"))
        assert own.code == 2
        assert "would overwrite an input file" in own.err
        assert (tmp_path / "sac.csv").read_text().startswith("step,reward,note")
        assert run("report", "curve").code == 2


def test_demo_tunes_and_ends_with_the_report(run, monkeypatch, tmp_path):
    from berthline.cli.demo import command as demo
    from berthline.cli.demo import tune as demo_tune

    monkeypatch.setattr(demo, "JOBS", 100)
    for name, value in {"SECONDS": 2.0, "WINDOW_JOBS": 60, "JUDGED": 3}.items():
        monkeypatch.setattr(demo_tune, name, value)
    monkeypatch.chdir(tmp_path)
    outcome = run("demo")
    assert outcome.code == 0
    tuned = json.loads((tmp_path / "runs" / "demo" / "tuning.json").read_text())
    assert tuned["scheduler"] in outcome.out
    assert tuned["report"]["windows"] == 3
    assert "Tuned just now: " in outcome.out
    assert run("demo").code == 0  # which replaces the former, with all its files
    assert "runs/demo/report.html" in outcome.out
    assert (tmp_path / "runs" / "demo" / "report.html").stat().st_size < 8_000_000
    summary = json.loads((tmp_path / "runs" / "demo" / "summary.json").read_text())
    assert summary["baseline"] == "fcfs"


class TestEveryKind:
    def test_an_evaluation_begins_with_its_verdict_on_report(self, run, tmp_path):
        out = tmp_path / "run"
        options = ("--windows", "3", "--window-jobs", "60", "--against", "fcfs,fcfs+easy")
        assert run("eval", "sjf+easy", *options, "--out", str(out)).code == 0
        summary = json.loads((out / "summary.json").read_text())
        found = run("report", str(out), "--json").json
        assert found["verdict"][0] == f"{summary['verdict']}."
        assert "REPORT" in found["verdict"][0]
        shown = results_of(open_run(out))
        val, report = summary["cells"]
        assert (val["part"], report["part"], shown.cell["part"]) == ("VAL", "REPORT", "REPORT")
        best = shown.ranked("jct_mean")[0]
        times = [
            {each["scheduler"]: mean(each["per_window"]["jct_mean"]) for each in cell["schedulers"]}
            for cell in (val, report)
        ]
        assert duration(times[0][best]) != duration(times[1][best])
        assert f"{best} has the lowest mean JCT, {duration(times[1][best])}" in " ".join(
            found["verdict"]
        )

    def test_an_evaluation_in_one_run_with_replicates(self, run, tmp_path):
        out = tmp_path / "run"
        options = ("--continuous", "--window-jobs", "160", "--jitter", "2", "--cluster=uniform:1x8")
        argv = ("eval", "sjf+easy", "--against", "fcfs,fcfs+easy", *options, "--out", str(out))
        assert run(*argv).code == 0
        found = run("report", str(out), "--json").json
        summary = json.loads((out / "summary.json").read_text())
        assert "16 blocks of the REPORT run" in found["verdict"][0]
        shown, report = results_of(open_run(out)), summary["cells"][1]
        for each in report["schedulers"]:
            for metric, judged in each["against_baseline"].items():
                ratio = shown.ratio(each["scheduler"], report["baseline"], metric)
                assert ratio.ratio == pytest.approx(judged["ratio"], rel=1e-6)
                assert ratio.windows == judged["windows"]
        page = (out / "report.html").read_text()
        assert "one continuous run of 160 jobs" in page
        assert "Left behind" in page

    def test_a_search(self, run, tmp_path):
        out = tmp_path / "run"
        options = ("--evaluations", "16", "--window-jobs", "60", "--windows", "2")
        assert run("train", "es", *options, "--train-windows", "4", "--out", str(out)).code == 0
        found = run("report", str(out), "--json").json
        summary = json.loads((out / "summary.json").read_text())
        assert found["verdict"][0] == f"The tuned scheduler is {summary['scheduler']}"
        assert (out / "figures" / "search.csv").is_file()
        assert "On held-out windows (REPORT)" in (out / "report.html").read_text()

    def test_training(self, run, tmp_path):
        pytest.importorskip("torch", reason="the extra 'train' is not installed")
        out = tmp_path / "run"
        options = ("--steps", "600", "--envs", "4", "--episodes", "2", "--validate-every", "300")
        assert run("train", "ppo", *options, "--out", str(out)).code == 0
        found = run("report", str(out), "--json").json
        assert "held-out episodes (REPORT)" in found["verdict"][0]
        page = (out / "report.html").read_text()
        for words in ("Checkpoints", "checkpoints/best-", "learning_rate", "best on VAL"):
            assert words in page
        (out / "summary.json").unlink()
        unfinished = run("report", str(out), "--json").json
        assert "has not finished" in unfinished["verdict"][0]
