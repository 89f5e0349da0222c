"""Totals: blocks and whole runs that point in opposite directions, and the words for it."""

from __future__ import annotations

import pytest

import berthline as bl
from berthline.evaluate.compare.compare import compare
from berthline.evaluate.statistics.totals import disagree, intervals_words, with_total


@pytest.mark.parametrize(
    ("ratio", "total", "expected"),
    [
        (0.73, 1.66, True),
        (1.5, 0.9, True),
        (0.999, 1.5, True),
        (0.99, 1.01, False),
        (0.5, 0.9, False),
        (1.0, 2.0, False),
        (None, 2.0, False),
        (0.5, None, False),
    ],
)
def test_disagree(ratio: float | None, total: float | None, expected: bool) -> None:
    assert disagree(ratio, total) == expected
    assert ("over all jobs" in with_total("better by 1 %", ratio, total)) == expected


def test_a_bad_block__turns_the_total_round() -> None:
    """Late short jobs make lcfs better in 15 blocks; one long job that comes last, far worse."""
    submit, run = [], []
    for block in range(16):
        submit += [100_000.0 * block + n for n in range(11)]
        run += [20.0, *[10.0] * 9, 10_000.0] if block == 9 else [20.0, 100.0, *[10.0] * 9]
    jobs = bl.Workload.from_columns(submit=submit, run=run, gpus=1, estimate=run)
    found = compare(jobs, "uniform:1x1", ["fcfs", "lcfs"], continuous=True)
    judged = found.schedulers[1].against_baseline.jct_mean
    values = [each.per_window.jct_mean[0] for each in found.schedulers]
    assert judged.total == pytest.approx(values[1] / values[0])
    assert judged.ratio < 1 < judged.total
    assert judged.disagrees
    assert judged.verdict.endswith(", but +223 % over all jobs")
    assert not found.schedulers[0].against_baseline.jct_mean.disagrees


def test_words_about_intervals__say_which_period() -> None:
    assert "this period of the log" in intervals_words(is_log=True, continuous=False)
    assert "this generator" in intervals_words(is_log=False, continuous=False)
    assert "p99 is that of a block" in intervals_words(is_log=True, continuous=True)
    assert "p99" not in intervals_words(is_log=True, continuous=False)
