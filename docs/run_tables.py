"""The table of the kinds of run and their files, from the module that owns both."""

from __future__ import annotations

from berthline.runs.run_layout import RUN_KINDS


def kinds() -> str:
    """Return which kind of run leaves which files."""
    rows = ["| kind | what it is | files |", "| --- | --- | --- |"]
    for name, kind in RUN_KINDS.items():
        files = ", ".join(f"`{file}`" for file in kind.files)
        rows.append(f"| `{name}` | {kind.meaning} | {files} |")
    return "\n".join(rows)


PARTS = {"kinds of run": kinds}
