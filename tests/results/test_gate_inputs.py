"""The page on what gates read shows what its CSV file says, and rows can be run again."""

from __future__ import annotations

from benchmarks.gate_inputs import CASES, CLUSTER, EXPERIMENT, spaces
from benchmarks.jct_and_slowdown import windows_of
from benchmarks.paired_windows import MEASURES, names, parts
from benchmarks.result_files import RESULTS, filled, read_rows
from benchmarks.winning_settings import TRACES

import berthline as bl

ROWS = read_rows(EXPERIMENT.csv)


def test_the_page_shows_what_the_csv_file_says() -> None:
    text = (RESULTS / f"{EXPERIMENT.page}.md").read_text(encoding="utf-8")
    assert filled(text, parts(ROWS, EXPERIMENT)) == text


def test_every_case_has_all_that_was_tuned() -> None:
    for jobs, knowledge in CASES:
        found = names(ROWS, "scheduler", setting=f"{jobs}, {knowledge}")
        assert found == ["rival", "best lane", *spaces(jobs)]


def test_gates_read_what_they_are_called_after() -> None:
    words = {
        "queue": "queued_gpus",
        "submissions": "arrival_rate",
        "mean work of waiting jobs": "queued_work",
        "time of day": "now",
    }
    for name, word in words.items():
        assert all(word in text for text in names(ROWS, "text", scheduler=name))
        assert not any(word in text for text in names(ROWS, "text", scheduler="blind"))


def test_rows_can_be_computed_again() -> None:
    """Of the first window of jobs that need no log."""
    jobs, knowledge = CASES[0]
    cluster = bl.Cluster.parse(CLUSTER)
    window = windows_of(jobs, cluster, TRACES)["report"][0]
    rows = [row for row in ROWS if (row["setting"], row["window"]) == (f"{jobs}, {knowledge}", "0")]
    assert rows
    for row in rows:
        run = bl.simulate(window, cluster, row["text"], knowledge=knowledge)
        values = {key: f"{read(run.metrics()):.10g}" for key, (_, read) in MEASURES.items()}
        assert {key: row[key] for key in values} == values
