"""RLScheduler's published columns, recomputed; and the page, which shows what is computed."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks import rlscheduler_lublin as benchmark
from benchmarks.commit_until_start import Rules
from tests.shared_traces import REPOSITORY

import berthline as bl

ROOT = REPOSITORY
TRACE = ROOT.parent / "shared/traces/swf/lublin_256.swf.gz"
PAGE = ROOT / "docs/results/rlscheduler-lublin.md"

needs_trace = pytest.mark.skipif(not TRACE.exists(), reason="lublin_256.swf is not here")

EASY = Rules(commits=False, backfills=True, spares=True, own_order=True)
SAME_FORMULA = {
    "FCFS": "fcfs",
    "WFP3": "wfp3",
    "UNI": "[-(wait + 1e-15) / (log2(gpus + 1e-15) * estimate)]",
    "SJF": "sjf",
    "F1": "f1",
}


@pytest.fixture(scope="module")
def jobs():
    return benchmark.read_jobs(TRACE)


def published(order, *, backfills):
    return benchmark.PUBLISHED[backfills][0][benchmark.ORDERS.index(order)]


def test_windows_are_those_of_the_published_seed():
    starts = [1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085]
    assert benchmark.window_starts(1, 10_000) == starts
    assert benchmark.window_starts(2, 10_000) != starts


def test_a_missing_trace_is_an_error_with_a_hint(capsys, tmp_path):
    assert benchmark.main([str(tmp_path / "lublin_256.swf")]) == 2
    assert "hint: berthline traces fetch lublin-256" in capsys.readouterr().err


def slow_but(*quick):
    """Return all orders, those not named as slow ones."""
    return [
        order if order in quick else pytest.param(order, marks=pytest.mark.slow)
        for order in benchmark.ORDERS
    ]


def test_another_trace_is_an_error(capsys, tmp_path):
    other = tmp_path / "other.swf"
    other.write_text("1 0 -1 60 4 -1 -1 4 -1 -1 1 1 -1 -1 -1 -1 -1 -1\n")
    assert benchmark.main([str(other)]) == 2
    assert "another trace, of 1 jobs" in capsys.readouterr().err


@needs_trace
def test_jobs_are_those_that_berthline_loads(jobs):
    workload = bl.load_trace(TRACE)
    submit, run, gpus = np.array(jobs).T
    assert (workload.submit == submit - submit[0]).all()
    assert (workload.run == run).all()
    assert (workload.gpus == gpus).all()


@needs_trace
@pytest.mark.parametrize("order", slow_but("FCFS", "WFP3", "SJF", "F1"))
def test_columns_without_backfilling_are_reproduced_to_the_last_digit(jobs, order):
    values = benchmark.slowdowns(benchmark.windows_of(jobs), order, Rules())
    assert round(benchmark.mean(values), 2) == published(order, backfills=False)


@needs_trace
@pytest.mark.parametrize("order", slow_but("SJF"))
def test_columns_with_backfilling_are_reproduced_to_the_last_digit(jobs, order):
    values = benchmark.slowdowns(benchmark.windows_of(jobs), order, Rules(backfills=True))
    assert round(benchmark.mean(values), 2) == published(order, backfills=True)


@needs_trace
@pytest.mark.parametrize("order", slow_but("SJF", "F1"))
@pytest.mark.parametrize(
    ("discipline", "rules"),
    [("strict", Rules(commits=False)), pytest.param("easy", EASY, marks=pytest.mark.slow)],
)
def test_last_step_is_berthline_with_the_same_formula_and_clock(jobs, order, discipline, rules):
    windows = benchmark.windows_of(jobs)
    scheduler = f"{SAME_FORMULA[order]}+{discipline}"
    assert benchmark.berthline_slowdowns(windows, scheduler, rebase=False) == pytest.approx(
        benchmark.slowdowns(windows, order, rules, true_wait=True), rel=1e-9
    )


@needs_trace
def test_fcfs_without_backfilling_is_the_same_in_both(jobs):
    windows = benchmark.windows_of(jobs)
    assert benchmark.berthline_slowdowns(windows, "fcfs+strict") == pytest.approx(
        benchmark.slowdowns(windows, "FCFS", Rules()), rel=1e-9
    )


@needs_trace
def test_page_names_the_windows(jobs):
    text = PAGE.read_text(encoding="utf-8")
    assert [line for line in benchmark.windows_text(jobs) if line not in text] == []


@needs_trace
@pytest.mark.slow
@pytest.mark.parametrize("name", benchmark.parts(1))
def test_page_shows_what_is_computed(jobs, name):
    text = PAGE.read_text(encoding="utf-8")
    lines = [line for line in benchmark.parts(benchmark.SEEDS)[name].lines(jobs) if line]
    assert lines
    assert [line for line in lines if line not in text] == []
