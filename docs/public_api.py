"""The generated part that lists the public names of the Python package."""

from __future__ import annotations

import importlib
import inspect
import types
from typing import TYPE_CHECKING, NamedTuple

from markdown_text import code, table

import berthline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class PublicName(NamedTuple):
    """A public name: where it is imported from, what kind it is, what it does."""

    namespace: str
    name: str
    kind: str
    summary: str
    module: str
    """The private module that defines it."""

    @property
    def path(self) -> str:
        """The name with its namespace, as in `berthline.simulate`."""
        return f"{self.namespace}.{self.name}"


def public_names(module: types.ModuleType = berthline) -> Iterator[PublicName]:
    """Yield the names in a module's `__all__`, and those of the modules among them."""
    namespaces = []
    for name in sorted(module.__all__, key=lambda name: (name.lower(), name)):
        value = getattr(module, name)
        if name == "evaluate":  # a package that is called as its function
            value = importlib.import_module("berthline.evaluate.compare.evaluate").evaluate
        if isinstance(value, types.ModuleType):
            namespaces.append(value)
        else:
            home = getattr(value, "__module__", module.__name__)
            yield PublicName(module.__name__, name, kind_of(value), summary_of(value), home)
    for namespace in namespaces:
        yield from public_names(namespace)


def kind_of(value: object) -> str:
    """Return what a public object is, in a word."""
    if isinstance(value, type):
        return "exception" if issubclass(value, BaseException) else "class"
    return "function" if callable(value) else "constant"


def summary_of(value: object) -> str:
    """Return the first paragraph of the docstring, on one line."""
    doc = inspect.getdoc(value) if callable(value) else ""
    return " ".join((doc or "").split("\n\n")[0].split())


def tables() -> str:
    """Return a table of the names of each namespace."""
    rows: dict[str, list[list[str]]] = {}
    for public in public_names():
        row = [code(public.name), public.kind, public.summary]
        rows.setdefault(public.namespace, []).append(row)
    return "\n\n".join(
        f"### {namespace}\n\n{table(['name', 'kind', 'what'], named)}"
        for namespace, named in rows.items()
    )


PARTS: dict[str, Callable[[], str]] = {"public names": tables}
"""Each generated part and what makes it."""
