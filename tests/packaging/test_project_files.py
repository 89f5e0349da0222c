"""Files about the project agree with each other: versions, supported Pythons, what is checked."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
YAML_FILES = ["CITATION.cff", ".pre-commit-config.yaml", *sorted(
    path.relative_to(ROOT).as_posix() for path in (ROOT / ".github").rglob("*.yml")
)]  # fmt: skip


def read_yaml(name: str):
    yaml = pytest.importorskip("yaml", reason="no PyYAML: make venv")
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", YAML_FILES)
def test_yaml_files_parse(name):
    assert isinstance(read_yaml(name), dict)


def test_citation_agrees_with_the_project():
    citation = read_yaml("CITATION.cff")
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    assert citation["repository-code"] == PROJECT["urls"]["Repository"]
    assert citation["url"] == PROJECT["urls"]["Documentation"]
    assert [author["name"] for author in citation["authors"]] == [
        author["name"] for author in PROJECT["authors"]
    ]
    assert {"cff-version", "message", "title"} <= citation.keys()


def test_changelog_has_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    versions = []
    for heading in headings[1:]:
        match = re.fullmatch(r"\[(\d+)\.(\d+)\.(\d+)\] - \d{4}-\d{2}-\d{2}", heading)
        assert match, f"not `[VERSION] - DATE`: {heading}"
        versions.append(tuple(map(int, match.groups())))
    assert versions == sorted(versions, reverse=True)
    assert ".".join(map(str, versions[0])) == PROJECT["version"]
    kinds = set(re.findall(r"^### (.+)$", text, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    linked = re.findall(r"^\[(.+)\]: https://", text, re.MULTILINE)
    assert linked == ["Unreleased", *(".".join(map(str, version)) for version in versions)]


def test_workflows_run_targets_of_the_makefile_on_every_python():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    pythons = {line.rsplit(" ", 1)[1] for line in PROJECT["classifiers"] if ":: 3." in line}
    jobs = read_yaml(".github/workflows/ci.yml")["jobs"]
    assert set(jobs["test"]["strategy"]["matrix"]["python"]) == pythons
    install = read_yaml(".github/workflows/wheels.yml")["jobs"]["install"]
    assert set(install["strategy"]["matrix"]["python"]) == pythons
    called = set()
    for job in jobs.values():
        for step in job["steps"]:
            words = step.get("run", "").split()
            if words[:1] == ["make"]:
                called |= {word for word in words[1:] if re.fullmatch(r"[a-z][a-z-]*", word)}
    assert called >= {"lint", "types", "test", "docs-site"}
    assert called <= targets


def test_hooks_are_what_make_checks():
    """The commands of `make lint` and `make types`, without the files they are given."""
    recipes = re.findall(
        r"^(?:lint|types):.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M
    )
    checked = set()
    for line in "".join(recipes).splitlines():
        if "$(BIN)/" in line:
            command = line.strip("\t@").split(" || ")[0].replace("$(BIN)", ".venv/bin")
            checked.add(command.removesuffix(" .").removesuffix(" $(CXX_FILES)"))
    (local,) = read_yaml(".pre-commit-config.yaml")["repos"]
    assert local["repo"] == "local"
    assert {hook["entry"] for hook in local["hooks"]} == checked
