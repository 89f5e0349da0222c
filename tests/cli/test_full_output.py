"""A full disk and a closed output are not faults of Berthline: exit code 1, in a sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FULL = Path("/dev/full")
COMMAND = (sys.executable, "-m", "berthline")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
SIM = ("sim", "synthetic", "--jobs", "9")


def ends(words: tuple[str, ...], **streams: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *words], text=True, check=False, **streams)  # type: ignore[call-overload, no-any-return]


@needs_full
@pytest.mark.parametrize("words", [SIM, (*SIM, "--json"), ("policies",), ("--help",), SIM[:1]])
def test_stdout_is_full(words: tuple[str, ...]) -> None:
    words = (*words, "--help") if words == SIM[:1] else words
    with FULL.open("w") as full:
        ended = ends(words, stdout=full, stderr=subprocess.PIPE)
    assert ended.returncode == 1
    assert ended.stderr == "error: cannot write the output: No space left on device\n"


@needs_full
def test_stderr_is_full() -> None:
    with FULL.open("w") as full:
        assert ends(("sim", "no-such"), stdout=subprocess.PIPE, stderr=full).returncode == 2


@pytest.mark.parametrize("words", [SIM, (*SIM, "--json"), ("policies",)])
def test_the_reader_has_closed_the_pipe(words: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = ends(words, stdout=writing, stderr=subprocess.PIPE)
    finally:
        os.close(writing)
    assert ended.returncode == 141
    assert ended.stderr == ""


@pytest.mark.skipif(os.name == "nt", reason="needs a shell that closes streams")
@pytest.mark.parametrize(("closed", "code"), [(">&-", 1), ("2>&-", 0)])
def test_a_closed_stream(closed: str, code: int) -> None:
    words = " ".join((*COMMAND, *SIM))
    ended = subprocess.run(f"{words} {closed}", shell=True, capture_output=True, text=True)
    assert ended.returncode == code
    assert "fault" not in ended.stderr


@pytest.mark.skipif(os.name == "nt", reason="needs limits of the shell")
@pytest.mark.parametrize(
    "words",
    [
        ("sim", "synthetic", "--jobs", "20000", "--out", "out"),
        ("compare", "synthetic", "--jobs", "9000", "--schedulers", "fcfs,lcfs", "--out", "out"),
        ("export", "swf", "synthetic", "--jobs", "20000", "--out", "out.swf"),
    ],
)
def test_a_result_does_not_fit_the_disk(words: tuple[str, ...], tmp_path: Path) -> None:
    """The limit of a file's size stands for a full disk: both are errors of the system."""
    command = " ".join(["ulimit -f 40;", *COMMAND, *words])
    ended = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert "File too large" in ended.stderr
    assert "fault" not in ended.stderr
    assert not (tmp_path / "out" / "summary.json").exists()
