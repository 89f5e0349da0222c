"""Figures on a phone, in dark mode and in grey: text that fits, colours and lines that differ."""

from __future__ import annotations

import itertools
import re

import pytest

from berthline.palette import DARK_PAPER, GREY, INK
from berthline.report.figures.figure_table import (
    COMPARISON_FIGURES,
    WHATIF_FIGURES,
    narrow_figure,
)
from berthline.report.figures.layout import NARROW_INCHES, SMALL, settle
from berthline.report.figures.lineup import COLOURS, LINES, MARKERS, line_up
from berthline.report.figures.page_picture import (
    ON_DARK,
    ON_LIGHT,
    in_the_dark,
    luminance,
    page_picture,
)
from berthline.report.page.whatif_page import whatif_of
from berthline.report.run_results import NotShown, results_of
from berthline.runs.open_run import open_run

pytest.importorskip("matplotlib", reason="the extra 'report' is not installed")

PHONE = 366
"""Pixels between the margins of a phone of 390."""


@pytest.fixture(scope="module")
def sources(compared, towering, swept, asked):
    several = results_of(open_run(swept))
    tall = results_of(open_run(towering))
    return [
        (results_of(open_run(compared)), COMPARISON_FIGURES),
        (tall, ("ratios", "timeline", "users", "oracle", "ablation")),
        (several, ("load", "gpus", "radar")),
        (whatif_of(open_run(asked)), WHATIF_FIGURES),
    ]


@pytest.fixture(scope="module")
def figures(sources):
    """Every kind of figure, some of them twice, wide and narrow: (name, is it narrow, figure)."""
    found = []
    for source, names in sources:
        lineup = getattr(source, "lineup", None)
        for name in names:
            kind = {**COMPARISON_FIGURES, **WHATIF_FIGURES}[name]
            try:
                frame = kind.data(source)
            except NotShown:
                continue
            wide = kind.draw(frame, lineup)
            settle(wide)
            found += [(name, False, wide), (name, True, narrow_figure(kind, frame, lineup))]
    for _, _, figure in found:
        figure.draw_without_rendering()  # it places labels beside their axes
    assert {name for name, _, _ in found} >= {*COMPARISON_FIGURES, *WHATIF_FIGURES} - {"pools"}
    return found


def shown_texts(figure):
    """Return the texts of a figure, without labels of ticks beyond the ends of an axis."""
    from matplotlib.text import Text

    beyond = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in axis.get_major_ticks():
                if not low <= tick.get_loc() <= high:
                    beyond |= {tick.label1, tick.label2}
    return [
        (text, text.get_window_extent())
        for text in figure.findobj(Text)
        if text.get_text().strip() and text.get_visible() and text not in beyond
    ]


def test_no_text_is_small(figures):
    for name, is_narrow, figure in figures:
        width = figure.get_figwidth()
        assert not is_narrow or width == NARROW_INCHES
        for text, _ in shown_texts(figure):
            assert text.get_fontsize() >= SMALL - 0.01, (name, text.get_text())
            if is_narrow:
                pixels = text.get_fontsize() / 72 * PHONE / width
                assert pixels >= 11, (name, text.get_text(), pixels)


def test_no_text_leaves_a_figure(figures):
    for name, is_narrow, figure in figures:
        for text, box in shown_texts(figure):
            told = (name, is_narrow, text.get_text(), box)
            assert box.x0 >= -2, told
            assert box.x1 <= figure.bbox.x1 + 2, told


def test_tick_labels_do_not_overlap(figures):
    for name, is_narrow, figure in figures:
        for axes in figure.axes:
            for axis in (axes.xaxis, axes.yaxis):
                if getattr(axes, "name", "") == "polar":
                    continue
                low, high = sorted(axis.get_view_interval())
                labels = [
                    tick.label1
                    for tick in axis.get_major_ticks()
                    if tick.label1.get_visible()
                    and tick.label1.get_text()
                    and low <= tick.get_loc() <= high
                ]
                if any(label.get_rotation() for label in labels):
                    continue
                boxes = [label.get_window_extent() for label in labels]
                for one, other in itertools.pairwise(boxes):
                    both = [label.get_text() for label in labels]
                    assert not one.shrunk(0.96, 0.8).overlaps(other.shrunk(0.96, 0.8)), (
                        name,
                        is_narrow,
                        both,
                    )


def test_marks_are_round(figures):
    """A mark such as "69.1 min" or "1.34" is not a round value."""
    for name, is_narrow, figure in figures:
        for axes in figure.axes:
            for axis in (axes.xaxis, axes.yaxis):
                for label in axis.get_ticklabels():
                    match = re.fullmatch(r"([\d.]+) (s|min|h|d|wk)", label.get_text())
                    if match:
                        digits = match[1].rstrip("0").replace(".", "").strip("0")
                        assert len(digits) <= 2, (name, is_narrow, label.get_text())


def test_heat_maps_have_a_colour_bar_and_one_scale(figures):
    scales = {}
    for name, _, figure in figures:
        images = [image for axes in figure.axes for image in axes.get_images()]
        if not images:
            continue
        assert any(image.colorbar is not None for image in images), name
        assert len({image.get_clim() for image in images}) == 1, name
        scales.setdefault(name, set()).add(images[0].get_clim())
    assert {"sizes", "users", "priorities", "waits", "gantt-difference"} <= set(scales)
    groups = [scales[name] for name in ("sizes", "users", "priorities")]
    assert set.union(*groups) == groups[0]
    assert len(groups[0]) == 1


def test_one_extreme_scheduler_does_not_flatten_the_others(towering):
    run = results_of(open_run(towering))
    for name in ("ratios", "oracle", "ablation"):
        kind = COMPARISON_FIGURES[name]
        figure = kind.draw(kind.data(run), run.lineup)
        assert all(axes.get_xscale() == "log" for axes in figure.axes), name
    frame = COMPARISON_FIGURES["oracle"].data(run)
    assert frame["jct_mean"].max() > 8 * frame["jct_mean"].min()
    queue = COMPARISON_FIGURES["timeline"].interactive(
        COMPARISON_FIGURES["timeline"].data(run), run.lineup
    )
    assert queue["layout"]["yaxis"]["type"] == "log"


def test_an_interval_without_end_has_an_arrow(run):
    import polars as pl

    kind = COMPARISON_FIGURES["ratios"]
    frame = kind.data(run).with_columns(high=pl.lit(1e6))
    figure = kind.draw(frame, run.lineup)
    for axes in figure.axes:
        assert axes.get_xlim()[1] < 1000
        arrows = [line for line in axes.get_lines() if line.get_marker() == ">"]
        assert len(arrows) == len(run.schedulers) - 1


def test_lines_differ_without_colour():
    names = [f"scheduler {number}" for number in range(1 + len(COLOURS))]
    looks = line_up(names, names[0], names).looks
    assert len({str(look.line) for look in looks.values()}) == len(names)
    assert len({look.marker for look in looks.values()}) == len(names)
    assert len(LINES) == len(MARKERS) == len(COLOURS)


def test_colours_are_readable_in_dark_mode():
    for colour in (*COLOURS, INK, GREY, "#00684c"):
        contrast = (luminance(in_the_dark(colour)) + 0.05) / (luminance(DARK_PAPER) + 0.05)
        assert contrast >= 4.5, colour


def test_page_pictures_follow_the_mode(run):
    kind = COMPARISON_FIGURES["sizes"]
    figure = narrow_figure(kind, kind.data(run), run.lineup)
    text = page_picture(figure)
    assert text == page_picture(figure)
    styles = " ".join(re.findall(r'style="[^"]*"', text))
    for colour in re.findall(r"#[0-9a-f]{6}", re.sub(r"var\([^)]*\)", "", styles)):
        assert colour in (ON_LIGHT, ON_DARK), colour
    (sheet,) = re.findall(r"@media \(prefers-color-scheme:dark\)\{svg\{([^}]*)\}", text)
    dark = dict(rule.split(":") for rule in sheet.split(";"))
    assert dark["--c-ffffff"] == DARK_PAPER
    for name in set(re.findall(r"var\((--c-[0-9a-f]{6})", styles)):
        assert name in dark
    # Glyphs without a colour would be black on dark paper.
    assert all("fill:" in style for style in re.findall(r'<g style="([^"]*)" transform', text))
