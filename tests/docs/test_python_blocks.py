"""Every Python block of the documentation runs and prints what the page says."""

from __future__ import annotations

import doctest

import pytest
from tests.docs.pages import PAGES, blocks, name_of

from berthline.experiments.suites.planned_runs import PlannedRuns
from berthline.experiments.suites.suite_plan import read_plan
from berthline.model.cluster import Cluster

WITH_PYTHON = [page for page in PAGES if blocks(page, "python")]
WITH_TOML = [page for page in PAGES if blocks(page, "toml")]


@pytest.mark.parametrize("page", WITH_PYTHON, ids=name_of)
def test_python_blocks(page, playground):
    """The blocks of a page run one after another, as a reader would type them."""
    parser, names = doctest.DocTestParser(), {}
    for block in blocks(page, "python"):
        if block.not_run:
            continue
        if ">>>" not in block.text:
            exec(compile(block.text, block.where, "exec"), names)
            continue
        test = parser.get_doctest(block.text, names, block.where, block.page, block.line)
        report: list[str] = []
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        failed, _ = runner.run(test, out=report.append, clear_globs=False)
        assert not failed, "".join(report)
        names = test.globs


@pytest.mark.parametrize("page", WITH_TOML, ids=name_of)
def test_toml_blocks_are_clusters_or_suites(page, tmp_path):
    for block in blocks(page, "toml"):
        if "[[cells]]" in block.text:
            assert len(PlannedRuns(read_plan(block.text.encode(), where=block.where))) > 0
            continue
        path = tmp_path / "cluster.toml"
        path.write_text(block.text)
        assert Cluster.parse(str(path)).total_gpus > 0, block.where


def test_there_are_examples():
    assert {"README.md", "docs/concepts/semantics.md"} <= set(map(name_of, WITH_PYTHON))
    assert WITH_TOML
