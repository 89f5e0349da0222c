"""Numbers of things that sentences give in words are those of the registries."""

from __future__ import annotations

import pytest
from tests.docs.pages import ROOT

from berthline.cli.demo.command import JOBS, LOAD, SCHEDULERS
from berthline.env.presets import PRESETS
from berthline.env.registration import SEATS
from berthline.report.figures.figure_table import COMPARISON_FIGURES

NUMBERS = (
    *("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
)
README, GUIDE = "README.md", "docs/guides/environments.md"
SYSTEMS = len(PRESETS) - sum(bool(preset.busy) for preset in PRESETS.values())
DEMO = "src/berthline/cli/demo/command.py"


@pytest.mark.parametrize(
    ("page", "sentence", "count"),
    [
        (README, "compares {} schedulers, tunes one", len(SCHEDULERS)),
        (README, f"{{}} schedulers run the same {JOBS:,} jobs at load {LOAD:g}", len(SCHEDULERS)),
        (README, "{} kinds of figures", len(COMPARISON_FIGURES)),
        (README, "{} seats, columns and rewards", len(SEATS)),
        (README, "the environments of {} published systems", SYSTEMS),
        (GUIDE, "{} gymnasium environments", len(SEATS)),
        (GUIDE, "the environments of {} published schedulers", SYSTEMS),
        (DEMO, "compare {} schedulers on the same generated jobs", len(SCHEDULERS)),
    ],
)
def test_number_in_words(page: str, sentence: str, count: int) -> None:
    text = " ".join((ROOT / page).read_text(encoding="utf-8").lower().split())
    assert sentence.format(NUMBERS[count]) in text
