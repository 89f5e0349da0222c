"""The controller on the simulated system: shadow, advise, act, restarts, faults."""

from collections import Counter

import pytest
from tests.deploy.simulated_systems import CLUSTER, controller, generated, jobs, play, system

import berthline as bl
from berthline.deploy.control.decide_in_time import Decider
from berthline.deploy.control.run_controller import check_abilities
from berthline.deploy.journal.journal_file import JournalReader, JournalWriter
from berthline.deploy.journal.replay_journal import replay_journal
from berthline.deploy.systems.contract import HELD, Abilities
from berthline.deploy.systems.simulated.faults import EVERY_FAULT, Faults, FaultyAdapter
from berthline.errors import ConfigError, RefusedError
from berthline.model.schedule import FINISH, PREEMPT, START
from berthline.policies.scheduler import Scheduler


def starts(adapter):
    return [(time, job) for time, kind, job, _ in adapter.cluster.truth if kind == START]


class Blind:
    """An adapter that fails the test if anything is done."""

    def __init__(self, adapter):
        self._adapter = adapter

    def __getattr__(self, name):
        assert name not in ("do", "leave", "beat", "guard"), f"shadow reaches for {name}"
        return getattr(self._adapter, name)


def test_shadow__cannot_touch_anything(tmp_path):
    workload = generated(1, 60)
    adapter = system(workload)
    control = controller(Blind(adapter), tmp_path / "j", "sjf+easy", mode="shadow")
    cycles = play(control, adapter, 400, every=60)
    assert sum(len(one.decision) for one in cycles) > 0
    assert not any(one.actions for one in cycles)
    log = bl.simulate(workload, CLUSTER, "static-priority+easy").log
    alone = [
        (float(t), int(j))
        for t, k, j in zip(log.time, log.kind, log.job, strict=True)
        if k == START
    ]
    assert starts(adapter) == alone[: len(starts(adapter))]
    assert control.totals.native_starts >= len(starts(adapter)) - 1  # one ran between looks
    assert control.totals.agreed_starts <= control.totals.native_starts


def test_act__starts_what_the_scheduler_decides(tmp_path):
    # 32 GPUs: a fills them; b (long) and c (short) wait; sjf starts c first.
    workload = jobs((0, 100, 32), (20, 500, 32), (21, 50, 32))
    adapter = system(workload)
    control = controller(adapter, tmp_path / "j", "sjf+strict", confirm_after=20)
    play(control, adapter, 30)
    assert [job for _, job in starts(adapter)] == [0, 2, 1]
    seen = [
        (one.kind, one.job)
        for cycle in JournalReader(tmp_path / "j").entries()
        for one in cycle.cycle.seen
    ]
    assert ("start", 2) in seen
    assert control.totals.actions["start", "done"] == 3


def test_act__preempts(tmp_path):
    workload = jobs((0, 2000, 32), (30, 50, 8))
    adapter = system(workload)
    control = controller(adapter, tmp_path / "j", "srpt+skip!srpt")
    play(control, adapter, 60)
    kinds = [(kind, job) for _, kind, job, _ in adapter.cluster.truth]
    assert kinds[:4] == [(START, 0), (PREEMPT, 0), (START, 1), (FINISH, 1)]
    assert kinds.count((START, 0)) == 2


def test_advise__gives_hints_and_takes_them_back(tmp_path):
    # Natively b would be first; sjf hints that c goes first.
    workload = jobs((0, 100, 32), (20, 500, 32), (21, 50, 32))
    adapter = system(workload, native="static-priority+strict")
    control = controller(adapter, tmp_path / "j", "sjf+strict", mode="advise")
    play(control, adapter, 30, every=9)
    kinds = {kind for kind, _ in control.totals.actions}
    assert kinds <= {"rank", "release"}
    assert control.let_go("stop", "test") == 0
    assert [job.held_by for job in adapter.look().jobs if job.state == HELD] == []


def test_new_jobs__wait_for_us_and_flow_natively_after_the_end(tmp_path):
    adapter = system(jobs((0, 1e5, 32), (20, 50, 8), (500, 50, 8)))
    control = controller(adapter, tmp_path / "j")
    play(control, adapter, 5)
    assert adapter.cluster.num_held == 1
    assert control.let_go("stop", "test") == 0
    assert adapter.cluster.num_held == 0
    adapter.wait(500)
    assert adapter.cluster.num_held == 0
    assert control.mode == "shadow"


def test_second_controller__is_refused(tmp_path):
    adapter = system(generated())
    controller(adapter, tmp_path / "j")
    with pytest.raises(RefusedError, match="another controller") as error:
        JournalWriter(tmp_path / "j", adapter.name)
    assert error.value.exit_code == 3


def test_restarted_controller__knows_its_jobs(tmp_path):
    workload = generated(2, 60)
    adapter = system(workload)
    first = controller(adapter, tmp_path / "j", "sjf+easy")
    play(first, adapter, 300)
    numbers = {job.record.id: number for number, job in first.last_jobs.items()}
    first.journal.close()
    second = controller(adapter, tmp_path / "j", "sjf+easy")
    play(second, adapter, 1)
    again = {job.record.id: number for number, job in second.last_jobs.items()}
    assert {name: again[name] for name in numbers if name in again} == {
        name: number for name, number in numbers.items() if name in again
    }
    while not adapter.is_over:
        play(second, adapter, 50)
    assert sorted(j for _, k, j, _ in adapter.cluster.truth if k == FINISH) == list(range(60))


def test_lost_starts__are_repeated_then_taken_back(tmp_path):
    adapter = FaultyAdapter(system(jobs((0, 1000, 32), (5, 50, 8))), Faults(lose=1.0))
    control = controller(adapter, tmp_path / "j", confirm_after=20, max_repeats=2)
    cycles = play(control, adapter, 100)
    acted = [one for cycle in cycles for one in cycle.actions if one.job == 1]
    why = [one.why for one in acted if one.action.kind == "start"]
    assert why[:3] == ["decided", "repeat", "repeat"]
    assert control.rules.count["repeats"] >= 1
    adapter.is_on = False
    play(control, adapter, 10)
    assert len(starts(adapter._inner)) == 2


def test_faults_in_a_row__end_acting(tmp_path):
    inner = system(jobs((0, 1e5, 32), (20, 50, 8)))
    adapter = FaultyAdapter(inner, Faults(torn=1.0))
    adapter.is_on = False
    said = []
    control = controller(adapter, tmp_path / "j", faults_to_shadow=3, say=said.append)
    play(control, adapter, 4)
    assert inner.cluster.num_held == 1
    adapter.is_on = True
    adapter.faults = Faults(cut=1.0)
    play(control, adapter, 2)
    assert control.mode == "act"
    adapter.faults = Faults(cut=0.6)
    play(control, adapter, 30)
    assert control.mode == "shadow"
    assert control.rules.count["faults"] == 1
    assert "3 faults in a row" in said[0]
    assert inner.cluster.num_held == 0
    kinds = [remark.kind for remark in JournalReader(tmp_path / "j").remarks()]
    assert "faults" in kinds


def test_torn_and_old_looks__are_journaled_and_nothing_is_done(tmp_path):
    inner = system(generated(1, 40))
    adapter = FaultyAdapter(inner, Faults(torn=1.0))
    control = controller(adapter, tmp_path / "j", faults_to_shadow=1000)
    adapter.is_on = False
    play(control, adapter, 1)
    adapter.is_on = True
    cycles = play(control, adapter, 30)
    assert all(one.fault.startswith("torn look") for one in cycles)
    assert not any(one.actions for one in cycles)
    assert control.totals.faults["torn look"] == 30


def test_oldest_first__when_a_job_waits_too_long(tmp_path):
    # Small jobs come all the time; under smallest-first+skip the large one would starve.
    small = [(10 * n, 90, 4) for n in range(200)]
    workload = jobs(*sorted([*small, (200, 100, 32)]))
    large = int((workload.gpus == 32).argmax())

    def begin(directory, **rules):
        adapter = system(workload)
        control = controller(adapter, directory, "smallest-first+skip", **rules)
        play(control, adapter, 150, every=10)
        return control, [time for time, job in starts(adapter) if job == large]

    _, without = begin(tmp_path / "a")
    control, with_rule = begin(tmp_path / "b", max_wait=300)
    assert without == []
    assert 500 <= with_rule[0] < 900
    assert control.rules.count["max_wait"] > 0
    assert control.totals.fallbacks["max_wait"] == control.rules.count["max_wait"]


def test_failing_and_late_schedulers__are_replaced():
    import time

    snapshot = bl.snapshot_of(
        bl.Workload.from_columns(
            submit=[0, 1],
            run=[float("nan")] * 2,
            gpus=[4, 8],
            estimate=[10, 5],
            rebase=False,
            of_snapshot=True,
        ),
        CLUSTER,
        now=2,
    )

    def decider(function, deadline):
        kept.append(bl.Policy(function, "Pick"))
        policy = Scheduler.parse(str(kept[-1]))
        fallback = Scheduler.parse("fcfs+easy")
        return Decider(policy, fallback, knowledge="estimate", deadline=deadline), policy

    kept = []  # a policy that is not kept has no name

    def fails(observation, mask):
        raise ZeroDivisionError("no idea")

    def sleeps(observation, mask):
        time.sleep(1.0)
        return int(mask.argmax())

    one, _ = decider(fails, 30.0)
    made = one.decide(snapshot)
    assert (made.fallback, made.by) == ("failed", "fcfs+easy@first-fit")
    assert "no idea" in made.words
    assert [row.job for row in made.actions] == [0, 1]
    one, _ = decider(sleeps, 0.05)
    assert one.decide(snapshot).fallback == "late"
    made = one.decide(snapshot)
    assert (made.fallback, made.words) == ("late", "an earlier decision is not over")
    quick, policy = decider(lambda observation, mask: int(mask.argmax()), 30.0)
    assert quick.decide(snapshot).by == str(policy)


def test_detector__lets_the_fallback_decide():
    snapshot = bl.snapshot_of(
        bl.Workload.from_columns(
            submit=[0], run=[float("nan")], gpus=[4], rebase=False, of_snapshot=True
        ),
        CLUSTER,
        now=2,
    )
    rule = Scheduler.parse("fcfs")
    made = Decider(
        rule, rule, knowledge="none", deadline=1.0, detector=lambda _: "too many jobs"
    ).decide(snapshot)
    assert (made.fallback, made.words) == ("strange", "too many jobs")


@pytest.mark.parametrize(
    ("mode", "scheduler", "abilities", "words"),
    [
        ("act", "fcfs", {}, "start a job on named nodes or hold jobs"),
        ("act", "srpt!srpt", {"places": True, "holds": True}, "preempt jobs"),
        ("advise", "fcfs", {"places": True, "holds": True}, "hints"),
    ],
)
def test_what_a_system_cannot_do__is_said_first(mode, scheduler, abilities, words):
    with pytest.raises(ConfigError, match=words) as error:
        check_abilities(Scheduler.parse(scheduler), Abilities(**abilities), mode, "it")
    assert error.value.exit_code == 2
    assert "shadow" in error.value.expected


def chaos(tmp_path, seed, cycles, scheduler, jobs=150):
    """Play with every fault on, restarting the controller now and then; check what must hold."""
    cluster = CLUSTER.with_conditions({"mtbf": 150_000.0, "mttr": 3000.0})
    inner = system(generated(seed, jobs, cluster), cluster, ids=100)
    adapter = FaultyAdapter(inner, EVERY_FAULT, seed)
    rules = {"faults_to_shadow": 50, "confirm_after": 30.0}
    control = controller(adapter, tmp_path / "j", scheduler, **rules)
    made, mistakes = 0, Counter()
    while made < cycles and not inner.is_over:
        cycle = control.cycle()
        made += 1
        mistakes["internal"] += cycle.fault.startswith("internal")
        for one in cycle.actions:
            record = control.last_jobs[one.job].record
            assert record.ours
            assert record.held_by in ("", "us")
        if made % 97 == 0:  # killed: nothing is given back
            control.journal.close()
            control = controller(adapter, tmp_path / "j", scheduler, **rules)
        adapter.wait(15)
    adapter.is_on = False
    assert mistakes["internal"] == 0
    assert control.let_go("stop", "the end") == 0
    assert inner.cluster.num_held == 0
    control.journal.close()
    while not inner.is_over:
        inner.wait(3600)
    # No job lost, doubled or stuck; the cluster checks at each start that nothing is taken twice.
    ended = Counter(job for _, kind, job, _ in inner.cluster.truth if kind == FINISH)
    assert ended == Counter(range(jobs))
    looks = ("silent", "cut", "slow", "stale", "torn", "vanish", "flap")
    assert all(adapter.count[name] for name in looks)
    assert sum(adapter.count[name] for name in ("refuse", "lose", "unsure")) > 0
    replayed = replay_journal(tmp_path / "j")
    assert (replayed.difference, replayed.cycles) == ("", made)
    return made


@pytest.mark.parametrize(("seed", "scheduler"), [(0, "sjf+easy"), (1, "srpt+skip!srpt")])
def test_chaos__nothing_is_lost(tmp_path, seed, scheduler):
    assert chaos(tmp_path, seed, 400, scheduler) == 400


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_chaos__ten_thousand_cycles(tmp_path, seed):
    scheduler = ["sjf+easy", "srpt+skip!srpt", "las+skip!las", "fcfs+conservative"][seed % 4]
    assert chaos(tmp_path, seed, 1000, scheduler, jobs=400) == 1000
