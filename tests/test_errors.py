"""Texts of the library are about parameters; only the command line speaks of options."""

import ast
import re
from pathlib import Path

import berthline

PACKAGE = Path(berthline.__file__).parent
OPTION = re.compile(r"(?<![\w-])--[a-z]")
COMMAND = re.compile(r"\b(berthline [a-z]+|sacct|ray [a-z]+|SBATCH) .*--[a-z]", re.DOTALL)

PROGRAMS = ("load_job.py", "generate_lists.py", "nvidia_smi.py")
"""A program with options of its own, what writes its command lines, and what calls another one."""


def texts_of(path):
    """Yield (line, text) of all strings of a module that are not docstrings or comments."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    alone = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    inside = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in node.values}
            parts = [part.value for part in node.values if isinstance(part, ast.Constant)]
            yield node.lineno, "X".join(map(str, parts))
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in alone | inside
        ):
            yield node.lineno, node.value


def test_library__never_speaks_of_options():
    found = [
        f"{path.relative_to(PACKAGE)}:{line}: {text}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] != "cli" and path.name not in PROGRAMS
        for line, text in texts_of(path)
        if OPTION.search(text) and not COMMAND.search(text) and not text.startswith("--c-")  # CSS
    ]
    assert not found, "\n" + "\n".join(found)
