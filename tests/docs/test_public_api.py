"""Public names are listed and documented; pages and examples import no others."""

from __future__ import annotations

import re
from types import ModuleType

import pytest
from tests.docs.pages import PAGES, ROOT, blocks, name_of

import berthline

PAGE = ROOT / "docs" / "reference" / "python.md"
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

_IMPORT = re.compile(
    r"^(?:>>> |\.\.\. )? *(?:from (berthline[\w.]*) import (.+)|import (berthline[\w.]*))", re.M
)


def imports(text):
    """Yield (module, name) of what a text imports from the package."""
    for module, names, whole in _IMPORT.findall(text):
        if whole:
            yield whole, ""
        for name in re.findall(r"(\w+)(?: as \w+)?", names.split("#")[0]):
            yield module, name


def texts():
    """Yield the name and the code of every page and example; decision records show the inside."""
    for page in PAGES:
        if "decisions" not in page.parts:
            yield name_of(page), "\n".join(block.text for block in blocks(page, "python"))
    for example in EXAMPLES:
        yield name_of(example), example.read_text(encoding="utf-8")


def is_public(module: str, name: str) -> bool:
    """Return whether an import reaches a name through public namespaces alone."""
    here, *path = *module.split("."), *([name] if name else [])
    value = berthline
    assert here == "berthline"
    if path[:1] == ["compat"]:  # its modules need extras, which must not be imported here
        return True
    for part in path:
        if part not in getattr(value, "__all__", ()):
            return False
        value = getattr(value, part)
    return True


@pytest.mark.parametrize("where", dict(texts()))
def test_pages_and_examples_import_public_names(where):
    text = dict(texts())[where]
    private = {name or module for module, name in imports(text) if not is_public(module, name)}
    assert private == set(), where


@pytest.mark.parametrize("name", berthline.__all__)
def test_every_public_name_is_on_the_page(name):
    value = getattr(berthline, name)
    names = getattr(value, "__all__", ()) if isinstance(value, ModuleType) else (name,)
    for one in names or (name,):
        row = re.search(rf"^\| `{one}` \| \w+ \| (.+) \|$", PAGE.read_text(), re.M)
        assert row, f"{one}: run `make docs`"
        assert row[1].rstrip().endswith("."), f"{one}: the first sentence of a docstring"
