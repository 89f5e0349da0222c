"""The page on predicted run times shows what its CSV file says, and says what it shows."""

from __future__ import annotations

from benchmarks.result_files import RESULTS, filled, read_rows
from benchmarks.run_time_prediction import (
    HAVE_POOLS,
    LOGS,
    PAGE,
    RULES,
    SCHEDULERS,
    WINDOWS,
    parts,
    values,
)

from berthline.evaluate.statistics.paired import paired_ratio

ROWS = read_rows(RESULTS / f"{PAGE}.csv")


def test_the_page_shows_what_the_csv_file_says():
    text = (RESULTS / f"{PAGE}.md").read_text(encoding="utf-8")
    assert filled(text, parts(ROWS)) == text


def test_every_run_is_in_the_csv_file():
    for log in LOGS:
        for rule in (*RULES, "exact"):
            wanted = 0 if "pool" in rule and log not in HAVE_POOLS else WINDOWS
            for scheduler in SCHEDULERS:
                where = {"log": log, "rule": rule, "scheduler": scheduler}
                assert len(values(ROWS, metric="mean_jct", **where)) == wanted


def test_errors_are_smaller_by_factor_and_rank():
    for log in LOGS:
        ours, old = ({"log": log, "rule": r} for r in ("faded by size", "last two"))
        for key, sign in (("mean_factor", 1), ("rank_correlation", -1)):
            assert (
                sign * values(ROWS, metric=key, **ours)[0]
                < sign * values(ROWS, metric=key, **old)[0]
            )


def test_with_users_recorded_nothing_is_gained():
    for log in ("HPC2N", "CTC-SP2"):
        for scheduler in SCHEDULERS:
            for metric in ("mean_jct", "mean_bounded_slowdown"):
                where = {"log": log, "scheduler": scheduler, "metric": metric}
                ours = values(ROWS, rule="faded by size", **where)
                found = paired_ratio(ours, values(ROWS, rule="last two", **where))
                assert found.low is not None
                assert found.high is not None
                assert found.low < 1 < found.high
