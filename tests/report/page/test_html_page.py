"""The page: it parses, makes no requests, escapes texts from outside, and opens in a browser."""

from __future__ import annotations

import base64
import gzip
import html.parser
import json
import shutil

import pytest
from tests.report import chromium
from tests.report.compared_runs import HOSTILE, SCHEDULERS, compare

from berthline.report.page import write_report as writing
from berthline.report.page.comparison_page import comparison_page
from berthline.report.page.verdict import cautions, sentences
from berthline.report.page.write_report import write_report
from berthline.report.run_results import results_of
from berthline.runs.open_run import open_run

pytest.importorskip("matplotlib", reason="the extra 'report' is not installed")
pytest.importorskip("plotly", reason="the extra 'report' is not installed")

VOID = {"meta", "br", "img", "link", "input", "hr", "source"}


class Reader(html.parser.HTMLParser):
    """Records elements, attributes and text; fails if elements are not closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.words, self.data = [], [], [], {}
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.words.append(data)
        elif self.open and self.open[-1] == "script":
            _, attributes = self.elements[-1]
            self.data.setdefault(attributes.get("type", "code"), []).append(data)


@pytest.fixture(scope="module")
def read(reported):
    return Reader(reported.page.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def hostile_page(hostile):
    return write_report(hostile).page


def test_parses_and_has_its_parts_in_order(read):
    ids = [attributes["id"] for tag, attributes in read.elements if tag == "section"]
    assert ids == ["verdict", "table", "starvation", "tails", "figures", "losses", "settings"]
    tags = [tag for tag, _ in read.elements]
    assert tags.count("main") == tags.count("h1") == 1
    assert all(attributes.get("alt") for tag, attributes in read.elements if tag == "img")
    headings = [attributes for tag, attributes in read.elements if tag == "th"]
    assert all(attributes["scope"] == "col" for attributes in headings)


def test_asks_nobody_for_anything(read):
    for tag, attributes in read.elements:
        for name in ("src", "href", "data", "action", "srcset"):
            value = attributes.get(name) or ""
            pictures = ("#", "data:image/svg+xml;base64,")
            assert value.startswith(pictures) or not value, (tag, value[:80])
    (policy,) = [a["content"] for t, a in read.elements if a.get("http-equiv")]
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy


def test_plotly_is_in_it_once(read):
    (packed,) = read.data["text/plain"]
    assert b"plotly" in gzip.decompress(base64.b64decode(packed))[:200]
    twins = [json.loads(text) for text in read.data["application/json"]]
    assert len(twins) == sum("data-twin" in attributes for _, attributes in read.elements) >= 4


def test_says_what_the_numbers_say(read, run):
    words = " ".join(read.words)
    for sentence in sentences(run):
        assert sentence in words
    for result in run.cell["schedulers"]:
        assert result["scheduler"] in words
        assert result["log_sha256"][0] in words
    assert run.run.meta["command"] in words
    assert "Means over 6 windows" in words


def test_verdict(run):
    best = run.ranked("jct_mean")[0]
    told = sentences(run)
    assert told[0].startswith(f"{best} has the lowest mean JCT, ")
    assert "Against fcfs: " in told[0]
    assert any("ot distinguishable" in sentence for sentence in told)
    # slowdown is never shown without the others
    (beside,) = [sentence for sentence in told if sentence.startswith("Other metrics")]
    for words in ("p99 JCT", "bounded slowdown", "makespan", "GPU utilisation"):
        assert words in beside


def test_cautions(tmp_path):
    out = compare(tmp_path / "run", "--jobs", "40", schedulers=SCHEDULERS[:2])
    assert any(
        "One run without blocks has no interval" in text
        for text in cautions(results_of(open_run(out)))
    )


@pytest.mark.parametrize("names", [("sjf+easy", "fcfs"), ("fcfs",), ("fcfs", "fcfs+skip")])
def test_whoever_is_best(tmp_path, names):
    """Also if the baseline is best, if it is alone, or if all are equal."""
    out = compare(
        tmp_path / "run", "--jobs", "60", "--windows", "3", "--load", "0.3", schedulers=names
    )
    run = results_of(open_run(out))
    text = comparison_page(run, [])
    Reader(text)
    if len(names) == 1:
        assert sentences(run)[0].startswith("One scheduler ran, fcfs")
    elif run.ranked("jct_mean")[0] == names[0]:
        assert sentences(run)[0].startswith(f"The baseline itself, {names[0]}")


def test_several_cells_have_a_table(swept):
    run = results_of(open_run(swept))
    read = Reader(comparison_page(run, []))
    ids = [attributes["id"] for tag, attributes in read.elements if tag == "section"]
    assert ids[2] == "cells"
    words = " ".join(read.words)
    assert "uniform:2x8:V100, load 0.9" in words
    assert "All 4 cells, 12 windows" in words


def test_hostile_texts_are_texts(hostile_page):
    text = hostile_page.read_text(encoding="utf-8")
    assert "<script>window" not in text
    assert "<img src=x" not in text
    assert "<b onclick" not in text
    read = Reader(text)
    assert sum(tag == "script" and not a for tag, a in read.elements) == 1
    words = "".join(read.words)
    assert HOSTILE in words
    assert "<b onclick=x>&amp;$x^2$" in words
    for spec in read.data["application/json"]:
        assert "<" not in spec


def test_without_matplotlib_there_is_still_a_page(compared, monkeypatch, tmp_path):
    monkeypatch.setattr(writing, "is_installed", lambda name: name != "matplotlib")
    ignored = shutil.ignore_patterns("figures", "report.html")
    report = write_report(shutil.copytree(compared, tmp_path / "run", ignore=ignored))
    assert (report.lacking, report.figures) == ("matplotlib", [])
    text = report.page.read_text(encoding="utf-8")
    assert "lowest mean JCT" in text
    assert "<img" not in text
    assert 'id="plotly"' not in text


def test_without_plotly_figures_are_pictures(reported, run):
    read = Reader(comparison_page(run, reported.figures, with_twins=False))
    assert sum(tag == "img" for tag, _ in read.elements) >= 10
    assert not any("data-twin" in attributes for _, attributes in read.elements)
    assert "text/plain" not in read.data


browser = pytest.mark.skipif(chromium.PROGRAM is None, reason="there is no Chromium here")


@browser
def test_opens_in_a_browser_and_draws_when_scrolled_to(reported):
    with chromium.Browser() as view:
        view.open(reported.page)
        assert view.run("document.querySelectorAll('figure img').length") >= 10
        assert view.run("[...document.images].every(i => i.complete && i.naturalWidth > 100)")
        assert view.run("window.Plotly") is None  # not before it is needed
        view.run("document.getElementById('figure-gantt').scrollIntoView()")
        view.wait_for("document.querySelector('#figure-gantt .main-svg') !== null")
        order = (
            "[...document.querySelectorAll('#table tbody td:first-child')].map(c => c.innerText)"
        )
        before = view.run(order)
        view.run("document.querySelectorAll('#table thead button')[2].click()")
        assert sorted(view.run(order)) == sorted(before)
        cells = "[...document.querySelectorAll('#table tbody td:nth-child(3)')]"
        values = view.run(f"{cells}.map(cell => +cell.dataset.value)")
        assert values == sorted(values)
        assert view.problems == []
        assert [
            url for url in view.requests if not url.startswith(("data:", "blob:", "file:"))
        ] == []


@browser
def test_hostile_texts_do_nothing_in_a_browser(hostile_page):
    with chromium.Browser() as view:
        view.open(hostile_page)
        for name in ("ratios", "cdf", "timeline", "gantt", "fairness"):
            view.run(f"document.getElementById('figure-{name}').scrollIntoView()")
            view.wait_for(f"document.querySelector('#figure-{name} .main-svg') !== null")
        assert view.run("window.hacked") is None
        assert view.problems == []


@pytest.mark.slow
def test_twenty_schedulers_stay_small(tmp_path):
    orders = ("fcfs", "sjf", "f1", "wfp3", "smallest-first", "largest-first", "smallest-area")
    names = [f"{order}{rest}" for rest in ("+easy", "", "+skip") for order in orders][:20]
    out = compare(tmp_path / "run", "--windows", "8", "--jobs", "2000", schedulers=names)
    page = write_report(out).page
    assert page.stat().st_size < 8_000_000
    Reader(page.read_text(encoding="utf-8"))
