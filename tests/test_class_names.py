"""One name for one thing: class names that several modules use are listed, with the reason."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "berthline"

SHARED = {
    "Action": "of a controller on a system, and of a policy in a decision",
    "Column": "of a table: of numbers as text, of a CSV file",
    "Entry": "of a table: of a page, of the algorithms, of a journal",
    "Export": "options of the verb, and of `deploy export`",
    "Gate": "the seat: its rule, and how the reference asks about it",
    "Interval": "of numbers, and of a wait",
    "Job": "a row of a trace, in the reader of its format",
    "Judge": "options of `deploy judge`, and what compares policies in a task",
    "Look": "at a system, as it answers, and at an instant of a wait",
    "Packed": "local to packing experiments, and to networks",
    "Preset": "of clusters, and of environments",
    "Question": "to an agent: as the reference and as environments see it",
    "Replay": "options of `deploy replay`, and the rows of a snapshot made again",
    "Scores": "of episodes, and of actions in an exported policy",
    "Share": "what a job holds on a node, in a trace and in the reference",
    "State": "of a run, and a Slurm job's",
}
"""Names that several modules use, each with the reason why that misleads no reader."""


def test_public_class_names_are_unique_or_listed() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path.relative_to(SOURCE).as_posix())
    shared = {name: files for name, files in found.items() if len(files) > 1}
    assert sorted(shared) == sorted(SHARED), shared
