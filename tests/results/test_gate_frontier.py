"""The page on what gates cost shows what its CSV file says, of the gates that there are."""

from __future__ import annotations

import pytest
from benchmarks.gate_frontier import BASE, KINDS, LANE, PAGE, RUN_NAMES, SIZE_NAMES, parts
from benchmarks.result_files import RESULTS, filled, read_rows

from berthline.policies.scheduler import Scheduler

ROWS = read_rows(RESULTS / f"{PAGE}.csv")


def test_the_page_shows_what_the_csv_file_says():
    text = (RESULTS / f"{PAGE}.md").read_text(encoding="utf-8")
    assert filled(text, parts(ROWS)) == text


def test_every_gate_is_in_the_csv_file_and_is_a_scheduler():
    found = [(row["name"], row["scheduler"]) for row in ROWS if not row["size"]]
    assert found == [(kind, one) for kind, gates in KINDS.items() for one in gates]
    for _, scheduler in found:
        Scheduler.parse(scheduler)


@pytest.mark.parametrize("scheduler", [BASE, LANE])
def test_classes_of_jobs_are_all_jobs(scheduler):
    classes = [row for row in ROWS if row["size"] and row["scheduler"] == scheduler]
    assert len(classes) == len(RUN_NAMES) * len(SIZE_NAMES)
    for column in ("share", "mean_jct", "mean_bounded_slowdown"):
        assert sum(float(row[column]) for row in classes) == pytest.approx(1, abs=0.002)
