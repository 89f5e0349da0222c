"""The page on whole logs, and the cards, show what the CSV file says; claims of the page hold."""

from __future__ import annotations

from benchmarks.continuous_runs import LOGS, PAGE, SCHEDULERS, SHIPPED, card_runs, parts
from benchmarks.result_files import RESULTS, filled, read_rows

from berthline.policies.scheduler import Scheduler
from berthline.policies.shipped_policies import card_of

ROWS = read_rows(RESULTS / f"{PAGE}.csv")


def test_the_page_shows_what_the_csv_file_says() -> None:
    text = (RESULTS / f"{PAGE}.md").read_text(encoding="utf-8")
    assert filled(text, parts(ROWS)) == text


def test_every_scheduler_ran_on_every_log() -> None:
    found = [(row["log"], row["scheduler"]) for row in ROWS]
    assert found == [(log.name, scheduler) for log in LOGS for scheduler in SCHEDULERS]
    for scheduler in SCHEDULERS:
        Scheduler.parse(scheduler)


def test_the_cards_have_these_figures_the_worst_first() -> None:
    for name in SHIPPED:
        card = card_of(name)
        assert card.continuous == card_runs(ROWS, name)
        assert len(card.continuous) == len(LOGS)
        assert card.continuous[0].jct == max(run.jct for run in card.continuous)


def test_what_the_page_claims() -> None:
    behind: dict[str, int] = {}
    for row in ROWS:
        behind[row["scheduler"]] = behind.get(row["scheduler"], 0) + int(row["left_behind"])
    safe = ("hrrn", "unicep", "wfp3", "fcfs", "slurm-multifactor")
    assert all(behind[f"{name}+easy"] == 0 for name in safe)
    unsafe = ("sjf", "smallest-area", "sqrt-area", "f1", "f2", "f3", "f4")
    assert all(behind[f"{name}+easy"] > 0 for name in unsafe)
    assert behind["holdback"] > 0
