"""`berthline sim DIR --from-snapshot`, and other verbs on directories of such runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import berthline as bl
from berthline.cli.main import main

JOBS = "synthetic --jobs 300 --cluster uniform:4x8 --load 1 --set estimate_error=0.5"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs `whole`, `first` (stopped), `second` (continued) and a state `live`."""
    folder = tmp_path_factory.mktemp("runs")
    scheduler = "--scheduler fcfs+easy"
    assert main(f"sim {JOBS} {scheduler} --out {folder}/whole".split()) == 0
    assert main(f"sim {JOBS} {scheduler} --until 60000 --out {folder}/first".split()) == 0
    assert (
        main(f"sim {folder}/first --from-snapshot --until 65000 --out {folder}/second".split()) == 0
    )
    jobs = bl.Workload.from_columns(
        submit=[0, 60], run=[np.nan] * 2, gpus=[8, 8], estimate=[600, 60], rebase=False,
        of_snapshot=True,
    )  # fmt: skip
    cluster = bl.Cluster.uniform(nodes=1, gpus_per_node=8)
    live = bl.snapshot_of(jobs, cluster, now=90, running={0: (5.0, {0: 8})})
    bl.write_snapshot(live, folder / "live")
    return folder


def test_from_snapshot__finishes_are_those_of_the_uninterrupted_run(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(f"sim {folder}/second --from-snapshot --json".split()) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["from_snapshot"] == 65_000
    whole = bl.open_run(folder / "whole").result
    late = bl.resume(whole.snapshot(65_000.0), arrivals=bl.open_run(folder / "whole").arrivals(
        whole.snapshot(65_000.0)
    )).metrics()  # fmt: skip
    assert found["jct"]["mean"] == late.jct.mean
    assert found["jobs"]["completed"] == late.jobs.completed > 10
    assert found["utilization"]["gpu"] == late.utilization.gpu


@pytest.mark.parametrize(
    ("command", "texts"),
    [
        ("sim first --from-snapshot --until 50000", ["the horizon is 50,000 s", "60,000 s"]),
        ("sim first --from-snapshot --jobs 4", ["--jobs is given with --from-snapshot"]),
        ("sim first --from-snapshot --cluster uniform:1x8", ["--cluster is given"]),
        ("sim first --from-snapshot --at 1e12", ["no state at 1,000,000,000,000 s", "60,000"]),
        ("sim first --from-snapshot --at nan", ["--at is 'nan'"]),
        ("sim first --from-snapshot --scheduler nonsense", ["nonsense"]),
        ("sim first --from-snapshot --time-decisions", ["a run that begins empty"]),
        ("sim first --from-snapshot --measure :50000", ["ends at 50,000 s, before the run begins"]),
        ("sim first --from-snapshot --measure 500d:", ["no job is submitted in the measurement"]),
        ("sim synthetic --measure 500d:", ["no job is submitted in the measurement window"]),
        ("sim first --from-snapshot --until 70000 --horizon 80000", ["two names of one option"]),
        ("sim synthetic --horizon=70000 --until=70000", ["two names of one option"]),
        ("sim synthetic --at 4", ["--at has no effect without --from-snapshot"]),
        ("sim synthetic --from-snapshot", ["continues a run directory"]),
        ("sim whole --from-snapshot", ["the run went to its end", "--at"]),
        ("sim no_start --from-snapshot", ["there is no start.json"]),
        ("sim other_log --from-snapshot", ["events.parquet is of another run"]),
        ("sim fewer_nodes --from-snapshot", ["contradicts itself", "node"]),
        ("sim live --from-snapshot --scheduler fcfs", ["run time of job 0 is not known"]),
        ("sim live --from-snapshot", ["run time of job 0 is not known"]),
        ("explain 299 first", ["job 299 is submitted at", "60,000 s"]),
        ("explain --calibrate second", ["its past is not complete"]),
        ("explain 1 live", ["names no scheduler"]),
    ],
)
def test_from_snapshot__errors_say_what_and_where(
    command: str, texts: list[str], folder: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(folder)
    for name, of in (("no_start", "second"), ("other_log", "first"), ("fewer_nodes", "first")):
        shutil.copytree(of, name, dirs_exist_ok=True)
    Path("no_start/start.json").unlink()
    shutil.copy("whole/events.parquet", "other_log")
    cluster = Path("fewer_nodes/cluster.toml")
    cluster.write_text(cluster.read_text().replace("count = 4", "count = 2"))
    capsys.readouterr()
    assert main(command.split()) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    for text in texts:
        assert text in captured.err


def test_from_snapshot__a_window_that_begins_earlier_begins_with_the_run(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = []
    for window in ("", "--measure 10:1e9", "--measure :70000"):
        capsys.readouterr()
        assert main(f"sim {folder}/first --from-snapshot --json {window}".split()) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[0]["wait"] == found[1]["wait"]
    result = bl.open_run(folder / "whole").result
    state = result.snapshot(60_000.0)
    early = int((result.workload.submit < 70_000).sum()) - state.memory.jobs
    assert 0 < found[2]["jobs"]["submitted"] == early < found[0]["jobs"]["submitted"]


def test_report__of_a_continued_run_begins_where_it_began(folder: Path) -> None:
    assert main(f"report {folder}/second".split()) == 0
    page = (folder / "second/report.html").read_text(encoding="utf-8")
    assert "The run began at 60,000 s" in page
    assert "jobs not over at 60,000 s" in page
    table = pl.read_csv(folder / "second/figures/timeline.csv")
    assert table["hours"].min() > 60_000 / 3600
    result = bl.open_run(folder / "second").result
    held = table["utilization"].mean()
    assert held == pytest.approx(result.metrics().utilization.gpu, abs=0.05)


def test_repr__is_one_short_line(folder: Path) -> None:
    result = bl.open_run(folder / "first").result
    state = result.snapshot(50_000.0)
    forecast = bl.forecast(state, history=result, draws=2)
    decision = bl.decide(state)
    for value in (
        result, result.log, result.workload, state, state.memory, forecast, decision
    ):  # fmt: skip
        text = repr(value)
        assert len(text) < 160, text
        assert "\n" not in text
    assert repr(state) == (
        f"<Snapshot of fcfs+easy@first-fit at 50,000 s: {state.num_jobs} jobs on uniform:4x8:V100>"
    )


def test_from_snapshot__other_verbs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (
        f"explain longest {folder}/second --quick",
        f"explain --submit gpus=1,estimate=1h {folder}/first",
        f"explain --submit gpus=1,estimate=1h {folder}/live --scheduler fcfs",
        f"sim {folder}/whole --from-snapshot --at 1e9",
    ):
        assert main(command.split()) == 0, command
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "call",
    [
        lambda: bl.resume("runs/1"),  # type: ignore[arg-type]
        lambda: bl.decide(None),  # type: ignore[arg-type]
        lambda: live_state(now="x"),
        lambda: live_state(down=["a"]),
        lambda: live_state(running=[0]),
        lambda: live_state(running={"train": (5.0, {0: 8})}),
        lambda: live_state(running={0: (5.0, {"n0": 8})}),
        lambda: live_state(running={0: (5.0, {0: 8.5})}),
        lambda: live_state(running={0: (5.0,)}),
        lambda: live_state(submit=[60, 0]),
    ],
)
def test_wrong_types_and_orders_are_errors_of_the_usual_form(call: object) -> None:
    assert callable(call)
    with pytest.raises(bl.BerthlineError):
        call()


def live_state(**changes: object) -> bl.Snapshot:
    jobs = bl.Workload.from_columns(
        submit=changes.pop("submit", [0, 60]),  # type: ignore[arg-type]
        run=[np.nan] * 2,
        gpus=[8, 8],
        rebase=False,
        of_snapshot=True,
    )
    cluster = bl.Cluster.uniform(nodes=1, gpus_per_node=8)
    return bl.snapshot_of(jobs, cluster, **{"now": 90, **changes})  # type: ignore[arg-type]
