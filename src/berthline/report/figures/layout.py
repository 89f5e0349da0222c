"""Wide and narrow figures: the same panels side by side, or below each other for a phone.

A picture that shrinks with the screen takes its text along. So a page has every figure twice, and
`narrow()` makes a drawing function lay out the second one: as wide as a phone, with panels stacked.
"""

from __future__ import annotations

import contextlib
import math
import textwrap
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from berthline.report.figures.lineup import Lineup

NARROW_INCHES = 3.8
"""Width of a narrow figure. On a phone of 390 pixels it has 366, or 96 for each inch."""
NARROW_NAME = 20
"""Longest name of a scheduler in a narrow figure."""
SMALL = 8.5
"""Smallest text of any figure, in points: 11 pixels on a phone."""

_is_narrow: ContextVar[bool] = ContextVar("narrow", default=False)


@contextlib.contextmanager
def narrow() -> Iterator[None]:
    """Lay out figures for a phone."""
    token = _is_narrow.set(True)
    try:
        yield
    finally:
        _is_narrow.reset(token)


def is_narrow() -> bool:
    """Whether the figure being drawn is for a phone."""
    return _is_narrow.get()


def named(lineup: Lineup | None) -> Lineup | None:
    """Return a lineup with names that fit into the figure being drawn."""
    from berthline.report.figures.lineup import short_names

    if lineup is None or not is_narrow():
        return lineup
    return lineup._replace(names=short_names(lineup.schedulers, NARROW_NAME))


def settle(figure: Any) -> None:
    """Place everything in a figure; break titles that would leave it into lines."""
    engine = figure.get_layout_engine()
    engine.execute(figure)
    right = figure.bbox.x1 - 2
    is_changed = False
    for title in _titles(figure):
        text = title.get_text()
        box = title.get_window_extent()
        if text and (box.x1 > right or box.x0 < 0):
            middle = (box.x0 + box.x1) / 2
            is_centred = title.get_ha() == "center"
            space = 2 * min(middle, right - middle) if is_centred else right - box.x0
            room = max(space / box.width, 0.1)
            line = max(len(part) for part in text.split("\n"))
            title.set_text(textwrap.fill(text, max(math.floor(room * line * 0.97), 12)))
            is_changed = True
    if is_changed:
        engine.execute(figure)
    # What is placed stays in place: every file is then written without another layout.
    figure.set_layout_engine(None)


def _titles(figure: Any) -> Sequence[Any]:
    found = [title for axes in figure.axes for title in (axes.title, axes._left_title)]
    found += [axes.xaxis.label for axes in figure.axes]
    return found if figure._suptitle is None else [figure._suptitle, *found]
