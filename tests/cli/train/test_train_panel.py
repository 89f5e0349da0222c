"""The live panel of `berthline train`, as a user sees it: on a terminal of 80 columns."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pty = pytest.importorskip("pty", reason="there are no pseudo-terminals here")
COLUMNS = 80
SMALL = (
    "--set", "episode_jobs=16", "load=3", "cluster=uniform:2x4", "window=8", "running_window=4",
    "--config", "rollout=8", "epochs=1", "minibatches=2", "--hidden", "8,8",
    "--envs", "4", "--steps", "96", "--validate-every", "64", "--episodes", "4",
)  # fmt: skip


def terminal_output(words: list[str], cwd: Path) -> tuple[int, str]:
    """Run a command on a terminal; return its exit code and all that it wrote."""
    import fcntl
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    with subprocess.Popen(
        words,
        cwd=cwd,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS)},
    ) as running:
        os.close(theirs)
        written = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # Linux: the other end is closed
                break
            if not part:
                break
            written += part
    os.close(ours)
    return running.returncode, written.decode()


class Screen:
    """The few rows and control sequences that the panel and the summary use."""

    def __init__(self) -> None:
        self.rows = [""]
        self.row = self.column = 0
        self.seen: list[str] = []

    def write(self, text: str) -> None:
        for piece in re.split(r"(\x1b\[[?0-9;]*[A-Za-z]|\r|\n)", text):
            if piece == "\n":
                self.row += 1
                if self.row == len(self.rows):
                    self.rows.append("")
            elif piece == "\r":
                self.column = 0
            elif piece.startswith("\x1b"):
                self._control(piece)
            elif piece:
                old = self.rows[self.row].ljust(self.column)
                new = self.column + len(piece)
                self.rows[self.row] = old[: self.column] + piece + old[new:]
                self.column = new
                assert new <= COLUMNS, f"too long for the terminal: {piece!r}"

    def _control(self, sequence: str) -> None:
        if sequence.endswith("A"):
            self.row -= int(sequence[2:-1] or 1)
            assert self.row >= 0
        elif sequence == "\x1b[2K":
            self.seen.append("\n".join(row.rstrip() for row in self.rows).rstrip())
            self.rows[self.row] = ""
        else:
            assert sequence[-1] in "mhl", f"the test knows no {sequence!r}"


def test_panel__says_how_far_it_is_and_leaves_the_summary_alone(tmp_path):
    words = [sys.executable, "-m", "berthline", "train", "ppo", *SMALL, "--out", "run"]
    code, text = terminal_output(words, tmp_path)
    assert code == 0, text
    screen = Screen()
    screen.write(text)
    first, *panels = [seen for seen in screen.seen if seen]
    assert "ppo on pick, seed 0: running the heuristics on the VAL episodes" in first
    whole = [panel for panel in panels if "losses" in panel and "epochs" in panel]
    assert len(whole) >= 3, "one for each iteration"
    last = whole[-1].splitlines()
    labels = [line.split()[0] for line in last if not line.startswith(" ")]
    assert labels == ["ppo", "steps", "speed", "return", "score", "losses"]
    assert "96 of 96 (100%)" in whole[-1]
    assert "steps/s" in whole[-1]
    losses = next(row for row, line in enumerate(last) if line.startswith("losses"))
    for line in last[losses:]:  # no name without its value
        assert re.fullmatch(r"(losses)? +(\w+ [-+.e\d]+(, )?)+,?", line), line
    left = "\n".join(screen.rows)
    assert "steps/s" not in left, "the panel has gone"
    assert "REPORT, 8 held-out episodes" in left
