"""`open_run`: every kind of run is opened, and a part that it does not have is refused in words."""

import json
import subprocess
import sys

import pytest

import berthline as bl
from berthline.cli.main import main
from berthline.errors import BerthlineError, ConfigError
from berthline.runs.run_layout import RUN_KINDS

CLUSTER = "uniform:2x4:V100"
SEARCH = {"cluster": CLUSTER, "window_jobs": 30, "windows": 2, "train_windows": 4, "space": "lane"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Return small runs by name."""
    path = tmp_path_factory.mktemp("runs")
    sim = ["sim", "synthetic", "--jobs", "20", "--cluster", CLUSTER, "--out", str(path / "sim")]
    assert main(sim) == 0
    schedulers = ["fcfs", "sjf+easy"]
    bl.compare("synthetic", CLUSTER, schedulers, jobs=20, windows=2, out=path / "compare")
    bl.evaluate(
        "sjf", against=["fcfs"], cluster=CLUSTER, windows=2, window_jobs=20, out=path / "eval"
    )
    bl.tune(**SEARCH, evaluations=40, out=path / "search")
    bl.tune(**SEARCH, evaluations=8, search="both", out=path / "both")
    return {name: bl.open_run(path / name) for name in ("sim", "compare", "eval", "search", "both")}


def test_kind__is_that_of_the_command(runs):
    kinds = {name: run.kind for name, run in runs.items()}
    assert kinds.pop("both") == "search"
    assert kinds == {name: name for name in kinds}
    assert all(run.is_complete for run in runs.values())


def test_sim__has_all_tables(runs):
    run = runs["sim"]
    assert len(run.workload) == len(run.jobs) == run.results["jobs"]["submitted"] == 20
    assert run.cluster.total_gpus == 8
    assert bl.simulate(run.workload, run.cluster, run.settings["scheduler"]).log.sha256() == (
        run.log.sha256()
    )
    assert run.metrics == [run.results]


def test_compare__has_a_log_per_scheduler(runs):
    run = runs["compare"]
    assert list(run.logs) == ["fcfs", "sjf+easy"]
    assert len(run.metrics) == 4
    assert [one.scheduler for one in run.verdicts] == ["sjf+easy"]
    with pytest.raises(ConfigError, match="several schedulers"):
        _ = run.log


def test_eval__gives_the_verdict_on_report(runs):
    (verdict,) = runs["eval"].verdicts
    assert (verdict.scheduler, verdict.against) == ("sjf", "fcfs")
    assert verdict.words == runs["eval"].results["against_rival"]["jct_mean"]["verdict"]


def test_search__has_a_curve(runs):
    assert runs["search"].curve["step"].to_list() == [40]
    assert len(runs["search"].verdicts) >= 1


def test_parts__are_runs(runs):
    run = runs["both"]
    assert list(run.parts) == ["cma", "random"]
    assert run.parts["random"].results["search"] == "random"
    with pytest.raises(ConfigError, match="each part of the run has its own metrics"):
        _ = run.metrics
    with pytest.raises(ConfigError, match="before its first validation"):
        _ = run.parts["cma"].curve


def test_missing_parts__are_never_promised(runs):
    """An error either names a part of the run that has it, or kinds of run that do."""
    for run in runs.values():
        for part in ("workload", "cluster", "jobs", "logs", "curve", "checkpoints", "metrics"):
            try:
                getattr(run, part)
            except ConfigError as error:
                if error.hint.startswith("run.parts"):
                    assert part in ("metrics", "curve")
                elif "has no" in error.what:
                    named = error.expected.removeprefix("a run of kind ").split(", ")
                    assert run.kind not in named
                    assert set(named) <= RUN_KINDS.keys()


def test_what_is_not_a_run__is_refused(tmp_path):
    with pytest.raises(BerthlineError, match="no such directory"):
        bl.open_run(tmp_path / "none")
    with pytest.raises(BerthlineError, match=r"there is no meta\.json"):
        bl.open_run(tmp_path)
    (tmp_path / "meta.json").write_text(json.dumps({"verb": "dance"}))
    (tmp_path / "config.toml").write_text("")
    with pytest.raises(BerthlineError, match="names no kind of run"):
        bl.open_run(tmp_path)


def test_a_run_directory_is_read_without_the_formats_of_traces(tmp_path):
    """They take longer to import than a small run takes to read."""
    bl.simulate("synthetic", "uniform:1x8", "fcfs", out=tmp_path / "run")
    code = (
        "import sys, berthline as bl; "
        f"run = bl.open_run({str(tmp_path / 'run')!r}); "
        "assert len(run.workload) == 1000 and len(run.result.log) == 3000; "
        "print([name for name in sys.modules if name.startswith('berthline.traces.formats.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names = ["berthline.traces.formats.detection", "berthline.traces.formats.parquet"]
    assert done.stdout.strip() == str(names)
