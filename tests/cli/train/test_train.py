"""`berthline train`: run directories, going on, signals, several seeds, the check."""

import json
import os
import signal
import subprocess
import sys
import time
import tomllib

import msgspec
import numpy as np
import pytest

import berthline as bl
from berthline.cli.main import main
from berthline.cli.train import command as train
from berthline.errors import MissingExtraError
from berthline.learn.algorithms.configs import PPOConfig
from berthline.learn.training.defaults import default_steps
from berthline.learn.training.train import train_config
from berthline.learn.training.validation import EpisodeSet
from berthline.number_text import duration_in_two_units
from berthline.traces.formats.parquet import write_parquet

SMALL = (
    "--set", "episode_jobs=16", "load=3", "window=8", "running_window=4", "cluster=uniform:1x8",
    "--config", "rollout=16", "epochs=1", "minibatches=2",
    "--hidden", "8,8", "--envs", "8", "--steps", "256", "--validate-every", "128",
    "--episodes", "4",
)  # fmt: skip


def _train(*words):
    return main(["train", "ppo", *SMALL, *map(str, words)])


def _config(algorithm, **options):
    return train_config(algorithm, **train.parameters(train.Train(algorithm=algorithm, **options)))


def test_a_run_has_its_settings_and_its_summary(tmp_path, capsys):
    out = tmp_path / "run"
    assert _train("--out", out, "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["steps"] == 256
    assert json.loads((out / "summary.json").read_text()) == summary
    config = tomllib.loads((out / "config.toml").read_text())
    assert config["options"]["load"] == 3
    assert config["options"]["reward"] == "mean-wait-hours"
    assert config["settings"]["rollout"] == 16
    assert config["settings"]["clip"] == 0.2
    meta = json.loads((out / "meta.json").read_text())
    assert meta["verb"] == "train"
    assert main(["train", "ppo", *SMALL, "--out", str(out)]) == 2
    assert "a complete training run" in capsys.readouterr().err
    assert _train("--out", out, "--resume") == 2
    assert "nothing to resume" in capsys.readouterr().err


def test_steps_that_are_not_given_are_those_of_the_algorithm_and_seat():
    found = {
        (algorithm, env): _config(algorithm, env=env)
        for algorithm, env in (("ppo", "Pick"), ("ppo", "Gate"), ("sac", "Pick"))
    }
    for (algorithm, env), config in found.items():
        assert config.steps == default_steps(algorithm, env.lower())
        assert config.validate_every == config.steps // 5
    assert len({config.steps for config in found.values()}) == 3
    few = _config("ppo", steps=3)
    assert (few.steps, few.validate_every) == (3, 1)


def test_people_get_a_table(tmp_path, capsys):
    assert _train("--out", tmp_path / "run") == 0
    told = capsys.readouterr()
    assert "mean JCT of the policy is" in told.out
    assert "sjf+easy" in told.out
    assert "256 of 256 (100%)" in told.err


def test_the_last_iteration_counts_from_the_start(tmp_path, capsys):
    assert _train("--out", tmp_path / "run", "--steps", "200") == 0
    told = capsys.readouterr().err
    assert "128 of 256 (50%)" in told
    assert "256 of 256 (100%)" in told
    assert "steps/s, 0 s left" in told


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59.6, "1 min 0 s"), (754, "12 min 34 s"), (93_784, "26 h 3 min")],
)
def test_what_is_left_is_told_in_units(seconds, text):
    assert duration_in_two_units(seconds) == text


def test_a_signal_saves_and_leaves_and_the_run_goes_on(tmp_path):
    words = [sys.executable, "-m", "berthline", "train", "ppo", *SMALL, "--out"]
    many = ["--steps", "100000000", "--validate-every", "100000000"]
    running = subprocess.Popen(
        [*words, str(tmp_path / "a"), *many], stderr=subprocess.PIPE, text=True
    )
    curve = tmp_path / "a/metrics.jsonl"
    while not (curve.exists() and len(curve.read_text().splitlines()) > 2):
        assert running.poll() is None, running.stderr.read()
        time.sleep(0.05)
    os.kill(running.pid, signal.SIGTERM)
    _, told = running.communicate(timeout=60)
    assert running.returncode == 143
    assert "--resume" in told
    saved = sorted((tmp_path / "a/checkpoints").glob("last-*"))
    assert len(saved) == 1
    step = int(saved[0].name.removeprefix("last-"))
    assert step == json.loads(curve.read_text().splitlines()[-1])["step"] > 0


def test_only_the_same_command_goes_on(tmp_path, capsys, monkeypatch):
    out = tmp_path / "run"

    def stopped(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("berthline.learn.training.trainer.Trainer.run", stopped)
        assert _train("--out", out) == 130
    assert _train("--out", out) == 2
    assert "--resume continues it" in capsys.readouterr().err
    assert _train("--out", out, "--resume", "--set", "gate=express-lane") == 2
    assert "options.gate was not given, now express-lane" in capsys.readouterr().err
    assert _train("--out", out, "--resume", "--seed", 3) == 2
    assert "seed was 0, now 3" in capsys.readouterr().err
    assert _train("--out", out, "--resume", "--json") == 0
    resumed = json.loads(capsys.readouterr().out)
    assert _train("--out", tmp_path / "whole", "--json") == 0
    assert json.loads(capsys.readouterr().out) == resumed


def test_several_seeds_have_a_summary_together(tmp_path, capsys):
    out = tmp_path / "runs"
    assert _train("--out", out, "--seeds", 2, "--seed", 4, "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["seeds"] == [4, 5]
    assert (out / "seed-5/summary.json").is_file()
    fcfs = summary["mean_jct_against"]["fcfs"]
    ours = [one["report"]["against"]["fcfs"]["mean_jct"]["ratio"] for one in summary["runs"]]
    assert fcfs["worst_seed"] == pytest.approx(max(ours))
    assert fcfs["low"] <= fcfs["iqm"] <= fcfs["high"]


def test_mistakes_are_told(tmp_path, capsys, monkeypatch):
    out = str(tmp_path / "x")
    for words, told in (
        (("ppo",), "--out is missing"),
        (("pp0", "--out", out), "one of"),
        (("ppo", "--out", out, "--env", "Pik"), "unknown environment 'Pik'"),
        (("ppo", "--out", out, "--set", "windw=3"), "unknown option 'windw'"),
        (("ppo", "--out", out, "--config", "clp=3"), "unknown setting of ppo 'clp'"),
        (("ppo", "--out", out, "--hidden", "a"), "comma-separated whole numbers"),
        (("ppo", "--out", out, "--preset", "lsf", "--env", "Pick"), "for another seat"),
    ):
        assert main(["train", *words]) == 2
        assert told in capsys.readouterr().err
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match="torch"):
        train.main(["ppo", "--out", out])
    assert not (tmp_path / "x").exists()


def test_what_is_refused_leaves_nothing_behind(tmp_path, capsys):
    out = tmp_path / "run"
    assert _train("--out", out, "--set", "order=nowhere") == 2
    assert "nowhere" in capsys.readouterr().err
    assert not out.exists()
    assert _train("--out", out, "--seeds", 2, "--set", "order=nowhere") == 2
    assert not out.exists()
    out.mkdir()
    (out / "mine.txt").write_text("kept")
    assert _train("--out", out, "--set", "order=nowhere") == 2
    assert (out / "mine.txt").read_text() == "kept"


def test_of_a_trace_only_the_training_part_is_learned_from(tmp_path, capsys):
    trace = tmp_path / "trace.parquet"
    write_parquet(bl.generate(cluster=bl.Cluster.parse("uniform:2x8:V100"), jobs=400), trace)
    given = (f"workload={trace}", "episode_jobs=16", "cluster=uniform:1x8:V100")
    config = _config("ppo", set=given)
    assert config.options["split"] == "train"
    for part in ("test", "validation", "null"):
        words = ("--set", *given, f"split={part}")
        assert main(["train", "ppo", "--out", str(tmp_path / "run"), *words]) == 2
        assert "of a trace" in capsys.readouterr().err
    more = (f"workload={trace}", "split_gap=0")
    assert _train("--out", tmp_path / "run", "--set", *more) == 0
    # As a scheduler it has nothing to do with parts of a trace.
    jobs = bl.generate(cluster=bl.Cluster.parse("uniform:2x8:V100"), jobs=40)
    done = bl.simulate(jobs, bl.Cluster.parse("uniform:2x8:V100"), str(tmp_path / "run"))
    assert done.metrics().jobs.completed == 40
    parts = config.options | {"split_gap": 0, "start": "empty", "warm_rule": None}
    judged = EpisodeSet("pick", parts, part="report", episodes=4)
    first = int(judged._environments()._envs.plan.source.first_jobs(np.array([[5, 0]]))[0])
    assert first >= 0.65 * 400


def test_the_environment_of_a_preset_is_taken():
    found = _config("ppo", preset="lsf")
    assert found.seat == "place"
    assert _config("ppo", set=("preset=lsf",)) == found
    assert "load" not in _config("ppo", set=("workload=lublin",)).options


def test_the_gate_has_defaults_of_its_own():
    config = _config("ppo", env="Gate", set=("order=sjf",))
    assert (config.options["workload"], config.options["order"]) == ("lublin", "sjf")
    assert config.settings["horizon"] > PPOConfig().horizon
    given = _config("ppo", env="Gate", config=("horizon=60",))
    assert given.settings["horizon"] == 60
    blind = _config("ppo", env="Gate", set=("knowledge=none",))
    assert not {"order", "features"} & set(blind.options)
    pick = _config("ppo", set=("credit=null",))
    assert pick.settings == msgspec.to_builtins(PPOConfig())
