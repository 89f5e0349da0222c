"""Callbacks and the device of a training run."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path

import pytest
import torch

import berthline as bl
from berthline.cli.main import main
from berthline.errors import ConfigError
from berthline.learn.networks import device
from berthline.learn.networks.networks import Network, NetworkConfig
from berthline.learn.training.environments import Environments

OPTIONS = {"cluster": "uniform:2x4", "episode_jobs": 16, "load": 3, "window": 8}
SMALL = {
    "env_options": OPTIONS,
    "config": {"rollout": 8, "epochs": 1, "minibatches": 2},
    "hidden": (8, 8),
    "envs": 4,
    "steps": 192,
    "validate_every": 96,
    "episodes": 4,
}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Return the directory and the events of a run."""
    events = []
    out = tmp_path_factory.mktemp("run") / "ppo"
    found = bl.train("ppo", out=out, callbacks=[events.append], save_every=96, **SMALL)
    return found, events


def test_callbacks_get_every_event_in_order(told):
    found, events = told
    kinds = [event.kind for event in events]
    assert kinds[0] == "begin"
    assert kinds[-1] == "end"
    assert events[0].values["algorithm"] == "ppo"
    assert events[-1].values == found.summary
    progress = [event.step for event in events if event.kind == "progress"]
    assert progress == [32, 64, 96, 128, 160, 192]
    validations = [event for event in events if event.kind == "validation"]
    assert [event.step for event in validations] == [0, 96, 192]
    best = max(event.values["val/return"] for event in validations)
    assert best == found.summary["val_return"]


def test_values_are_those_of_the_metrics_file(told):
    found, events = told
    written: dict[int, dict] = {}
    for line in (found.directory / "metrics.jsonl").read_text().splitlines():
        row = json.loads(line)
        written.setdefault(row.pop("step"), {}).update(row)
    for event in events:
        if event.kind in ("progress", "validation"):
            for name, value in event.values.items():
                assert written[event.step][name] == pytest.approx(value, nan_ok=True), name


def test_checkpoints_are_schedulers_when_they_are_told(tmp_path):
    ran = []

    def use(event):
        if event.kind == "checkpoint" and event.values["kind"] == "best":
            ran.append(bl.simulate("synthetic", "uniform:2x4", event.path, jobs=10).log.sha256())

    bl.train("ppo", out=tmp_path / "ppo", callbacks=use, **SMALL)
    assert ran


@pytest.mark.parametrize("kind", ["validation", "progress"])
def test_false_saves_and_stops(tmp_path, kind):
    events = []

    def stop(event):
        events.append(event.kind)
        return False if event.kind == kind and event.step >= 64 else None

    found = bl.train("ppo", out=tmp_path / "ppo", callbacks=[stop], **SMALL)
    assert found.summary is None
    assert events[-1] == "end"
    goes_on = bl.train("ppo", out=tmp_path / "ppo", resume=True, **SMALL)
    whole = bl.train("ppo", out=tmp_path / "whole", **SMALL)
    assert goes_on.summary == whole.summary


def test_the_command_line_takes_functions_of_modules(tmp_path, monkeypatch):
    (tmp_path / "my_callbacks.py").write_text(
        "seen = []\ndef note(event):\n    seen.append(event.kind)\n"
        "def stop(event):\n    return event.kind != 'progress'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    sets = [f"{name}={value}" for name, value in OPTIONS.items()]
    small = ("--hidden", "8,8", "--envs", "4", "--steps", "64", "--episodes", "2")
    train = ["train", "ppo", "--set", *sets, *small, "--config", "rollout=8", "minibatches=2"]
    callbacks = ["--callback", "my_callbacks:note", "--callback", "my_callbacks:stop"]
    with contextlib.redirect_stderr(io.StringIO()) as said:
        code = main([*train, *callbacks, "--out", str(tmp_path / "run")])
    assert code == 0, said.getvalue()
    assert "stopped; everything up to the last step is saved" in said.getvalue()
    assert sys.modules["my_callbacks"].seen.count("progress") == 1
    for wrong, message in (
        ("my_callbacks", "MODULE:NAME"),
        ("my_callbacks:no", "has no attribute 'no'"),
        ("no_such_module:x", "No module named 'no_such_module'"),
        ("my_callbacks:seen", "the callback is ["),
    ):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            assert main([*train, "--callback", wrong, "--out", str(tmp_path / "other")]) == 2
        assert message in said.getvalue()
        assert not (tmp_path / "other").exists()


def test_what_is_not_a_callback(tmp_path):
    with pytest.raises(ConfigError, match="the callback is 5"):
        bl.train("ppo", out=tmp_path / "ppo", callbacks=[5], **SMALL)
    assert not Path(tmp_path / "ppo").exists()


class TestDevice:
    @pytest.mark.parametrize(
        ("name", "message"),
        [("gpu", "cpu, cuda or cuda:NUMBER"), ("cuda:x", "cuda:NUMBER"), ("cuda:64", "finds")],
    )
    def test_devices_that_are_not_there_are_refused(self, tmp_path, name, message):
        with pytest.raises(ConfigError) as error:
            bl.train("ppo", out=tmp_path / "ppo", device=name, **SMALL)
        assert message in str(error.value)
        assert not (tmp_path / "ppo").exists()

    @pytest.mark.parametrize("kind", ["mlp", "kernel"])
    def test_bodies_run_on_the_device_and_the_rest_on_the_cpu(self, kind, monkeypatch):
        """Torch's device `meta` has shapes without numbers, and refuses tensors of the CPU."""

        def moved(given, where):
            if where == device.CPU and isinstance(given, torch.Tensor):
                assert given.device.type == "meta"
                return torch.zeros(given.shape)
            return given.to(where)

        monkeypatch.setattr(device, "_moved", moved)
        envs = Environments("pick", num=3, seed=1, options=OPTIONS)
        config = NetworkConfig(kind=kind, hidden=(8, 8))
        with device.networks_on("meta"):
            network = Network(envs.layout, config)
        assert {one.device.type for one in network.body.parameters()} == {"meta"}
        assert {one.device.type for one in network.head.parameters()} == {"cpu"}
        flat = torch.from_numpy(envs.observations.copy())
        for seen in (flat, network.observed(flat)):
            scores, summary = network(seen)
            assert scores.shape == (3, envs.layout.actions, 1)
            assert {scores.device.type, summary.device.type} == {"cpu"}

    @pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device")
    def test_cuda_learns_what_the_cpu_learns(self, tmp_path):
        on_cpu, on_cuda = (
            bl.train("ppo", out=tmp_path / name, device=name, **SMALL) for name in ("cpu", "cuda")
        )
        near = pytest.approx(on_cpu.summary["val_return"], rel=0.05)
        assert on_cuda.summary["val_return"] == near
