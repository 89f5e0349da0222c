"""A suite as an array job: its tasks run by hand, one is killed, and all are collected."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.experiments.suites.small_suite import RUNS, SMALL, digest, small_plan

from berthline.errors import ConfigError, RefusedError
from berthline.experiments.suites import launch_slurm
from berthline.experiments.suites.run_suite import run_suite
from berthline.runs.directory_lock import locked

if TYPE_CHECKING:
    from collections.abc import Sequence

TASKS = 3


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def suite(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "berthline", "suite", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def run_script(out: Path, numbers: Sequence[int]) -> None:
    """Run tasks of the script as Slurm would."""
    for number in numbers:
        environment = {**os.environ, "SLURM_ARRAY_TASK_ID": str(number)}
        script = out / "shares" / "suite.sbatch"
        subprocess.run(["sh", str(script)], env=environment, check=True, capture_output=True)


def test_the_tasks_of_the_script_make_the_suite(plan: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    launch = (str(plan), "--out", str(out), "--launch", "slurm", "--array", str(TASKS))
    told = suite(*launch)
    assert told.returncode == 0, told.stderr
    script = (out / "shares" / "suite.sbatch").read_text()
    assert "#SBATCH --array=0-2\n" in script
    run_script(out, [0, 2])
    # Task 2 was killed while it kept a run; task 1 has never begun.
    share = launch_slurm.share_file(out, 2, TASKS)
    share.write_bytes(share.read_bytes()[:-9])
    assert launch_slurm.missing_shares(small_plan(), out, TASKS) == [1, 2]
    assert suite(*launch).returncode == 0
    assert "--array=1-2\n" in (out / "shares" / "suite.sbatch").read_text()
    run_script(out, [1, 2])
    assert "all 3 shares are finished" in suite(*launch).stderr
    collected = suite(str(plan), "--out", str(out), "--resume", "--workers", "1")
    assert collected.returncode == 0, collected.stderr
    run_suite(small_plan(), out=tmp_path / "whole", workers=1)
    assert digest(out) == digest(tmp_path / "whole")
    assert not (out / "shares").exists()


def test_what_shares_lack_is_made_when_they_are_collected(tmp_path: Path) -> None:
    out = tmp_path / "out"
    work = launch_slurm.make_share(small_plan(), out, (0, 2), workers=1)
    assert 0 < work.done == work.total < RUNS
    told: list[int] = []
    run_suite(
        small_plan(), out=out, workers=1, resume=True, progress=lambda done, *_: told.append(done)
    )
    assert told[0] == work.done
    run_suite(small_plan(), out=tmp_path / "whole", workers=1)
    assert digest(out) == digest(tmp_path / "whole")


def test_shares_are_disjoint_and_complete() -> None:
    planned = launch_slurm.PlannedRuns(small_plan())
    store = launch_slurm.SuiteWork(planned, {})  # type: ignore[arg-type]
    parts = [launch_slurm.SuiteWork(planned, {}, share=(n, 4)) for n in range(4)]  # type: ignore[arg-type]
    assert sum(part.total for part in parts) == store.total == RUNS


def test_one_process_for_a_share(tmp_path: Path) -> None:
    file = launch_slurm.share_file(tmp_path, 0, 2)
    with locked(file.with_suffix(".lock")):
        code = "from berthline.cli.main import main; import sys; sys.exit(main(sys.argv[1:]))"
        words = ["suite", "core", "--limit", "60", "--out", str(tmp_path), "--share", "0/2"]
        ended = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False
        )
    assert ended.returncode == 3
    assert "another process writes there" in ended.stderr


def test_another_plan_is_refused(tmp_path: Path) -> None:
    launch_slurm.make_share(small_plan(), tmp_path, (0, 9), workers=1)
    changed = small_plan(SMALL.replace("seeds = 3", "seeds = 4"))
    with pytest.raises(ConfigError, match="seeds was 3, and is 4"):
        launch_slurm.make_share(changed, tmp_path, (0, 9), workers=1)


def test_submitting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "job"
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="no `sbatch`"):
        launch_slurm.submit(script)
    program = tmp_path / "sbatch"
    program.write_text('#!/bin/sh\necho "Submitted batch job 7"\n')
    program.chmod(stat.S_IRWXU)
    assert launch_slurm.submit(script) == "Submitted batch job 7"
    program.write_text('#!/bin/sh\necho "invalid partition" >&2\nexit 1\n')
    with pytest.raises(RefusedError, match="Slurm refuses the job: invalid partition"):
        launch_slurm.submit(script)


@pytest.mark.parametrize("text", ["3", "3/3", "a/3", "-1/3", "1/"])
def test_shares_that_are_none(text: str) -> None:
    with pytest.raises(ConfigError, match="the share is"):
        launch_slurm.read_share(text)


def test_suites_that_train_are_refused(tmp_path: Path) -> None:
    plan = small_plan(SMALL + '\n[[parts]]\nname = "a"\ntrain = { algorithm = "ppo" }\n')
    with pytest.raises(ConfigError, match="trains policies"):
        launch_slurm.write_script(plan, tmp_path, str, numbers=[0])
    assert shutil.which("sh")
    assert not Path(tmp_path / "shares").exists()
