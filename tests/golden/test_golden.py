"""Results are those of golden.json. If a change of results is meant, run `make golden`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.golden.regenerate import GOLDEN, results

HINT = "if this change of results is meant: make golden, and say so in the changelog"


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, Any]]:
    return results()


@pytest.fixture(scope="module")
def golden() -> dict[str, dict[str, Any]]:
    return json.loads(GOLDEN.read_text(encoding="utf-8"))


def test_golden__holds_the_same_runs(
    found: dict[str, dict[str, Any]], golden: dict[str, dict[str, Any]]
) -> None:
    assert list(found) == list(golden), HINT


def test_golden__logs_are_equal_bit_for_bit(
    found: dict[str, dict[str, Any]], golden: dict[str, dict[str, Any]]
) -> None:
    changed = [key for key in golden if found[key]["log_sha256"] != golden[key]["log_sha256"]]
    assert not changed, HINT


def test_golden__metrics_are_equal(
    found: dict[str, dict[str, Any]], golden: dict[str, dict[str, Any]]
) -> None:
    """Sums of floats may differ in the last bits from machine to machine, logs may not."""

    def assert_equal(key: str, expected: Any, value: Any) -> None:
        if isinstance(expected, dict):
            assert expected.keys() == value.keys(), key
            for part in expected:
                assert_equal(f"{key}, {part}", expected[part], value[part])
        elif isinstance(expected, float):
            assert value == pytest.approx(expected, rel=1e-12), f"{key}; {HINT}"
        else:
            assert value == expected, f"{key}; {HINT}"

    for key, expected in golden.items():
        assert_equal(key, expected, found[key])


def test_golden__runs_are_worth_keeping(golden: dict[str, dict[str, Any]]) -> None:
    """Small enough to read in a diff, and no two schedulers that do the same."""
    assert GOLDEN.stat().st_size < 60_000
    assert len({result["log_sha256"] for result in golden.values()}) == len(golden)
    assert any(result["jobs"]["rejected"] for result in golden.values())
    assert all(result["wait"]["mean"] > 0 for result in golden.values())
