"""Runs in several processes: the same results as in one, errors as in one, no process left over."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest

import berthline as bl
from berthline import worker_pool
from berthline.errors import PolicyError, SimulationError
from berthline.evaluate.compare.cells import cell_of
from berthline.evaluate.compare.compare import compare
from berthline.evaluate.compare.grid import Cell, Grid, RunIndex, run_grid
from berthline.evaluate.compare.run_record import RunSettings
from berthline.evaluate.metrics.energy_rate import EnergyRate
from berthline.model.cluster import Cluster
from berthline.model.workload import Workload

if TYPE_CHECKING:
    import subprocess

    from berthline.evaluate.compare.comparison import Comparison

SCHEDULERS = ["fcfs", "random+skip", "sjf+easy"]
CLUSTER = Cluster.uniform(nodes=2, gpus_per_node=4)


def some_jobs(count: int, *, seed: int = 0) -> Workload:
    rng = np.random.default_rng(seed)
    return Workload.from_columns(
        submit=np.sort(rng.uniform(0, 40 * count, count)),
        run=rng.integers(10, 500, count),
        estimate=rng.integers(500, 900, count),
        gpus=rng.integers(1, 5, count),
        user=rng.integers(0, 3, count),
    )


def without_times(comparison: Comparison) -> object:
    found = msgspec.to_builtins(comparison)
    for result in found["schedulers"]:
        del result["wall_seconds"]
    return found


@pytest.mark.parametrize(("windows", "count"), [(7, 2), (1, 3), (2, 5)])
def test_same_bits_for_any_number(windows: int, count: int) -> None:
    seen: list[tuple[int, int]] = []
    rate = EnergyRate(times=[0, 500], values=[1.0, 2.0], period=1000)
    one, several = (
        compare(
            some_jobs(60),
            CLUSTER,
            SCHEDULERS,
            windows=windows,
            conditions={"mtbf": 2000, "mttr": 100},
            energy_rate=rate,
            by=["user"],
            workers=number,
            progress=lambda done, total, label: seen.append((done, total)),
        )
        for number in (1, count)
    )
    assert without_times(one) == without_times(several)
    runs = windows * len(SCHEDULERS)
    assert seen == 2 * [(done, runs) for done in range(1, runs + 1)]


def test_tables_and_seeds() -> None:
    grid = Grid(
        [cell_of([some_jobs(40)], CLUSTER, windows=2), cell_of([some_jobs(9)], CLUSTER)],
        SCHEDULERS,
        [3, 4],
        RunSettings(keeps_jobs=True),
    )
    one, two = run_grid(grid), run_grid(grid, workers=2)
    assert len(one.records) == len(grid) == 3 * 2 * 3
    assert one.records.keys() == two.records.keys()
    for place, record in one.records.items():
        assert record.metrics == two.records[place].metrics
    random = [one.records[RunIndex(0, 0, seed, 1)].metrics.log_sha256 for seed in (0, 1)]
    assert random[0] != random[1]
    assert [log.sha256() for log in one.logs.values()] == [
        two.logs[number].sha256() for number in one.logs
    ]
    for ours, theirs in zip(one.run_jobs(), two.run_jobs(), strict=True):
        assert (ours.cell, ours.scheduler, ours.window) == (
            theirs.cell,
            theirs.scheduler,
            theirs.window,
        )
        assert ours.outcomes.to_bytes() == theirs.outcomes.to_bytes()
    assert len(one.run_jobs()) == 3 * 3  # the first seed's


def test_registered_orders_are_known_to_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    from berthline.policies import orders

    monkeypatch.setattr(orders, "ORDERS", dict(orders.ORDERS))
    bl.register_order("of-this-test", "gpus * submit")
    found = [
        compare(some_jobs(30), CLUSTER, ["of-this-test", "fcfs"], workers=number)
        for number in (1, 2)
    ]
    assert without_times(found[0]) == without_times(found[1])


def test_errors_are_those_of_a_single_process() -> None:
    messages = []
    for number in (1, 2):
        with pytest.raises(PolicyError) as caught:
            compare(some_jobs(20), CLUSTER, ["fcfs", "sjf"], knowledge="none", workers=number)
        messages.append((str(caught.value), caught.value.exit_code))
    assert messages[0] == messages[1]


def test_windows_are_made_once_each() -> None:
    made: list[int] = []
    whole = cell_of([some_jobs(50)], CLUSTER, windows=5)

    def window(number: int) -> tuple[Workload, float]:
        made.append(number)
        return whole.window(number)

    cell = Cell(workload="x", source=whole.source, cluster=CLUSTER, windows=5, window=window)
    run_grid(Grid([cell], SCHEDULERS, [0], RunSettings()), workers=2)
    assert made == [0, 1, 2, 3, 4]


def kill_workers(monkeypatch: pytest.MonkeyPatch, *, most: int) -> list[subprocess.Popen[bytes]]:
    """Kill the first workers that get something to do; return the processes that got something."""
    started: list[subprocess.Popen[bytes]] = []
    send = worker_pool.Worker.send

    def and_kill(self: worker_pool.Worker, batch: object) -> None:
        send(self, batch)  # type: ignore[arg-type]
        if self.process not in started:
            started.append(self.process)
            if len(started) <= most:
                os.kill(self.process.pid, signal.SIGKILL)

    monkeypatch.setattr(worker_pool.Worker, "send", and_kill)
    return started


@pytest.mark.parametrize("windows", [1, 4])
def test_the_runs_of_a_killed_worker_are_made_by_another(
    monkeypatch: pytest.MonkeyPatch, windows: int
) -> None:
    jobs = some_jobs(20_000)
    whole = compare(jobs, CLUSTER, SCHEDULERS, windows=windows, workers=2)
    started = kill_workers(monkeypatch, most=2)
    again = compare(jobs, CLUSTER, SCHEDULERS, windows=windows, workers=2)
    assert len(started) == 4
    assert without_times(again) == without_times(whole)
    assert all(process.poll() is not None for process in started)


def test_a_run_whose_workers_always_end_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    started = kill_workers(monkeypatch, most=99)
    with pytest.raises(SimulationError, match="ended 3 times") as caught:
        compare(some_jobs(20_000), CLUSTER, SCHEDULERS, windows=4, workers=2)
    assert "signal 9" in str(caught.value)
    assert " on window " in caught.value.where
    assert all(process.poll() is not None for process in started)


def test_what_libraries_print_is_no_answer() -> None:
    code = (
        "from berthline.evaluate.compare import grid_workers, run_record\n"
        "make = run_record.make_run\n"
        "def loud(*args, **options):\n"
        "    print('hello')\n"
        "    return make(*args, **options)\n"
        "run_record.make_run = loud\n"
        "grid_workers.main()\n"
    )
    command = [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}\n{code}"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker_pool, "worker_command", lambda _: command)
        loud = compare(some_jobs(20), CLUSTER, ["fcfs", "sjf"], workers=2)
    assert without_times(loud) == without_times(compare(some_jobs(20), CLUSTER, ["fcfs", "sjf"]))
