"""The demo of deployment, `make demo-deploy`, runs to its end."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.shared_traces import REPOSITORY


@pytest.mark.slow
def test_demo() -> None:
    demo = REPOSITORY / "examples" / "deploy_demo.py"
    done = subprocess.run([sys.executable, demo], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "shadow" in done.stdout
