"""`bench episodes`."""

from __future__ import annotations

import msgspec
import pytest

from berthline.cli.bench import episodes as bench_episodes
from berthline.cli.bench.episodes import EpisodeSpeed, show_episodes
from berthline.traces.generators.synthetic import GENERATORS


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(bench_episodes, "JOBS", 20)
    monkeypatch.setattr(bench_episodes, "QUICK_EPISODES", 5)
    monkeypatch.setattr(bench_episodes, "FITTED_JOBS", 2_000)


def test_every_generator_and_a_fitted_one_is_measured(run, few, tmp_path):
    outcome = run("bench", "episodes", "--quick", "--json", "--out", str(tmp_path / "x"))
    assert (outcome.code, outcome.err) == (0, "")
    speeds = outcome.json["speeds"]
    assert [speed["generator"] for speed in speeds] == [*GENERATORS, "fitted to diurnal"]
    assert all(speed["microseconds"] > 0 for speed in speeds)
    assert all(speed["meets_target"] is None for speed in speeds)
    assert (tmp_path / "x" / "summary.json").exists()


def test_table(run, few):
    outcome = run("bench", "episodes", "--quick")
    assert (outcome.code, outcome.err) == (0, "")
    assert "not checked" in outcome.out
    assert max(map(len, outcome.out.splitlines())) <= 80


def test_missed_targets_are_counted(capsys):
    fast = EpisodeSpeed(
        generator="bursty",
        jobs=400,
        episodes=1000,
        microseconds=20.0,
        target=50.0,
        meets_target=True,
    )
    slow = msgspec.structs.replace(fast, microseconds=60.0, meets_target=False)
    show_episodes([fast, slow])
    assert "1 of 2 targets missed" in capsys.readouterr().out
    show_episodes([fast])
    assert "all targets met" in capsys.readouterr().out


@pytest.mark.bench
def test_episodes_are_made_in_time():
    speeds = bench_episodes.measure_episodes(quick=False)
    assert [speed.generator for speed in speeds if not speed.meets_target] == []
