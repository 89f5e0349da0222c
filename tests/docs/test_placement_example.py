"""CONTRIBUTING's example of a placement rule works: applied to a copy, built, and simulated."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

COMPARE = """
import berthline as bl

cluster = "uniform:6x8"
jobs = bl.generate(cluster=cluster, jobs=400, load=0.9, seed=3)
logs = {}
for simulator in ("native", "reference"):
    for placement in ("first-fit", "last-fit"):
        result = bl.simulate(jobs, cluster, f"sjf+easy@{placement}", simulator=simulator)
        logs[simulator, placement] = result.log.sha256()
assert logs["native", "last-fit"] == logs["reference", "last-fit"]
assert logs["native", "last-fit"] != logs["native", "first-fit"]
print("agree")
"""


def hunks() -> list[tuple[str, str, str]]:
    """The example as (file, text before, text after)."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```diff\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    found = []
    for part in re.split(r"^--- a/", block, flags=re.MULTILINE)[1:]:
        path = part.split("\n", 1)[0]
        for hunk in re.split(r"^@@.*\n", part, flags=re.MULTILINE)[1:]:
            lines = hunk.splitlines(keepends=True)
            before = "".join(line[1:] for line in lines if line[0] != "+")
            after = "".join(line[1:] for line in lines if line[0] != "-")
            found.append((path, before, after))
    return found


def apply(root: Path) -> None:
    """Make the edits of the example in a copy of the tree."""
    for path, before, after in hunks():
        text = (root / path).read_text(encoding="utf-8")
        assert text.count(before) == 1, f"{path} has {text.count(before)} times:\n{before}"
        (root / path).write_text(text.replace(before, after), encoding="utf-8")


def run(*command: str | Path, cwd: Path, environment: dict[str, str] | None = None) -> str:
    """Run a command and return what it prints."""
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_example_is_at_most_five_edits_and_still_applies(tmp_path):
    assert 0 < len(hunks()) <= 5
    for path, _, _ in hunks():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    apply(tmp_path)


@pytest.mark.slow
def test_example_gives_the_same_logs_in_both_simulators(tmp_path):
    for tool in ("cmake", "nanobind"):
        pytest.importorskip(tool, reason="the build tools are not installed: make venv")
    for folder in ("native", "src"):
        ignore = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignore)
    apply(tmp_path)
    cmake = ("-m", "cmake")
    build = tmp_path / "build"
    run(
        *(sys.executable, *cmake, "-S", "native", "-B", build, "-DCMAKE_BUILD_TYPE=Release"),
        *("-DSKBUILD=1", "-DSKBUILD_PROJECT_VERSION=0", f"-DPython_EXECUTABLE={sys.executable}"),
        cwd=tmp_path,
    )
    run(sys.executable, *cmake, "--build", build, "--parallel", "2", cwd=tmp_path)
    (core,) = build.glob(f"_native*{sysconfig.get_config_var('EXT_SUFFIX')}")
    shutil.copy(core, tmp_path / "src" / "berthline")
    # -S: an editable install has an import hook in site-packages, which goes before any path.
    used = {"PYTHONPATH": f"{tmp_path / 'src'}:{sysconfig.get_path('platlib')}"}
    assert run(sys.executable, "-S", "-c", COMPARE, cwd=tmp_path, environment=used) == "agree\n"
