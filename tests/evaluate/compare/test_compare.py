"""Comparisons: the same windows for all, honest verdicts, JSON."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import tomllib
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest
from tests.evaluate.schedules import schedule

import berthline as bl
from berthline.cli.main import main
from berthline.errors import ConfigError, PolicyError
from berthline.evaluate.compare.compare import compare
from berthline.evaluate.compare.comparison import Comparison
from berthline.evaluate.compare.judge import TRADE
from berthline.evaluate.metrics.measure import Metrics, measure
from berthline.model.cluster import Cluster
from berthline.model.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CLUSTER = Cluster.uniform(nodes=2, gpus_per_node=4)


@dataclasses.dataclass
class FakeResult:
    log: Any
    values: Metrics
    wall_seconds: float = 0.5

    def metrics(self, *, measure=None) -> Metrics:
        return self.values


@pytest.fixture
def fake_simulate(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Run jobs one after another, `sjf` shortest first, `lcfs` last first; list the runs made."""
    runs: list[tuple[str, str]] = []

    def simulate(
        workload: Workload, cluster: Cluster, scheduler: str, **options: Any
    ) -> FakeResult:
        runs.append((workload.name, scheduler))
        jobs = np.arange(len(workload))
        if scheduler.startswith("sjf"):
            jobs = np.argsort(workload.run, kind="stable")
        elif scheduler.startswith("lcfs"):
            jobs = jobs[::-1]
        rows: list[Any] = [(float(workload.submit[job]), "submit", job) for job in range(len(jobs))]
        now = float(workload.submit[-1])
        for job in jobs.tolist():
            rows.append((now, "start", job, {0: 1}))
            now += float(workload.run[job])
            rows.append((now, "finish", job))
        log = schedule(rows)
        return FakeResult(log, measure(log, workload, cluster))

    monkeypatch.setattr("berthline.sim.simulate.simulate", simulate)
    return runs


def some_jobs(count: int, *, seed: int = 0, name: str = "jobs") -> Workload:
    rng = np.random.default_rng(seed)
    return Workload.from_columns(
        submit=np.arange(count), run=rng.integers(10, 200, count), gpus=1, name=name
    )


def test_compare__runs_all_schedulers_on_the_same_windows(fake_simulate: list[tuple[str, str]]):
    seen: list[tuple[int, int, str]] = []
    found = compare(
        some_jobs(31),
        CLUSTER,
        ["fcfs", "sjf"],
        windows=3,
        progress=lambda *call: seen.append(call),
    )
    names = ["jobs[0:10]", "jobs[10:20]", "jobs[20:31]"]
    assert fake_simulate == [(name, scheduler) for name in names for scheduler in ("fcfs", "sjf")]
    assert (found.windows, found.window_jobs) == (3, [10, 10, 11])
    assert [result.jobs.completed for result in found.schedulers] == [31, 31]
    assert [call[:2] for call in seen] == [(done, 6) for done in range(1, 7)]
    assert seen[1][2] == "sjf on jobs[0:10]"


def test_compare__averages_and_ratios__are_those_of_the_windows(
    fake_simulate: list[tuple[str, str]],
):
    found = compare(some_jobs(80), CLUSTER, ["fcfs", "sjf", "lcfs"], windows=8)
    fcfs, sjf, _ = found.schedulers
    assert len(sjf.per_window.jct_mean) == 8
    assert sjf.metrics.jct.mean == pytest.approx(np.mean(sjf.per_window.jct_mean))
    assert sjf.metrics.jct.p99 == pytest.approx(np.mean(sjf.per_window.jct_p99))
    assert sjf.metrics.utilization.gpu == pytest.approx(np.mean(sjf.per_window.utilization))
    logs = np.log(sjf.per_window.jct_mean) - np.log(fcfs.per_window.jct_mean)
    against = sjf.against_baseline
    assert against.jct_mean.ratio == pytest.approx(np.exp(logs.mean()))
    assert against.jct_mean.verdict.startswith("better by ")
    assert against.makespan.verdict == "equal in every window"
    assert fcfs.against_baseline.jct_mean.verdict == "the baseline"
    assert fcfs.against_baseline.jct_mean.ratio == 1
    assert found.best.jct_mean == found.best.wait_mean == "sjf"
    assert found.best.makespan == "fcfs"  # all equal: the first
    assert sjf.wall_seconds == pytest.approx(8 * 0.5)
    assert len(set(sjf.log_sha256)) == 8


def test_compare__a_list_in_the_list__is_a_workload_with_its_windows(
    fake_simulate: list[tuple[str, str]],
):
    workloads = [some_jobs(9, seed=seed, name=f"seed{seed}") for seed in range(3)]
    (found,) = compare([workloads], CLUSTER, ["fcfs"]).cells
    assert (found.workload, found.windows, found.window_jobs) == ("seed0", 3, [9, 9, 9])
    assert compare([workloads], CLUSTER, ["fcfs"], windows=2).cells[0].windows == 6


def test_compare__several_workloads_clusters_and_loads__are_a_cell_each() -> None:
    workloads = [some_jobs(9, seed=seed, name=f"seed{seed}") for seed in range(2)]
    nodes = ["uniform:2x8:V100", "uniform:1x8:V100"]
    found = compare(workloads, nodes, ["fcfs", "lcfs"], loads=[0.5, 1.5])
    assert [(cell.workload, cell.cluster, cell.load) for cell in found.cells] == list(
        itertools.product(("seed0", "seed1"), nodes, (0.5, 1.5))
    )
    assert found.overall is not None
    assert found.overall.cells == 8
    assert found.summary()["overall"] is found.overall
    (alone,) = compare(workloads[:1], nodes[0], ["fcfs", "lcfs"], load=1.5).cells
    assert alone.schedulers[1].metrics == found.cells[1].schedulers[1].metrics


def test_compare__baseline_not_listed__is_run_first(fake_simulate: list[tuple[str, str]]):
    found = compare(some_jobs(9), CLUSTER, ["sjf", "lcfs"], baseline="fcfs")
    assert found.baseline == "fcfs"
    assert [result.scheduler for result in found.schedulers] == ["fcfs", "sjf", "lcfs"]


def test_compare__baseline_listed_in_other_words__is_not_run_twice(
    fake_simulate: list[tuple[str, str]],
):
    found = compare(some_jobs(9), CLUSTER, ["sjf", "fcfs"], baseline="fcfs+strict@first-fit")
    assert found.baseline == "fcfs"
    assert [result.scheduler for result in found.schedulers] == ["sjf", "fcfs"]
    assert found.schedulers[0].against_baseline.jct_mean.verdict.startswith("1 window: no interval")


def test_compare__json__reads_back(fake_simulate: list[tuple[str, str]]):
    found = compare(some_jobs(20), CLUSTER, ["fcfs", "sjf"], windows=2)
    text = msgspec.json.encode(found)
    assert msgspec.json.decode(text, type=Comparison) == found
    content = json.loads(text)
    assert list(content["schedulers"][1]["against_baseline"]) == [
        "jct_mean",
        "jct_p99",
        "bounded_slowdown_mean",
        "wait_mean",
        "makespan",
        "utilization",
    ]
    judgement = content["schedulers"][1]["against_baseline"]["jct_mean"]
    assert list(judgement) == [
        "ratio",
        "low",
        "high",
        "windows",
        "p_value",
        "p_adjusted",
        "verdict",
        "total",
        "total_low",
        "total_high",
        "disagrees",
    ]


def test_compare__same_arguments__same_bits(fake_simulate: list[tuple[str, str]]):
    first, second = (
        compare(some_jobs(60), CLUSTER, ["fcfs", "sjf"], windows=6, seed=1) for _ in range(2)
    )
    assert first == second


@pytest.mark.parametrize(
    ("jct_factor", "windows", "is_trade"), [(1.03, 1, True), (1.03, 8, True), (1.01, 8, False)]
)
def test_compare__slowdown_bought_with_jct__is_called_that(
    monkeypatch: pytest.MonkeyPatch, jct_factor: float, windows: int, *, is_trade: bool
):
    """`sjf` halves the bounded slowdown of `fcfs`, and its mean JCT grows by `jct_factor`."""
    jobs = some_jobs(10 * windows)

    def simulate(workload: Workload, cluster: Cluster, scheduler: str, **_: Any) -> FakeResult:
        rows = [(float(job), "submit", job) for job in range(len(workload))]
        log = schedule(rows, horizon=50)
        values = measure(log, workload, cluster)
        jct, slowdown = (100 * jct_factor, 2.0) if scheduler == "sjf" else (100.0, 4.0)
        values = msgspec.structs.replace(
            values,
            jct=msgspec.structs.replace(values.jct, mean=jct),
            bounded_slowdown=msgspec.structs.replace(values.bounded_slowdown, mean=slowdown),
        )
        return FakeResult(log, values)

    monkeypatch.setattr("berthline.sim.simulate.simulate", simulate)
    against = compare(jobs, CLUSTER, ["fcfs", "sjf"], windows=windows).schedulers[1]
    assert (against.against_baseline.bounded_slowdown_mean.verdict == TRADE) == is_trade


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda jobs: compare(jobs, CLUSTER, []), ConfigError, "schedulers is"),
        (lambda jobs: compare(jobs, CLUSTER, "fcfs,sjf"), ConfigError, "schedulers is 'fcfs,sjf'"),
        (lambda jobs: compare(jobs, CLUSTER, ["sjf", "sjf"]), ConfigError, "'sjf' is listed twice"),
        (
            lambda jobs: compare(jobs, CLUSTER, ["sjf", "sjf+strict"]),
            ConfigError,
            "'sjf.strict' is listed twice: as 'sjf' before",
        ),
        (lambda jobs: compare(jobs, CLUSTER, ["nope"]), PolicyError, "nope"),
        (lambda jobs: compare(jobs, CLUSTER, ["sjf"], windows=6), ConfigError, "`windows` is 6"),
        (lambda jobs: compare(jobs, CLUSTER, ["sjf"], windows=0), ConfigError, "`windows` is 0"),
        (lambda jobs: compare([], CLUSTER, ["sjf"]), ConfigError, "`workload` is missing"),
    ],
)
def test_compare__wrong_arguments__are_refused_before_anything_runs(
    fake_simulate: list[tuple[str, str]],
    call: Callable[[Workload], Comparison],
    error: type[Exception],
    text: str,
):
    with pytest.raises(error, match=text):
        call(some_jobs(5))
    assert fake_simulate == []


def test_compare__reference_simulator__agrees_with_simulate():
    jobs = Workload.from_columns(
        submit=[0, 1, 2, 3], run=[40, 30, 20, 10], gpus=[8, 8, 8, 8], estimate=[40, 30, 20, 10]
    )
    found = bl.compare(jobs, CLUSTER, ["fcfs", "sjf"], simulator="reference")
    for result in found.schedulers:
        alone = bl.simulate(jobs, CLUSTER, result.scheduler, simulator="reference")
        assert result.log_sha256 == [alone.log.sha256()]
    # fcfs waits 0, 39, 68, 87; sjf waits 0, 69, 48, 37
    assert [result.metrics.wait.mean for result in found.schedulers] == [48.5, 38.5]


def test_compare__out__is_what_the_command_writes(tmp_path: Path, capsys: Any) -> None:
    options = {"jobs": 40, "seeds": 2, "windows": 2, "by": ["size"], "settings": {"users": 3}}
    found = bl.compare(
        ["synthetic", "bursty"], "uniform:2x8", ["fcfs", "sjf"], out=tmp_path / "library", **options
    )
    command = ["compare", "synthetic", "bursty", "--cluster=uniform:2x8", "--schedulers=fcfs,sjf"]
    flags = ["--jobs=40", "--seeds=2", "--windows=2", "--by=size", "--set", "users=3"]
    assert main([*command, *flags, "--json", "--out", str(tmp_path / "command")]) == 0
    printed = json.loads(capsys.readouterr().out)
    summary = json.loads(msgspec.json.encode(found.summary()))
    for cell in (*printed["cells"], *summary["cells"]):
        for each in cell["schedulers"]:
            each.pop("wall_seconds")
    assert printed == summary
    library, command_line = (
        tomllib.loads((tmp_path / name / "config.toml").read_text())
        for name in ("library", "command")
    )
    assert {name: command_line[name] for name in library} == library
    assert (tmp_path / "library" / "jobs.parquet").is_file()


def test_compare__resume__goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    def stop(done: int, of: int, label: str) -> None:
        if done == 2:
            raise KeyboardInterrupt

    jobs, made = some_jobs(30), []
    call = functools.partial(bl.compare, jobs, CLUSTER, ["fcfs", "lcfs"], windows=3)
    with pytest.raises(KeyboardInterrupt):
        call(out=tmp_path, progress=stop)
    found = call(out=tmp_path, resume=True, progress=lambda *run: made.append(run))
    # Two were made; the logs of the first window are not kept, so its runs are made again.
    assert len(made) == 6
    assert found.schedulers[1].metrics == call().schedulers[1].metrics
    with pytest.raises(ConfigError, match="nothing to resume"):
        call(out=tmp_path, resume=True)


@pytest.mark.parametrize(
    "wrong", [{"windows": 0}, {"windows": 1.5}, {"seeds": 0}, {"seed": -1}, {"workers": 0}]
)
def test_numbers__are_refused_in_words(wrong):
    (name,) = wrong
    with pytest.raises(ConfigError, match=f"`?{name}`? is "):
        bl.compare("synthetic", "uniform:2x4:V100", ["fcfs"], **wrong)
