"""The order of packages: what may import what, and how modules are spread over folders."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(__file__).parents[1] / "src"

LAYERS = {
    "base": "",
    "model": "base",
    "runs.run_layout": "base",
    "tasks.task_table": "base",
    "policies": "base model runs.run_layout",
    "traces": "base model",
    "evaluate.metrics": "base model",
    "sim": "base model policies traces evaluate.metrics",
    "runs": "base model runs.run_layout policies traces evaluate.metrics sim",
    "view": "base model evaluate.metrics",
    "env": "base model policies traces evaluate.metrics sim runs view",
    "evaluate": "base model runs.run_layout policies traces evaluate.metrics sim runs env",
    "experiments": "base model runs.run_layout policies traces evaluate.metrics sim runs evaluate",
    "report": "base model runs.run_layout policies traces evaluate.metrics sim runs evaluate"
    " experiments",
    "learn.networks": "base env",
    "learn": "base model runs.run_layout tasks.task_table policies traces evaluate.metrics sim runs"
    " evaluate env learn.networks",
    "deploy": "base model runs.run_layout policies traces evaluate.metrics sim runs view env"
    " learn.networks",
    "deploy.judge": "base model policies evaluate.metrics sim evaluate deploy",
    "tasks": "base model policies traces sim evaluate env deploy tasks.task_table",
    "compat": "base env",
    "cli": "*",
    "top": "*",
}
"""Each package, and the packages that it may import: always earlier ones (`*` = all of them).

`base` is every other module directly in src/berthline, and the native core; `top` is what runs when
`berthline` is imported or started, and the namespaces of public names. A part of a package that
others need without the rest has its own line: metrics, and the names of the files of a run
directory.
"""

TOP = {
    "berthline",
    "berthline.__main__",
    "berthline.environments",
    "berthline.statistics",
    "berthline.testing",
    "berthline.training",
    "berthline.when_imported",
}
MOST_MODULES = 25
"""In a folder."""


class Import(NamedTuple):
    """An import of one module by another.

    Attributes:
        is_lazy: does not run when the module itself is imported: in a function, for types, or as a
            text.
    """

    importer: str
    imported: str
    line: int
    is_lazy: bool


@cache
def modules() -> dict[str, Path]:
    """Return the files of all modules of the package, by their dotted names."""
    found = {}
    for path in sorted((SOURCE / "berthline").rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(name: str, path: Path) -> Iterator[Import]:
    """Return all imports of a module: lazy ones, those for types, and names as texts."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    eager = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        named: list[str] = []
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            named = [
                child if (child := f"{node.module}.{alias.name}") in KNOWN else str(node.module)
                for alias in node.names
            ]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            # "package.module", or "package.module:name", for importlib
            text = node.value.partition(":")[0]
            named = [text] if re.fullmatch(r"berthline(\.\w+)+", text) and text in KNOWN else []
        for imported in dict.fromkeys(named):
            if imported.split(".")[0] == "berthline":
                yield Import(name, imported, node.lineno, id(node) not in eager)


KNOWN = modules().keys() | {"berthline._native"}
IMPORTS = [one for name, path in modules().items() for one in imports_of(name, path)]


def layer_of(module: str) -> str:
    """Return the entry of LAYERS that a module belongs to."""
    if module in TOP:
        return "top"
    _, *rooms = module.split(".")
    for depth in (2, 1):
        if (name := ".".join(rooms[:depth])) in LAYERS:
            return name
    return "base" if len(rooms) == 1 else rooms[0]


def breaks_the_order(one: Import) -> bool:
    """Whether an import is not in the table."""
    importer, imported = layer_of(one.importer), layer_of(one.imported)
    allowed = LAYERS[importer]
    return imported != importer and allowed != "*" and imported not in allowed.split()


def test_table__packages_only_import_earlier_ones() -> None:
    names = list(LAYERS)
    for at, (name, allowed) in enumerate(LAYERS.items()):
        assert set(allowed.split()) - {"*"} <= set(names[:at]), name
        assert allowed != "*" or name in names[-2:]


def test_table__has_every_package() -> None:
    found = {layer_of(name) for name in modules()}
    assert found <= LAYERS.keys(), f"packages without a line in LAYERS: {found - LAYERS.keys()}"


def test_imports__keep_to_the_table() -> None:
    wrong = [
        f"{one.importer}:{one.line}: {layer_of(one.importer)} may not import {one.imported}"
        for one in IMPORTS
        if breaks_the_order(one)
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_imports__have_no_cycle() -> None:
    graph: dict[str, set[str]] = {name: set() for name in modules()}
    for one in IMPORTS:
        if not one.is_lazy:
            graph[one.importer].add(one.imported)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail("modules import each other: " + " <- ".join(error.args[1]))


def test_folders__have_few_modules() -> None:
    number = Counter(path.parent for path in modules().values())
    large = {str(folder): num for folder, num in number.items() if num - 1 > MOST_MODULES}
    assert not large, f"more than {MOST_MODULES} modules, __init__ not counted"


def test_file_names__are_used_once() -> None:
    """The verbs of cli/ share file names; elsewhere a name says what is in a file."""
    names = Counter(
        path.name
        for name, path in modules().items()
        if path.name != "__init__.py" and layer_of(name) not in ("cli", "top")
    )
    assert not [name for name, num in names.items() if num > 1]
