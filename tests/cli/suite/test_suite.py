"""`berthline suite`: lists, dry runs, results, exit codes."""

import json
import shlex

import pytest
from tests.experiments.suites.small_suite import RUNS, SMALL, digest, lines

from berthline.experiments.suites.suite_plan import shipped_suites
from berthline.runs.run_layout import RUN_KINDS

# A rule that cannot run without knowledge of run times: its runs fail, one by one.
FAILING = SMALL.replace("policy = true", 'policy = true\nknowledge = "none"')


@pytest.fixture
def plan(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return str(path)


def test_the_list(run):
    found = run("suite", "--json").json["suites"]
    assert [one["suite"] for one in found] == list(shipped_suites())
    for one in found:
        assert one["runs"] > 0
        assert one["job_starts"] > one["runs"]


def test_results(run, plan, tmp_path):
    out = tmp_path / "out"
    outcome = run("suite", plan, "--workers", "1", "--out", str(out))
    assert (outcome.code, outcome.err) == (0, "")
    for text in ("best-on-val", "verdict", "95 % interval", "6 cells", str(out)):
        assert text in outcome.out
    names = {path.name for path in out.iterdir()}
    assert names < set(RUN_KINDS["suite"].files)
    assert json.loads((out / "meta.json").read_text())["verb"] == "suite"
    again = run("suite", plan, "--workers", "1", "--json")
    assert again.json == json.loads((out / "summary.json").read_text())
    # The plan as run is a plan.
    as_run = run("suite", str(out / "suite.toml"), "--workers", "1", "--out", str(tmp_path / "2"))
    assert as_run.code == 0
    assert digest(tmp_path / "2") == digest(out)


def test_status(run, plan, tmp_path):
    out = tmp_path / "out"
    run("suite", plan, "--workers", "1", "--out", str(out))
    assert f"{RUNS} of {RUNS} (100%), 0 failed" in run("suite", "status", str(out)).out
    found = run("suite", "status", str(out), "--json").json
    assert (found["state"], found["total"], found["is_complete"]) == ("finished", RUNS, True)
    missing = run("suite", "status", str(tmp_path / "none"))
    assert missing.code == 2
    assert "there is no suite" in missing.err
    (out / "progress.json").write_text("{")
    assert "damaged" in run("suite", "status", str(out)).err


def test_dry_run_writes_nothing(run, plan, tmp_path):
    before = sorted(tmp_path.iterdir())
    outcome = run("suite", plan, "--dry-run", "--out", str(tmp_path / "out"))
    assert outcome.code == 0
    for text in (f"runs       {RUNS}\ntasks      about ", "CPU time", "disk", "base-low-4"):
        assert text in outcome.out
    assert sorted(tmp_path.iterdir()) == before
    found = run("suite", plan, "--dry-run", "--json").json
    assert found["runs"] == RUNS
    assert found["cpu_seconds"] > 0
    assert found["disk_mb"] > 0
    assert len(found["names"]) == found["cells"] == 6


def test_a_part_of_a_suite_says_so(run, plan, tmp_path):
    out = tmp_path / "out"
    outcome = run("suite", plan, "--limit", "40", "--workers", "1", "--out", str(out))
    assert "at most 40 runs: a balanced part of the suite" in outcome.out
    assert all(line["limited"] for line in lines(out / "metrics.jsonl"))
    assert run("suite", plan, "--only", "base-*", "--seeds", "1", "--json").json["cells"] == 2


def test_other_schedulers(run, plan):
    found = run("suite", plan, "--schedulers", "fcfs,sjf", "--only", "base-*", "--json").json
    assert [one["scheduler"] for one in found["schedulers"]] == ["fcfs", "sjf", "best-on-val"]


def test_a_policy_is_one_more_scheduler(run, plan, tmp_path):
    words = ("suite", plan, "--policy", "deadlines-v1", "--only", "*load=0.9*", "--seeds", "1")
    outs = [tmp_path / workers for workers in ("1", "2")]
    for out in outs:
        assert run(*words, "--workers", out.name, "--out", str(out)).code == 0
    assert digest(outs[0]) == digest(outs[1])
    summary = json.loads((outs[0] / "summary.json").read_text())
    names = [one["scheduler"] for one in summary["schedulers"]]
    assert names == ["fcfs", "random+skip", "sjf+easy", "deadlines-v1"]
    assert summary["chosen_on_val"] is None


def test_a_policy_is_refused_where_it_does_not_fit(run, tmp_path):
    path, out = tmp_path / "small.toml", tmp_path / "out"
    path.write_text(FAILING)
    outcome = run("suite", str(path), "--policy", "deadlines-v1", "--out", str(out))
    assert outcome.code == 2
    assert "the policy does not fit 6 of 6 cells" in outcome.err
    assert "knowledge 'estimate', not 'none'" in outcome.err
    assert "base-low-2" in outcome.err or "and 3 more" in outcome.err
    assert not out.exists()


def test_the_command_of_a_failure_repeats_it(run, tmp_path):
    plan = tmp_path / "small.toml"
    plan.write_text(FAILING)
    out = tmp_path / "out"
    outcome = run("suite", str(plan), "--out", str(out), "--workers", "1")
    assert outcome.code == 1
    assert "runs failed" in outcome.err
    failed = lines(out / "failures.jsonl")[4]
    words = shlex.split(failed["command"])
    assert words[0] == "berthline"
    again = run(*(word for word in words[1:] if word != "--debug"), "--json")
    assert again.code == 1
    assert again.json["failed"] == again.json["runs"] == 1
    assert failed["error"]["what"] in again.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["coer"], "unknown suite 'coer'"),
        (["core", "robustness"], "unexpected argument 'robustness'"),
        (["core", "--only", "none"], "--only is 'none', which no run has"),
        (["core", "--limit", "3"], "--limit is 3"),
        (["core", "--engine", "spark"], "--engine is 'spark'"),
        (["core", "--address", "x:1"], "--address given for the engine local"),
        (["core", "--resume"], "--resume has no effect without --out"),
        (["core", "--schedulers", "fcsf"], "fcsf"),
        (["core", "--steps", "9"], "this suite trains nothing"),
        (["online", "--policy", "runs/x"], "--policy does not apply to this suite"),
        (["status"], "which suite?"),
    ],
)
def test_mistakes(run, words, told):
    outcome = run("suite", *words)
    assert outcome.code == 2
    assert told in outcome.err
    assert "Traceback" not in outcome.err
