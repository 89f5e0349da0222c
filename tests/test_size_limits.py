"""Sizes that cannot be meant are refused before any work, on the command line and in Python."""

from __future__ import annotations

import pytest

import berthline as bl
from berthline.cli.main import main
from berthline.errors import ConfigError
from berthline.size_limits import MOST, check_sizes

HUGE = (10**8, 10**21)
COMMANDS = {
    "--windows": ("compare", "synthetic"),
    "--seeds": ("compare", "synthetic"),
    "--blocks": ("compare", "synthetic", "--continuous"),
    "--workers": ("compare", "synthetic", "--windows", "2"),
    "--jobs": ("sim", "synthetic"),
    "--window-jobs": ("eval", "sjf"),
    "--draws": ("explain", "longest", "synthetic", "--jobs", "9"),
    "--population": ("train", "es", "--workload", "synthetic"),
    "--train-windows": ("train", "es", "--workload", "synthetic"),
}


@pytest.mark.parametrize("value", HUGE)
@pytest.mark.parametrize("option", COMMANDS)
def test_options(option: str, value: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMANDS[option], option, str(value)]) == 2
    told = capsys.readouterr().err
    assert str(value) in told
    assert "expected: a whole number" in told
    assert option.strip("-") in told


@pytest.mark.parametrize("value", [*HUGE, 0, -1, 2.5, True, "8", [8]])
@pytest.mark.parametrize("name", ["windows", "seeds", "blocks", "workers"])
def test_parameters(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"`{name}` is "):
        bl.compare("synthetic", "uniform:1x4", ["fcfs"], jobs=9, **{name: value})


def test_all_runs_of_a_comparison_together() -> None:
    with pytest.raises(ConfigError, match="`runs` is 60000000"):
        bl.compare("synthetic", "uniform:1x4", ["fcfs"], jobs=9, windows=60_000, seeds=1_000)


def test_episodes() -> None:
    import gymnasium as gym

    with pytest.raises(ConfigError, match="episode_jobs is 100000000"):
        gym.make("berthline/Pick-v0", episode_jobs=10**8)


def test_the_largest_sizes_are_accepted() -> None:
    check_sizes(**dict.fromkeys(MOST), lowest=0)
    check_sizes(**MOST)
