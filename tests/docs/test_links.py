"""Links between pages lead somewhere, and every page can be reached."""

from __future__ import annotations

import re

import pytest
from tests.docs.pages import PAGES, ROOT, name_of

LINK = re.compile(r"\[[^\]\[]*\]\(([^()\s]+)\)")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def text_of(page):
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def links_of(page):
    """Return (file, anchor) of every link to a file of the repository."""
    found = []
    for target in LINK.findall(text_of(page)):
        if not re.match(r"[a-z]+:", target):
            path, _, anchor = target.partition("#")
            found.append(((page.parent / path).resolve() if path else page, anchor))
    return found


def anchors_of(page):
    """Return the anchors that its headings get."""
    headings = re.findall(r"^#+ +(.+?) *$", text_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_resolve(page):
    for target, anchor in links_of(page):
        assert target.exists(), f"{name_of(page)} links to {target}, which does not exist"
        assert target.is_relative_to(ROOT)
        if anchor:
            assert anchor in anchors_of(target), f"{name_of(page)}: no heading #{anchor}"


def test_every_page_can_be_reached_from_the_readme():
    reached, rest = set(), [ROOT / "README.md"]
    while rest:
        page = rest.pop()
        if page.suffix == ".md" and page not in reached:
            reached.add(page)
            rest += [target for target, _ in links_of(page)]
    assert [name_of(page) for page in PAGES if page not in reached] == []


def test_the_index_lists_every_page():
    index = ROOT / "docs" / "index.md"
    listed = {target for target, _ in links_of(index)}
    pages = [page for page in PAGES if page.is_relative_to(index.parent) and page != index]
    assert [name_of(page) for page in pages if page not in listed] == []
