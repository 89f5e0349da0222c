"""The page on racks and failures shows what its CSV file says, and rows can be run again."""

from __future__ import annotations

import pytest
from benchmarks.jct_and_slowdown import windows_of
from benchmarks.paired_windows import MEASURES, names, parts
from benchmarks.racks_and_failures import (
    CONDITIONS,
    EXPERIMENT,
    LOAD,
    RACK_GPUS,
    SPACES,
    cluster_of,
)
from benchmarks.result_files import RESULTS, filled, read_rows
from benchmarks.winning_settings import LOGS, TRACES

import berthline as bl
from berthline.policies.scheduler import Scheduler

ROWS = read_rows(EXPERIMENT.csv)
VENUS = TRACES / LOGS["Venus"].file


def test_the_page_shows_what_the_csv_file_says() -> None:
    text = (RESULTS / f"{EXPERIMENT.page}.md").read_text(encoding="utf-8")
    assert filled(text, parts(ROWS, EXPERIMENT)) == text


def test_every_condition_has_all_that_was_tuned() -> None:
    settings = names(ROWS, "setting")
    assert set(CONDITIONS) <= set(settings)
    for setting in settings:
        assert set(names(ROWS, "scheduler", setting=setting)) >= {*SPACES, "best lane"}
    for text in names(ROWS, "text"):
        Scheduler.parse(text)


def test_conditions_are_about_the_same_jobs() -> None:
    plain = names(ROWS, "jobs", setting="plain")
    for name in CONDITIONS:
        assert names(ROWS, "jobs", setting=name) == plain


@pytest.mark.skipif(not VENUS.exists(), reason="the log of Venus is not there")
def test_rows_can_be_computed_again() -> None:
    """Of the first window, with racks and failures."""
    name = "racks and failures"
    cluster = cluster_of(CONDITIONS[name])
    window = windows_of("Venus", cluster, VENUS, load=LOAD, widest=2 * RACK_GPUS)["report"][0]
    rows = [row for row in ROWS if (row["setting"], row["window"]) == (name, "0")]
    assert rows
    for row in rows:
        found = bl.simulate(window, cluster, row["text"], knowledge="exact").metrics()
        values = {key: f"{read(found):.10g}" for key, (_, read) in MEASURES.items()}
        assert {key: row[key] for key in values} == values
