"""The page on the tuned preemptive index shows what its CSV files say."""

from __future__ import annotations

from benchmarks.preemptive_index import (
    CLUSTERS,
    HOMES,
    OTHERS,
    PAGE,
    SEEDS,
    SPACES,
    VARIANT_SEEDS,
    WINDOWS_ONLY,
)
from benchmarks.preemptive_index_page import LAS, parts
from benchmarks.result_files import RESULTS, filled, read_rows

from berthline.evaluate.statistics.blocks import BLOCKS
from berthline.policies.scheduler import Scheduler

FOUND = read_rows(RESULTS / f"{PAGE}-searches.csv")
RUNS = read_rows(RESULTS / f"{PAGE}.csv")


def test_the_page_shows_what_the_csv_files_say() -> None:
    text = (RESULTS / f"{PAGE}.md").read_text(encoding="utf-8")
    assert filled(text, parts(FOUND, RUNS)) == text


def test_every_search_is_there_and_gave_a_scheduler() -> None:
    for log in HOMES:
        of_log = [row for row in FOUND if row["log"] == log]
        assert len(of_log) == len(SEEDS) + (len(SPACES) - 1) * len(VARIANT_SEEDS)
    for row in FOUND:
        Scheduler.parse(row["scheduler"])


def test_every_scheduler_was_judged_on_the_same_jobs() -> None:
    for log, clusters in CLUSTERS.items():
        for cluster in clusters:
            rows = [row for row in RUNS if (row["log"], row["cluster"]) == (log, cluster)]
            names = [*LAS, *OTHERS, *(f"tuned on {other}" for other in HOMES)]
            assert {row["name"] for row in rows} >= set(names)
            jobs = {
                name: [(r["judged"], r["number"], r["jobs"]) for r in rows if r["name"] == name]
                for name in {row["name"] for row in rows}
            }
            assert len({tuple(each) for each in jobs.values()}) == 1
            blocks = sum(judged == "block" for judged, *_ in jobs[names[0]])
            assert blocks == (0 if cluster in WINDOWS_ONLY else BLOCKS)
