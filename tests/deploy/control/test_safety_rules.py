"""Each rule: what it forbids, what it allows, and that it counts."""

import msgspec
import pytest

from berthline.deploy.control.deploy_settings import RuleSettings
from berthline.deploy.control.safety_rules import RULES, RuleBook
from berthline.deploy.journal.journal_records import Numbered
from berthline.deploy.looks.known_jobs import KnownJobs
from berthline.deploy.looks.seen import AskedStart, jobs_of
from berthline.deploy.systems.contract import (
    CLOSED,
    HELD,
    RUNNING,
    UP,
    WAITING,
    Action,
    ActionKind,
    JobRecord,
    Look,
    NodeRecord,
    QuotaRecord,
)

NODES = (
    NodeRecord(name="a", gpus=8, state=UP, gpus_in_use=4, gpu_type="V100"),
    NodeRecord(name="b", gpus=8, state=UP, gpus_in_use=0, gpu_type="A100"),
    NodeRecord(name="c", gpus=8, state=CLOSED, gpus_in_use=0),
)


def record(name="1", state=WAITING, gpus=4, **more):
    facts = {"submitted": 1.0, "ours": True, "user": "ann", "pool": "p"}
    if state == RUNNING:
        facts |= {"started": 2.0, "nodes": {"a": gpus}}
    return JobRecord(id=name, state=state, gpus=gpus, **{**facts, **more})


def check(job, *actions, book=None, asked=None, quotas=(), time=100.0, others=(), **settings):
    """Return the rules that were hit, None for an action that is allowed."""
    book = book or RuleBook(RuleSettings(**settings))
    look = Look(time=time, jobs=(job, *others), nodes=NODES, quotas=quotas)
    jobs = jobs_of(look, KnownJobs())
    proposed = [
        Numbered(0, Action(kind=ActionKind(kind), job=job.id, submitted=1.0, nodes=nodes))
        for kind, nodes in actions
    ]
    kept, hits = book.allowed(proposed, look, jobs, asked or {})
    assert len(kept) + len(hits) == len(actions)
    assert all(hit.rule in RULES and hit.words for hit in hits)
    assert sum(book.count.values()) >= len(hits)
    return [hit.rule for hit in hits]


START = ("start", {"a": 4})
FINE: list[str] = []


def test_start__allowed():
    assert check(record(), START) == FINE
    assert check(record(gpus=8), ("start", {"a": 2, "b": 6})) == FINE
    assert check(record(state=HELD, held_by="us"), START) == FINE


@pytest.mark.parametrize("kind", ["start", "hold", "release", "preempt", "rank"])
def test_remit__other_jobs_are_never_touched(kind):
    assert check(record(ours=False), (kind, {"a": 4})) == ["remit"]


def test_remit__a_dependency_is_waited_for():
    assert check(record(is_eligible=False), START) == ["remit"]


@pytest.mark.parametrize("kind", ["start", "hold", "release", "rank"])
@pytest.mark.parametrize("by", ["others", "", "us?"])
def test_holds__of_others_stay(kind, by):
    assert check(record(state=HELD, held_by=by), (kind, {"a": 4})) == ["holds"]


def test_gone__jobs_that_changed_since_the_decision():
    assert check(record(state=RUNNING), START) == ["gone"]
    assert check(record(state="finished"), START) == ["gone"]
    assert check(record(), ("preempt", {})) == ["gone"]
    assert check(record(submitted=2.0), START) == ["gone"]  # the id was used again


@pytest.mark.parametrize("nodes", [{"a": 3}, {"a": 4, "b": 4}, {"b": 5, "a": -1}, {"a": 4, "b": 0}])
def test_gang__whole_or_not(nodes):
    assert check(record(), ("start", nodes)) == ["gang"]


def test_node__must_be_up():
    assert check(record(), ("start", {"c": 4})) == ["node"]
    assert check(record(), ("start", {"zz": 4})) == ["node"]


def test_capacity__what_is_free_now():
    assert check(record(gpus=5), ("start", {"a": 5})) == ["capacity"]
    assert check(record(), START, reserved_gpus=1) == ["capacity"]
    # Starts that were asked for and are not seen yet hold their GPUs, and so do those allowed here.
    assert check(record(), START, asked={5: AskedStart(90.0, {"a": 1})}) == ["capacity"]
    other = record("2", submitted=0.5)
    book = RuleBook(RuleSettings())
    look = Look(time=1.0, jobs=(other, record()), nodes=NODES)
    both = [
        Numbered(n, Action(kind=ActionKind.START, job=r.id, submitted=r.submitted, nodes={"a": 4}))
        for n, r in enumerate(look.jobs)
    ]
    kept, hits = book.allowed(both, look, jobs_of(look, KnownJobs()), {})
    assert [one.job for one in kept] == [0]
    assert [hit.rule for hit in hits] == ["capacity"]


def test_capacity__a_job_that_vanished_holds_its_gpus():
    # The node says 4 in use; the start on 3 more that was asked for may or may not be among them.
    assert check(record(gpus=2), ("start", {"a": 2}), asked={9: AskedStart(1.0, {"a": 3})}) == [
        "capacity"
    ]


@pytest.mark.parametrize(
    ("quota", "rules"),
    [
        (QuotaRecord(gpus=5), ["quota"]),
        (QuotaRecord(gpus=6), FINE),
        (QuotaRecord(gpus=5, pool="p"), ["quota"]),
        (QuotaRecord(gpus=5, pool="q"), FINE),
        (QuotaRecord(gpus=5, user="ann"), ["quota"]),
        (QuotaRecord(gpus=5, user="*"), ["quota"]),
        (QuotaRecord(gpus=4, user="bob"), FINE),
        (QuotaRecord(gpus=5, gpu_type="V100"), ["quota"]),
        (QuotaRecord(gpus=3, gpu_type="A100"), FINE),
    ],
)
def test_quota__is_kept(quota, rules):
    held = record("2", RUNNING, gpus=2)
    assert check(record(), START, quotas=(quota,), others=(held,)) == rules


def test_quota__our_own_limit():
    held = record("2", RUNNING, gpus=2)
    assert check(record(), START, others=(held,), max_gpus=5) == ["quota"]
    assert check(record(), START, others=(held,), max_gpus=6) == FINE


def test_rates__of_all_and_of_a_job():
    hold = ("hold", {})
    assert check(record(), *[hold] * 3, actions_per_minute=2) == ["rate"]
    book = RuleBook(RuleSettings(actions_per_job_minute=2))
    assert check(record(), *[hold] * 3, book=book) == ["job-rate"]
    assert check(record(), hold, book=book, time=159.0) == ["job-rate"]
    assert check(record(), hold, book=book, time=160.0) == FINE
    assert check(record(), *[("release", {})] * 9, book=book, time=160.0) == FINE


def test_preemptions__per_job_and_hour():
    book = RuleBook(RuleSettings(preemptions_per_job_hour=1))
    job = record(state=RUNNING)
    assert check(job, ("preempt", {}), book=book) == FINE
    assert check(job, ("preempt", {}), book=book, time=3600.0) == ["preemptions"]
    assert check(job, ("preempt", {}), book=book, time=3700.0) == FINE


def test_gone__a_job_that_the_look_does_not_show():
    book = RuleBook(RuleSettings())
    one = Numbered(0, Action(kind=ActionKind.HOLD, job="1", submitted=1.0))
    kept, hits = book.allowed([one], Look(time=1.0, jobs=(), nodes=NODES), {}, {})
    assert (kept, hits[0].rule, book.count["gone"]) == ([], "gone", 1)


def test_table__names_settings_that_exist():
    names = msgspec.structs.fields(RuleSettings)
    assert {rule.setting for rule in RULES.values()} - {""} <= {field.name for field in names}
