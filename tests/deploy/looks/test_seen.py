"""What schedulers see of a look, and looks that contradict themselves."""

import math

import hypothesis.strategies as st
import msgspec
import numpy as np
import pytest
from hypothesis import given, settings

from berthline.deploy.looks.check_look import LookError, check_look, in_order
from berthline.deploy.looks.known_jobs import KnownJobs
from berthline.deploy.looks.live_cluster import LiveCluster
from berthline.deploy.looks.look_changes import change, changed, packed, unpacked, whole
from berthline.deploy.looks.seen import AskedStart, jobs_of, see, snapshot_hash
from berthline.deploy.systems.contract import (
    CLOSED,
    DOWN,
    HELD,
    RUNNING,
    UNKNOWN,
    UP,
    WAITING,
    JobRecord,
    Look,
    NodeRecord,
)
from berthline.errors import BerthlineError
from berthline.model.schedule import NODE_DOWN
from berthline.sim.snapshots.decide import decide


def job(name, state=WAITING, gpus=4, **more):
    facts = {"submitted": 10.0, "ours": True, "estimate": 600.0}
    if state == RUNNING:
        facts |= {"started": 20.0, "nodes": {"a": gpus}}
    return JobRecord(id=name, state=state, gpus=gpus, **{**facts, **more})


def node(name, state=UP, **more):
    return NodeRecord(name=name, gpus=8, state=state, gpu_type="V100", **more)


def seen(jobs, nodes, asked=None):
    look = in_order(Look(time=100.0, jobs=tuple(jobs), nodes=tuple(nodes)))
    check_look(look)
    known = KnownJobs()
    found = jobs_of(look, known)
    numbers = {one.record.id: number for number, one in found.items()}
    asked = {numbers[name]: one for name, one in (asked or {}).items()}
    return see(look, found, LiveCluster("test", []), origin=0.0, asked=asked), numbers


def starts(view, numbers):
    """Return {job: nodes} of the decision of fcfs+skip."""
    names = {number: name for name, number in numbers.items()}
    return {
        names[view.rows[row.job]]: {view.node_names[at]: g for at, g in row.gpus.items()}
        for row in decide(view.snapshot, "fcfs+skip").starts
    }


def test_only_jobs_that_may_start__wait():
    view, numbers = seen(
        [
            job("free"),
            job("held", HELD, held_by="us"),
            job("theirs", HELD, held_by="others"),
            job("depends", is_eligible=False),
            job("other queue", ours=False),
            job("unreadable", gpus=None),
            job("cpu", gpus=0),
            job("part", gpus=1, gpu_milli=500),
        ],
        [node("a"), node("b")],
    )
    assert starts(view, numbers).keys() == {"free", "held"}


def test_load__holds_what_no_job_of_ours_explains():
    view, numbers = seen(
        [
            job("ours", RUNNING, gpus=3),
            job("theirs", RUNNING, gpus=2, ours=False),
            job("strange", RUNNING, gpus=None, nodes={"b": 1}),
            job("part", RUNNING, gpus=1, gpu_milli=500, nodes={"b": 1}),
            job("four", gpus=4),
            job("six", gpus=6),
        ],
        [node("a", gpus_in_use=6), node("b")],
    )
    # a: 3 + 2 + 1 that no job explains are in use; b: 1 and a part.
    assert starts(view, numbers) == {"four": {"b": 4}}
    assert (
        int(view.snapshot.workload.gpus[view.snapshot.log.job[view.snapshot.log.is_start]].sum())
        == 8
    )


@pytest.mark.parametrize("state", [CLOSED, DOWN, UNKNOWN])
def test_nodes_that_are_not_up__take_no_starts(state):
    view, numbers = seen([job("one", RUNNING), job("two")], [node("a", state), node("b", state)])
    assert starts(view, numbers) == {}
    rows = view.snapshot.log.kind == NODE_DOWN
    assert view.snapshot.log.detail[rows].tolist() == [1]  # a has a job: it is full, not down


def test_asked_starts__hold_their_gpus_once():
    asked = {"new": AskedStart(90.0, {"a": 8})}
    view, numbers = seen([job("new", gpus=8), job("next", gpus=8)], [node("a"), node("b")], asked)
    assert starts(view, numbers) == {"next": {"b": 8}}
    # The node shows it already, the job does not: its GPUs are not counted twice.
    nodes = [node("a", gpus_in_use=8), node("b")]
    view, numbers = seen([job("new", gpus=8), job("next", gpus=8)], nodes, asked)
    assert starts(view, numbers) == {"next": {"b": 8}}


def test_nodes__keep_their_ids():
    nodes = LiveCluster("test", [])
    look = Look(time=1.0, jobs=(), nodes=(node("b"), node("c")))
    first = nodes.follow(look)
    assert nodes.follow(msgspec.structs.replace(look, time=2.0)) is first
    nodes.follow(Look(time=3.0, jobs=(), nodes=(node("a"), node("c"))))
    assert nodes.ids == {"b": 0, "c": 1, "a": 2}
    gone = see(Look(time=4.0, jobs=(), nodes=(node("c"),)), {}, nodes, origin=0.0)
    assert sorted(gone.snapshot.log.detail.tolist()) == [0, 2]


def test_hash__tells_states_apart():
    hashes = {
        snapshot_hash(seen(jobs, nodes)[0].snapshot)
        for jobs, nodes in (
            ([job("one")], [node("a")]),
            ([job("one", gpus=5)], [node("a")]),
            ([job("one", RUNNING)], [node("a")]),
            ([job("one", user="x")], [node("a")]),
            ([job("one")], [node("a"), node("b")]),
            ([job("one")], [node("a", DOWN)]),
        )
    }
    assert len(hashes) == 6
    again = [snapshot_hash(seen([job("one")], [node("a")])[0].snapshot) for _ in range(2)]
    assert again[0] == again[1]
    assert again[0] in hashes


@pytest.mark.parametrize(
    ("jobs", "nodes", "words"),
    [
        ([job("one", RUNNING, nodes={"z": 4})], [node("a")], "an unknown node"),
        ([job("one", RUNNING), job("two", RUNNING, gpus=5)], [node("a")], "jobs hold 9 GPUs"),
        ([], [node("a", gpus_in_use=9)], "9 GPUs of node a"),
        ([job("one"), job("one")], [node("a")], "is there twice"),
        ([job("one", submitted=500.0)], [node("a")], "was submitted at 500"),
        ([job("one", estimate=-1.0)], [node("a")], "states -1"),
        ([job("one", RUNNING, nodes={})], [node("a")], "runs on no node"),
        ([job("one", RUNNING, started=math.nan)], [node("a")], "started at nan"),
        ([], [], "no nodes"),
        ([], [node("a", "sleeping")], "'sleeping'"),
    ],
)
def test_contradictions__are_found(jobs, nodes, words):
    look = Look(time=100.0, jobs=tuple(jobs), nodes=tuple(nodes))
    with pytest.raises(LookError, match=words):
        check_look(look)


def test_time__does_not_run_backwards():
    look = Look(time=100.0, jobs=(), nodes=(node("a"),))
    check_look(look, last_time=100.5, clock=99.5)
    with pytest.raises(LookError, match="backwards"):
        check_look(look, last_time=200.0)
    with pytest.raises(LookError, match="the clock says"):
        check_look(look, clock=90.0)


NUMBERS = st.one_of(st.floats(), st.integers(-5, 2**40).map(float), st.just(10.0))
TEXTS = st.one_of(st.text(max_size=3), st.sampled_from(["a", "b", "us", "running", "up", "\0"]))
JOBS = st.builds(
    JobRecord,
    id=TEXTS,
    submitted=NUMBERS,
    state=st.sampled_from(["waiting", "held", "running", "finished", "odd"]),
    ours=st.booleans(),
    gpus=st.one_of(st.none(), st.integers(-2, 2**33)),
    gpu_milli=st.sampled_from([0, 500, 1000, 2000]),
    gpu_types=TEXTS,
    pool=TEXTS,
    cpus=st.integers(-1, 2**40),
    memory_mib=st.integers(-1, 2**40),
    estimate=st.one_of(st.none(), NUMBERS),
    priority=NUMBERS,
    deadline=st.one_of(st.none(), NUMBERS),
    user=TEXTS,
    held_by=TEXTS,
    started=st.one_of(st.none(), NUMBERS),
    nodes=st.dictionaries(TEXTS, st.integers(-1, 10), max_size=2),
)
NODES = st.builds(
    NodeRecord,
    name=TEXTS,
    gpus=st.integers(-1, 9),
    state=st.sampled_from(["up", "closed", "down", "unknown", "odd"]),
    gpus_in_use=st.one_of(st.none(), st.integers(-1, 9)),
    gpu_type=TEXTS,
    cpus=st.integers(-1, 100),
    memory_mib=st.integers(-1, 2**40),
    pool=TEXTS,
)
LOOKS = st.builds(
    Look,
    time=NUMBERS,
    jobs=st.lists(JOBS, max_size=3).map(tuple),
    nodes=st.lists(NODES, max_size=3).map(tuple),
)


@settings(max_examples=150)
@given(LOOKS)
def test_malformed_looks__give_one_of_our_errors_or_a_decision(look):
    try:
        look = in_order(look)
        check_look(look)
        found = jobs_of(look, KnownJobs())
        view = see(look, found, LiveCluster("test", []), origin=0.0)
        if view.snapshot.num_jobs:
            decide(view.snapshot, "fcfs+skip", knowledge="none")
    except BerthlineError as error:
        if not error.what:
            raise


@settings(max_examples=60)
@given(LOOKS, LOOKS)
def test_differences__give_the_look_back(before, after):
    def known(look):
        # NaN differs from itself; a journal keeps it, but it cannot be compared.
        return msgspec.msgpack.encode(look)

    before, after = in_order(before), in_order(after)
    data = packed(change(before, after))
    back = changed(before, unpacked(data))
    if unpacked(data).whole:
        assert known(back) == known(after)
    else:
        assert known(in_order(back)) == known(after)
    assert known(changed(None, unpacked(packed(whole(after))))) == known(after)


def test_differences__of_jobs_without_a_time():
    lost = msgspec.structs.replace(job("one", RUNNING), submitted=float("nan"))
    before = in_order(Look(time=1.0, jobs=(lost,), nodes=(node("a"),)))
    after = msgspec.structs.replace(before, time=2.0, jobs=())
    assert changed(before, unpacked(packed(change(before, after)))) == after


def test_numpy_free_fields__survive_packing():
    look = in_order(Look(time=1.0, jobs=(job("one", RUNNING),), nodes=(node("a"),)))
    same = unpacked(packed(change(look, msgspec.structs.replace(look, time=2.0))))
    assert (same.jobs, same.nodes, same.gone) == ((), (), ())
    assert len(packed(same)) < 60
    assert np.isfinite(same.time)
