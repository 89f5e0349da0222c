"""A figure for a page: SVG whose colours follow the reader's light or dark mode.

Every colour becomes a variable with the colour as its default, and a style sheet inside the picture
sets the variables in dark mode. Greys are inverted, colours keep their hue and become lighter.
Images inside a picture (heat maps) keep their colours, and so does text on them.
"""

from __future__ import annotations

import colorsys
import io
import re
from typing import Any

from berthline.palette import DARK_INK, DARK_PAPER, INK, PAPER

ON_LIGHT, ON_DARK = "#000001", "#fffffe"
"""Black and white that are the same in dark mode: text on a heat map, and its background."""

_FIXED = (ON_LIGHT, ON_DARK)
_COLOUR = re.compile(r"#[0-9a-f]{6}\b")
_STYLE = re.compile(r'style="[^"]*"')
_GREY = 0.08
"""Saturation below which a colour counts as grey."""
_DARKEST, _LIGHTEST = 0.085, 0.92
_LEAST_LUMINANCE = 0.26
"""Of a colour on dark paper: contrast of at least 5 to 1."""


def page_picture(figure: Any) -> str:
    """Return a figure as SVG for a page."""
    import matplotlib as mpl

    file = io.StringIO()
    # A fixed salt and no date: the same run gives the same page.
    with mpl.rc_context({"svg.hashsalt": "berthline", "svg.fonttype": "path"}):
        figure.savefig(file, format="svg", facecolor=PAPER, metadata={"Date": None})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    used: set[str] = set()

    def variable(match: re.Match[str]) -> str:
        colour = match[0]
        if colour in _FIXED:
            return colour
        used.add(colour)
        return f"var({name_of(colour)},{colour})"

    text = _STYLE.sub(lambda style: _COLOUR.sub(variable, style[0]), text)
    rules = ";".join(f"{name_of(colour)}:{in_the_dark(colour)}" for colour in sorted(used))
    sheet = f"<style>@media (prefers-color-scheme:dark){{svg{{{rules}}}}}</style>"
    start = text.index(">") + 1
    return text[:start] + sheet + text[start:]


def name_of(colour: str) -> str:
    """Return the name of the variable of a colour.

    Example:
        >>> name_of("#0072B2")
        '--c-0072b2'
    """
    return f"--c-{colour.lower().lstrip('#')}"


def in_the_dark(colour: str) -> str:
    """Return a colour as it is drawn in dark mode.

    Example:
        >>> in_the_dark("#ffffff"), in_the_dark("#1a1a1a"), in_the_dark("#E69F00")
        ('#15181c', '#e6e6e6', '#e69f00')
    """
    colour = colour.lower()
    if colour in _FIXED:
        return colour
    if colour in (PAPER, INK):
        return DARK_PAPER if colour == PAPER else DARK_INK
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    hue, light, saturation = colorsys.rgb_to_hls(red, green, blue)
    if max(red, green, blue) - min(red, green, blue) < _GREY:
        light = _DARKEST + (_LIGHTEST - _DARKEST) * (1 - light)
        return _hex(light, light, light)
    while luminance(colour) < _LEAST_LUMINANCE and light < 0.95:
        light += 0.01
        colour = _hex(*colorsys.hls_to_rgb(hue, light, saturation))
    return colour


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour (WCAG 2), between 0 and 1."""
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _hex(red: float, green: float, blue: float) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in (red, green, blue))
