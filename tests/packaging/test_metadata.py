"""What a package index shows: a description whose links work there, and where the project is."""

from __future__ import annotations

import email
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TARGET = re.compile(r"\]\(([^()\s]+)\)")

PREPARE = """
import sys
from scikit_build_core.build import prepare_metadata_for_build_wheel as prepare
prepare(sys.argv[1])
"""


@pytest.fixture(scope="module")
def metadata(tmp_path_factory):
    """The metadata that a wheel built now would have."""
    for tool in ("scikit_build_core", "hatch_fancy_pypi_readme"):
        pytest.importorskip(tool, reason="the build tools are not installed: make venv")
    out = tmp_path_factory.mktemp("metadata")
    subprocess.run([sys.executable, "-c", PREPARE, out], cwd=ROOT, check=True, capture_output=True)
    (file,) = out.glob("*.dist-info/METADATA")
    return email.message_from_string(file.read_text(encoding="utf-8"))


def test_links_of_the_description_are_absolute(metadata):
    shown = metadata.get_payload()
    assert metadata["Description-Content-Type"].startswith("text/markdown")
    targets = TARGET.findall(shown)
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []
    ours = [target for target in targets if "/blob/" in target or "/raw" in target]
    version = PROJECT["version"]
    for target in ours:  # of this version, and of files that exist
        path = target.split(f"/v{version}/")[1].partition("#")[0]
        assert (ROOT / path).exists(), target
    written = TARGET.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(targets) == len(written)
    assert len(ours) > 20


def test_the_project_says_where_it_is(metadata):
    urls = dict(entry.split(", ") for entry in metadata.get_all("Project-URL"))
    assert set(urls) >= {"Homepage", "Documentation", "Repository", "Issues", "Changelog"}
    assert all(url.startswith("https://") for url in urls.values())
