"""`bench verbs`."""

from __future__ import annotations

import pytest

from berthline.cli.bench import verbs
from berthline.cli.bench.verbs import VerbSpeed, show_verbs
from berthline.errors import SimulationError

EXPLAIN = f"explain longest {verbs.RUN} --quick"


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(verbs, "COMMANDS", {"--version": None, EXPLAIN: 0.5})
    monkeypatch.setattr(verbs, "QUICK_RUN_JOBS", 50)
    monkeypatch.setattr(verbs, "QUICK_ROUNDS", 1)


def test_commands_run_in_processes_of_their_own(run, few):
    outcome = run("bench", "verbs", "--quick", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    speeds = outcome.json["speeds"]
    assert [one["command"] for one in speeds] == ["berthline --version", f"berthline {EXPLAIN}"]
    assert [one["jobs"] for one in speeds] == [None, 50]
    assert all(0 < one["least_seconds"] <= one["p50_seconds"] for one in speeds)
    assert all(one["meets_target"] is None for one in speeds)  # too short to tell


def test_a_command_that_fails_is_not_measured(run, few, monkeypatch):
    monkeypatch.setattr(verbs, "COMMANDS", {"policies nothing": None})
    with pytest.raises(SimulationError, match="policies nothing: "):
        list(verbs.measure_verbs(quick=True))


@pytest.mark.parametrize(("meets", "word"), [(True, "(met)"), (False, "(missed)"), (None, "0.5")])
def test_table(capsys, meets, word):
    one = VerbSpeed(
        command="berthline x",
        jobs=1_000,
        least_seconds=0.25,
        p50_seconds=0.375,
        target_seconds=0.5,
        meets_target=meets,
    )
    show_verbs([one])
    shown = capsys.readouterr().out
    assert word in shown
    assert "1,000" in shown
