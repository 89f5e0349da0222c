"""The page on the 48 regimes shows what its CSV files say."""

from __future__ import annotations

from benchmarks.meta_regimes import PAGE, REPORT, SEARCHES, SEEDS, measured
from benchmarks.meta_regimes_page import FIXED, KEYS, WORLDS, parts
from benchmarks.result_files import RESULTS, filled, read_rows

from berthline.env.meta_regimes import meta_regimes
from berthline.policies.scheduler import Scheduler

FOUND = read_rows(RESULTS / f"{PAGE}-searches.csv")
RUNS = read_rows(RESULTS / f"{PAGE}.csv")


def test_the_page_shows_what_the_csv_files_say() -> None:
    text = (RESULTS / f"{PAGE}.md").read_text(encoding="utf-8")
    assert filled(text, parts(FOUND, RUNS)) == text


def test_every_search_is_there_and_gave_a_scheduler() -> None:
    found = [(row["world"], row["how"], row["goal"], int(row["seed"])) for row in FOUND]
    assert found == [(w, *search, seed) for w in WORLDS for search in SEARCHES for seed in SEEDS]
    for row in FOUND:
        Scheduler.parse(row["scheduler"])


def test_everyone_was_judged_in_every_regime() -> None:
    for world in WORLDS:
        names = {row["name"] for row in RUNS if row["world"] == world}
        assert names >= set(FIXED[world])
        for name in names:
            regimes = [
                int(row["regime"])
                for row in RUNS
                if (row["world"], row["name"]) == (world, name)
                and row["windows"] == ("first" if name.startswith("Meta-DQN") else "all")
            ]
            assert regimes == list(range(len(meta_regimes())))


def test_a_row_can_be_run_again() -> None:
    row = next(
        row
        for row in RUNS
        if (row["world"], row["name"], row["windows"]) == (WORLDS[1], "sjf+easy", "first")
    )
    again = measured(row["world"], int(row["regime"]), REPORT, row["scheduler"])
    assert [f"{x:.6g}" for x in again] == [row[key] for key in KEYS]
