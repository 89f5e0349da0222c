"""Reasons for waiting, checked against the state they are about and against runs without them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.agreement.random_model_runs import random_model_run
from tests.agreement.random_runs import Run, random_run

from berthline.errors import BerthlineError, ConfigError
from berthline.evaluate.explain import explain
from berthline.evaluate.explain_order import Order, terms
from berthline.evaluate.explain_reasons import before_decision, find_reason
from berthline.evaluate.explain_shortage import allowed_nodes
from berthline.evaluate.explain_unblock import unblock, variants_of
from berthline.evaluate.explain_waits import waits_of
from berthline.evaluate.job_table import job_table
from berthline.evaluate.reason_codes import MEANINGS, Finding, Reason
from berthline.model.cluster import Cluster, NodeGroup
from berthline.model.limits import Outage, Quota
from berthline.model.workload import Workload
from berthline.policies.formulas import Formula
from berthline.sim.inputs import prepare
from berthline.sim.reference_decide import choose_in_state
from berthline.sim.reference_place import place
from berthline.sim.replay import Replay
from berthline.sim.simulate import Result, simulate

if TYPE_CHECKING:
    from collections.abc import Callable

RESOURCES = {Reason.WAITING_FOR_GPUS, Reason.POOL_FULL, Reason.GPU_TYPE_FULL}


def simulated(run: Run) -> Result | None:
    try:
        return simulate(
            run.workload,
            run.cluster,
            run.scheduler,
            knowledge=run.knowledge,
            seed=run.seed,
            horizon=run.horizon,
        )
    except BerthlineError:
        return None  # refused, or preempted without end


def replay_of(result: Result, since: float) -> Replay:
    inputs = prepare(
        result.workload,
        result.cluster,
        result.scheduler,
        knowledge=result.knowledge,
        seed=result.seed,
        horizon=None if np.isinf(result.log.horizon) else result.log.horizon,
    )
    return Replay(inputs, result.log, since=since)


def fits_by_count(sim: Replay, job: int) -> bool:
    """Whether so many GPUs are free on nodes that are up, counted without any placement."""
    milli = sum(sim.free.milli(node) for node in allowed_nodes(sim, job) if sim.up[node])
    return milli >= sim.milli(job)


def chosen(sim: Replay, *jobs: int) -> int | None:
    """Return who starts now if these jobs, in this order, are all that may."""
    found = choose_in_state(sim, [*jobs])
    return None if found is None else found[0]


def check_blocker(sim: Replay, job: int, finding: Finding) -> None:
    """With the named job before it the job does not start; with those before that one it does."""
    assert finding.blocker is not None
    ahead = Order(sim).candidates(until=job)
    before = ahead[: ahead.index(finding.blocker)]
    assert chosen(sim, *before, finding.blocker, job) != job
    if finding.reason != Reason.EARLIER_RESERVATIONS:
        assert not before  # it is the head
    if finding.fits:
        assert chosen(sim, *before, job) == job


def check_finding(sim: Replay, job: int, finding: Finding) -> None:
    """Assert what a reason claims, by other means than those that found it."""
    reason = finding.reason
    starts_alone = job in sim.queue and chosen(sim, job) == job
    if reason in RESOURCES:
        assert not fits_by_count(sim, job)
        need = sim.milli(job) / 1000
        assert finding.short["gpus"] == pytest.approx(need - finding.free_gpus, abs=1e-9)
        assert not starts_alone
    elif reason == Reason.FRAGMENTED:
        assert fits_by_count(sim, job)
        assert not starts_alone
    elif reason == Reason.NODE_DOWN:
        assert not starts_alone
        up, sim.up = sim.up, [True] * len(sim.up)
        assert chosen(sim, job) == job or place(sim, job, sim.free)
        sim.up = up
    elif reason in (Reason.CPUS_SHORT, Reason.MEMORY_SHORT) and finding.short:
        assert not starts_alone
        needs = sim.cpus[job], sim.memory_mib[job]
        sim.cpus[job] = sim.memory_mib[job] = 0
        assert place(sim, job, sim.free)
        sim.cpus[job], sim.memory_mib[job] = needs
    elif reason == Reason.QUOTA:
        assert not starts_alone
        used, limits = sim.quota_used, sim.inputs.quotas.limit
        assert any(used[c] + sim.milli(job) > limits[c] for c in sim.inputs.quotas.of_job(job))
    elif reason == Reason.GATE_CLOSED:
        assert sim.scheduler.gate is not None
        assert not sim.value(sim.scheduler.gate, job) >= 0
    elif reason == Reason.DECISION_TICK:
        assert not sim.decides_now
        assert place(sim, job, sim.free)
    elif reason in (Reason.REQUEUE_DELAY, Reason.RETRY_DELAY):
        assert job in sim.away
        assert finding.until is not None
        assert finding.until > sim.now
    elif finding.blocker is not None:
        check_blocker(sim, job, finding)


def check_run(run: Run, seen: Counter[Reason]) -> None:
    """Find and check the reason of every waiting job at every instant of a run."""
    result = simulated(run)
    if result is None or len(run.workload) > 60:
        return
    sim = replay_of(result, since=0.0)
    order = Order(sim)
    in_rounds = result.scheduler.discipline == "rounds"
    for time in np.unique(result.log.time).tolist():
        sim.advance_until_decision(time)
        before = {job: before_decision(sim, job, order) for job in (*sim.queue, *sim.running)}
        sim.follow_decision()
        for job in [*sim.queue, *sim.away][:6]:
            finding = before.get(job) or find_reason(sim, job, order)
            assert finding is not None, (time, job)
            seen[finding.reason] += 1
            if not in_rounds:
                check_finding(sim, job, finding)


@pytest.mark.parametrize(
    ("make", "first"),
    [(make, first) for make in (random_run, random_model_run) for first in range(0, 160, 40)],
)
def test_every_reason_is_true(make: Callable[[int], Run], first: int) -> None:
    seen: Counter[Reason] = Counter()
    for number in range(first, first + 40):
        check_run(make(number), seen)
    assert len(seen) > 5


@pytest.mark.parametrize("first", [0, 50])
def test_timelines_cover_the_wait(first: int) -> None:
    seen: Counter[Reason] = Counter()
    for number in range(first, first + 50):
        result = simulated(random_model_run(number))
        if result is None:
            continue
        table = job_table(result.log, result.workload)
        for job in range(0, len(result.workload), 5):
            found = explain(result, job, max_points=0)
            spans = [(interval.begin, interval.end) for interval in found.timeline]
            waits = [(wait.begin, wait.end) for wait in found.waits]
            assert joined(spans) == joined(waits)
            assert sum(found.reasons.values()) == pytest.approx(found.wait)
            if found.waits and found.waits[0].after == "submitted" and found.waits[0].started:
                assert found.waits[0].end == table.start[job]
            seen.update(interval.reason for interval in found.timeline)
    assert len(seen) >= 10


def joined(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Join spans that follow one another."""
    found: list[tuple[float, float]] = []
    for begin, end in spans:
        if found and found[-1][1] == begin:
            found[-1] = (found[-1][0], end)
        else:
            found.append((begin, end))
    return found


def run_of(
    gpus: list[int],
    scheduler: str,
    *,
    cluster: Cluster | str = "uniform:2x4",
    submit: list[float] | None = None,
    run: list[float] | None = None,
    **columns: object,
) -> Result:
    """Return a run of a few jobs, one a second, each 100 s unless said."""
    jobs = len(gpus)
    run = run or [100.0] * jobs
    workload = Workload.from_columns(
        submit=submit or list(range(jobs)),
        run=run,
        gpus=gpus,
        **{"estimate": run, **columns},  # type: ignore[arg-type]  # columns of a workload
    )
    return simulate(workload, cluster, scheduler)


POOLS = [NodeGroup(count=1, gpus=4, pool="red"), NodeGroup(count=1, gpus=4, pool="blue")]
TYPES = [NodeGroup(count=1, gpus=4, gpu_type="P100"), NodeGroup(count=1, gpus=4, gpu_type="H100")]
CPUS = [NodeGroup(count=1, gpus=4, cpus=8, memory_mib=64)]


class TestReasonsByHand:
    """One small run for each reason, worked out on paper."""

    def only(self, result: Result, job: int) -> tuple[Reason, float]:
        found = explain(result, job)
        [interval] = found.timeline
        return interval.reason, interval.seconds

    def test_waiting_for_gpus(self) -> None:
        result = run_of([8, 2], "fcfs")
        assert self.only(result, 1) == (Reason.WAITING_FOR_GPUS, 99)
        [interval] = explain(result, 1).timeline
        assert interval.short == {"gpus": 2}
        assert (interval.free_gpus, interval.position, interval.queue) == (0, 1, 1)

    def test_fragmented(self) -> None:
        # Two on each node are free: four in all, but not on one node.
        result = run_of([2, 2, 4], "fcfs@worst-fit")
        assert self.only(result, 2) == (Reason.FRAGMENTED, 98)
        [interval] = explain(result, 2).timeline
        assert (interval.free_gpus, interval.short) == (4, {"gpus": 2})

    def test_behind_in_order(self) -> None:
        result = run_of([5, 8, 1], "fcfs")
        found = explain(result, 2)
        first, second = found.timeline
        assert (first.reason, first.blocker, first.fits) == (Reason.BEHIND_IN_ORDER, 1, True)
        assert (first.begin, first.end) == (2, 100)
        assert (second.reason, second.begin, second.end) == (Reason.WAITING_FOR_GPUS, 100, 200)

    def test_head_reservation(self) -> None:
        # Job 1 is to start at 100 with all GPUs; job 2 would end at 102.
        result = run_of([5, 8, 1], "fcfs+easy")
        first, _ = explain(result, 2).timeline
        assert (first.reason, first.blocker) == (Reason.HEAD_RESERVATION, 1)
        assert (first.until, first.late, first.fits) == (100, 2, True)

    def test_earlier_reservations(self) -> None:
        result = run_of([5, 8, 1], "fcfs+conservative")
        first, _ = explain(result, 2).timeline
        assert (first.reason, first.blocker) == (Reason.EARLIER_RESERVATIONS, 1)

    def test_gate_closed(self) -> None:
        result = run_of([1, 1], "fcfs?[free_gpus - 8]")
        assert self.only(result, 1) == (Reason.GATE_CLOSED, 99)
        found = explain(result, 1)
        assert found.timeline[0].value == -1
        assert found.moment is not None
        assert found.moment.gate is not None
        assert found.moment.gate.words == {"free_gpus": 7}

    def test_quota(self) -> None:
        cluster = dataclasses.replace(Cluster.parse("uniform:2x4"), quotas=(Quota(gpus=3),))
        result = run_of([2, 2], "fcfs", cluster=cluster)
        assert self.only(result, 1) == (Reason.QUOTA, 99)
        [interval] = explain(result, 1).timeline
        assert interval.short == {"gpus": 1}
        assert "2 of 3 GPUs" in interval.detail

    def test_pool_full(self) -> None:
        cluster = Cluster.from_groups(POOLS)
        result = run_of([4, 4], "fcfs", cluster=cluster, pool=[0, 0], pool_names=("red", "blue"))
        assert self.only(result, 1) == (Reason.POOL_FULL, 99)

    def test_gpu_type_full(self) -> None:
        cluster = Cluster.from_groups(TYPES)
        result = run_of([4, 4], "fcfs", cluster=cluster, gpu_types=[0, 0], gpu_type_sets=("H100",))
        assert self.only(result, 1) == (Reason.GPU_TYPE_FULL, 99)

    @pytest.mark.parametrize(
        ("reason", "column", "value"),
        [(Reason.CPUS_SHORT, "cpus", 6), (Reason.MEMORY_SHORT, "memory_mib", 40)],
    )
    def test_cpus_and_memory(self, reason: Reason, column: str, value: int) -> None:
        cluster = Cluster.from_groups(CPUS)
        result = run_of([1, 1], "fcfs", cluster=cluster, **{column: [value, value]})
        assert self.only(result, 1) == (reason, 99)
        free = {"cpus": 8, "memory_mib": 64}[column] - value
        assert explain(result, 1).timeline[0].short == {column: value - free}

    def test_node_down(self) -> None:
        outage = Outage(down=0.5, up=50, nodes=(1,))
        cluster = dataclasses.replace(Cluster.parse("uniform:2x4"), outages=(outage,))
        result = run_of([4, 4], "fcfs", cluster=cluster)
        assert self.only(result, 1) == (Reason.NODE_DOWN, 49)

    def test_decision_tick(self) -> None:
        cluster = Cluster.parse("uniform:2x4").with_conditions({"tick": 30})
        result = run_of([1], "fcfs", cluster=cluster, submit=[7.0])
        # A trace begins with its first job, at 0; so another one comes first.
        result = run_of([1, 1], "fcfs", cluster=cluster, submit=[0.0, 7.0])
        assert self.only(result, 1) == (Reason.DECISION_TICK, 23)
        assert explain(result, 1).timeline[0].until == 30

    def test_rounds(self) -> None:
        cluster = Cluster.parse("uniform:2x4").with_conditions({"restart": 0})
        result = run_of([8, 8], "fcfs+rounds:T=60", cluster=cluster, submit=[0.0, 7.0])
        first, second = explain(result, 1).timeline
        assert (first.reason, first.seconds) == (Reason.DECISION_TICK, 53)
        assert (second.reason, second.blocker, second.end) == (Reason.BEHIND_IN_ORDER, 0, 120)

    def test_preempted_and_requeued(self) -> None:
        cluster = Cluster.parse("uniform:1x1").with_conditions({"requeue_delay": 5, "restart": 0})
        result = run_of(
            [1, 1],
            "static-priority+skip!priority",
            cluster=cluster,
            submit=[0.0, 50.0],
            run=[100.0, 10.0],
            priority=[0, 1],
        )
        found = explain(result, 0)
        [wait] = found.waits
        assert (wait.begin, wait.end, wait.by) == (50, 60, 1)
        assert wait.after == "preempted: for another job"
        first, second = found.timeline
        assert (first.reason, first.end) == (Reason.REQUEUE_DELAY, 55)
        assert (second.reason, second.end) == (Reason.WAITING_FOR_GPUS, 60)

    def test_rejected(self) -> None:
        result = run_of([1, 9], "fcfs")
        found = explain(result, 1)
        assert found.reject_reason == "more GPUs than the nodes it may use have"
        assert (found.timeline, found.wait) == ([], 0)
        best = unblock(result, found)[0]
        assert (best.change, best.start) == ("4 GPUs in place of 9, as long", 1)

    def test_started_at_once(self) -> None:
        found = explain(run_of([1, 1], "fcfs"), 1)
        assert (found.wait, found.timeline, found.moment, found.reasons) == (0, [], None, {})


class TestAhead:
    def test_order_and_terms(self) -> None:
        result = run_of([8, 3, 2, 1], "[2 * gpus - priority]+skip", priority=[0, 0, 4, 0])
        found = explain(result, 1)
        late = explain(result, 1, at=50.5)
        assert found.moment is not None
        assert late.moment is not None
        assert (found.moment.time, found.moment.position, found.moment.queue) == (1, 1, 1)
        assert (late.moment.time, late.moment.position, late.moment.queue) == (3, 3, 3)
        assert [ahead.job for ahead in late.moment.ahead] == [2, 3]
        assert [ahead.value for ahead in late.moment.ahead] == [0, 2]
        assert late.moment.ahead[0].terms == {"2 * gpus": 4, "-priority": -4}
        assert late.moment.own.words == {"gpus": 3, "priority": 0}

    def test_overtakers(self) -> None:
        # Jobs 2 (ahead by its size) and 3 start with job 0's end; job 1 needs all GPUs.
        result = run_of([8, 8, 2], "smallest-first")
        found = explain(result, 1)
        [other] = found.overtakers
        assert (other.job, other.time, other.came_later, other.is_ahead) == (2, 100, True, True)
        assert (other.value.value, other.own.value) == (2, 8)
        assert other.gpu_seconds == 200
        assert found.started_meanwhile == 1

    def test_past_the_head(self) -> None:
        result = run_of([5, 8, 1], "fcfs+easy", run=[100.0, 100.0, 10.0])
        [other] = explain(result, 1).overtakers
        assert (other.job, other.is_ahead) == (2, False)

    def test_terms_add_up(self) -> None:
        rng = np.random.default_rng(1)
        for text in (
            "-(wait + 2 * gpus) - priority",
            "gpus",
            "-(1 - (wait - gpus)) * 2",
            "1 - -wait",
        ):
            formula = Formula.parse(text)
            values = {word: float(rng.random()) for word in formula.words}
            parts = [
                Formula(t, node, formula.words).evaluate(values.get)
                for t, node in terms(formula.root)
            ]
            assert sum(parts) == pytest.approx(formula.evaluate(values.get))
            for t, node in terms(formula.root):
                assert Formula.parse(t).root == node


class TestUnblock:
    def test_each_change_is_a_run(self) -> None:
        result = run_of([5, 8, 1, 1], "fcfs", priority=[0, 0, 0, 1])
        found = explain(result, 2)
        changes = {change.change: change for change in unblock(result, found)}
        assert changes["discipline skip"].start == 2
        assert changes["discipline skip"].sooner == found.wait
        assert changes["discipline easy"].start == simulate_start(result, 2, "fcfs+easy")
        assert changes["without job 1"].start == 2
        assert changes["one node more, with 4 GPUs"].start == simulate_start(
            result, 2, "fcfs", cluster="uniform:3x4"
        )

    def test_best_first_and_honest_about_what_is_not_possible(self) -> None:
        result = run_of([5, 8, 1], "fcfs", estimate=None)
        changes = unblock(result, explain(result, 2))
        sooner = [change.sooner for change in changes if change.sooner is not None]
        assert sooner == sorted(sooner, reverse=True)
        [easy] = [change for change in changes if change.change == "discipline easy"]
        assert "no job has an estimate" in easy.error
        assert easy.start is None

    def test_others_are_as_they_were(self) -> None:
        variants = 0
        for number in range(0, 40, 4):
            result = simulated(random_model_run(number))
            if result is None:
                continue
            for variant in variants_of(result, explain(result, len(result.workload) // 2)):
                assert len(variant.workload) == len(result.workload)
                assert np.array_equal(variant.workload.submit, result.workload.submit)
                variants += 1
        assert variants > 10


def simulate_start(
    result: Result, job: int, scheduler: str, cluster: str | Cluster | None = None
) -> float:
    again = simulate(result.workload, cluster or result.cluster, scheduler)
    return float(job_table(again.log, again.workload).start[job])


class TestForecast:
    def test_certain_if_everything_is_known(self) -> None:
        result = run_of([8, 8, 8], "fcfs")
        found = explain(result, 2, replications=5)
        assert found.forecast is not None
        # All ratios of run time to estimate are thought possible: nobody has finished yet.
        assert found.forecast.run_times == "even"
        assert 2 < found.forecast.low <= found.forecast.high <= 200
        exact = simulate(result.workload, result.cluster, "fcfs", knowledge="exact")
        known = explain(exact, 2, replications=5).forecast
        assert known is not None
        assert (known.low, known.median, known.high, known.run_times) == (200, 200, 200, "exact")

    def test_the_past_is_kept(self) -> None:
        kept = 0
        for number in range(0, 120, 3):
            result = simulated(random_model_run(number))
            if result is None:
                continue
            waiting = [j for j in range(len(result.workload)) if waits_of(result, j)]
            for job in waiting[::9]:
                found = explain(result, job, replications=3)
                assert found.forecast is not None
                assert found.forecast.time < found.forecast.low
                kept += found.forecast.replications == 3
        assert kept > 20

    def test_no_knowledge_of_what_comes(self) -> None:
        """Whatever happens later, the forecast is the same."""
        rng = np.random.default_rng(2)
        jobs = 80
        run = rng.integers(20, 200, jobs).astype(float)
        columns = {
            "submit": np.sort(rng.integers(0, 2000, jobs)).astype(float),
            "gpus": rng.integers(1, 5, jobs),
            "estimate": run * 2,
        }
        result = simulate(Workload.from_columns(run=run, **columns), "uniform:2x4", "sjf+easy")
        waiting = [j for j in range(40, jobs) if waits_of(result, j)]
        job = waiting[0]
        before = explain(result, job, replications=10).forecast
        assert before is not None
        table = job_table(result.log, result.workload)
        running = np.flatnonzero((table.start <= before.time) & (table.finish > before.time))
        later = run.copy()
        later[np.flatnonzero(result.workload.submit > before.time)] *= 3
        later[running] *= 1.5
        other = simulate(Workload.from_columns(run=later, **columns), "uniform:2x4", "sjf+easy")
        after = explain(other, job, replications=10).forecast
        assert after == before


def test_many_points_are_thinned() -> None:
    gpus = [8, 8] + [9] * 300
    result = run_of(gpus, "fcfs", run=[400.0] * len(gpus))
    found = explain(result, 1, max_points=10)
    assert (found.points, found.looked_at) == (301, 10)
    assert found.wait == 399
    assert explain(result, 1, max_points=0).looked_at == 301


def test_mistakes() -> None:
    result = run_of([8, 8], "fcfs")
    with pytest.raises(ConfigError, match="there is no job 2"):
        explain(result, 2)
    with pytest.raises(ConfigError, match="job 1 did not wait at 100 s"):
        explain(result, 1, at=100)


def test_every_reason_has_a_meaning() -> None:
    assert set(MEANINGS) == set(Reason)
    assert all(reason.value == reason.name for reason in Reason)
