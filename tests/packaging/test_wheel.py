"""The wheels of `make wheel` install into an empty environment of every Python here, and work."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
BUILDERS = ("3.11", "3.12")

USE = """
import gymnasium as gym
import berthline as bl
from berthline import _native

jobs = bl.generate(cluster="uniform:4x8", jobs=200, seed=1)
assert bl.simulate(jobs, "uniform:4x8", "sjf+easy").metrics().jobs.completed == 200
env = gym.make("berthline/Pick-v0", cluster="uniform:4x8")
env.reset(seed=1)
env.step(0)
print(_native.__file__)
"""


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command outside the checkout and return what it prints."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=clean, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def python(version: str) -> str | None:
    """Return an interpreter of this version: on the path, or among those of pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [shutil.which(f"python{version}")]
    found += [str(path) for path in sorted(pyenv.glob(f"{version}.*/bin/python"), reverse=True)]
    for candidate in filter(None, found):  # the one on the path may be a shim that only complains
        asked = subprocess.run([candidate, "-c", "import venv"], capture_output=True)
        if asked.returncode == 0:
            return candidate
    return None


@pytest.fixture(scope="module")
def wheels(tmp_path_factory) -> Path:
    """The folder of wheels that `make wheel` builds with the Pythons of this machine."""
    out = tmp_path_factory.mktemp("wheels")
    builders = [found for found in map(python, BUILDERS) if found]
    run("make", "wheel", f"WHEEL_DIR={out}", f"WHEEL_PYTHONS={' '.join(builders)}", cwd=ROOT)
    assert len(list(out.iterdir())) == len(builders)
    return out


def wheel_for(version: str, wheels: Path) -> Path:
    """Return the wheel that this Python installs, by the tags in the file names."""
    tag = "-cp311-cp311-" if version == "3.11" else "-cp312-abi3-"
    found = [path for path in wheels.iterdir() if tag in path.name]
    if not found:
        pytest.skip(f"no Python {'3.11' if version == '3.11' else '3.12'} here to build the wheel")
    return found[0]


@pytest.mark.slow
@pytest.mark.parametrize(("version", "core"), [("3.11", ".cpython-311"), ("3.12", ".abi3.so")])
def test_wheel_holds_the_package_and_nothing_else(version, core, wheels):
    names = zipfile.ZipFile(wheel_for(version, wheels)).namelist()
    (native,) = [name for name in names if name.endswith(".so")]
    assert native.startswith(f"berthline/_native{core}")
    assert {name.split("/")[0].split("-")[0] for name in names} == {"berthline"}
    assert "berthline/py.typed" in names


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_wheel_works_in_an_empty_environment(version, wheels, tmp_path):
    interpreter = python(version)
    if interpreter is None:
        pytest.skip(f"no Python {version} on this machine")
    wheel = wheel_for(version, wheels)
    run(interpreter, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    bin_ = tmp_path / "venv" / "bin"
    pip = [bin_ / "python", "-m", "pip", "install", "--quiet", "--only-binary", ":all:"]
    run(*pip, "-c", ROOT / "constraints.txt", wheel, cwd=tmp_path)
    assert "everything works" in run(bin_ / "berthline", "doctor", cwd=tmp_path)
    said = run(
        *(bin_ / "berthline", "sim", "synthetic", "--jobs", "200", "--scheduler", "sjf+easy"),
        *("--cluster", "uniform:4x8:V100", "--json"),
        cwd=tmp_path,
    )
    assert json.loads(said)["jobs"]["completed"] == 200
    core = Path(run(bin_ / "python", "-c", USE, cwd=tmp_path).strip())
    assert core.is_relative_to(tmp_path)
