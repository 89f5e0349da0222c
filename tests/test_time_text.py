"""Lengths of time as people write them."""

from __future__ import annotations

import pytest

from berthline.time_text import seconds_in


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("0", 0),
        ("1.5h", 5400),
        (" 30 m ", 1800),
        ("2w", 1_209_600),
        ("2592000.0", 2_592_000),
        ("1e6", 1_000_000),
        ("02:30", 9000),
        ("02:30:10", 9010),
        ("1-12:00:00", 129_600),
    ],
)
def test_seconds_in__reads_units_and_colons(text: str, seconds: float) -> None:
    assert seconds_in(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-90", "-1h", "1y", "1h30", "nan", "inf", "1:2:3:4"])
def test_seconds_in__refuses_what_is_no_time(text: str) -> None:
    assert seconds_in(text) is None
