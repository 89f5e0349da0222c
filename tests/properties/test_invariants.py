"""What holds for every run, whatever the scheduler: replayed from the log of random runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.agreement.random_runs import Run, random_run
from tests.properties.progress import rate_alone
from tests.properties.replayed_log import ReplayedLog

import berthline as bl
from berthline.errors import PolicyError
from berthline.model.schedule import FINISH, REJECT, START, SUBMIT
from berthline.policies.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import Iterator

    from berthline.model.schedule import Schedule

FIRST = 5_000_000  # other runs than those of the agreement tests
RUNS_PER_BLOCK = 60


def random_logs(block: int) -> Iterator[tuple[Run, Schedule]]:
    """Simulate the runs of a block with the native core; refused ones are left out."""
    for number in range(FIRST + block * RUNS_PER_BLOCK, FIRST + (block + 1) * RUNS_PER_BLOCK):
        run = random_run(number)
        try:
            result = bl.simulate(
                run.workload,
                run.cluster,
                run.scheduler,
                knowledge=run.knowledge,
                seed=run.seed,
                horizon=run.horizon,
            )
        except PolicyError:
            continue
        yield run, result.log


blocks = pytest.mark.parametrize("block", range(6))


@blocks
def test_capacity__is_never_exceeded_on_any_node(block: int) -> None:
    """No GPU is booked twice; CPUs and memory, rounded up node by node, fit where limited."""
    starts = 0
    for run, log in random_logs(block):
        replay = ReplayedLog(log, run.workload, run.cluster)
        for row in replay.rows():
            if log.kind[row] != START:
                continue
            starts += 1
            assert sum(log.allocation(row).values()) == run.workload.gpus[log.job[row]]
            for node, gpus in log.allocation(row).items():
                assert gpus > 0
                for what, free in replay.free.items():
                    if what == "gpus" or replay.total[what][node]:
                        assert free[node] >= 0, (what, node, run)
        if not replay.running:
            assert replay.free == replay.total
    assert starts > 500


@blocks
def test_nodes__only_allowed_ones_and_no_more_than_needed(block: int) -> None:
    for run, log in random_logs(block):
        replay = ReplayedLog(log, run.workload, run.cluster)
        placement = Scheduler.parse(run.scheduler).placement
        has_tiers = placement in ("defrag", "balance", "milp-candidates")
        for row in np.flatnonzero(log.kind == START).tolist():
            job, allocation = int(log.job[row]), log.allocation(row)
            assert set(allocation) <= set(replay.allowed[job])
            if placement != "scatter":
                fewest = replay.nodes_min(job)
                assert fewest is not None
                assert fewest <= len(allocation) <= fewest + has_tiers


@blocks
def test_time__no_start_before_submission_and_a_run_takes_its_time(block: int) -> None:
    for run, log in random_logs(block):
        workload = run.workload
        assert (np.diff(log.time) >= 0).all()
        assert (log.time <= log.horizon).all()
        times = {
            kind: dict(zip(log.job[log.kind == kind], log.time[log.kind == kind], strict=True))
            for kind in (SUBMIT, START, FINISH, REJECT)
        }
        for job, time in times[SUBMIT].items():
            assert time == workload.submit[job]
        for job, time in times[REJECT].items():
            assert time == workload.submit[job]
        for job, time in times[START].items():
            assert time >= workload.submit[job]
        used = {
            int(log.job[row]): list(log.allocation(row))
            for row in np.flatnonzero(log.kind == START).tolist()
        }
        for job, time in times[FINISH].items():
            speed = rate_alone(workload, run.cluster, job, used[job])
            assert time == times[START][job] + workload.run[job] / speed


@blocks
def test_jobs__each_is_completed_rejected_or_unfinished(block: int) -> None:
    rejected = unfinished = 0
    for run, log in random_logs(block):
        counts = {
            kind: np.bincount(log.job[log.kind == kind], minlength=len(run.workload))
            for kind in (SUBMIT, START, FINISH, REJECT)
        }
        assert max(count.max() for count in counts.values()) <= 1
        assert (counts[START] <= counts[SUBMIT]).all()
        assert (counts[FINISH] <= counts[START]).all()
        assert (counts[REJECT] + counts[START] <= counts[SUBMIT]).all()
        if run.horizon is None:
            assert (counts[SUBMIT] == 1).all()
            assert (counts[FINISH] + counts[REJECT] == 1).all()
        else:
            assert (counts[SUBMIT] == (run.workload.submit <= run.horizon)).all()
        jobs = bl.Result(
            log, run.workload, run.cluster, Scheduler.parse(run.scheduler), run.knowledge, 0, 0.0
        )
        summary = jobs.metrics().jobs
        assert summary.submitted == counts[SUBMIT].sum()
        assert summary.completed == counts[FINISH].sum()
        assert summary.rejected == counts[REJECT].sum()
        assert summary.unfinished == (counts[SUBMIT] - counts[FINISH] - counts[REJECT]).sum()
        rejected += summary.rejected
        unfinished += summary.unfinished
    assert rejected > 20
    assert unfinished > 0


@blocks
def test_rejected__exactly_those_that_can_never_run(block: int) -> None:
    for run, log in random_logs(block):
        replay = ReplayedLog(log, run.workload, run.cluster)
        submitted = log.job[log.kind == SUBMIT].tolist()
        never = [job for job in submitted if replay.nodes_min(job) is None]
        assert log.job[log.kind == REJECT].tolist() == never


@blocks
def test_decisions__are_exhausted_before_the_clock_moves(block: int) -> None:
    """When an instant is over the first job in a fixed order cannot be placed; under skip, none."""
    checked = 0
    for run, log in random_logs(block):
        scheduler = Scheduler.parse(run.scheduler)
        is_known_order = str(scheduler).startswith("fcfs+") or scheduler.discipline == "skip"
        if scheduler.gate is not None or not is_known_order:
            continue
        is_scatter = scheduler.placement == "scatter"
        replay = ReplayedLog(log, run.workload, run.cluster)
        for _ in replay.instants():
            waiting = replay.waiting if scheduler.discipline == "skip" else replay.waiting[:1]
            for job in waiting:
                checked += 1
                assert not replay.fits(job, replay.free, scatter=is_scatter)
    assert checked > 100


@blocks
def test_events__at_one_instant_are_in_their_fixed_order(block: int) -> None:
    """Finishes by id, then arrivals by id (each with its rejection), then starts."""
    for run, log in random_logs(block):
        if run.workload.submit[-1] > 1e15:
            continue  # there a finish may follow its own start at one instant
        key = np.where(log.kind == FINISH, 0, np.where(log.kind == START, 2, 1))
        same = log.time[1:] == log.time[:-1]
        assert (key[1:] >= key[:-1])[same].all()
        ordered = same & (key[1:] == key[:-1]) & (key[1:] < 2)
        assert (log.job[1:] >= log.job[:-1])[ordered].all()
