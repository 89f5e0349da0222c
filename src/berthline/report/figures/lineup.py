"""Lineup: the schedulers that a figure shows, their order, and their looks.

Up to seven schedulers have a colour each. With more, the baseline and the leaders have a colour and
the rest are thin grey lines, because twenty colours are not distinguishable. A scheduler looks the
same in all figures of a report.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from berthline.palette import BLUE, GREEN, ORANGE, PURPLE, RED, SKY

if TYPE_CHECKING:
    from collections.abc import Sequence

COLOURS = (BLUE, RED, GREEN, ORANGE, PURPLE, SKY)
"""Colours of the schedulers; the baseline is black."""
BLACK, PALE = "#111111", "#B5B5B5"
LINES: tuple[tuple[int, tuple[float, ...]], ...] = (
    (0, (5, 1.5)),
    (0, (6, 1.5, 1, 1.5)),
    (0, (1, 1.2)),
    (0, (6, 1.5, 1, 1.5, 1, 1.5)),
    (0, (11, 2)),
    (0, (2.4, 1)),
)
"""Dashes of the schedulers other than the baseline, which is solid: lines differ without colour."""
MARKERS = "sD^vPX"
LONGEST_NAME = 40


class DrawnAs(NamedTuple):
    """How a scheduler is drawn; colour is never the only mark."""

    colour: str
    line: str | tuple[int, tuple[float, ...]]
    marker: str
    width: float
    stands_out: bool


class Lineup(NamedTuple):
    """The schedulers of a report."""

    schedulers: tuple[str, ...]
    """As given."""
    baseline: str
    looks: dict[str, DrawnAs]
    names: dict[str, str]
    """Name of each in figures: its text, shortened if it is long."""
    leaders: tuple[str, ...]
    """The best by mean JCT, then the best by other metrics, without the baseline."""

    @property
    def highlighted(self) -> list[str]:
        """The schedulers with a colour: the baseline, then the leaders."""
        return [s for s in (self.baseline, *self.leaders) if self.looks[s].stands_out]

    @property
    def by_weight(self) -> list[str]:
        """All schedulers in the order of drawing: grey ones first, so that they are below."""
        grey = [name for name in self.schedulers if not self.looks[name].stands_out]
        return [*grey, *reversed(self.highlighted)]


def line_up(schedulers: Sequence[str], baseline: str, leaders: Sequence[str]) -> Lineup:
    """Return the lineup.

    Args:
        schedulers: all of them, as given.
        baseline: one of them.
        leaders: all others; those that must stand out come first.
    """
    others = [name for name in dict.fromkeys(leaders) if name != baseline]
    looks = {baseline: DrawnAs(BLACK, "-", "o", 2.2, stands_out=True)}
    for place, name in enumerate(others):
        looks[name] = (
            DrawnAs(COLOURS[place], LINES[place], MARKERS[place], 1.8, stands_out=True)
            if place < len(COLOURS)
            else DrawnAs(PALE, "-", "o", 0.8, stands_out=False)
        )
    return Lineup(tuple(schedulers), baseline, looks, short_names(schedulers), tuple(others))


def short_names(schedulers: Sequence[str], longest: int = LONGEST_NAME) -> dict[str, str]:
    """Return a name for each scheduler that fits into a figure, all of them different.

    Example:
        >>> list(short_names(["sjf", "[estimate * sqrt(gpus) + 3 * wait]+easy"], 30).values())
        ['sjf', '[estimate * sqrt(gpus) …]+easy']
    """
    names: dict[str, str] = {}
    for text in schedulers:
        name = text if len(text) <= longest else _shorter(text, longest)
        number = 2
        while name in names.values():
            name = f"{_shorter(text, longest - 4)} #{number}"
            number += 1
        names[text] = name
    return names


def _shorter(text: str, longest: int) -> str:
    """Return a text cut to a length; formulas in brackets are cut first."""
    formulas = re.findall(r"\[[^\]]+\]", text)
    room = longest - (len(text) - sum(map(len, formulas)))
    if formulas and room >= 8 * len(formulas):
        keep = room // len(formulas) - 3
        text = re.sub(
            r"\[([^\]]+)\]",
            lambda match: f"[{match[1][:keep].rstrip()} …]" if len(match[1]) > keep else match[0],
            text,
        )
    return text if len(text) <= longest else text[: longest - 1] + "…"
