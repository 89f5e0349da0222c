"""Running the command line inside the test process."""

import dataclasses
import json
from collections.abc import Callable

import pytest

from berthline.cli.main import main


@dataclasses.dataclass
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def run(capsys, monkeypatch) -> Callable[..., Outcome]:
    """Call `run("sim", "synthetic", ...)` and get exit code, stdout and stderr."""
    monkeypatch.setenv("COLUMNS", "80")

    def call(*argv: str) -> Outcome:
        code = main(list(argv))
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


@pytest.fixture
def trace(tmp_path):
    """An SWF file of five rows: one cancelled, one wider than eight GPUs."""
    rows = [
        "1 0 -1 100 2 -1 -1 2 200 -1 1 1 1 -1 -1 -1 -1 -1",
        "2 5 -1 0 2 -1 -1 2 200 -1 5 1 1 -1 -1 -1 -1 -1",
        "3 10 -1 50 16 -1 -1 16 100 -1 1 2 1 -1 -1 -1 -1 -1",
        "4 20 -1 50 8 -1 -1 8 100 -1 1 2 1 -1 -1 -1 -1 -1",
        "5 21 -1 50 1 -1 -1 1 60 -1 1 2 1 -1 -1 -1 -1 -1",
    ]
    path = tmp_path / "small.swf"
    path.write_text("; MaxProcs: 8\n" + "\n".join(rows) + "\n")
    return path
