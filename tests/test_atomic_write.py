"""A file or directory under its final name is complete, whenever the process ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from berthline.atomic_write import complete_directory
from berthline.errors import OutputError

_KILLED_AT = """
import os, shutil, sys
from pathlib import Path
from berthline.atomic_write import complete_directory

left = int(sys.argv[2])

def counted(change):
    def changed(*args, **kwargs):
        global left
        left -= 1
        if left < 0:
            os._exit(9)
        return change(*args, **kwargs)
    return changed

Path.rename, os.unlink, os.rmdir = map(counted, (Path.rename, os.unlink, os.rmdir))
with complete_directory(sys.argv[1]) as partial:
    for name in ("a", "b"):
        (partial / name).write_text("new")
"""
"""Replaces a directory, and ends as if killed before a given change of the file system."""


def _contents(directory: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in sorted(directory.iterdir())}


def test_a_killed_replacement_leaves_the_old_or_the_new_directory_complete(tmp_path: Path) -> None:
    target = tmp_path / "kept"
    codes = []
    for changes in range(20):
        for folder in tmp_path.iterdir():
            subprocess.run(["rm", "-r", folder], check=True)
        target.mkdir()
        for name in ("a", "b"):
            (target / name).write_text("old")
        command = [sys.executable, "-c", _KILLED_AT, str(target), str(changes)]
        codes.append(subprocess.run(command, check=False).returncode)
        complete = [{"a": word, "b": word} for word in ("old", "new")]
        if target.exists():
            assert _contents(target) in complete, f"killed after {changes} changes"
        else:
            found = [_contents(folder) for folder in tmp_path.iterdir()]
            assert all(one in found for one in complete), f"killed after {changes} changes"
        if codes[-1] == 0:
            break
    assert codes[-1] == 0
    assert len(codes) > 3, "it was killed at several places, then ran through"
    assert [folder.name for folder in tmp_path.iterdir()] == ["kept"]


def test_a_replacement_that_fails_leaves_the_old_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "kept"
    target.mkdir()
    (target / "a").write_text("old")
    rename = Path.rename

    def no_new_one(self: Path, new: Path) -> Path:
        if "partial" in self.name:
            raise OSError(28, "No space left on device")
        return rename(self, new)

    monkeypatch.setattr(Path, "rename", no_new_one)
    with pytest.raises(OutputError, match="No space left"), complete_directory(target) as partial:
        (partial / "a").write_text("new")
    assert _contents(target) == {"a": "old"}
    assert [folder.name for folder in tmp_path.iterdir()] == ["kept"]


def test_a_file_in_its_place_is_not_replaced_by_a_directory(tmp_path: Path) -> None:
    target = tmp_path / "kept"
    target.write_text("a file")
    with pytest.raises(OutputError, match="not a directory"), complete_directory(target):
        pass
    assert target.read_text() == "a file"
