"""`berthline train` end to end, for every algorithm: what it writes, stopping, going on, export."""

from __future__ import annotations

import contextlib
import csv
import json
import signal

import pytest

from berthline.cli.main import main
from berthline.cli.train import command as train
from berthline.cli.train.signals import StopRequest

SMALL = (
    "--set", "episode_jobs=16", "load=3", "cluster=uniform:2x4", "window=8", "running_window=4",
    "--hidden", "8,8", "--envs", "4", "--steps", "192", "--validate-every", "96",
    "--episodes", "4", "--json",
)  # fmt: skip
REPLAYED = ("--config", "rollout=8", "warmup=32", "batch=16", "capacity=256")
SETTINGS = {
    "ppo": ("--config", "rollout=8", "epochs=1", "minibatches=2"),
    "d3qn": REPLAYED,
    "sac": REPLAYED,
    "meta-dqn": (*REPLAYED, "--env", "Meta", "--set", "every_events=1"),
    "bc": ("--config", "rollout=8", "epochs=1", "minibatches=2"),
}


def stopped_in_the_first_iteration(metrics):
    """What a SIGTERM during the first iteration does; it ends with a line of metrics."""

    class Request(StopRequest):
        def __call__(self):
            if metrics.exists() and "losses/" in metrics.read_text():
                self.signal = signal.SIGTERM
            return super().__call__()

    return lambda: contextlib.nullcontext(Request())


@pytest.mark.parametrize(
    ("algorithm", "more"),
    [
        *((algorithm, ()) for algorithm in SETTINGS),
        ("ppo", ("--env", "PickPlace")),
        ("bc", ("--env", "PickPlace")),
    ],
)
def test_from_the_first_step_to_the_exported_policy(algorithm, more, tmp_path, capsys, monkeypatch):
    """A stopped run, resumed, ends where an undisturbed one does; its policy is a scheduler."""

    def run(*words):
        code = main(["train", algorithm, *SMALL, *SETTINGS[algorithm], *more, *words])
        return code, capsys.readouterr().out

    whole, halved = tmp_path / "whole", tmp_path / "halved"
    code, out = run("--out", str(whole))
    assert code == 0
    summary = json.loads(out)
    assert summary["algorithm"] == algorithm
    assert summary["steps"] >= 192
    names = {path.name for path in whole.iterdir()}
    assert {"config.toml", "meta.json", "metrics.jsonl", "curve.csv", "summary.json"} <= names
    rows = list(csv.DictReader((whole / "curve.csv").read_text().splitlines()))
    assert len(rows) >= 2, "VAL before the first step, and at the end"
    lines = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().splitlines()]
    assert any(key.startswith("losses/") for line in lines for key in line)

    with monkeypatch.context() as patch:
        stop = stopped_in_the_first_iteration(halved / "metrics.jsonl")
        patch.setattr(train, "stop_signals", stop)
        assert run("--out", str(halved))[0] == 128 + signal.SIGTERM
    assert not (halved / "summary.json").exists()
    [last] = (halved / "checkpoints").glob("last-*")
    for name in ("tensors.safetensors", "checkpoint.json"):
        content = (last / name).read_bytes()
        (last / name).write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
        assert main(["train", algorithm, *SMALL, *SETTINGS[algorithm], *more, "--out", str(halved),
                     "--resume"]) == 2  # fmt: skip
        told = capsys.readouterr().err
        assert "is damaged" in told
        assert name in told
        (last / name).write_bytes(content)
    code, out = run("--out", str(halved), "--resume")
    assert code == 0
    assert json.loads(out) == summary

    onnx = tmp_path / "policy.onnx"
    assert main(["export", "onnx", str(whole), "--out", str(onnx)]) == 0
    capsys.readouterr()
    logs = []
    for policy in (whole, onnx):
        words = ("sim", "synthetic", "--jobs", "40", "--load", "3", "--cluster", "uniform:2x4")
        assert main([*words, "--scheduler", str(policy), "--json"]) == 0
        logs.append(json.loads(capsys.readouterr().out)["log_sha256"])
    assert logs[0] == logs[1]


@pytest.mark.parametrize("algorithm", ["d3qn", "sac", "meta-dqn"])
def test_pickplace__is_refused_where_it_cannot_be_learned(algorithm, tmp_path, capsys):
    out = str(tmp_path / "run")
    assert main(["train", algorithm, *SMALL, "--env", "PickPlace", "--out", out]) == 2
    assert f"{algorithm} does not learn PickPlace" in capsys.readouterr().err
