"""Verdicts: bounds, hindsight, correction, trades, power and continuous runs, on real runs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest

import berthline as bl
from berthline.cli.compare.command import Compare
from berthline.errors import ConfigError
from berthline.evaluate.bounds import jct_lower_bound
from berthline.evaluate.compare.compare import compare
from berthline.evaluate.compare.oracle import oracle
from berthline.evaluate.compare.overall import overall_of
from berthline.evaluate.metrics.compared_metrics import METRICS
from berthline.evaluate.metrics.job_table import completion_times, job_table
from berthline.evaluate.metrics.slowdown import bounded_slowdowns
from berthline.evaluate.statistics.blocks import BLOCKS, block_ratio
from berthline.evaluate.statistics.multiple_comparisons import holm
from berthline.evaluate.statistics.power import power
from berthline.model.cluster import Cluster
from berthline.traces.workload_argument import resolve_workload

if TYPE_CHECKING:
    from berthline.evaluate.compare.comparison import Comparison

SCHEDULERS = ["fcfs", "fcfs+easy", "sjf+easy", "largest-first"]
CLUSTER = Cluster.parse("uniform:2x8:V100")


def windows(count: int, *, jobs: int = 150, load: float = 1.0) -> list[bl.Workload]:
    return [
        resolve_workload("synthetic", cluster=CLUSTER, jobs=jobs, load=load, seed=seed)
        for seed in range(count)
    ]


@pytest.fixture(scope="module")
def compared() -> Comparison:
    return compare([windows(8)], CLUSTER, SCHEDULERS).cells[0]


def test_gap_is_to_the_bound_of_the_windows(compared: Comparison) -> None:
    expected = [jct_lower_bound(window, CLUSTER) for window in windows(8)]
    assert compared.bounds == expected
    mean = np.mean([bound.mean for bound in expected])
    for result in compared.schedulers:
        assert result.gap_to_bound == pytest.approx(result.metrics.jct.mean / mean - 1)
        assert result.gap_to_bound is not None
        assert result.gap_to_bound >= 0
        for value, bound in zip(result.per_window.jct_mean, expected, strict=True):
            assert value >= bound.mean * (1 - 1e-9)


def test_no_counted_job__no_gap() -> None:
    jobs = bl.Workload.from_columns(submit=[0, 1], run=[5, 5], gpus=[99, 99])
    found = compare(jobs, CLUSTER, ["fcfs", "sjf"], knowledge="exact")
    assert [result.gap_to_bound for result in found.schedulers] == [None, None]
    assert math.isnan(found.bounds[0].mean)


def test_hindsight_is_a_thing_of_its_own(compared: Comparison) -> None:
    values = [result.per_window.jct_mean for result in compared.schedulers]
    best = compared.oracle.jct_mean
    assert best.overall == compared.best.jct_mean
    assert best.overall_mean == pytest.approx(min(np.mean(values, axis=1)))
    winners = np.argmin(values, axis=0)
    assert best.per_window == [SCHEDULERS[winner] for winner in winners]
    assert best.per_window_mean == pytest.approx(np.min(values, axis=0).mean())
    most = compared.oracle.utilization
    assert most.per_window_mean >= most.overall_mean


def test_oracle_of_utilisation_is_the_highest() -> None:
    found = oracle(["a", "b"], [[0.5, 0.9], [0.6, 0.7]], higher_is_better=True)
    assert (found.overall, found.per_window) == ("a", ["b", "a"])
    assert found.per_window_mean == pytest.approx(0.75)


def test_verdicts_are_corrected_for_their_number(compared: Comparison) -> None:
    for metric in METRICS:
        judged = [getattr(each.against_baseline, metric) for each in compared.schedulers]
        assert judged[0].p_adjusted is None
        assert [each.p_adjusted for each in judged[1:]] == holm([j.p_value for j in judged[1:]])
    pair = compare([windows(8)], CLUSTER, SCHEDULERS[:2]).cells[0]
    alone = pair.schedulers[1].against_baseline.jct_mean
    among = compared.schedulers[1].against_baseline.jct_mean
    assert alone.p_value == among.p_value == alone.p_adjusted
    assert (alone.ratio, alone.low, alone.high) == (among.ratio, among.low, among.high)


def test_power_is_that_of_the_windows(compared: Comparison) -> None:
    first, *others = compared.schedulers
    assert first.power.jct_mean is None
    for result in others:
        expected = power(result.per_window.jct_mean, first.per_window.jct_mean)
        assert result.power.jct_mean == expected


def test_trades_are_marked() -> None:
    """One long wide job against many short ones: `lcfs` style orders win slowdown, lose JCT."""
    found = compare([windows(8, load=1.3)], CLUSTER, ["sjf+easy", "fcfs", "sexp+easy"]).cells[0]
    for result in found.schedulers:
        against = result.against_baseline
        jct, slowdown = against.jct_mean, against.bounded_slowdown_mean
        assert jct.ratio is not None
        assert slowdown.high is not None
        expected = slowdown.high < 1 and jct.ratio > 1.02
        assert result.trades == expected
        assert (slowdown.verdict == "trades JCT for slowdown") == expected


def test_continuous__is_judged_in_blocks() -> None:
    [jobs] = windows(1, jobs=640)
    found = compare(jobs, CLUSTER, SCHEDULERS, continuous=True, blocks=10)
    assert (found.continuous, found.windows, found.window_jobs) == (True, 1, [640])
    columns = {}
    for name in ("fcfs", "sjf+easy"):
        table = job_table(bl.simulate(jobs, CLUSTER, name).log, jobs)
        columns[name] = (completion_times(table, jobs), bounded_slowdowns(table, jobs))
    for metric, number in (("jct_mean", 0), ("bounded_slowdown_mean", 1)):
        ours, theirs = columns["sjf+easy"][number], columns["fcfs"][number]
        expected = block_ratio(
            ours.astype(np.float32), theirs.astype(np.float32), blocks=10, seed=0
        )
        judged = getattr(found.schedulers[2].against_baseline, metric)
        assert (judged.ratio, judged.low, judged.high, judged.windows) == (
            expected.ratio,
            expected.low,
            expected.high,
            10,
        )
    makespan = found.schedulers[2].against_baseline.makespan
    assert (makespan.windows, makespan.low) == (1, None)
    several = compare(jobs, CLUSTER, SCHEDULERS, continuous=True, blocks=10, workers=2)
    for one, other in zip(found.schedulers, several.schedulers, strict=True):
        assert one.against_baseline == other.against_baseline


def test_continuous__rejected_jobs_are_in_no_block() -> None:
    jobs = bl.Workload.from_columns(
        submit=np.arange(40.0), run=np.full(40, 30.0), gpus=np.where(np.arange(40) % 4, 1, 99)
    )
    found = compare(jobs, CLUSTER, ["fcfs", "lcfs"], continuous=True, blocks=3)
    assert found.schedulers[1].jobs.rejected == 10
    judged = found.schedulers[1].against_baseline.jct_mean
    assert judged.ratio is not None
    assert math.isfinite(judged.ratio)


@pytest.mark.parametrize(
    ("options", "text"), [({"windows": 2}, "has no windows"), ({"blocks": 99}, "99 blocks")]
)
def test_continuous__what_does_not_go_with_it(options: dict[str, int], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        compare([windows(1, jobs=40)], CLUSTER, SCHEDULERS, continuous=True, **options)


def test_blocks_of_the_command_line_are_the_usual_ones() -> None:
    fields = {field.name: field.default for field in msgspec.structs.fields(Compare)}
    assert fields["blocks"] == BLOCKS


def test_overall() -> None:
    cells = compare([windows(5, load=load) for load in (0.8, 1.3)], CLUSTER, SCHEDULERS).cells
    found = overall_of(cells)
    assert (found.cells, found.windows, found.baseline) == (2, 10, "fcfs")
    first, _, sjf, _ = found.schedulers
    assert first.ratio.jct_mean is not None
    assert first.ratio.jct_mean.value == 1
    assert first.improvement.jct_mean.value == 0.5
    ratios = [
        ours / theirs
        for cell in cells
        for ours, theirs in zip(
            cell.schedulers[2].per_window.jct_mean,
            cell.schedulers[0].per_window.jct_mean,
            strict=True,
        )
    ]
    middle = sorted(ratios)[2:-2]
    assert sjf.ratio.jct_mean is not None
    assert sjf.ratio.jct_mean.value == pytest.approx(np.mean(middle))
    assert sjf.improvement.jct_mean.value == pytest.approx(np.mean([r < 1 for r in ratios]))
    gaps = [cell.schedulers[2].gap_to_bound for cell in cells]
    assert sjf.gap_to_bound == pytest.approx(np.mean(gaps))  # type: ignore[arg-type]
    lowest = min(found.schedulers, key=lambda each: each.ratio.jct_mean.value)  # type: ignore[union-attr]
    assert found.best.jct_mean == lowest.scheduler
    assert msgspec.json.decode(msgspec.json.encode(found), type=type(found)) == found
