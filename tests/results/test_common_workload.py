"""The page about the common workload says what its runs say, and the runs can be made again."""

from __future__ import annotations

import csv
import re

import pytest
from benchmarks.common_workload import BASELINE, CLUSTER, JOBS, LOADS, PAGE, SCHEDULERS, WINDOWS
from benchmarks.result_files import RESULTS

import berthline as bl
from berthline.evaluate.statistics.multiple_comparisons import corrected_verdicts
from berthline.evaluate.statistics.paired import paired_ratio


@pytest.fixture(scope="module")
def rows():
    with (RESULTS / f"{PAGE}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def values(rows, scheduler, metric, load=LOADS[0]):
    chosen = [row for row in rows if (row["scheduler"], row["load"]) == (scheduler, load)]
    return [float(row[metric]) for row in sorted(chosen, key=lambda row: int(row["window"]))]


def test_every_run_is_there(rows):
    assert len(rows) == len(SCHEDULERS) * len(LOADS) * WINDOWS


def test_verdicts_are_those_of_the_runs(rows):
    page = (RESULTS / f"{PAGE}.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"^\| `([^`]+)` \|.*\| ([^|]+) \|$", page, re.MULTILINE))
    others = [name for name in SCHEDULERS if name != BASELINE]
    theirs = values(rows, BASELINE, "jct_mean")
    ratios = [paired_ratio(values(rows, name, "jct_mean"), theirs) for name in others]
    for name, words in zip(others, corrected_verdicts(ratios), strict=True):
        assert shown[name] == words
    assert shown[BASELINE] == "the baseline"


def test_a_run_made_again_is_the_same(rows):
    workload = bl.generate(
        "synthetic", cluster=CLUSTER, jobs=JOBS, load=float(LOADS[0]), seed=0, estimate_error=1
    )
    found = bl.simulate(workload, CLUSTER, "sjf+easy").metrics()
    assert values(rows, "sjf+easy", "jct_mean")[0] == pytest.approx(found.jct.mean, rel=1e-9)
    assert values(rows, "sjf+easy", "makespan")[0] == pytest.approx(found.makespan, rel=1e-9)
