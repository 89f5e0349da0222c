"""The documentation site: its links, its navigation, and that nothing is loaded from elsewhere."""

from __future__ import annotations

import importlib.util
import sys

import pytest
from tests.docs.pages import PAGES, ROOT, name_of


@pytest.fixture(scope="module")
def site():
    """The script docs/build_site.py as a module."""
    spec = importlib.util.spec_from_file_location("build_site", ROOT / "docs" / "build_site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("page", "link", "expected"),
    [
        ("docs/guides/train.md", "../mdp.md#rewards", "../mdp.md#rewards"),
        ("docs/guides/train.md", "../../CONTRIBUTING.md#x", "../contributing.md#x"),
        ("docs/results/packing.md", "packing.png", "packing.png"),
        ("README.md", "docs/guides/train.md", "guides/train.md"),
        ("README.md", "#demo", "#demo"),
        ("README.md", "https://example.org/a.md", "https://example.org/a.md"),
        ("README.md", "LICENSE", "REPOSITORY/blob/main/LICENSE"),
        ("docs/index.md", "../examples", "REPOSITORY/tree/main/examples"),
    ],
)
def test_links_lead_to_the_site_or_to_the_repository(site, page, link, expected):
    expected = expected.replace("REPOSITORY", site.REPOSITORY)
    fenced = "```\n[a](LICENSE)\n```\n"
    assert site.site_page(page, f"[a]({link})\n{fenced}") == f"[a]({expected})\n{fenced}"


def test_a_link_to_a_file_that_is_not_there_is_an_error(site):
    with pytest.raises(SystemExit, match=r"docs/index\.md: \.\./src/missing\.py"):
        site.site_page("docs/index.md", "[a](../src/missing.py)")


def test_every_page_is_in_the_navigation(site):
    lines = site.navigation((ROOT / "docs" / "index.md").read_text(encoding="utf-8")).splitlines()
    pages = {site.in_site(name_of(page)) for page in PAGES} - {None, "index.md"}
    assert {line for line in lines if line.endswith(".md")} == pages | {site.API}


@pytest.mark.parametrize(
    "loading",
    [
        '<script src="https://cdn.example/x.js"></script>',
        '<img src="//cdn.example/x.png">',
        '<img srcset="a.png 1x, https://cdn.example/b.png 2x">',
        '<link rel="stylesheet" href="https://fonts.example/css">',
        '<link rel="preconnect" href="https://fonts.example">',
        "<style>@import 'https://fonts.example/css';</style>",
        '<p style="background: url(https://cdn.example/x.png)">',
    ],
)
def test_what_is_loaded_from_elsewhere_is_found(site, loading, tmp_path):
    (tmp_path / "page.html").write_text(loading, encoding="utf-8")
    (found,) = site.loads_from_elsewhere(tmp_path)
    assert found.startswith("page.html: ")
    assert "example" in found


def test_links_and_files_of_the_site_are_not_loads_from_elsewhere(site, tmp_path):
    (tmp_path / "page.html").write_text(
        '<a href="https://example.org">a</a> <script src="_static/x.js"></script>'
        '<link rel="canonical" href="https://example.org/page.html"><img src="x.png">'
        "<p>see //cdn.example</p>",
        encoding="utf-8",
    )
    (tmp_path / "style.css").write_text("a { background: url(x.png) }", encoding="utf-8")
    assert list(site.loads_from_elsewhere(tmp_path)) == []
    (tmp_path / "style.css").write_text("@import url('https://fonts.example/a');", encoding="utf-8")
    assert list(site.loads_from_elsewhere(tmp_path)) == ["style.css: https://fonts.example/a"]


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("# Title\n\n## Part `a`: b\n\n[to it](#part-a-b)\n", True),
        ("# Title\n\n[to nowhere](missing.md)\n", False),
        ("# Title\n\n[to nowhere](#missing)\n", False),
    ],
)
def test_a_broken_link_or_anchor_fails_the_build(site, text, passes, tmp_path, capfd):
    for module in ("sphinx", "furo", "myst_parser", "sphinx_copybutton"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"no {module}: pip install 'berthline[docs]'")
    sources = tmp_path / "source"
    sources.mkdir()
    (sources / "index.md").write_text(text, encoding="utf-8")
    code = site.run_sphinx(sources, tmp_path / "site")
    assert (code == 0) is passes, capfd.readouterr().err


@pytest.mark.slow
def test_the_whole_site_builds(site, tmp_path):
    if importlib.util.find_spec("furo") is None:
        pytest.skip("no furo: pip install 'berthline[docs]'")
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        assert site.build(tmp_path / "site") == 0
    finally:
        sys.path.remove(str(ROOT / "docs"))
    api = (tmp_path / "site" / "reference" / "api.html").read_text(encoding="utf-8")
    assert 'id="berthline.simulate"' in api
    assert (tmp_path / "site" / "searchindex.js").exists()
