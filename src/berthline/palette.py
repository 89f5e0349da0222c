"""Colours that figures, pages and pictures share."""

from __future__ import annotations

# Okabe and Ito's palette: distinguishable with any kind of colour vision, and in print.
BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY = "#CC79A7", "#56B4E9"
GREY = "#6B6B6B"

PAPER, DARK_PAPER = "#ffffff", "#15181c"
INK, DARK_INK = "#1a1a1a", "#e6e6e6"
"""Text. Not black, which SVG leaves out: a page could not replace it in dark mode."""
