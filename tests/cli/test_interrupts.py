"""Ctrl-C: every long verb ends at once with exit code 130, without a traceback."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

_INTERRUPTED = """
import os, signal, sys, threading
from berthline.cli.main import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it in the background
timer = threading.Timer(float(sys.argv[1]), os.kill, (os.getpid(), signal.SIGINT))
timer.daemon = True
timer.start()
sys.exit(main(sys.argv[2:]))
"""
"""Runs a command that gets a SIGINT after some seconds."""

_SMALL_POLICY = ("--set", "episode_jobs=64", "--envs", "8", "--hidden", "8", "--episodes", "4")
VERBS = {
    "sim": ("sim", "synthetic", "--jobs", "10000000", "--load", "1.2"),
    "sim, reference": ("sim", "synthetic", "--jobs", "500000", "--simulator", "reference"),
    "sim, milp": ("sim", "synthetic", "--jobs", "500000", "--scheduler", "fcfs@milp"),
    "compare": ("compare", "synthetic", "--windows", "60000", "--workers", "1"),
    "compare, workers": ("compare", "synthetic", "--windows", "60000", "--workers", "2"),
    "eval": ("eval", "sjf+easy", "--windows", "60000"),
    "explain": ("explain", "longest", "synthetic", "--jobs", "20000", "--draws", "100000"),
    "demo": ("demo", "--out", "{out}"),
    "bench": ("bench", "sim"),
    "train": ("train", "ppo", *_SMALL_POLICY, "--steps", "1000000000", "--out", "{out}"),
    "train es": ("train", "es", "--workload", "synthetic", "--out", "{out}"),
}


@pytest.mark.parametrize("seconds", [1.0, 6.0])
@pytest.mark.parametrize("name", VERBS)
def test_a_verb_is_interrupted(name: str, seconds: float, tmp_path: Path) -> None:
    words = [word.format(out=tmp_path / "out") for word in VERBS[name]]
    # Uninterrupted, each takes minutes: the limit only keeps the suite from hanging.
    ended = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED, str(seconds), *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 130, ended.stderr
    assert "Traceback" not in ended.stderr
    assert "interrupted" in ended.stderr or "stopped" in ended.stderr


def test_the_demo_is_interrupted_while_it_tunes(tmp_path: Path) -> None:
    """Ctrl-C there ended the tuning only, and the demo went on to exit code 0."""
    code = _INTERRUPTED.replace("timer.start()", _WHEN_TUNING)
    ended = subprocess.run(
        [sys.executable, "-c", code, "0", "demo", "--out", str(tmp_path / "out")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 130, ended.stderr
    assert not (tmp_path / "out").exists()


_WHEN_TUNING = """
from berthline.learn.tuning.search import Search
Search._generation = lambda self, rivals, run=Search._generation: (
    os.kill(os.getpid(), signal.SIGINT), run(self, rivals))[1]
"""
