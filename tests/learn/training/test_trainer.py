"""Training runs: their files, resuming after an interruption, warm starts."""

import json

import pytest
import torch
from tests.env.agents import plain

from berthline.errors import ConfigError
from berthline.learn.networks.networks import NetworkConfig
from berthline.learn.training import checkpoint
from berthline.learn.training.trainer import TrainConfig, Trainer

CONFIG = TrainConfig(
    algorithm="ppo",
    seat="pick",
    options=plain("pick")
    | {"episode_jobs": 16, "load": 3.0, "window": 8, "running_window": 4, "cluster": "uniform:1x8"},
    settings={"rollout": 16, "epochs": 1, "minibatches": 2},
    network=NetworkConfig(hidden=(8, 8)),
    num_envs=8,
    steps=512,
    validate_every=256,
    val_episodes=6,
    report_episodes=6,
)


def _run(path, **more):
    path.mkdir(exist_ok=True)
    return Trainer(CONFIG, path, **more)


def test_a_run_leaves_its_files(tmp_path):
    summary = _run(tmp_path / "a").run()
    assert summary is not None
    assert json.loads((tmp_path / "a/summary.json").read_text()) == summary
    assert summary["steps"] == 512
    lines = [json.loads(line) for line in (tmp_path / "a/metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if "val/return" in line] == [0, 256, 512]
    curve = (tmp_path / "a/curve.csv").read_text().splitlines()
    assert curve[0].startswith("step,return,mean_jct")
    assert len(curve) == 4
    best = checkpoint.find(tmp_path / "a/checkpoints", "best")
    assert best is not None
    assert best.name == summary["best_checkpoint"]
    assert set(summary["report"]["against"]) >= {"random action", "fcfs", "fcfs+easy", "sjf+easy"}


def test_a_stopped_run_goes_on_as_if_it_had_not_been(tmp_path):
    whole = _run(tmp_path / "whole").run()
    stopped = _run(tmp_path / "a")
    assert stopped.run(must_stop=lambda: stopped.algorithm.steps >= 256) is None
    # Lines logged after the checkpoint, and incomplete lines, are dropped.
    with (tmp_path / "a/metrics.jsonl").open("a") as file:
        file.write('{"step": 300, "x": 1}\n{"step": 4')
    again = _run(tmp_path / "a", resume=True)
    assert again.run() == whole
    ends = [
        checkpoint.load(path)
        for name in ("whole", "a")
        if (path := checkpoint.find(tmp_path / name / "checkpoints", "last"))
    ]
    for name, tensor in ends[0].tensors.items():
        assert torch.equal(tensor, ends[1].tensors[name]), name
    steps = [
        [
            json.loads(line)["step"]
            for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()
        ]
        for name in ("whole", "a")
    ]
    assert steps[0] == steps[1]


def test_a_warm_start_is_kept_until_it_is_beaten(tmp_path):
    _run(tmp_path / "a").run()
    warm = _run(tmp_path / "b", init_from=tmp_path / "a")
    first = checkpoint.find(tmp_path / "a/checkpoints", "best")
    assert first is not None
    before = checkpoint.load(first).part("policy")
    for name, tensor in warm.algorithm.policy.state_dict().items():
        assert torch.equal(tensor, before[name])
    summary = warm.run()
    assert summary is not None
    started = json.loads((tmp_path / "b/metrics.jsonl").read_text().splitlines()[0])
    assert summary["val_return"] >= started["val/return"]


def test_what_cannot_be_gone_on_from_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="no checkpoint to resume from"):
        _run(tmp_path / "a", resume=True)
    _run(tmp_path / "b").run()
    wider = TrainConfig(
        algorithm="ppo", seat="pick", options={**CONFIG.options, "window": 9}, num_envs=8
    )
    with pytest.raises(ConfigError, match="trained on other observations") as error:
        Trainer(wider, tmp_path / "b", resume=True)
    assert "shapes.jobs: (8, 8) against (9, 8)" in str(error.value)


@pytest.mark.parametrize("asked", [1, 3, 33, 60, 100])
def test_a_run_stopped_in_an_evaluation_goes_on_as_if_it_had_not_been(tmp_path, asked):
    """Heuristics, validations and REPORT ask whether to stop; what was due is made again."""
    whole = _run(tmp_path / "whole").run()
    times = 0

    def must_stop():
        nonlocal times
        times += 1
        return times == asked

    assert _run(tmp_path / "a").run(must_stop=must_stop) is None, "it was not asked so often"
    begun = checkpoint.find(tmp_path / "a/checkpoints", "last") is not None
    assert _run(tmp_path / "a", resume=begun).run() == whole
    curves = [(tmp_path / name / "curve.csv").read_text() for name in ("whole", "a")]
    assert curves[0] == curves[1]
