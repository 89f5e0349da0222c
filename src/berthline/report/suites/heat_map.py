"""Heat maps: ratios as colours and numbers; what is not distinguishable from 1 is hatched."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from berthline.palette import BLUE, PAPER, RED
from berthline.report.figures.axes import new_figure
from berthline.report.figures.layout import SMALL, is_narrow
from berthline.report.figures.page_picture import ON_DARK, ON_LIGHT

if TYPE_CHECKING:
    from collections.abc import Sequence

WORST = 2.0
"""From this ratio on, the colour stays the same; the number tells."""
_BETTER, _EVEN, _WORSE = BLUE, "#DCDCDC", RED
_DARK = 0.45  # brightness below which text is white
_INCHES_OF_LETTER = 0.085
_NARROW_COLUMNS = 4


class Square(NamedTuple):
    """A cell of a heat map.

    Attributes:
        ratio: its value; None = unknown.
        is_open: whether it is not distinguishable from 1.
        text: instead of the ratio.
    """

    ratio: float | None
    is_open: bool = False
    text: str = ""


def heat_map(
    axes: Any,
    squares: Sequence[Sequence[Square]],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    higher: bool = False,
) -> None:
    """Draw a heat map. Orange is worse than 1, blue better, on a logarithmic scale.

    The colours are an image, so they stay as they are in dark mode, and so do the numbers on them.

    Args:
        axes: where.
        squares: row by row.
        rows: their names.
        columns: their names.
        higher: whether higher ratios are better.
    """
    from matplotlib.patches import Rectangle

    colours = [[_colour(square.ratio, higher=higher) for square in line] for line in squares]
    axes.imshow(
        [[(*_parts(colour), 255 if colour else 0) for colour in line] for line in colours],
        extent=(0, len(columns), len(rows), 0), aspect="auto", interpolation="nearest",
    )  # fmt: skip
    for row, line in enumerate(squares):
        for column, square in enumerate(line):
            if square.ratio is None and not square.text:
                continue
            hatch = "////" if square.is_open and square.ratio is not None else None
            axes.add_patch(
                Rectangle((column, row), 1, 1, fill=False, hatch=hatch, edgecolor=ON_DARK)
            )
            text = square.text or ("" if square.ratio is None else ratio_text(square.ratio))
            axes.text(
                column + 0.5, row + 0.5, text, ha="center", va="center", fontsize=SMALL,
                color=ON_DARK if _brightness(colours[row][column]) < _DARK else ON_LIGHT,
            )  # fmt: skip
    axes.set_xlim(0, len(columns))
    axes.set_ylim(len(rows), 0)
    axes.set_xticks([at + 0.5 for at in range(len(columns))], columns)
    axes.set_yticks([at + 0.5 for at in range(len(rows))], rows)
    axes.grid(visible=False)
    axes.tick_params(length=0, labelsize=SMALL)
    for side in axes.spines.values():
        side.set_visible(False)


def map_figure(
    squares: Sequence[Sequence[Square]],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    title: str,
    worse: str,
    better: str,
    higher: bool,
) -> Any:
    """Return a figure with one heat map; on a phone, a few columns at a time below each other.

    Args:
        squares: row by row.
        rows: their names.
        columns: their names.
        title: of the figure.
        worse: what orange means.
        better: what blue means.
        higher: whether higher ratios are better.
    """
    maps = math.ceil(len(columns) / _NARROW_COLUMNS) if is_narrow() else 1
    step = math.ceil(len(columns) / maps)
    begins = range(0, len(columns), step)
    width = max(7.5, 3.2 + 0.75 * len(columns))
    is_long = max(map(len, columns)) * _INCHES_OF_LETTER > (width - 2.4) / step
    labels = 1.15 if is_long else 0.45
    height = len(begins) * (0.3 * len(rows) + labels) + 0.8 + (0.5 if is_narrow() else 0.1)
    figure = new_figure(width, height)
    panels = figure.subplots(len(begins), 1, squeeze=False).ravel()
    for panel, begin in zip(panels, begins, strict=True):
        part = slice(begin, begin + step)
        names = columns[part]
        # The last map has columns of the same width as the others.
        empty = step - len(names) if len(begins) > 1 else 0
        lines = [[*line[part], *[Square(None)] * empty] for line in squares]
        heat_map(panel, lines, rows, [*names, *[""] * empty], higher=higher)
        if is_long or is_narrow():
            for label in panel.get_xticklabels():
                label.set(rotation=30, ha="right", rotation_mode="anchor")
    panels[0].set_title(title)
    _key(figure, worse=worse, better=better)
    return figure


def ratio_text(ratio: float) -> str:
    """Return a ratio as a short number.

    Example:
        >>> [ratio_text(one) for one in (1.0, 1.234, 12.34, 0.5, 1234.0)]
        ['1.00', '1.23', '12.3', '0.50', '1,234']
    """
    if not math.isfinite(ratio):
        return "∞"
    digits = 2 if ratio < 10 else 1 if ratio < 100 else 0
    return f"{ratio:,.{digits}f}"


def _key(figure: Any, *, worse: str, better: str) -> None:
    """Add what colours and hatching mean below a figure."""
    from matplotlib.patches import Patch

    figure.legend(
        handles=[
            Patch(facecolor=_WORSE, label=worse),
            Patch(facecolor=_BETTER, label=better),
            Patch(facecolor="#9A9A9A", hatch="////", edgecolor=PAPER, label="not distinguishable"),
        ],
        loc="outside lower left",
        ncols=1 if is_narrow() else 3,
    )


def _colour(ratio: float | None, *, higher: bool) -> str:
    if ratio is None or math.isnan(ratio):
        return ""  # nothing is drawn
    change = -math.inf if ratio <= 0 else math.log(ratio) / math.log(WORST)
    change = min(max(-change if higher else change, -1.0), 1.0)
    return _between(_EVEN, _WORSE if change > 0 else _BETTER, abs(change) ** 0.7)


def _between(first: str, second: str, share: float) -> str:
    pairs = zip(_parts(first), _parts(second), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


def _brightness(colour: str) -> float:
    red, green, blue = _parts(colour)
    return (0.299 * red + 0.587 * green + 0.114 * blue) / 255


def _parts(colour: str) -> list[int]:
    if not colour:
        return [255, 255, 255]
    return [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
