"""Run directories: complete or not written at all, and no file of the user is ever lost."""

import json
import math
import tomllib

import polars as pl
import pytest

import berthline as bl
from berthline.errors import ConfigError, OutputError
from berthline.runs import run_directory
from berthline.runs.run_directory import RunDirectory, to_toml
from berthline.runs.run_layout import RUN_KINDS, START

SIM = ("sim", "synthetic", "--jobs", "40", "--scheduler", "sjf+easy")


def write(directory, **changes):
    given = {"command": "x", "config": {}, "seed": 1, "summary": {"a": 1}, "metrics": [{"a": 1}]}
    directory.write(**given | changes)


def names(path):
    return sorted(entry.name for entry in path.iterdir())


def test_content_of_a_sim_run(run, tmp_path):
    out = tmp_path / "deep" / "run"
    outcome = run(*SIM, "--set", "users=3", "--out", str(out), "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert names(out) == sorted({*RUN_KINDS["sim"].files} - {START})
    assert names(out.parent) == ["run"]  # nothing half-written stays behind

    config = tomllib.loads((out / "config.toml").read_text())
    assert config["scheduler"] == "sjf+easy@first-fit"
    assert config["knowledge"] == "estimate"
    assert config["seed"] == 0
    assert config["set"] == {"users": "3"}

    meta = json.loads((out / "meta.json").read_text())
    assert meta["verb"] == "sim"
    assert meta["command"].startswith("berthline sim synthetic --jobs 40")
    assert {"berthline", "seed", "python", "machine", "written"} <= meta.keys()
    assert meta["workload"]["provenance"]["generator"] == "synthetic"

    summary = json.loads((out / "summary.json").read_text())
    assert summary == outcome.json
    lines = (out / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [summary]

    events = pl.read_parquet(out / "events.parquet")
    assert len(events) == summary["events"]
    assert events.columns == ["time", "kind", "job", "nodes", "gpus", "reason", "slots"]
    log = bl.open_run(out).log
    assert log.sha256() == summary["log_sha256"]
    assert (log.decisions, log.horizon) == (summary["decisions"], math.inf)


def test_where_the_results_are_is_printed(run, tmp_path):
    out = tmp_path / "run"
    assert f"results    {out}" in run(*SIM, "--out", str(out)).out


def test_existing_results_are_kept_unless_forced(run, tmp_path):
    out = tmp_path / "run"
    run(*SIM, "--out", str(out))
    before = (out / "summary.json").read_bytes()

    refused = run(*SIM, "--seed", "5", "--out", str(out))
    assert refused.code == 2
    assert "the output directory exists and is not empty" in refused.err
    assert "with --force" in refused.err
    assert (out / "summary.json").read_bytes() == before

    assert run(*SIM, "--seed", "5", "--out", str(out), "--force").code == 0
    assert json.loads((out / "summary.json").read_text())["seed"] == 5
    assert names(tmp_path) == ["run"]


def test_force_replaces_nothing_else(run, tmp_path):
    foreign = tmp_path / "thesis"
    foreign.mkdir()
    (foreign / "chapter1.tex").write_text("years of work")
    outcome = run(*SIM, "--out", str(foreign), "--force")
    assert outcome.code == 2
    assert "the output directory holds something other than results of berthline sim" in outcome.err

    out = tmp_path / "run"
    run(*SIM, "--out", str(out))
    (out / "notes.txt").write_text("mine")
    outcome = run(*SIM, "--out", str(out), "--force")
    assert outcome.code == 2
    assert "'notes.txt'" in outcome.err
    assert (out / "notes.txt").read_text() == "mine"
    (out / "notes.txt").unlink()

    other = run("compare", "synthetic", "--jobs", "9", "--out", str(out), "--force")
    assert other.code == 2
    assert "something other than results of berthline compare" in other.err


def test_an_existing_file_is_refused(run, tmp_path):
    path = tmp_path / "file"
    path.write_text("mine")
    outcome = run(*SIM, "--out", str(path), "--force")
    assert outcome.code == 2
    assert "existing file" in outcome.err
    assert path.read_text() == "mine"


def test_an_empty_directory_is_filled_in_place(run, tmp_path):
    out = tmp_path / "mounted"
    out.mkdir()
    inode = out.stat().st_ino
    assert run(*SIM, "--out", str(out)).code == 0
    assert names(out) == sorted({*RUN_KINDS["sim"].files} - {START})
    assert out.stat().st_ino == inode


def test_checked_before_the_work(run, tmp_path):
    out = tmp_path / "taken"
    out.mkdir()
    (out / "x").write_text("")
    assert "the output directory exists" in run("sim", "no-such-file.swf", "--out", str(out)).err


def test_failure_while_writing_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(run_directory, "_pretty", full)
    with pytest.raises(OutputError, match="No space left on device") as caught:
        write(RunDirectory(tmp_path / "run", verb="sim"))
    assert caught.value.exit_code == 1
    assert names(tmp_path) == []


def test_failed_replacement_keeps_the_earlier_run(tmp_path, monkeypatch):
    out = tmp_path / "run"
    write(RunDirectory(out, verb="sim"), summary={"number": 1})
    monkeypatch.setattr(run_directory, "_pretty", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write(RunDirectory(out, verb="sim", force=True), summary={"number": 2})
    assert json.loads((out / "summary.json").read_text()) == {"number": 1}
    assert names(tmp_path) == ["run"]


def test_results_survive_when_the_name_is_taken_meanwhile(tmp_path):
    out = tmp_path / "run"
    directory = RunDirectory(out, verb="sim")
    write(RunDirectory(out, verb="sim"), summary={"number": 1})
    with pytest.raises(OutputError, match="kept in") as caught:
        write(directory, summary={"number": 2})
    assert json.loads((out / "summary.json").read_text()) == {"number": 1}
    kept = next(entry for entry in tmp_path.iterdir() if entry != out)
    assert str(kept) in caught.value.hint
    assert json.loads((kept / "summary.json").read_text()) == {"number": 2}


def test_toml_round_trip():
    table = {
        "text": 'quote " backslash \\ newline \n tab \t delete \x7f unicode é',
        "whole": -3,
        "real": 0.1,
        "large": 1e300,
        "endless": float("inf"),
        "yes": True,
        "no": False,
        "list": ["a", "b"],
        "numbers": (1, 2.5),
        "a.key with spaces": 1,
        "nested": {"x": 1, "deeper": {"y": "z"}},
        "empty": {},
    }
    expected = table | {"numbers": [1, 2.5]}
    assert tomllib.loads(to_toml(table)) == expected
    assert to_toml({"nothing": None}) == ""


def test_paths_that_are_not_unicode_are_written(tmp_path):
    write(RunDirectory(tmp_path / "run", verb="sim"), config={"workload": "bad\udcffname"})
    assert "bad?name" in (tmp_path / "run" / "config.toml").read_text()


def test_empty_name():
    with pytest.raises(ConfigError, match="`out` is empty"):
        RunDirectory("", verb="sim")
