"""Episodes that begin in the middle are the same in both simulators."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.agreement.random_agent_runs import AgentRun, random_agent_run
from tests.agreement.test_agent_agreement import SideBySide

from berthline.env.reference_env import ReferenceEpisode, started_inputs
from berthline.evaluate.metrics.measure import measure
from berthline.evaluate.metrics.measurement_window import SinceSnapshot
from berthline.model.schedule import FINISH, PREEMPT
from berthline.sim.simulate import simulate
from berthline.sim.snapshots.take import take_snapshot

if TYPE_CHECKING:
    from berthline.model.snapshot import Snapshot

RULES = ("fcfs+easy", "sjf+skip@worst-fit", "fcfs+strict", "largest-first+skip@first-fit")


def started(run: AgentRun, rng: np.random.Generator) -> AgentRun | None:
    """Return the run with episodes that begin where a rule was; None = no job comes any more."""
    options = dict(run.options)
    workload, knowledge = options["workload"], options["knowledge"]
    rule = "fcfs+skip" if knowledge == "none" else str(rng.choice(RULES))
    result = simulate(workload, options["cluster"], rule, knowledge=knowledge, seed=run.seed)
    times = np.unique(result.log.time)
    at = float(rng.choice(times))
    if rng.random() < 0.3:
        at += float(rng.random())  # a time at which nothing happens
    if at >= workload.submit[-1]:
        return None
    options["start"] = take_snapshot(result, at)
    return dataclasses.replace(run, options=options)


class StartedSideBySide(SideBySide):
    """Both simulators side by side, in episodes that begin in the middle."""

    def make_reference(self, seed: int) -> ReferenceEpisode:
        """Return the same episode in the reference simulator."""
        plan, workload, start = self.env.plan, self.env.workload(), self.env._envs.start(0)
        assert start is not None
        inputs = started_inputs(plan, workload, seed, start)
        return ReferenceEpisode(plan, workload, seed, self.answer, inputs)

    def compare_scores(self) -> None:
        """Compare the scores with those worked out from the log."""
        scores, start, log = self.info["sched"], self.env.start(), self.env.log()
        assert start is not None
        window = SinceSnapshot(start.now)
        measured = measure(log, self.env.workload(), self.env.plan.cluster, window=window)
        assert scores["length"] == self.steps
        assert scores["completed"] == measured.jobs.completed
        assert scores["unfinished"] == measured.jobs.unfinished
        if measured.jobs.submitted == measured.jobs.rejected:
            return
        for name, expected in (
            ("mean_jct", measured.jct.mean),
            ("p99_jct", measured.jct.p99),
            ("mean_wait", measured.wait.mean),
            ("mean_bounded_slowdown", measured.bounded_slowdown.mean),
            ("utilization", measured.utilization.gpu),
            ("fairness", measured.fairness.jain),
            ("makespan", measured.makespan),
        ):
            np.testing.assert_allclose(scores[name], expected, rtol=1e-6, atol=1e-9, err_msg=name)
        if measured.jobs.unfinished == 0 and measured.makespan > 0:
            used = gpu_seconds_after(self.env, start)
            share = used / (self.env.plan.cluster.total_gpus * measured.makespan)
            np.testing.assert_allclose(scores["utilization"], share, rtol=1e-6, atol=1e-9)


def gpu_seconds_after(env: Any, start: Snapshot) -> float:
    """Return the GPU-seconds used in an episode, stretch by stretch."""
    log, workload = env.log(), env.workload()
    since: dict[int, float] = {}
    used = 0.0
    rows = zip(log.time, log.kind, log.job, log.is_start, strict=True)
    for time, kind, job, starts in rows:
        if starts:
            since[job] = time
        elif kind in (FINISH, PREEMPT):
            gpus = workload.gpus[job] * workload.gpu_milli[job] / 1000
            used += gpus * max(time - max(since[job], start.now), 0.0)
    return used


def check(number: int) -> int:
    """Compare a random episode; return how many questions it asked."""
    run = started(random_agent_run(number), np.random.default_rng(number))
    if run is None:
        return 0
    side = StartedSideBySide(run)
    side.play()
    return side.reference.steps


def test_starts__are_the_same_in_both_simulators() -> None:
    asked = [check(number) for number in range(70)]
    assert sum(asked) > 350
    assert sum(steps > 0 for steps in asked) > 30


@pytest.mark.slow
@pytest.mark.parametrize("block", range(100))
def test_starts__of_many_episodes(block: int) -> None:
    for number in range(1000 + block * 100, 1000 + (block + 1) * 100):
        check(number)
