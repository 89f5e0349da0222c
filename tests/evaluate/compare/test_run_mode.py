"""The default run: continuous where there are enough jobs, and what the output says about it."""

from __future__ import annotations

import json

import msgspec
import pytest

import berthline as bl
from berthline.cli.main import main
from berthline.errors import ConfigError
from berthline.evaluate.compare.compare import compare
from berthline.evaluate.compare.run_mode import ENOUGH_JOBS, requested_mode

CLUSTER = "uniform:2x8"
PAIR = ["fcfs+easy", "sjf+easy"]


@pytest.mark.parametrize(
    ("options", "continuous", "reason"),
    [
        ({}, True, "continuous, because 4,000 jobs are enough"),
        ({"jobs": ENOUGH_JOBS - 1}, False, "one run without intervals, because 3,999 jobs are"),
        ({"windows": 1}, False, "windows, as requested"),
        ({"continuous": False}, False, "windows, as requested"),
        ({"jobs": 100, "continuous": True}, True, "continuous, as requested"),
        ({"seeds": 2}, False, "one window, because it runs with several seeds"),
        ({"measure": (0, 90_000)}, False, "one run without intervals"),
    ],
)
def test_compare(options: dict, continuous: bool, reason: str) -> None:
    found = compare("synthetic", CLUSTER, PAIR, **{"jobs": ENOUGH_JOBS, **options})
    assert (found.continuous, found.windows) == (continuous, 1)
    assert found.mode.startswith(reason)
    parts = found.schedulers[1].against_baseline.jct_mean.windows
    assert parts == (16 if continuous else 1)


def test_one_run_is_the_same_with_and_without_blocks() -> None:
    logs = [
        compare("synthetic", CLUSTER, PAIR, jobs=ENOUGH_JOBS, continuous=each).schedulers[1]
        for each in (True, False)
    ]
    assert logs[0].log_sha256 == logs[1].log_sha256
    assert logs[0].metrics == logs[1].metrics


def test_several_cells__all_have_enough_jobs_or_none_is_continuous() -> None:
    few = bl.generate("synthetic", cluster=CLUSTER, jobs=50)
    many = bl.generate("synthetic", cluster=CLUSTER, jobs=ENOUGH_JOBS)
    found = compare([many, few], CLUSTER, PAIR)
    assert [cell.continuous for cell in found.cells] == [False, False]
    both = compare([many], CLUSTER, PAIR, loads=[0.8, 0.9])
    assert [cell.continuous for cell in both.cells] == [True, True]
    assert both.overall is not None
    assert both.overall.windows == 2


def test_windows_that_are_given__stay_windows() -> None:
    jobs = [bl.generate("synthetic", cluster=CLUSTER, jobs=ENOUGH_JOBS, seed=s) for s in (1, 2)]
    (cell,) = compare([jobs], CLUSTER, PAIR).cells
    assert (cell.continuous, cell.windows, cell.mode) == (False, 2, "windows, as given")


@pytest.mark.parametrize(
    "options",
    [{"windows": 2}, {"continuous": False}, {"windows": None, "seeds": 2}],
)
def test_jitter__belongs_to_a_continuous_run(options: dict) -> None:
    given = {"windows": None, "continuous": None, "seeds": 1, **options}
    with pytest.raises(ConfigError, match="jittered replicates are of one continuous run"):
        requested_mode(given.pop("windows"), jitter=2, **given)
    with pytest.raises(ConfigError, match="`jitter` is -1"):
        requested_mode(None, continuous=None, jitter=-1)


@pytest.mark.parametrize(
    ("options", "continuous", "jobs"),
    [
        ({}, True, [20_000]),
        ({"window_jobs": 60}, False, [60] * 20),
        ({"windows": 3}, False, [1000] * 3),
        ({"continuous": True, "window_jobs": 300}, True, [300]),
    ],
)
def test_evaluate__a_generator(options: dict, continuous: bool, jobs: list[int]) -> None:
    report = bl.evaluate("sjf+easy", against=["fcfs+easy"], **options).evaluation.report
    assert (report.continuous, report.window_jobs) == (continuous, jobs)
    assert not report.is_log


def test_evaluate__a_short_log__falls_back_to_windows_and_says_so() -> None:
    log = bl.Workload.from_columns(
        submit=[60.0 * n for n in range(900)], run=100.0, gpus=1, estimate=100.0
    )
    found = bl.evaluate(
        "sjf+easy", against=["fcfs+easy"], workload=log, cluster=CLUSTER, gap_seconds=0
    )
    report = found.evaluation.report
    assert (report.continuous, report.windows, report.is_log) == (False, 20, True)
    assert report.mode == "20 windows, because 315 jobs are fewer than 4,000"


def test_the_command_does_what_the_library_does(capsys: pytest.CaptureFixture[str]) -> None:
    found = compare("synthetic", CLUSTER, PAIR, jobs=ENOUGH_JOBS, jitter=2)
    flags = ["--cluster", CLUSTER, "--schedulers", ",".join(PAIR), "--jobs", str(ENOUGH_JOBS)]
    assert main(["compare", "synthetic", *flags, "--jitter", "2", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    expected = json.loads(msgspec.json.encode(found))
    for summary in (printed, expected):
        for each in summary["schedulers"]:
            each.pop("wall_seconds")
    assert printed == expected
