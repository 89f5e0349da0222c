"""The page on gates elsewhere shows what its CSV file says, and a row of it can be run again."""

from __future__ import annotations

from benchmarks.gate_transfer import HOMES, PAGE
from benchmarks.gate_transfer_page import LANE, RIVALS, SHIPPED, parts
from benchmarks.hindsight import METRICS
from benchmarks.paired_windows import names
from benchmarks.result_files import RESULTS, filled, read_rows
from benchmarks.winning_settings import TRACES

from berthline.policies.scheduler import Scheduler

ROWS = read_rows(RESULTS / f"{PAGE}.csv")


def test_the_page_shows_what_the_csv_file_says() -> None:
    text = (RESULTS / f"{PAGE}.md").read_text(encoding="utf-8")
    assert filled(text, parts(ROWS)) == text


def test_every_gate_was_judged_on_the_same_windows_everywhere() -> None:
    gates = {*RIVALS, SHIPPED, LANE, *(f"tuned on {home.name}" for home in HOMES)}
    for home in HOMES:
        here = [row for row in ROWS if row["place"] == home.name]
        assert gates <= set(names(here, "gate"))
        jobs = {
            gate: [(row["window"], row["jobs"]) for row in here if row["gate"] == gate]
            for gate in names(here, "gate")
        }
        assert len({tuple(each) for each in jobs.values()}) == 1
    for text in names(ROWS, "scheduler"):
        Scheduler.parse(text)


def test_rows_can_be_computed_again() -> None:
    """Of the first window of a place that needs no log."""
    home = HOMES[0]
    window = home.windows(TRACES)["report"][0]
    rows = [row for row in ROWS if (row["place"], row["window"]) == (home.name, "0")]
    assert rows
    for row in rows:
        (found,) = home.place.run(row["scheduler"], [window])
        assert [row[metric] for metric in METRICS] == [f"{value:.10g}" for value in found]
