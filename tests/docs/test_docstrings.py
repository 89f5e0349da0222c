"""The examples in docstrings run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import berthline

MODULES = ["berthline"] + [
    module.name
    for module in pkgutil.walk_packages(berthline.__path__, "berthline.")
    if module.name not in ("berthline.__main__", "berthline._native")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name, playground):
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    module = importlib.import_module(name)
    for test in doctest.DocTestFinder(exclude_empty=True).find(module, name):
        failed, _ = runner.run(test, out=report.append)
        assert not failed, "".join(report)
