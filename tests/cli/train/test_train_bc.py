"""`berthline train bc`: a scheduler is learned from, and the clone can be begun from."""

import json

import pytest

from berthline.cli.train.command import main
from berthline.errors import BerthlineError, ConfigError

SMALL = [
    *("--set", "episode_jobs=16", "--set", "window=8", "--set", "running_window=4"),
    *("--set", "cluster=uniform:1x8:V100"),
    *("--steps", "256", "--envs", "8", "--episodes", "4", "--hidden", "8", "--json"),
]


def test_the_expert_is_an_option_and_the_clone_a_warm_start(tmp_path, capsys):
    path = tmp_path / "bc"
    assert main(["bc", *SMALL, "--expert", "sjf+easy", "--out", str(path)]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["algorithm"] == "bc"
    lines = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    assert any("charts/agreement" in line for line in lines)
    warm = ["ppo", *SMALL, "--config", "rollout=16", "--init-from", str(path)]
    assert main([*warm, "--out", str(tmp_path / "ppo")]) == 0


def test_wrong_experts_are_told(tmp_path):
    with pytest.raises(ConfigError, match="ppo does not learn from an expert"):
        main(["ppo", *SMALL, "--expert", "sjf", "--out", str(tmp_path / "a")])
    with pytest.raises(BerthlineError, match="nobody"):
        main(["bc", *SMALL, "--expert", "nobody", "--out", str(tmp_path / "b")])
