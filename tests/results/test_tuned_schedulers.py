"""The page on tuned schedulers shows what its CSV file says."""

from __future__ import annotations

from benchmarks.result_files import RESULTS, filled, read_rows
from benchmarks.tuned_schedulers import PAGE, SEEDS, SETTINGS, parts

from berthline.policies.scheduler import Scheduler

ROWS = read_rows(RESULTS / f"{PAGE}.csv")


def test_the_page_shows_what_the_csv_file_says():
    text = (RESULTS / f"{PAGE}.md").read_text(encoding="utf-8")
    assert filled(text, parts(ROWS)) == text


def test_every_search_is_in_the_csv_file_and_gave_a_scheduler():
    found = [(row["setting"], row["search"], int(row["seed"])) for row in ROWS]
    wanted = [(s.name, how, seed) for s in SETTINGS for seed in SEEDS for how in ("cma", "random")]
    assert sorted(found) == sorted(wanted)
    for row in ROWS:
        Scheduler.parse(row["scheduler"])
