"""The page on the winning policy shows what its CSV file says."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.hindsight import HEURISTICS, LANES
from benchmarks.result_files import RESULTS, filled, read_rows
from benchmarks.winning_page import parts
from benchmarks.winning_policy import FIRST, PAGE, SEEDS, SETTINGS
from benchmarks.winning_settings import LOGS, TRACES, predictions

import berthline as bl
from berthline.policies.scheduler import Scheduler

ROWS = read_rows(RESULTS / f"{PAGE}.csv")
FIRST_ROWS = read_rows(RESULTS / f"{FIRST}.csv")


def test_the_page_shows_what_the_csv_file_says():
    text = (RESULTS / f"{PAGE}.md").read_text(encoding="utf-8")
    assert filled(text, parts(ROWS, FIRST_ROWS)) == text


def test_every_setting_and_seed_is_in_the_csv_file():
    for setting in SETTINGS:
        found = {row["policy"] for row in ROWS if row["setting"] == setting.name}
        assert found >= {"chosen", "average", *(f"seed {seed}" for seed in SEEDS)}
    for row in ROWS:
        Scheduler.parse(row["scheduler"])
        assert Scheduler.parse(row["rival"])


def test_rivals_as_many_as_the_page_says():
    text = (RESULTS / f"{PAGE}.md").read_text(encoding="utf-8")
    assert f"{len(HEURISTICS)} heuristics" in text
    assert f"of {len(LANES)}, five were chosen on TRAIN" in text


def test_predictions_know_finished_jobs_only():
    jobs = bl.Workload.from_columns(
        submit=[0, 100, 200, 1000], run=[500, 500, 500, 7], gpus=[1, 1, 1, 1]
    )
    found, doubt = predictions(jobs)
    assert found[0] == found[1] == found[2] == pytest.approx(3600)  # no job has finished
    assert 500 < found[3] < 3600
    assert doubt[0] == doubt[2] == pytest.approx(2 / np.log(2))
    assert doubt[3] < doubt[2]  # three jobs agree
    later = bl.Workload.from_columns(
        submit=[0, 100, 200, 1000], run=[500, 500, 500, 70_000], gpus=[1, 1, 1, 1]
    )
    assert np.array_equal([found, doubt], predictions(later))


@pytest.mark.parametrize("name", ["CTC", "Philly"])
def test_predictions_that_are_surer_are_off_by_half(name):
    file = TRACES / LOGS[name].file
    if not file.exists():
        pytest.skip(f"the log is not there: {file}")
    log = bl.load_trace(file)
    found, doubt = predictions(log)
    error = np.abs(np.log2(found / log.run))
    is_sure = doubt < np.median(doubt)
    assert error[is_sure].mean() < error[~is_sure].mean() / 2
