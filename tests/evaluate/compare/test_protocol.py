"""VAL and REPORT: windows that share nothing, a rival chosen on VAL only."""

from __future__ import annotations

import numpy as np
import pytest

import berthline as bl
from berthline.errors import ConfigError
from berthline.evaluate.compare.cells import window_seeds
from berthline.evaluate.compare.grid import Grid, GridResults, run_grid
from berthline.evaluate.compare.protocol import (
    REPORT,
    RIVALS,
    VAL,
    distinct_rivals,
    evaluation_of,
    generated_cells,
    protocol_seeds,
    spread_windows,
    trace_cells,
)
from berthline.evaluate.compare.run_record import RunSettings
from berthline.evaluate.metrics.compared_metrics import METRICS
from berthline.evaluate.statistics.paired import paired_ratio
from berthline.model.cluster import Cluster
from berthline.policies.scheduler import Scheduler
from berthline.traces.workload_argument import resolve_workload

CLUSTER = Cluster.parse("uniform:2x8:V100")
DAY = 86_400.0


def make(seed: int) -> bl.Workload:
    return resolve_workload("synthetic", cluster=CLUSTER, jobs=120, load=1.1, seed=seed)


@pytest.fixture(scope="module")
def results() -> GridResults:
    cells = generated_cells(make, CLUSTER, seed=0, windows=6, load=1.1)
    names = ["sqrt-area+easy", "fcfs", "fcfs+easy", "sjf+easy", "wfp3+easy"]
    return run_grid(Grid(cells, names, [0], RunSettings()))


def test_generated_windows_share_no_seed() -> None:
    val, report = protocol_seeds(0, 50)
    others = [*window_seeds(0, 50), *protocol_seeds(1, 50)[0]]
    assert len({*val, *report, *others}) == 50 + 50 + 100
    assert protocol_seeds(0, 50) == (val, report)


def test_generated_cells_are_made_with_these_seeds() -> None:
    cells = generated_cells(make, CLUSTER, seed=7, windows=3, load=1.1)
    assert [cell.part for cell in cells] == [VAL, REPORT]
    for cell, seeds in zip(cells, protocol_seeds(7, 3), strict=True):
        for number, seed in enumerate(seeds):
            assert cell.window(number)[0].run.tolist() == make(seed).run.tolist()


def test_the_rival_is_the_best_on_val_alone(results: GridResults) -> None:
    found = evaluation_of(results)
    val, report = found.cells
    assert (val.part, report.part) == (VAL, REPORT)
    means = {each.scheduler: each.metrics.jct.mean for each in val.schedulers[1:]}
    assert found.rival == min(means, key=means.__getitem__)
    assert {each.scheduler: each.jct_mean for each in found.candidates} == pytest.approx(means)
    assert val.baseline == report.baseline == found.rival
    assert found.run == "sqrt-area+easy"


def test_the_verdict_is_of_report_alone_and_not_corrected(results: GridResults) -> None:
    found = evaluation_of(results)
    ours = found.report.schedulers[0]
    [theirs] = [each for each in found.report.schedulers if each.scheduler == found.rival]
    for metric in METRICS:
        expected = paired_ratio(
            getattr(ours.per_window, metric), getattr(theirs.per_window, metric), seed=0
        )
        judged = getattr(found.against_rival, metric)
        assert (judged.ratio, judged.low, judged.high) == (
            expected.ratio,
            expected.low,
            expected.high,
        )
        assert judged.p_adjusted == judged.p_value
        assert "correction" not in judged.verdict


def test_parts_of_a_trace_are_apart_in_time() -> None:
    rng = np.random.default_rng(0)
    submit = np.sort(rng.uniform(0, 60 * DAY, 1000))
    trace = bl.Workload.from_columns(
        submit=submit, run=rng.uniform(10, 100, 1000), gpus=1, names=np.arange(1000).astype(str)
    )
    val, report = trace_cells(
        trace, CLUSTER, windows=4, window_jobs=20, gap_seconds=2 * DAY, load=None
    )
    jobs: list[list[int]] = []
    for cell in (val, report):
        drawn = [cell.window(number)[0] for number in range(4)]
        assert [len(window) for window in drawn] == [20] * 4
        jobs.append([int(name) for window in drawn for name in window.names.tolist()])  # type: ignore[union-attr]
        assert len(set(jobs[-1])) == 80
    assert max(jobs[0]) < min(jobs[1])
    first = trace.submit
    assert first[min(jobs[1])] - first[max(jobs[0])] >= 2 * DAY
    assert min(jobs[0]) >= 500  # nothing of the train part
    assert val.window(1)[1] > 0  # on the clock of the part


def test_continuous_runs_are_judged_in_blocks() -> None:
    cells = generated_cells(make, CLUSTER, seed=0, windows=1, load=1.1)
    names = ["sjf+easy", "fcfs", "fcfs+easy"]
    settings = RunSettings(keeps_jobs=True)
    found = evaluation_of(run_grid(Grid(cells, names, [0], settings, continuous=True, blocks=6)))
    judged = found.against_rival.jct_mean
    among = found.report.schedulers[0].against_baseline.jct_mean
    assert judged.windows == 6
    assert (judged.ratio, judged.low, judged.high) == (among.ratio, among.low, among.high)
    assert judged.p_adjusted == judged.p_value


@pytest.mark.parametrize(
    ("jobs", "windows", "window_jobs", "expected"),
    [
        (10, 3, None, [(0, 3), (3, 6), (6, 10)]),
        (10, 1, 4, [(0, 4)]),
        (10, 2, 5, [(0, 5), (5, 10)]),
        (11, 3, 3, [(0, 3), (4, 7), (8, 11)]),
    ],
)
def test_spread_windows(
    jobs: int, windows: int, window_jobs: int | None, expected: list[tuple[int, int]]
) -> None:
    assert spread_windows(jobs, windows, window_jobs, where="x") == expected


@pytest.mark.parametrize(("windows", "window_jobs"), [(3, 4), (11, None)])
def test_too_few_jobs(windows: int, window_jobs: int | None) -> None:
    with pytest.raises(ConfigError, match=f"{windows} windows of .* need .*which has 10 jobs"):
        spread_windows(10, windows, window_jobs, where="x")


def test_rivals() -> None:
    assert len(RIVALS) == 9
    for name in RIVALS:
        Scheduler.parse(name)
    assert distinct_rivals("sjf+easy@first-fit", RIVALS) == [n for n in RIVALS if n != "sjf+easy"]
    with pytest.raises(ConfigError, match="no scheduler other than"):
        distinct_rivals("sjf", ["sjf+strict"])
