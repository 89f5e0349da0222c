"""The examples run, each with its library; if that is absent, the test is skipped and says so."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys

import pytest
from tests.shared_traces import REPOSITORY

EXAMPLES = REPOSITORY / "examples"
RUNS = {
    "cleanrl_ppo.py": ("torch", "8192 1", r"this agent, sampled: mean JCT \d,\d+ s"),
    "sb3_maskable_ppo.py": ("sb3_contrib", "2048 1 1", r"MaskablePPO, sampled: mean JCT \d,\d+ s"),
    "rllib_pick.py": ("tree", "1", r"mean return -\d+\.\d+"),
    "torchrl_pick.py": ("torchrl", "32", r"512 steps, mean reward -0\.\d+"),
}
MOST_LINES = {"cleanrl_ppo.py": 200, "sb3_maskable_ppo.py": 60}
"""Of those that show an algorithm, or how it is compared; 40 for the others."""
OTHERS = {"deploy_demo.py"}
"""Not about a library for learning: tests/cli/deploy/test_deploy_demo.py."""


def is_installed(package):
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def test_every_example_is_here():
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == sorted({*RUNS, *OTHERS})


@pytest.mark.parametrize("name", RUNS)
def test_it_is_short(name):
    assert len((EXAMPLES / name).read_text().splitlines()) <= MOST_LINES.get(name, 40)


@pytest.mark.parametrize("name", RUNS)
def test_it_runs(name):
    package, arguments, expected = RUNS[name]
    if not is_installed(package):
        pytest.skip(f"{package} is not installed")
    done = subprocess.run(
        [sys.executable, EXAMPLES / name, *arguments.split()],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert re.search(expected, done.stdout), done.stdout
