"""Ratios as changes in per cent, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from berthline.number_text import signed_percent

if TYPE_CHECKING:
    from berthline.evaluate.statistics.paired import Ratio


def change_in_words(ratio: Ratio) -> str:
    """Return the change of a value against the baseline in per cent, with its interval."""
    if ratio.ratio is None:
        return "-"
    change = signed_change(ratio.ratio)
    if ratio.low is None or ratio.high is None:
        return change
    return f"{change} [{signed_change(ratio.low)}, {signed_change(ratio.high)}]"


def signed_change(ratio: float) -> str:
    """Return a ratio as a change in per cent; no change has no sign."""
    text = signed_percent(ratio - 1)
    return "0.0" if text == "+0.0" else text
