"""The page on gate and preemption shows what its CSV file says, and rows can be run again."""

from __future__ import annotations

from benchmarks.hold_and_preempt import CASES, EXPERIMENT, PREEMPTIVE, SPACES
from benchmarks.jct_and_slowdown import windows_of
from benchmarks.paired_windows import MEASURES, names, parts
from benchmarks.result_files import RESULTS, filled, read_rows
from benchmarks.winning_settings import TRACES

import berthline as bl
from berthline.policies.scheduler import Scheduler

ROWS = read_rows(EXPERIMENT.csv)


def test_the_page_shows_what_the_csv_file_says() -> None:
    text = (RESULTS / f"{EXPERIMENT.page}.md").read_text(encoding="utf-8")
    assert filled(text, parts(ROWS, EXPERIMENT)) == text


def test_every_case_has_all_that_was_tuned() -> None:
    settings = names(ROWS, "setting")
    assert {case.name for case in CASES} <= set(settings)
    for setting in settings:
        assert {*SPACES, *PREEMPTIVE, "best lane"} <= set(names(ROWS, "scheduler", setting=setting))


def test_what_is_said_to_preempt_does_and_the_gate_alone_does_not() -> None:
    for name in ("gate and preemption", "preemption alone"):
        for text in names(ROWS, "text", scheduler=name):
            assert Scheduler.parse(text).preemption is not None
    assert {row["preemptions"] for row in ROWS if row["scheduler"] == "gate alone"} == {"0"}


def test_rows_can_be_computed_again() -> None:
    """Of the first window of jobs that need no log."""
    case = next(case for case in CASES if case.jobs == "spread")
    window = windows_of(case.jobs, case.cluster, TRACES)["report"][0]
    rows = [row for row in ROWS if (row["setting"], row["window"]) == (case.name, "0")]
    assert rows
    for row in rows:
        run = bl.simulate(window, case.cluster, row["text"], knowledge=case.knowledge)
        values = {key: f"{read(run.metrics()):.10g}" for key, (_, read) in MEASURES.items()}
        assert {key: row[key] for key in values} == values
