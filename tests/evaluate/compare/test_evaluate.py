"""evaluate: the library's `berthline eval`, with the same result."""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

import berthline as bl
from berthline.cli.main import main
from berthline.errors import ConfigError
from berthline.evaluate.compare.evaluate import evaluate

if TYPE_CHECKING:
    from pathlib import Path

FEW = {"against": ["fcfs", "fcfs+easy"], "windows": 3, "window_jobs": 60, "load": 1.2}
COMMAND = ["--against=fcfs,fcfs+easy", "--windows=3", "--window-jobs=60", "--load=1.2"]


def plain(value: Any) -> Any:
    """Return a summary as JSON, without wall-clock times."""
    found = json.loads(msgspec.json.encode(value))
    for cell in found["cells"]:
        for each in cell["schedulers"]:
            each.pop("wall_seconds")
    return found


def test_the_same_as_the_command(tmp_path: Path, capsys: Any) -> None:
    found = bl.evaluate("sjf+easy", out=tmp_path / "library", **FEW)
    assert main(["eval", "sjf+easy", *COMMAND, "--json", "--out", str(tmp_path / "command")]) == 0
    assert plain(found.summary()) == plain(json.loads(capsys.readouterr().out))
    for file in ("jobs.parquet", "events.parquet", "cluster.toml", "workload.parquet"):
        library, command = (tmp_path / name / file for name in ("library", "command"))
        assert library.read_bytes() == command.read_bytes()
    assert found.verdict in (tmp_path / "library" / "summary.json").read_text()


def test_a_run_directory_stands_for_its_settings(tmp_path: Path) -> None:
    schedulers = ["fcfs", "sjf+easy"]
    bl.compare("bursty", "uniform:2x8:V100", schedulers, jobs=50, load=1.5, out=tmp_path / "run")
    found = bl.evaluate(tmp_path / "run", against=["fcfs+easy"], windows=2)
    assert found.evaluation.run == "sjf+easy"
    assert found.evaluation.report.cluster == "uniform:2x8:V100"
    assert found.evaluation.report.load == 1.5
    assert found.evaluation.report.window_jobs == [50, 50]
    assert not found.caution


def test_remarks_name_the_rivals_that_are_left_out() -> None:
    remarks: list[str] = []
    bl.evaluate("fcfs+skip", knowledge="none", windows=1, window_jobs=9, remark=remarks.append)
    assert "sjf+easy" in remarks[0]


def test_resume__needs_the_same_parameters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupted evaluation resumes, with the same result as one that was not interrupted."""

    def stop(done: int, of: int, label: str) -> None:
        if done == 3:
            raise KeyboardInterrupt

    out = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        bl.evaluate("sjf", out=out, progress=stop, **FEW)
    with pytest.raises(bl.BerthlineError, match="unfinished"):
        bl.evaluate("sjf", out=out, **FEW)
    with pytest.raises(bl.BerthlineError, match="load was"):
        bl.evaluate("sjf", out=out, resume=True, **{**FEW, "load": 1.3})
    found = bl.evaluate("sjf", out=out, resume=True, **FEW)
    assert plain(found.summary()) == plain(bl.evaluate("sjf", **FEW).summary())


def test_the_package_is_called_as_the_function() -> None:
    assert inspect.signature(bl.evaluate) == inspect.signature(evaluate)


@pytest.mark.parametrize("wrong", [{"windows": 0}, {"windows": 1.5}, {"seed": -1}, {"workers": 0}])
def test_numbers__are_refused_in_words(wrong):
    (name,) = wrong
    with pytest.raises(ConfigError, match=f"`?{name}`? is "):
        bl.evaluate("sjf", **wrong)
