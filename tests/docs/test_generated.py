"""The generated parts of the pages are what the program says today."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.docs.pages import PAGES, ROOT


def test_generated_parts_are_fresh():
    """In a process of its own: other tests add names to the registries."""
    check = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONUTF8": "1"},
    )
    assert check.returncode == 0, f"stale; run `make docs`\n{check.stdout}{check.stderr}"


def test_generated_parts_are_closed():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert text.count("<!-- generated: ") == text.count("<!-- end: "), page
