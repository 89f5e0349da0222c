"""Every metric has one function, whose docstring has its formula and its unit."""

from __future__ import annotations

import inspect
import re

import msgspec
import pytest

from berthline.evaluate.metrics.measure import DEFINITIONS, Metrics

FACTS = {"events", "decisions", "fallbacks", "log_sha256"}
"""Keys about the log itself."""

UNIT = re.compile(
    r"in seconds|in kWh|GPU-hour|no unit|between|share of|how often|how many|number of|rho of|jobs"
)


def keys() -> set[str]:
    """All keys; for records that are not distributions, each field by itself."""
    found = set()
    for field in msgspec.structs.fields(Metrics):
        parts = getattr(field.type, "__struct_fields__", ())
        is_whole = field.name == "jobs" or "p99" in parts or not parts
        found |= {field.name} if is_whole else {f"{field.name}.{part}" for part in parts}
    return found


def test_every_metric_has_a_function() -> None:
    assert keys() - FACTS == set(DEFINITIONS)


@pytest.mark.parametrize("key", DEFINITIONS)
def test_docstring_has_formula_and_unit(key: str) -> None:
    text = inspect.getdoc(DEFINITIONS[key]) or ""
    assert text.startswith("Return ")
    assert "\nFormula: " in text
    assert UNIT.search(text), text
