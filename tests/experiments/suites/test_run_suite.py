"""A suite is made: tables, failures, resuming, two processes on one directory."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import polars as pl
import pytest
from tests.experiments.suites.small_suite import RUNS, SMALL, digest, lines, small_plan

from berthline.engines.engine import Engine
from berthline.errors import ConfigError, OutputError, RefusedError
from berthline.experiments.suites import run_suite as runner
from berthline.experiments.suites import suite_work, unit_worker
from berthline.experiments.suites.planned_runs import BEST_ON_VAL, PlannedRuns
from berthline.experiments.suites.read_suite import read_suite
from berthline.experiments.suites.run_suite import run_suite
from berthline.experiments.suites.suite_cells import window_of
from berthline.runs.directory_lock import locked
from berthline.runs.kept_runs import KeptRuns
from berthline.runs.run_layout import LOCK, PROGRESS, UNFINISHED
from berthline.sim.simulate import simulate

if TYPE_CHECKING:
    from pathlib import Path

# A rule that cannot run without knowledge of run times: its runs fail, one by one.
FAILING = SMALL.replace("policy = true", 'policy = true\nknowledge = "none"')


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """The suite, made by this process without interruption."""
    out = tmp_path_factory.mktemp("suite") / "whole"
    run_suite(small_plan(), out=out, workers=1)
    return out


@pytest.fixture(scope="module")
def kept(tmp_path_factory) -> Path:
    """The file of finished runs, when all have finished."""
    out = tmp_path_factory.mktemp("suite") / "kept"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "summary_of", stopped)
        with pytest.raises(KeyboardInterrupt):
            run_suite(small_plan(), out=out, workers=1)
    return out / UNFINISHED


def stopped(*_: object) -> None:
    raise KeyboardInterrupt


def test_the_tables(whole: Path) -> None:
    found = read_suite(whole)
    assert found.plan == small_plan()
    assert found.failures == []
    assert not (whole / UNFINISHED).exists()
    assert not (whole / LOCK).exists()
    cells = found.cells
    assert cells.height == RUNS - 12 + 18  # without those on VAL, with the choice made there
    assert cells["error"].null_count() == cells.height
    assert not cells["limited"].any()
    perturbed = cells.filter(pl.col("perturbation") != "")
    assert set(perturbed["twin"]) == set(perturbed["regime"])
    assert set(cells.filter(pl.col("twin") == "")["perturbation"]) == {""}
    assert perturbed["twin"].is_in(cells["cell"].implode()).all()
    assert len(lines(whole / "metrics.jsonl")) == RUNS + 18
    jobs = pl.read_parquet(whole / "jobs.parquet")
    assert jobs.height == cells["num_jobs"].sum()
    progress = json.loads((whole / PROGRESS).read_bytes())
    assert (progress["state"], progress["done"], progress["total"]) == ("finished", RUNS, RUNS)


def test_a_row_is_the_run_that_it_names(whole: Path) -> None:
    planned = PlannedRuns(small_plan())
    cells = read_suite(whole).cells
    jobs = pl.read_parquet(whole / "jobs.parquet")
    unit = next(
        unit for unit in planned.units if unit.clean.name == "base-low-4" and unit.seed == 2
    )
    workload = window_of(unit.clean, unit.part, 2, seed=unit.seed_for("jobs"), windows=unit.windows)
    for scheduler in planned.plan.schedulers:
        result = simulate(
            workload, unit.clean.nodes, scheduler, knowledge="estimate", seed=unit.seed_for("run")
        )
        row = cells.filter(cell="base-low-4", seed=2, scheduler=scheduler)
        assert row["log_sha256"].item() == result.metrics().log_sha256
        assert row["jct_mean"].item() == result.metrics().jct.mean
        assert row["gpus"].item() == 4
        own = jobs.filter(cell=5, window=2, scheduler=scheduler)
        assert own["submit"].to_list() == workload.submit.tolist()
        assert own["jct"].mean() == pytest.approx(result.metrics().jct.mean, rel=1e-6)


def test_all_schedulers_get_the_same_jobs(whole: Path) -> None:
    jobs = pl.read_parquet(whole / "jobs.parquet")
    kinds = jobs.group_by("cell", "window", "job").agg(pl.col("submit", "run_time").n_unique())
    assert kinds["submit"].max() == kinds["run_time"].max() == 1


def test_the_choice_on_val_is_one_of_the_rules(whole: Path) -> None:
    found = read_suite(whole)
    for cell, rule in found.summary["chosen_on_val"].items():
        rows = found.cells.filter(cell=cell)
        ours, theirs = (
            rows.filter(scheduler=name)["log_sha256"].to_list() for name in (BEST_ON_VAL, rule)
        )
        assert ours == theirs
    val = [line for line in lines(found.path / "metrics.jsonl") if line["protocol"] == "VAL"]
    assert len(val) == 12
    for cell, rule in found.summary["chosen_on_val"].items():
        means = {line["scheduler"]: line["jct"]["mean"] for line in val if line["cell"] == cell}
        assert rule == min(means, key=means.__getitem__)


@pytest.mark.parametrize("workers", [2, 3])
def test_same_bits_for_any_number_of_workers(whole: Path, workers: int, tmp_path: Path) -> None:
    run_suite(small_plan(), out=tmp_path / "out", workers=workers)
    assert digest(tmp_path / "out") == digest(whole)


def test_without_a_directory(whole: Path) -> None:
    found = run_suite(small_plan(), workers=1)
    assert found.results.cells_frame().equals(read_suite(whole).cells)
    assert found.directory is None


def test_stopped_at_any_byte_and_resumed(whole: Path, kept: Path, tmp_path: Path) -> None:
    content = kept.read_bytes()
    dice = random.Random(7)
    sizes = [0, 1, 20, len(content) - 1, *(dice.randrange(len(content)) for _ in range(8))]
    for number, size in enumerate(sizes):
        out = tmp_path / str(number)
        out.mkdir()
        (out / UNFINISHED).write_bytes(content[:size])
        run_suite(small_plan(), out=out, workers=1, resume=True)
        assert digest(out) == digest(whole), size


def test_a_changed_byte_loses_runs_but_no_result(whole: Path, kept: Path, tmp_path: Path) -> None:
    content = bytearray(kept.read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / UNFINISHED).write_bytes(content)
    run_suite(small_plan(), out=tmp_path, workers=1, resume=True)
    assert digest(tmp_path) == digest(whole)


def test_finished_runs_are_not_made_again(kept: Path, tmp_path: Path, monkeypatch) -> None:
    shutil.copy(kept, tmp_path / UNFINISHED)
    monkeypatch.setattr(unit_worker, "_made", stopped)
    told: list[tuple[int, int]] = []
    run_suite(
        small_plan(),
        out=tmp_path,
        workers=1,
        resume=True,
        progress=lambda done, total, _: told.append((done, total)),
    )
    assert told == [(RUNS, RUNS)]


def test_killed_again_and_again(whole: Path, tmp_path: Path) -> None:
    """Kill -9 at random moments, with worker processes."""
    plan, out = tmp_path / "small.toml", tmp_path / "out"
    plan.write_text(SMALL)
    words = [sys.executable, "-m", "berthline", "suite", str(plan), "--out", str(out)]
    words += ["--workers", "2"]
    dice = random.Random(3)
    for _number in range(4):
        more = ["--resume"] if out.exists() else []
        process = subprocess.Popen(
            [*words, *more], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        kept_before = (out / UNFINISHED).stat().st_size if (out / UNFINISHED).exists() else 0
        limit = time.monotonic() + 30
        while process.poll() is None and time.monotonic() < limit:
            size = (out / UNFINISHED).stat().st_size if (out / UNFINISHED).exists() else 0
            if size > kept_before + dice.randrange(1, 20_000):
                break
            time.sleep(0.002)
        process.kill()
        process.wait()
        if (out / "summary.json").exists():
            break
    if not (out / "summary.json").exists():
        run_suite(small_plan(), out=out, workers=1, resume=True)
    assert digest(out) == digest(whole)


def test_a_changed_plan_is_refused(kept: Path, tmp_path: Path) -> None:
    shutil.copy(kept, tmp_path / UNFINISHED)
    changed = small_plan(SMALL.replace("seeds = 3", "seeds = 4"))
    with pytest.raises(ConfigError, match="seeds was 3, and is 4"):
        run_suite(changed, out=tmp_path, resume=True)
    with pytest.raises(ConfigError, match="holds an unfinished run"):
        run_suite(changed, out=tmp_path)
    run_suite(changed, out=tmp_path, force=True, workers=1)
    assert read_suite(tmp_path).plan.seeds == 4


def test_complete_directories_are_kept(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(whole, out)
    with pytest.raises(ConfigError, match="nothing to resume"):
        run_suite(small_plan(), out=out, resume=True)
    with pytest.raises(ConfigError, match="exists and is not empty"):
        run_suite(small_plan(), out=out)
    (out / "thesis.tex").write_text("")
    with pytest.raises(ConfigError, match=r"'thesis\.tex'"):
        run_suite(small_plan(), out=out, force=True)
    assert digest(out) == digest(whole)


def test_the_second_process_is_refused(tmp_path: Path) -> None:
    with locked(tmp_path / LOCK):
        code = "import sys; from berthline.cli.main import main; sys.exit(main(sys.argv[1:]))"
        words = ["suite", "core", "--limit", "50", "--out", str(tmp_path)]
        ended = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False
        )
    assert ended.returncode == 3
    assert "another process writes there (process " in ended.stderr
    assert list(tmp_path.iterdir()) == []
    assert RefusedError.exit_code == 3


def test_failures_are_results(tmp_path: Path) -> None:
    out = tmp_path / "out"
    found = run_suite(small_plan(FAILING), out=out, workers=2)
    failed = lines(out / "failures.jsonl")
    assert failed == found.failures
    assert {line["scheduler"] for line in failed} == {"sjf+easy"}
    assert len(failed) == RUNS / 3 == found.summary.failed
    assert {line["attempts"] for line in failed} == {1}
    cells = read_suite(out).cells
    assert cells.height == RUNS - 12 + 18
    bad = cells.filter(scheduler="sjf+easy")
    assert bad["jct_mean"].null_count() == bad.height
    assert "knowledge" in bad["error"][0]
    assert cells.filter(pl.col("scheduler") != "sjf+easy")["error"].null_count() > 0
    assert set(found.summary.incomplete_cells) == set(cells["cell"])
    assert "6 cells incomplete" in found.summary.verdict
    # The results do not depend on who makes them.
    run_suite(small_plan(FAILING), out=tmp_path / "one", workers=1)
    assert digest(tmp_path / "one") == digest(out)


def test_failed_runs_are_made_again_when_resumed(tmp_path: Path, monkeypatch, whole: Path) -> None:
    out = tmp_path / "out"
    make = unit_worker._made

    def once(setup, unit, windows, run):
        if run.scheduler == 1:
            raise OSError("the disk is gone")
        return make(setup, unit, windows, run)

    monkeypatch.setattr(unit_worker, "_made", once)
    assert len(run_suite(small_plan(), out=out, workers=1).failures) == RUNS / 3
    assert (out / UNFINISHED).exists()
    made: list[int] = []

    def counted(setup, unit, windows, run):
        made.append(run.scheduler)
        return make(setup, unit, windows, run)

    monkeypatch.setattr(unit_worker, "_made", counted)
    assert run_suite(small_plan(), out=out, workers=1, resume=True).failures == []
    assert made == [1] * (RUNS // 3)
    assert digest(out) == digest(whole)
    assert not (out / UNFINISHED).exists()
    assert not (out / "failures.jsonl").exists()


KILLER = """
import os, sys
from berthline.experiments.suites import unit_worker
make = unit_worker._made
def deadly(setup, unit, windows, run):
    if unit.clean.name == "base-low-4" and run.scheduler == 2 and unit.seed == 1:
        if {wait}: __import__("time").sleep(600)
        os.kill(os.getpid(), 9)
    return make(setup, unit, windows, run)
unit_worker._made = deadly
unit_worker.main()
"""


@pytest.mark.parametrize("hangs", [False, True])
def test_a_run_that_kills_its_worker_fails_alone(
    tmp_path: Path, monkeypatch, whole: Path, hangs: bool
) -> None:
    code = f"import sys; sys.path[:] = {sys.path!r}\n{KILLER.format(wait=hangs)}"
    monkeypatch.setattr(
        "berthline.worker_pool.worker_command", lambda _: [sys.executable, "-c", code]
    )
    engine = Engine(timeout=2.0 if hangs else None)
    found = run_suite(small_plan(), out=tmp_path / "out", workers=2, engine=engine)
    assert [(one["cell"], one["seed"], one["scheduler"]) for one in found.failures] == [
        ("base-low-4", 1, "sjf+easy")
    ]
    assert found.failures[0]["attempts"] == 2
    how = "no answer for 2 s" if hangs else "signal 9"
    assert how in found.failures[0]["error"]["what"]
    # All other rows are as they would be.
    ours, theirs = (
        read_suite(path).cells.filter(pl.col("error").is_null() & (pl.col("cell") != "base-low-4"))
        for path in (tmp_path / "out", whole)
    )
    assert ours.equals(theirs)


def test_a_full_disk_keeps_what_was_finished(tmp_path: Path, monkeypatch, whole: Path) -> None:
    out = tmp_path / "out"
    add = KeptRuns.add
    left = [20]

    def full(self, run):
        left[0] -= 1
        if not left[0]:
            raise OutputError("cannot keep a finished run: No space left on device")
        add(self, run)

    monkeypatch.setattr(KeptRuns, "add", full)
    with pytest.raises(OutputError, match="No space left"):
        run_suite(small_plan(), out=out, workers=1)
    assert json.loads((out / PROGRESS).read_bytes())["state"] == "failed"
    monkeypatch.undo()
    run_suite(small_plan(), out=out, workers=1, resume=True)
    assert digest(out) == digest(whole)


def test_work_is_put_together_and_shared_out() -> None:
    planned = PlannedRuns(small_plan())
    work = suite_work.SuiteWork(planned, suite_work.MemoryStore())
    first = work.next_for("a", 1)
    assert first is not None
    assert sum(len(task.runs) for task in first) == RUNS  # all of it is less than a second
    shared = suite_work.SuiteWork(planned, suite_work.MemoryStore())
    sizes = []
    while (tasks := shared.next_for(len(sizes), 3)) is not None:
        sizes.append(sum(len(task.runs) for task in tasks))
    assert sum(sizes) == RUNS
    assert len(sizes) >= 3
    assert sizes[0] > sizes[-1]


def test_interrupted(tmp_path: Path) -> None:
    plan, out = tmp_path / "small.toml", tmp_path / "out"
    plan.write_text(SMALL.replace("jobs = 40", "jobs = 20000"))
    words = ["-m", "berthline", "suite", str(plan), "--out", str(out), "--workers", "2"]
    process = subprocess.Popen(
        [sys.executable, *words], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    limit = time.monotonic() + 60
    while not (out / PROGRESS).exists() and time.monotonic() < limit:
        time.sleep(0.05)
    time.sleep(0.5)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert time.monotonic() - began < 30  # on a busy machine; alone it is a fraction of a second
    assert "Traceback" not in told
    assert "--resume" in told
    assert json.loads((out / PROGRESS).read_bytes())["state"] == "interrupted"
