"""Sweeps: what they vary, what they draw, and that a killed one goes on as if nothing had been."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import numpy as np
import pytest

import berthline as bl
from berthline.cli.main import main
from berthline.errors import ConfigError
from berthline.learn.training.train import train_config
from berthline.learn.tuning.swept_values import Swept, arguments, read_swept
from berthline.learn.tuning.trials import SweepTrial, _Sweep

SMALL = {
    "env_options": {"cluster": "uniform:2x4", "episode_jobs": 12, "load": 3, "window": 8},
    "config": {"rollout": 8, "epochs": 1, "minibatches": 2},
    "hidden": (8, 8),
    "envs": 4,
    "steps": 96,
    "validate_every": 48,
    "episodes": 3,
}
VARY = {
    "config.learning_rate": (1e-4, 1e-1, "log"),
    "config.epochs": (1, 3),
    "hidden": ["8-8", "16"],
    "set.load": [2, 3],
}
KILLED = f"""
import os, signal
import berthline as bl

def kill(event):
    if event.path.name == "trial-001" and event.kind == "progress" and event.step >= 64:
        os.kill(os.getpid(), signal.SIGKILL)

bl.sweep("ppo", {VARY!r}, trials=3, out="sweep", callbacks=kill, **{SMALL!r})
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return a sweep that ran without an interruption."""
    return bl.sweep("ppo", VARY, trials=3, out=tmp_path_factory.mktemp("whole") / "s", **SMALL)


def test_a_killed_sweep_makes_the_same_trials(whole, tmp_path):
    killed = subprocess.run([sys.executable, "-c", KILLED], cwd=tmp_path, timeout=600)
    assert killed.returncode == -signal.SIGKILL
    out = tmp_path / "sweep"
    assert len((out / "metrics.jsonl").read_text().splitlines()) == 1
    assert (out / "trial-001" / "config.toml").is_file()
    # What a crash of the machine may leave behind: half a line.
    with (out / "metrics.jsonl").open("a") as file:
        file.write('{"trial": 1, "par')
    goes_on = bl.sweep("ppo", VARY, trials=3, out=out, resume=True, **SMALL)
    assert goes_on.summary == whole.summary


def test_the_first_trial_has_the_defaults(whole):
    first = whole.summary["trials"][0]["params"]
    assert first == {
        "config.learning_rate": train_config("ppo").settings["learning_rate"],
        "config.epochs": 1,
        "hidden": "8-8",
        "set.load": 3,
    }
    drawn = [trial["params"] for trial in whole.summary["trials"][1:]]
    assert all(1e-4 <= one["config.learning_rate"] <= 1e-1 for one in drawn)
    assert all(one["config.epochs"] in (1, 2, 3) for one in drawn)
    assert drawn[0] != drawn[1]


def test_trials_are_runs_with_these_settings(whole):
    for trial in whole.summary["trials"]:
        run = bl.open_run(whole.directory / trial["directory"])
        assert run.settings["settings"]["epochs"] == trial["params"]["config.epochs"]
        assert run.settings["options"]["load"] == trial["params"]["set.load"]
        hidden = [int(width) for width in trial["params"]["hidden"].split("-")]
        assert run.settings["network"]["hidden"] == hidden
    best = whole.summary["best"]
    assert best["value"] == min(trial["value"] for trial in whole.summary["trials"])
    jobs = bl.simulate("synthetic", "uniform:2x4", whole.directory / best["directory"], jobs=10)
    assert jobs.metrics().jobs.completed == 10


def test_a_sweep_goes_on_with_more_trials(whole, tmp_path):
    short = bl.sweep("ppo", VARY, trials=2, out=tmp_path / "s", **SMALL)
    assert short.summary["trials"] == whole.summary["trials"][:2]
    longer = bl.sweep("ppo", VARY, trials=3, out=tmp_path / "s", resume=True, **SMALL)
    assert longer.summary == whole.summary
    with pytest.raises(ConfigError, match="nothing to resume"):
        bl.sweep("ppo", VARY, trials=3, out=tmp_path / "s", resume=True, **SMALL)
    other = {**VARY, "config.epochs": (1, 4)}
    with pytest.raises(ConfigError, match="other settings"):
        bl.sweep("ppo", other, trials=4, out=tmp_path / "s", resume=True, **SMALL)


def test_a_callback_stops_a_sweep(whole, tmp_path):
    def stop(event):
        return not (event.path.name == "trial-001" and event.kind == "progress")

    out = tmp_path / "s"
    assert bl.sweep("ppo", VARY, trials=3, out=out, callbacks=[stop], **SMALL).summary is None
    goes_on = bl.sweep("ppo", VARY, trials=3, out=out, resume=True, **SMALL)
    assert goes_on.summary == whole.summary


def made_up(values):
    """Return the sweep of these trials, without training."""

    class Usual:
        metric, seed = "jct_mean", 0

    swept = read_swept({"config.gap": (0.0, 1.0), "config.entropy": (0.0, 1.0)})
    rows = [
        SweepTrial(
            trial=index,
            params={"config.gap": gap, "config.entropy": entropy},
            value=value,
            directory="",
        )
        for index, (gap, entropy, value) in enumerate(values)
    ]
    return _Sweep("ppo", swept, {}, None, Usual()), rows


def test_what_mattered_is_found():
    draws = np.random.default_rng(1).random((40, 2)).tolist()
    run, rows = made_up([(gap, entropy, 1 + gap + 0.01 * entropy) for gap, entropy in draws])
    shares = run._importance(rows)
    assert shares["config.gap"] > 0.9
    assert sum(shares.values()) == pytest.approx(1)
    assert run._importance(rows[:5]) == {}


def test_later_trials_are_near_the_best():
    """Optuna looks where values were good: here, near a gap of 0.2."""
    run, rows = made_up([])
    drawn = []
    for index in range(40):
        params = run._study(rows).ask(run._distributions()).params
        drawn.append(abs(params["config.gap"] - 0.2))
        value = 1 + (params["config.gap"] - 0.2) ** 2
        rows.append(SweepTrial(trial=index, params=params, value=value, directory=""))
    assert np.mean(drawn[20:]) < np.mean(drawn[:10])


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("1e-4:1e-2:log", Swept("config.x", low=1e-4, high=1e-2, is_log=True)),
        ("1:8", Swept("config.x", low=1, high=8)),
        ((0.5, 2), Swept("config.x", low=0.5, high=2)),
        ("a,b", Swept("config.x", ("a", "b"))),
        ("1,2.5,null,true", Swept("config.x", (1, 2.5, None, True))),
        ([[1, 2], [3, 4]], Swept("config.x", ((1, 2), (3, 4)))),
    ],
)
def test_values_are_read(given, found):
    assert read_swept({"config.x": given}) == [found]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "nothing to vary"),
        ({"confg.x": "1:2"}, "did you mean"),
        ({"config": "1:2"}, "unknown parameter of a sweep"),
        ({"config.x": "2:1"}, "LOW below HIGH"),
        ({"config.x": "0:1:log"}, "more than 0"),
        ({"config.x": "1:2:lin"}, "LOW:HIGH"),
        ({"config.x": "3"}, "one choice"),
        ({"config.x": 3}, "LOW:HIGH"),
    ],
)
def test_values_that_cannot_be_read(given, message):
    with pytest.raises(ConfigError) as error:
        read_swept(given)
    assert message in str(error.value)


def test_values_become_arguments_of_train():
    given = {"config": {"rollout": 8}, "steps": 5}
    values = {"config.gap": 0.1, "set.load": 2, "hidden": "64-32", "network": "mlp"}
    assert arguments(values, given) == {
        "config": {"rollout": 8, "gap": 0.1},
        "env_options": {"load": 2},
        "hidden": (64, 32),
        "network": "mlp",
        "steps": 5,
    }
    assert arguments({"hidden": 64}, {})["hidden"] == (64,)


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        ({"config.learning_rat": (0.1, 0.2)}, "did you mean 'learning_rate'"),
        ({"config.learning_rate": (0.5, 2)}, "learning_rate of ppo is 2"),
        ({"set.lod": [1, 2]}, "did you mean 'load'"),
        ({"network": ["kernel", "kernl"]}, "did you mean 'kernel'"),
        ({"hidden": ["8-x", "8"]}, "widths joined by hyphens"),
    ],
)
def test_every_value_is_checked_before_the_first_trial(tmp_path, vary, message):
    with pytest.raises(ConfigError) as error:
        bl.sweep("ppo", vary, trials=2, out=tmp_path / "s", **SMALL)
    assert message in str(error.value)
    assert not (tmp_path / "s").exists()


def test_the_command_line(tmp_path, capsys):
    out = tmp_path / "sweep"
    sets = [f"--set={name}={value}" for name, value in SMALL["env_options"].items()]
    sizes = ("--hidden", "8,8", "--envs", "4", "--steps", "32", "--episodes", "2")
    command = ["train", "ppo", *sets, *sizes, "--config=rollout=8", "--config=minibatches=2"]
    command += ["--sweep=config.epochs=1:2", "--out", str(out)]
    assert main([*command, "--trials", "1", "--json"]) == 0
    printed = capsys.readouterr()
    assert "trial 1 of 1: config.epochs=" in printed.err
    summary = json.loads(printed.out)
    assert len(summary["trials"]) == 1
    assert (out / "figures" / "what-mattered.png").stat().st_size > 5_000
    assert main([*command, "--trials", "2", "--resume"]) == 0
    text = capsys.readouterr().out
    assert "too few trials to say" in text
    assert "trial-001" in text
    assert main(["report", "trials", str(out), "--out", str(tmp_path / "f.svg")]) == 0
    assert "What mattered" not in capsys.readouterr().out
    assert main(["report", "trials", str(out / "trial-000"), "--out", str(tmp_path / "f.svg")]) == 2
    assert "there is no complete sweep" in capsys.readouterr().err
    assert main(["train", "ppo", "--sweep=config.epochs=1:2", "--out", str(out)]) == 2
    assert "--trials is missing" in capsys.readouterr().err
    assert main(["train", "ppo", "--trials", "3", "--out", str(out)]) == 2
    assert "--sweep is missing" in capsys.readouterr().err
