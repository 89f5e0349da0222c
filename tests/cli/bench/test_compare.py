"""`bench compare`: real comparisons, measured."""

from __future__ import annotations

import pytest

from berthline.cli.bench import compare as bench_compare
from berthline.cli.bench.compare import SCHEDULERS, CompareSpeed, show_compare


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(bench_compare, "QUICK_JOBS", 40)
    monkeypatch.setattr(bench_compare, "QUICK_WINDOWS", 2)


def test_rows(run, few, tmp_path):
    outcome = run("bench", "compare", "--quick", "--json", "--out", str(tmp_path / "x"))
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.json["agrees"] is True
    speeds = outcome.json["speeds"]
    assert [(speed["workers"] > 1, speed["writes"]) for speed in speeds] == [
        (False, False),
        (True, False),
        (True, True),
    ]
    for speed in speeds:
        assert speed["runs"] == 2 * len(SCHEDULERS) == 24
        assert speed["jobs"] == 24 * 40
        assert speed["cpu_seconds"] > 0
        assert speed["within_limit"] is None


def test_shown(capsys):
    speed = CompareSpeed(
        workers=2,
        writes=True,
        runs=360,
        jobs=1_800_000,
        wall_seconds=12.0,
        cpu_seconds=6.0,
        load_average=1.5,
        within_limit=False,
    )
    show_compare([speed], agrees=False)
    text = capsys.readouterr().out
    assert "300,000" in text
    assert "2, with --out" in text
    assert "WRONG" in text
    assert "over the limit of 10 seconds" in text
