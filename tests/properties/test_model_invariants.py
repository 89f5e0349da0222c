"""What holds for every run of the full cluster model, replayed from the logs of random runs."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agreement.random_model_runs import random_model_run
from tests.properties.progress import CLOSE, Progress
from tests.properties.replayed_log import ReplayedLog
from tests.properties.rights import lent_nodes, nodes_closed_for_ever

import berthline as bl
from berthline.errors import PolicyError
from berthline.evaluate.metrics.measure import measure
from berthline.model.limits import EACH_USER
from berthline.model.schedule import (
    END_OF_ROUND,
    FINISH,
    FOR_ANOTHER,
    KINDS,
    NO_JOB,
    NODE_DOWN,
    NODE_UP,
    NODE_WENT_DOWN,
    PREEMPT,
    REFUSE,
    REJECT,
    RESUME,
    START,
    SUBMIT,
    TO_MOVE,
    Schedule,
)
from berthline.policies.rules import SAVES_FIRST
from berthline.policies.scheduler import Scheduler

if TYPE_CHECKING:
    from tests.agreement.random_runs import Run

FIRST = 7_000_000  # other runs than those of the agreement tests
RUNS_PER_BLOCK = 120
BLOCKS = 6
blocks = pytest.mark.parametrize("block", range(BLOCKS))


def log_of(run: Run) -> Schedule | None:
    """Simulate with the native core; None = rounds too short for the run's delays, and refused."""
    try:
        return bl.simulate(
            run.workload,
            run.cluster,
            run.scheduler,
            knowledge=run.knowledge,
            seed=run.seed,
            horizon=run.horizon,
        ).log
    except PolicyError as error:
        assert "is over before a job makes progress" in error.what  # noqa: PT017 - nothing else is
        return None


@functools.cache
def random_logs(block: int) -> list[tuple[Run, Schedule]]:
    """Simulate the runs of a block with the native core."""
    first = FIRST + block * RUNS_PER_BLOCK
    runs = [random_model_run(number) for number in range(first, first + RUNS_PER_BLOCK)]
    return [(run, log) for run in runs if (log := log_of(run)) is not None]


@blocks
def test_capacity__is_never_exceeded_on_any_node(block: int) -> None:
    """Whole GPUs, CPUs and memory; that no shared GPU is overbooked is checked by the replay."""
    starts: Counter[str] = Counter()
    for run, log in random_logs(block):
        replay = ReplayedLog(log, run.workload, run.cluster)
        for row in replay.rows():
            if not log.is_start[row]:
                continue
            job, allocation = int(log.job[row]), log.allocation(row)
            kind = "part" if replay.is_part(job) else "gang" if run.workload.gpus[job] else "cpus"
            starts[kind] += 1
            assert sum(allocation.values()) == run.workload.gpus[job]
            assert len(allocation) == 1 or min(allocation.values()) > 0
            for node in allocation:
                for what, free in replay.free.items():
                    if what == "gpus" or replay.total[what][node]:
                        assert free[node] >= 0, (what, node, run)
        if not replay.running:
            assert replay.free == replay.total
            assert not any(replay.shared)
    assert min(starts[kind] for kind in ("part", "gang", "cpus")) > 30


@blocks
def test_nodes__nothing_starts_or_goes_on_where_a_node_is_down(block: int) -> None:
    outages = 0
    for run, log in random_logs(block):
        replay = ReplayedLog(log, run.workload, run.cluster)
        for row in replay.rows():
            if log.is_start[row]:
                assert not replay.down & set(log.allocation(row))
            outages += log.kind[row] == NODE_DOWN
            if row + 1 == len(log) or log.time[row + 1] > log.time[row]:
                for running in replay.running.values():
                    assert not replay.down & set(running.allocation)
    assert outages > 100


def test_pools__only_own_nodes_and_those_that_are_lent() -> None:
    """And on no more nodes than needed, or one more where the placement has tiers."""
    borrowed = 0
    for run, log in itertools.chain.from_iterable(map(random_logs, range(BLOCKS))):
        replay = ReplayedLog(log, run.workload, run.cluster)
        for job, allowed in enumerate(replay.allowed):
            closed = nodes_closed_for_ever(run, job)
            replay.allowed[job] = [node for node in allowed if node not in closed]
        placement = Scheduler.parse(run.scheduler).placement
        for row in np.flatnonzero(log.is_start).tolist():
            job, used = int(log.job[row]), set(log.allocation(row))
            own = set(replay.allowed[job])
            if not used <= own:
                borrowed += 1
                assert used <= own | lent_nodes(run, job)
            elif placement != "scatter" and (fewest := replay.nodes_min(job)) is not None:
                has_tiers = placement in ("defrag", "balance", "milp-candidates")
                assert fewest <= len(used) <= fewest + has_tiers
    assert borrowed > 10


@blocks
def test_quotas__are_never_exceeded(block: int) -> None:
    reached = 0
    for run, log in random_logs(block):
        workload, cluster = run.workload, run.cluster
        if not cluster.quotas:
            continue
        replay = ReplayedLog(log, workload, cluster)
        for row in replay.rows():
            if not log.is_start[row]:
                continue
            for quota in cluster.quotas:
                held: Counter[int] = Counter()
                for job, running in replay.running.items():
                    pool = (
                        workload.pool_names[workload.pool[job]] if workload.pool[job] >= 0 else ""
                    )
                    user = workload.user_names[workload.user[job]]
                    if quota.pool in ("", pool) and quota.user in ("", EACH_USER, user):
                        whose = int(workload.user[job]) if quota.user == EACH_USER else -1
                        held[whose] += int(workload.gpu_milli[job]) * sum(
                            gpus
                            for node, gpus in running.allocation.items()
                            if quota.gpu_type in ("", cluster.types[cluster.gpu_type[node]].name)
                        )
                assert max(held.values(), default=0) <= 1000 * quota.gpus, (quota, run)
                reached += max(held.values(), default=0) == 1000 * quota.gpus
    assert reached > 20


FOLLOWS = {
    None: {SUBMIT},
    SUBMIT: {REJECT, REFUSE, START},
    START: {PREEMPT, FINISH},
    RESUME: {PREEMPT, FINISH},
    PREEMPT: {RESUME, REFUSE},
    REJECT: set(),
    FINISH: set(),
}


@blocks
def test_jobs__each_goes_from_submission_to_one_end(block: int) -> None:
    """Submitted, refused or started, stopped and resumed any number of times, finished or not."""
    ends: Counter[str] = Counter()
    for run, log in random_logs(block):
        assert (np.diff(log.time) >= 0).all()
        assert (log.time <= run.horizon).all()
        last: dict[int, int | None] = dict.fromkeys(range(len(run.workload)))
        for job, kind in zip(log.job.tolist(), log.kind.tolist(), strict=True):
            assert (job == NO_JOB) == (kind in (NODE_DOWN, NODE_UP))
            if job == NO_JOB:
                continue
            assert kind in FOLLOWS[last[job]], (KINDS[kind], run)
            if kind != REFUSE:  # then the job waits as before
                last[job] = kind
        submitted = log.time[log.kind == SUBMIT]
        np.testing.assert_array_equal(submitted, run.workload.submit[: len(submitted)])
        counts = measure(log, run.workload, run.cluster).jobs
        assert counts.submitted == len(submitted)
        assert counts.completed == sum(kind == FINISH for kind in last.values())
        assert counts.rejected == sum(kind == REJECT for kind in last.values())
        assert counts.unfinished == counts.submitted - counts.completed - counts.rejected
        ends.update("none" if kind is None else KINDS[kind] for kind in last.values())
    assert ends["finish"] > 200
    assert ends["preempt"] > 0, "some are unfinished at the horizon, or never finish"


@blocks
def test_jobs__none_waits_for_ever_on_an_idle_cluster(block: int) -> None:
    """If the run is over long before the horizon and all nodes are up, then all jobs are over."""
    for run, log in random_logs(block):
        replay = ReplayedLog(log, run.workload, run.cluster)
        for _ in replay.rows():
            pass
        is_over = not replay.running and not replay.down
        if is_over and (not len(log) or log.time[-1] + 60 < run.horizon):
            assert not replay.waiting, run


@blocks
def test_preemptions__keep_to_the_rule(block: int) -> None:
    seen: Counter[int] = Counter()
    for run, log in random_logs(block):
        scheduler = Scheduler.parse(run.scheduler)
        rule, conditions = scheduler.preemption, run.cluster.conditions
        min_run = 0.0 if rule is None else rule.min_run
        if min_run == SAVES_FIRST:
            min_run = conditions.start_delay + conditions.restart + conditions.checkpoint
        started: dict[int, float] = {}
        restarts: Counter[int] = Counter()
        for row in range(len(log)):
            job, time = int(log.job[row]), float(log.time[row])
            if log.is_start[row]:
                started[job] = time
                assert (log.kind[row] == RESUME) == (restarts[job] > 0)
            if log.kind[row] != PREEMPT:
                continue
            reason = int(log.detail[row])
            seen[reason] += 1
            if reason in (FOR_ANOTHER, TO_MOVE):
                assert rule is not None
                assert (reason == FOR_ANOTHER) == (rule.index is not None)
                assert time > started[job]
                assert time - started[job] >= min_run
                assert restarts[job] < rule.max_restarts
            elif reason == END_OF_ROUND:
                assert scheduler.discipline == "rounds"
            else:
                assert reason == NODE_WENT_DOWN
            if reason == TO_MOVE:
                again = (log.job[row + 1 :] == job) & (log.time[row + 1 :] == time)
                assert log.kind[row + 1 :][again][0] in (RESUME, REFUSE)
            restarts[job] += 1
    assert min(seen[reason] for reason in (FOR_ANOTHER, NODE_WENT_DOWN, END_OF_ROUND)) > 20


@blocks
def test_ticks__decisions_are_at_their_multiples(block: int) -> None:
    checked = 0
    for run, log in random_logs(block):
        scheduler = Scheduler.parse(run.scheduler)
        tick = run.cluster.conditions.tick
        if scheduler.discipline == "rounds":
            tick = scheduler.round_seconds
        if tick == 0:
            continue
        by_choice = log.is_start | (log.kind == REFUSE)
        by_choice |= (log.kind == PREEMPT) & (log.detail != NODE_WENT_DOWN)
        times = log.time[by_choice]
        np.testing.assert_array_equal(times, np.rint(times / tick) * tick)
        checked += len(times)
    assert checked > 200


def assert_progress(run: Run, log: Schedule) -> Counter[str]:
    """Check that finished jobs did all they had to, and no more; return what was met."""
    progress = Progress(log, run.workload, run.cluster)
    met: Counter[str] = Counter()
    for job, done in progress.finished.items():
        if not done.is_clear:
            met["unclear"] += 1
            continue
        met["finished"] += 1
        met["at another speed"] += not np.isclose(
            log.time[(log.job == job) & (log.kind == FINISH)][0],
            log.time[(log.job == job) & log.is_start][0] + run.workload.run[job],
        )
        expected = float(run.workload.run[job])
        assert done.seconds == pytest.approx(expected, rel=CLOSE, abs=CLOSE), (job, run)
    for job, done in enumerate(progress.done):
        if done.is_clear:
            assert done.seconds <= run.workload.run[job] + CLOSE, (job, run)
    return met


@blocks
def test_progress__of_a_finished_job_is_its_run_time(block: int) -> None:
    met: Counter[str] = Counter()
    for run, log in random_logs(block):
        met += assert_progress(run, log)
    assert met["finished"] > 200
    assert met["at another speed"] > 100
    assert met["unclear"] < 0.05 * met["finished"]


@settings(max_examples=60, deadline=None)
@given(st.integers(min_value=10_000_000, max_value=2**40))
def test_progress__drawn_runs(number: int) -> None:
    run = random_model_run(number)
    log = log_of(run)
    if log is not None:
        assert_progress(run, log)


def test_progress__would_notice_a_second() -> None:
    """The check of progress can fail: it does if one finish is a second late."""
    noticed = tried = 0
    for run, log in random_logs(0):
        rows = np.flatnonzero(log.kind == FINISH)
        if not rows.size or rows[-1] + 1 != len(log):
            continue
        if not Progress(log, run.workload, run.cluster).finished[int(log.job[-1])].is_clear:
            continue
        time = log.time.copy()
        time[-1] += 1.0
        tried += 1
        try:
            assert_progress(run, dataclasses.replace(log, time=time))
        except AssertionError:
            noticed += 1
    assert noticed == tried > 5
