"""The page on a phone and in dark mode, in a browser: nothing cut, nothing tiny, nothing pale."""

from __future__ import annotations

import pytest
from tests.report import chromium

from berthline.report.page.comparison_page import comparison_page
from berthline.report.page.write_report import write_report
from berthline.report.run_results import results_of
from berthline.runs.open_run import open_run

pytest.importorskip("matplotlib", reason="the extra 'report' is not installed")
pytest.importorskip("plotly", reason="the extra 'report' is not installed")
pytestmark = pytest.mark.skipif(chromium.PROGRAM is None, reason="there is no Chromium here")

PHONE = 390
SMALLEST = 11
"""Pixels of the smallest text."""

# Every element with text of its own that is shown: its font size, its colour and its background.
TEXTS = """
(() => {
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (text) => {
    const [r, g, b] = rgb(text).map((v) => v / 255)
      .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = getComputedStyle(each).backgroundColor;
      if ((rgb(colour)[3] ?? 1) > 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const own = (element) => [...element.childNodes]
    .some((node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim());
  return [...document.body.querySelectorAll("*")]
    .filter((element) => own(element) && element.getClientRects().length
      && !["SCRIPT", "STYLE"].includes(element.tagName))
    .map((element) => {
      const style = getComputedStyle(element);
      const [one, other] = [light(style.color), light(behind(element))].sort((a, b) => b - a);
      const box = element.getBoundingClientRect();
      return { text: element.textContent.trim().slice(0, 40), size: parseFloat(style.fontSize),
        contrast: (one + 0.05) / (other + 0.05), left: box.left, right: box.right };
    });
})()
"""
CUT = """
[...document.querySelectorAll("*")]
  .filter((element) => element.scrollWidth > element.clientWidth + 1
    && ["auto", "scroll", "hidden"].includes(getComputedStyle(element).overflowX))
  .map((element) => element.tagName + "." + element.className)
"""


@pytest.fixture(scope="module", params=["reported", "towering", "swept", "asked"])
def page(request, tmp_path_factory):
    """Two whole pages, and two without pictures, which take seconds to draw."""
    found = request.getfixturevalue(request.param)
    if request.param == "reported":
        return found.page
    if request.param == "asked":
        return write_report(found).page
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(comparison_page(results_of(open_run(found)), []), encoding="utf-8")
    return path


@pytest.mark.parametrize("dark", [False, True])
def test_phone(page, dark):
    """No column is cut, no text is smaller than 11 pixels, and all of it can be read."""
    with chromium.Browser(width=PHONE, height=800, dark=dark) as view:
        view.open(page)
        assert view.run("document.documentElement.scrollWidth") <= PHONE
        assert view.run(CUT) == []
        texts = view.run(TEXTS)
        assert len(texts) > 30
        assert [each for each in texts if each["size"] < SMALLEST] == []
        assert [each for each in texts if each["contrast"] < 4.5] == []
        assert [each for each in texts if each["left"] < 0 or each["right"] > PHONE + 1] == []
        # The narrow pictures are shown, at the size of their text or larger.
        pictures = view.run("[...document.images].map(i => [i.naturalWidth, i.width])")
        assert bool(pictures) == view.run("document.querySelector('figure') !== null")
        assert all(shown >= natural for natural, shown in pictures)
        # Without a head above it, each value of a table names its column.
        heads = view.run(
            "[...document.querySelectorAll('tbody td:not(:first-child):not(:empty)')]"
            ".map(c => getComputedStyle(c, '::before').content)"
        )
        assert heads
        assert "none" not in heads


def test_a_long_interval_wraps_on_a_phone(reported):
    """Ratios far from 1 have many digits, and the best of a column is bold."""
    with chromium.Browser(width=PHONE, height=800) as view:
        view.open(reported.page)
        view.run(
            "for (const each of document.querySelectorAll('.interval')) {"
            " each.textContent = 'x 0.00053 [0.00014, 0.0028]'; each.style.fontWeight = 700 }"
        )
        assert view.run("document.documentElement.scrollWidth") <= PHONE


@pytest.mark.parametrize("dark", [False, True])
def test_screen(page, dark):
    with chromium.Browser(dark=dark) as view:
        view.open(page)
        texts = view.run(TEXTS)
        assert [each for each in texts if each["size"] < SMALLEST] == []
        assert [each for each in texts if each["contrast"] < 4.5] == []


def test_pictures_and_twins_are_dark_in_dark_mode(reported):
    """The mean brightness of a picture, and of an interactive figure, follows the page."""
    found = {}
    corner = """(() => {
      const image = document.querySelector("#figure-radar img");
      const canvas = Object.assign(document.createElement("canvas"), { width: 20, height: 20 });
      const pen = canvas.getContext("2d");
      pen.drawImage(image, 0, 0, 20, 20);
      return [...pen.getImageData(0, 0, 20, 20).data]
        .reduce((sum, v, at) => at % 4 < 3 ? sum + v / 1200 : sum, 0);
    })()"""
    for dark in (False, True):
        with chromium.Browser(dark=dark) as view:
            view.open(reported.page)
            view.run("document.getElementById('figure-cdf').scrollIntoView()")
            view.wait_for("document.querySelector('#figure-cdf .main-svg') !== null")
            plot = "document.querySelector('#figure-cdf .main-svg').style.background"
            found[dark] = (view.run(plot), view.run(corner))
            assert view.problems == []
    assert found[False][0] == "rgb(255, 255, 255)"
    assert found[True][0] == "rgb(21, 24, 28)"
    assert found[False][1] > 200
    assert found[True][1] < 80


def test_a_twin_changes_with_the_mode(reported):
    with chromium.Browser() as view:
        view.open(reported.page)
        view.run("document.getElementById('figure-cdf').scrollIntoView()")
        view.wait_for("document.querySelector('#figure-cdf .main-svg') !== null")
        scheme = {"name": "prefers-color-scheme", "value": "dark"}
        view.call("Emulation.setEmulatedMedia", features=[scheme])
        plot = "document.querySelector('#figure-cdf .main-svg').style.background"
        view.wait_for(f"{plot} === 'rgb(21, 24, 28)'")
