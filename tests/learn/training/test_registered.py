"""Algorithms, networks, rewards, columns and presets from outside of the package train."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.shared_traces import REPOSITORY

EXAMPLE = REPOSITORY / "examples" / "extension"
NAMES_ALONE = """
import sys
import berthline.learn.algorithms.algorithm_table as table
from berthline.env.rewards import REWARDS

assert "queue-and-use" in REWARDS and "reinforce" in list(table.ALGORITHMS)
assert "my_scheduling" not in sys.modules and "torch" not in sys.modules
assert REWARDS["queue-and-use"].metric == "jct_mean"
assert "my_scheduling" in sys.modules
"""
COMMAND_LINE = """
import contextlib, io, json, sys
from berthline.cli.main import main

def run(*words):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert main([*words]) == 0
    return printed.getvalue()

small = ("--envs", "4", "--steps", "256", "--validate-every", "128", "--episodes", "4")
train = ("train", "reinforce", "--network", "deep-sets", "--preset", "small-and-busy", *small)
summary = json.loads(run(*train, "--seed", "3", "--json", "--out", "run"))
assert summary["algorithm"] == "reinforce" and summary["updates"] == 2
text = run("train", "reinforce", "--help")
assert "mean_rate=0.1" in text and "how fast the mean return is followed" in text
# The policy is a scheduler wherever the package is installed.
sim = ("sim", "synthetic", "--jobs", "20", "--cluster", "uniform:2x4:V100", "--json")
assert json.loads(run(*sim, "--scheduler", "run"))["jobs"]["completed"] == 20
"""
FUNCTIONS = """
import berthline as bl, my_scheduling as parts

bl.register_algorithm("my-reinforce")(parts.Reinforce)
bl.register_network("my-sets", parts.DeepSets)
bl.register_reward("my-reward", **parts.QUEUE_AND_USE)
bl.register_columns("my-columns", **parts.SHORT_AND_SMALL)
options = {**parts.SMALL_AND_BUSY["options"], "features": "my-columns", "reward": "my-reward"}
bl.register_preset("my-preset", "Pick", options)
found = bl.train(
    "my-reinforce", network="my-sets", preset="my-preset", out="mine", envs=4, steps=256,
    validate_every=128, episodes=4, seed=3,
)
assert found.summary["report"]["policy"] == summary["report"]["policy"]
"""
WITHOUT = """
import berthline as bl
try:
    bl.simulate("synthetic", "uniform:2x4:V100", "run")
except bl.BerthlineError as error:
    assert "unknown network 'deep-sets'" in str(error)
else:
    raise AssertionError
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Return the environment of a process that has the example package installed."""
    site = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    command += ["--no-build-isolation", "--target", str(site), str(EXAMPLE)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return {**os.environ, "PYTHONPATH": str(site)}


def run(code, *, env, folder):
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, env=env,
        cwd=folder,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr


def test_names_are_listed_without_importing_what_they_name(installed, tmp_path):
    run(NAMES_ALONE, env=installed, folder=tmp_path)


def test_a_package_adds_one_of_each(installed, tmp_path):
    """By entry points on the command line, and by functions in Python: the same policy."""
    run(COMMAND_LINE + FUNCTIONS, env=installed, folder=tmp_path)
    without = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run(WITHOUT, env=without, folder=tmp_path)
