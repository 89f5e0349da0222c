"""Training runs at once: the same bits as one after another, wherever they are trained."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Any

import pytest

import berthline as bl
from berthline import worker_pool
from berthline.errors import BerthlineError, ConfigError

if TYPE_CHECKING:
    from pathlib import Path

SMALL: dict[str, Any] = {
    "env": "Gate",
    "env_options": {"episode_jobs": 32, "cluster": "uniform:2x4:V100"},
    "envs": 4,
    "hidden": (8,),
    "steps": 1500,
    "episodes": 2,
    "seeds": 2,
}


@pytest.fixture(scope="module")
def one_by_one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("train") / "out"
    bl.train("ppo", out=out, **SMALL)
    return out


def contents(out: Path) -> dict[str, bytes]:
    """Return what does not name the time or the command."""
    names = ["summary.json"]
    for seed in (0, 1):
        names += [f"seed-{seed}/curve.csv", f"seed-{seed}/summary.json"]
        names += [
            str(file.relative_to(out))
            for file in sorted(out.glob(f"seed-{seed}/checkpoints/*/tensors.safetensors"))
        ]
    return {name: (out / name).read_bytes() for name in names}


def test_the_same_bits(one_by_one: Path, tmp_path: Path) -> None:
    seen: dict[str, int] = {}

    class Watch:
        def __init__(self, name: str, count: int) -> None:
            assert (name, count) == ("ppo on gate", 2)

        def __enter__(self) -> Any:
            return lambda path, progress: seen.update({path: progress.step})

        def __exit__(self, *_: object) -> None: ...

    out = tmp_path / "out"
    bl.train("ppo", out=out, workers=2, watch_all=Watch, **SMALL)
    assert contents(out) == contents(one_by_one)
    assert sorted(path.rpartition("/")[2] for path in seen) == ["seed-0", "seed-1"]
    assert not list(out.glob(".shared-*"))


@pytest.mark.slow
def test_complete_seeds_are_kept_and_others_go_on(one_by_one: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(one_by_one, out)
    (out / "summary.json").unlink()
    (out / "seed-1" / "summary.json").unlink()  # as if it was stopped before its evaluation
    before = (out / "seed-0" / "summary.json").stat().st_mtime_ns
    bl.train("ppo", out=out, workers=2, resume=True, **SMALL)
    assert (out / "seed-0" / "summary.json").stat().st_mtime_ns == before
    assert contents(out) == contents(one_by_one)


KILLER = """
import os
from pathlib import Path
from berthline.learn.training import training_workers, trainer
run = trainer.Trainer._validate
mark = Path({mark!r})
def deadly(self, *args, **options):
    found = run(self, *args, **options)
    if self.config.seed == 1 and self.algorithm.steps > 500 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), 9)
    return found
trainer.Trainer._validate = deadly
training_workers.main()
"""


def test_a_lost_worker_is_replaced(
    one_by_one: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "killed"
    code = f"import sys; sys.path[:] = {sys.path!r}\n{KILLER.format(mark=str(mark))}"
    monkeypatch.setattr(worker_pool, "worker_command", lambda _: [sys.executable, "-c", code])
    bl.train("ppo", out=tmp_path / "out", workers=2, **SMALL)
    assert mark.exists()
    assert contents(tmp_path / "out") == contents(one_by_one)


@pytest.mark.slow
def test_a_worker_that_does_not_share_the_directory_sends_it(
    one_by_one: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "from pathlib import Path\n"
        "exists = Path.exists\n"
        "Path.exists = lambda self: '.shared-' not in self.name and exists(self)\n"
        "from berthline.learn.training import training_workers\n"
        "training_workers.main()\n"
    )
    monkeypatch.setattr(worker_pool, "worker_command", lambda _: [sys.executable, "-c", code])
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    bl.train("ppo", out=tmp_path / "out", workers=2, **SMALL)
    assert contents(tmp_path / "out") == contents(one_by_one)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.slow
def test_an_error_is_that_of_the_run(tmp_path: Path) -> None:
    wrong = {**SMALL, "init_from": tmp_path / "none"}
    with pytest.raises(BerthlineError) as one:
        bl.train("ppo", out=tmp_path / "1", **wrong)
    with pytest.raises(BerthlineError) as several:
        bl.train("ppo", out=tmp_path / "2", workers=2, **wrong)
    assert str(several.value) == str(one.value)


@pytest.mark.slow
def test_stopped(tmp_path: Path) -> None:
    found = bl.train("ppo", out=tmp_path / "out", workers=2, must_stop=lambda: True, **SMALL)
    assert found.summary is None
    assert (tmp_path / "out" / "config.toml").exists()


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="one training run has one worker"):
        bl.train("ppo", out=tmp_path / "out", workers=2, **{**SMALL, "seeds": 1})
    with pytest.raises(ConfigError, match="callbacks are called in this process"):
        bl.train("ppo", out=tmp_path / "out", workers=2, callbacks=lambda _: None, **SMALL)
