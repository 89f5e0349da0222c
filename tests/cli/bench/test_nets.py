"""`berthline bench nets`: every case runs, and says what it measured."""

import json

import pytest

from berthline.cli.bench.nets import CASES, WIDTHS
from berthline.cli.main import main

pytest.importorskip("onnx", reason="the extra export is not installed")
pytest.importorskip("onnxruntime", reason="the extra deploy is not installed")


def test_all_cases_run(tmp_path, capsys):
    out = str(tmp_path / "nets")
    assert main(["bench", "nets", "--quick", "--json", "--out", out]) == 0
    speeds = json.loads(capsys.readouterr().out)["speeds"]
    assert len(speeds) == len(CASES)
    for speed in speeds:
        assert 0 < speed["p50_us"] <= speed["p99_us"]
        assert speed["meets_target"] is None  # too few calls to tell
    targets = {(s["network"], s["runtime"]): s["target_us"] for s in speeds if s["target_us"]}
    assert targets == {
        ("mlp", "native"): 5.0,
        ("kernel", "native"): 25.0,
        ("attention", "onnxruntime"): 150.0,
    }
    # Wider networks have more to do; that is what the sizes are listed for.
    wide = [s["parameters"] for s in speeds[-len(WIDTHS) :]]
    assert wide == sorted(wide)


def test_for_people(monkeypatch, capsys):
    monkeypatch.setattr("berthline.cli.bench.nets.CASES", CASES[:1])
    assert main(["bench", "nets", "--quick"]) == 0
    out = capsys.readouterr().out
    assert "microseconds per decision" in out
    assert "Meta, mlp" in out
