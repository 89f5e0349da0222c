"""A job keeps its number over looks, restarts and requeues; an id that is used again is another."""

import msgspec
import pytest

from berthline.deploy.looks.known_jobs import FORGET_SECONDS, KnownJobs
from berthline.deploy.systems.contract import WAITING, JobRecord


def record(job="7", submitted=100.0, **more):
    facts = {"state": WAITING, "ours": True, "gpus": 4, "user": "ann", "name": "train"}
    return JobRecord(id=job, submitted=submitted, **{**facts, **more})


@pytest.fixture
def known():
    jobs = KnownJobs()
    assert jobs.find(record(), 100.0).number == 0
    return jobs


def test_same_id_and_submission__is_the_same_job(known):
    assert known.find(record(state="running"), 115.0).number == 0


def test_requeued_with_a_new_submission__is_the_same_job(known):
    job = known.find(record(submitted=500.0, restarts=1), 510.0)
    assert (job.number, job.submitted, job.now_submitted) == (0, 100.0, 500.0)
    assert known.find(record(submitted=900.0, restarts=2), 910.0).number == 0


@pytest.mark.parametrize(
    "other",
    [
        {"submitted": 500.0},
        {"submitted": 500.0, "restarts": 1, "user": "bob"},
        {"submitted": 500.0, "restarts": 1, "gpus": 8},
        {"submitted": 50.0, "restarts": 1},
    ],
)
def test_id_that_is_used_again__is_another_job(known, other):
    assert known.find(record(**other), 510.0).number == 1
    # An old answer still means the old job.
    assert known.find(record(), 511.0).number == 0


def test_restarted_controller__has_the_same_numbers(known):
    known.find(record("8"), 100.0)
    known.find(record(submitted=500.0, restarts=1), 510.0)
    kept = [
        msgspec.msgpack.decode(msgspec.msgpack.encode(job), type=type(job)) for job in known.all()
    ]
    again = KnownJobs(kept, known.next_number)
    assert again.find(record(submitted=500.0, restarts=1), 600.0).number == 0
    assert again.find(record("8"), 600.0).number == 1
    assert again.find(record("9"), 600.0).number == 2


def test_forgotten_jobs__never_give_their_number_away(known):
    assert known.forget(100.0 + FORGET_SECONDS) == []
    assert known.forget(101.0 + FORGET_SECONDS) == [0]
    assert known.find(record("8"), 200.0).number == 1
