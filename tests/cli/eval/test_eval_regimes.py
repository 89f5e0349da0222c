"""`berthline eval --regimes`: the 48 regimes of the preset rlmetadqn, one by one."""

import json

import pytest

from berthline.cli.main import main
from berthline.env.meta_regimes import meta_regimes
from berthline.evaluate.compare.regimes import evaluate_regimes


@pytest.fixture(scope="module")
def found():
    return evaluate_regimes("edf+strict", against=["sjf+strict", "fcfs"], windows=2)


def test_every_regime_is_there_with_the_best_in_hindsight(found):
    asked = [(r["dials"]["shape"], r["dials"]["intensity"], r["cluster"]) for r in meta_regimes()]
    names = [(r.shape, r.intensity, f"uniform:1x{r.gpus}:V100") for r in found.regimes]
    assert names == asked
    for regime in found.regimes:
        assert set(regime.means) == {"edf+strict", "sjf+strict", "fcfs"}
        best = min(regime.means[name] for name in ("sjf+strict", "fcfs"))
        assert regime.means[regime.best] == best
    assert found.mean_ratio > 1.1  # short jobs first is better for the mean
    assert found.worst_ratio == max(regime.ratio for regime in found.regimes)
    assert found.as_good < 24


def test_the_jobs_of_a_seed_are_the_same_again_and_those_of_another_are_not(found):
    again = evaluate_regimes("edf+strict", against=["fcfs"], windows=2)
    other = evaluate_regimes("edf+strict", against=["fcfs"], windows=2, seed=1)
    for before, same, new in zip(found.regimes, again.regimes, other.regimes, strict=True):
        assert same.means["fcfs"] == before.means["fcfs"]
        assert new.means["fcfs"] != before.means["fcfs"]


def test_the_fixed_scheduler_itself_is_as_good_everywhere():
    found = evaluate_regimes("sjf+strict", against=["sjf+strict@first-fit"], windows=2)
    assert found.as_good == 48
    assert found.mean_ratio == 1


def test_on_the_command_line(tmp_path, capsys):
    argv = ["eval", "edf+strict", "--regimes", "--windows", "1", "--against", "fcfs"]
    assert main([*argv, "--out", str(tmp_path / "run")]) == 0
    text = capsys.readouterr().out
    assert text.count("shifted-diurnal") == 12
    assert "mean gap" in text
    assert main([*argv, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((tmp_path / "run" / "summary.json").read_text())
    assert len(printed["regimes"]) == 48
    assert main(["report", str(tmp_path / "run")]) == 2
    assert "has no page" in capsys.readouterr().err


def test_other_jobs_are_refused(capsys):
    assert main(["eval", "edf", "--regimes", "--load", "2"]) == 2
    assert "--load beside --regimes" in capsys.readouterr().err
