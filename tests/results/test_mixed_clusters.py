"""The page on mixed clusters shows what its CSV file says, and a row of it can be run again."""

from __future__ import annotations

from benchmarks.mixed_clusters import EXPERIMENT, SETTINGS, SPACES, VENUS, cluster_of, windows_of
from benchmarks.paired_windows import MEASURES, names, parts
from benchmarks.result_files import RESULTS, filled, read_rows

import berthline as bl
from berthline.policies.scheduler import Scheduler

ROWS = read_rows(EXPERIMENT.csv)


def test_the_page_shows_what_the_csv_file_says() -> None:
    text = (RESULTS / f"{EXPERIMENT.page}.md").read_text(encoding="utf-8")
    assert filled(text, parts(ROWS, EXPERIMENT)) == text


def test_every_setting_has_all_that_was_tuned() -> None:
    settings = names(ROWS, "setting")
    assert {mixed.name for mixed in SETTINGS} <= set(settings)
    for setting in settings:
        assert set(names(ROWS, "scheduler", setting=setting)) >= {*SPACES, "best lane"}
    for text in names(ROWS, "text"):
        Scheduler.parse(text)


def test_rows_can_be_computed_again() -> None:
    """Of the first window of jobs that need no log."""
    mixed = SETTINGS[0]
    cluster = cluster_of(mixed)
    window = windows_of(mixed, cluster, VENUS)["report"][0]
    rows = [row for row in ROWS if (row["setting"], row["window"]) == (mixed.name, "0")]
    assert rows
    for row in rows:
        found = bl.simulate(window, cluster, row["text"], knowledge="exact").metrics()
        values = {key: f"{read(found):.10g}" for key, (_, read) in MEASURES.items()}
        assert {key: row[key] for key in values} == values
