"""Start times of waiting jobs, forecast from a snapshot."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.agreement.random_model_runs import random_model_run
from tests.evaluate.explain.explained_runs import run_of, simulated

from berthline.errors import BerthlineError, ConfigError, SimulationError
from berthline.evaluate.forecast import many_futures
from berthline.evaluate.forecast.forecast import Forecast, forecast
from berthline.evaluate.forecast.known_past import past_of
from berthline.evaluate.forecast.run_time_draws import run_times
from berthline.evaluate.metrics.job_table import job_table
from berthline.model.schedule import FINISH
from berthline.model.workload import Workload
from berthline.model.workload_columns import COLUMN_TYPES
from berthline.sim.simulate import Result, simulate
from berthline.traces.generators.synthetic import generate

if TYPE_CHECKING:
    from pathlib import Path

    from berthline.model.snapshot import Snapshot


@pytest.fixture(scope="module")
def busy() -> Result:
    workload = generate(
        "synthetic", cluster="uniform:4x8", jobs=600, load=1.0, seed=3, estimate_error=0.5
    )
    return simulate(workload, "uniform:4x8", "sjf+easy")


def with_runs(snapshot: Snapshot, run: np.ndarray) -> Snapshot:
    run.setflags(write=False)
    return dataclasses.replace(snapshot, workload=dataclasses.replace(snapshot.workload, run=run))


def at_queue(result: Result, share: float) -> float:
    """Return an instant between events at which jobs wait."""
    start, submit = job_table(result.log, result.workload).start, result.workload.submit
    waits = np.flatnonzero(start - submit > 100)
    job = waits[int(share * (len(waits) - 1))]
    return float(submit[job] + start[job]) / 2


def test_every_waiting_job_has_an_interval(busy: Result) -> None:
    at = at_queue(busy, 0.8)
    found = forecast(busy.snapshot(at), history=busy, draws=40)
    start, submit = job_table(busy.log, busy.workload).start, busy.workload.submit
    assert found.jobs.tolist() == np.flatnonzero((submit <= at) & (start > at)).tolist()
    assert (found.low <= found.median).all()
    assert (found.median <= found.high).all()
    assert (found.starts > at).all()
    assert found.run_times == "ratios"
    assert found.jobs_to_come
    assert found.finished == int((busy.log.time[busy.log.kind == FINISH] <= at).sum())
    one = found.of(int(found.jobs[0]))
    assert (one.low, one.high, one.draws) == (found.low[0], found.high[0], 40)
    with pytest.raises(ConfigError, match="job 99999 does not wait"):
        found.of(99999)


def test_same_draws_on_any_number_of_threads(busy: Result) -> None:
    snapshot = busy.snapshot(at_queue(busy, 0.5))
    one, three = (
        forecast(snapshot, history=busy, draws=20, seed=4, workers=workers) for workers in (1, 3)
    )
    np.testing.assert_array_equal(one.starts, three.starts)
    other = forecast(snapshot, history=busy, draws=20, seed=5)
    assert not np.array_equal(one.starts, other.starts)


@pytest.mark.parametrize("scheduler", ["sjf+easy", "fcfs+conservative", "srpt!srpt", "[random]"])
def test_run_times_of_unfinished_jobs_are_not_read(busy: Result, scheduler: str) -> None:
    """Neither NaN nor other run times of jobs that have not finished change a forecast."""
    result = simulate(busy.workload, busy.cluster, scheduler, seed=2)
    at = at_queue(result, 0.6)
    table = job_table(result.log, result.workload)
    over = table.finish <= at
    snapshot = result.snapshot(at)
    before = forecast(snapshot, history=result, draws=8)
    for run in (np.full(snapshot.num_jobs, np.nan), snapshot.workload.run * 7 + 1):
        hidden = with_runs(snapshot, run)
        after = forecast(hidden, history=result, draws=8)
        np.testing.assert_array_equal(after.starts, before.starts)
    # The same for everything later in the run that history is taken from.
    columns = {name: getattr(result.workload, name) for name in COLUMN_TYPES}
    columns["run"] = np.where(over, columns["run"], columns["run"] * 3 + 5)
    names = result.workload.user_names
    changed = Workload.from_columns(**columns, user_names=names, rebase=False)
    later = dataclasses.replace(result, workload=changed)
    after = forecast(snapshot, history=later, draws=8)
    np.testing.assert_array_equal(after.starts, before.starts)


def test_exact_knowledge_is_not_drawn() -> None:
    result = run_of([8, 8, 8], "fcfs")
    exact = simulate(result.workload, result.cluster, "fcfs", knowledge="exact")
    found = forecast(exact.snapshot(50.0), draws=3)
    assert found.run_times == "exact"
    assert found.starts.tolist() == [[100.0, 200.0]] * 3
    nan = with_runs(exact.snapshot(50.0), np.full(3, np.nan))
    with pytest.raises(SimulationError, match="the run time of job 0 is not known"):
        forecast(nan, draws=3)


def test_few_jobs_have_finished() -> None:
    found = forecast(run_of([8, 8, 8], "fcfs").snapshot(50.0), draws=200)
    assert (found.run_times, found.finished, found.jobs_to_come) == ("even", 0, False)
    # The first ends between now and its estimate, evenly; the next one after that.
    first, second = found.starts.T
    assert first.min() > 50
    assert first.max() <= 100
    assert abs(first.mean() - 75) < 4
    assert ((second > first) & (second <= first + 100)).all()


def test_without_history_no_later_jobs_are_assumed(busy: Result) -> None:
    snapshot = busy.snapshot(at_queue(busy, 0.8))
    assert snapshot.memory.jobs > 0
    found = forecast(snapshot, draws=5)
    assert (found.run_times, found.jobs_to_come, found.finished) == ("even", False, 0)
    assert np.isfinite(found.starts).all()


def test_histories_of_other_kinds(busy: Result, tmp_path: Path) -> None:
    from berthline.cli.main import main

    at = at_queue(busy, 0.8)
    snapshot = busy.snapshot(at)
    finish = job_table(busy.log, busy.workload).finish
    expected = forecast(snapshot, history=busy, draws=5)
    from berthline.sim.snapshots.take import take_jobs

    as_jobs = forecast(
        snapshot, history=take_jobs(busy.workload, np.flatnonzero(finish <= at)), draws=5
    )
    np.testing.assert_array_equal(as_jobs.starts, expected.starts)
    with pytest.raises(ConfigError, match="history is 7"):
        forecast(snapshot, history=7, draws=5)  # type: ignore[arg-type]
    run = ["synthetic", "--jobs", "600", "--load", "1", "--seed", "3", "--set"]
    options = ["estimate_error=0.5", "--cluster", "uniform:4x8", "--scheduler", "sjf+easy"]
    assert main(["sim", *run, *options, "--out", str(tmp_path / "run")]) == 0
    as_run = forecast(snapshot, history=tmp_path / "run", draws=5)
    np.testing.assert_array_equal(as_run.starts, expected.starts)


def test_a_job_that_never_starts(busy: Result) -> None:
    found = forecast(busy.snapshot(at_queue(busy, 0.8)), "[where(gpus >= 8, 1, -1)]", history=busy)
    assert found.scheduler != str(busy.scheduler)
    at = at_queue(busy, 0.8)
    early = forecast(busy.snapshot(at), history=busy, draws=6, horizon=at + 1e-3)
    assert np.isinf(early.starts).all()
    assert (early.not_started == 1).all()
    assert np.isinf(early.high).all()
    assert early.horizon == at + 1e-3


def test_jobs_that_are_asked_about(busy: Result) -> None:
    at = at_queue(busy, 0.8)
    asked = Workload.from_columns(
        submit=[0.0], run=[1.0], gpus=[1], estimate=[600.0], user_names=("new",)
    )
    snapshot = busy.snapshot(at)
    found = forecast(snapshot, history=busy, draws=20, asked=asked)
    assert found.jobs[-1] == -1
    one = found.of(-1)
    assert at < one.low <= one.high
    longer = dataclasses.replace(asked, gpus=np.full(1, 32, np.int32))
    all_gpus = forecast(snapshot, history=busy, draws=20, asked=longer).of(-1)
    assert all_gpus.median > one.median


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"draws": 0}, "draws"),
        ({"level": 1.0}, "level is 1.0"),
        ({"horizon": 1.0}, "horizon is 1"),
        ({"jobs": [599]}, "job 599 does not wait"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_wrong_arguments(busy: Result, wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        forecast(busy.snapshot(at_queue(busy, 0.5)), history=busy, **wrong)  # type: ignore[arg-type]


def test_the_core_and_resume_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """A draw in the core means what `resume` means, for all kinds of runs."""
    compared = 0
    for number in range(150):
        result = simulated(random_model_run(number))
        if result is None or result.scheduler.placement in ("fgd", "fgd-all", "milp"):
            continue
        if result.scheduler.learned is not None or any(
            "random" in formula.words for formula in result.scheduler.formulas
        ):
            continue  # `resume` draws them with the seed of the draw
        times = np.unique(result.log.time)
        at = float(times[len(times) // 2])
        snapshot = result.snapshot(at)

        def starts(
            in_core: bool, snapshot: Snapshot = snapshot, result: Result = result
        ) -> Forecast | str:
            native = many_futures.ManyFutures._native_starts
            resumed = many_futures.ManyFutures._resumed_starts
            chosen = native if in_core else resumed
            with monkeypatch.context() as patch:
                patch.setattr(many_futures.ManyFutures, "starts", chosen)
                try:
                    return forecast(snapshot, history=result, draws=2, seed=1, workers=1)
                except BerthlineError as error:
                    return error.what

        core, python = starts(True), starts(False)
        if isinstance(python, str) and "without end" in python:
            continue  # the core ends a run with the last start
        if isinstance(core, str) or isinstance(python, str):
            assert core == python, number
            continue
        np.testing.assert_array_equal(core.starts, python.starts, err_msg=str(number))
        compared += core.starts.size > 0
    assert compared > 30


def test_run_times_are_longer_than_what_is_done(busy: Result) -> None:
    at = at_queue(busy, 0.9)
    past = past_of(busy.snapshot(at), busy, None, knowledge="estimate")
    table = run_times(past, past.unknown, past.done)
    rng = np.random.default_rng(1)
    drawn = np.stack([table.draw(rng) for _ in range(200)])
    assert (drawn > past.done).all()
    assert (past.done > 0).any()


def test_a_users_own_jobs_count_more() -> None:
    user = np.arange(80) % 2
    workload = Workload.from_columns(
        submit=np.arange(80) * 10.0,
        run=np.where(user, 90.0, 10.0),
        estimate=np.full(80, 100.0),
        gpus=np.ones(80, np.int32),
        user=user,
    )
    result = simulate(workload, "uniform:1x8", "fcfs")
    past = past_of(result.snapshot(795.0), result, None, knowledge="estimate")
    table = run_times(past, past.unknown, np.zeros(len(past.unknown)))
    rng = np.random.default_rng(1)
    ratio = np.mean([table.draw(rng) for _ in range(400)], axis=0) / 100
    is_second = past.jobs.user[past.unknown] == 1
    assert (ratio[is_second] > 0.8).all()
    assert is_second.sum() > 2
    # Those that ran longer than any of the first user's jobs ever did cannot be like these.
    done = run_times(past, past.unknown, np.full(len(past.unknown), 20.0))
    assert all((done.draw(rng) > 20).all() for _ in range(50))
