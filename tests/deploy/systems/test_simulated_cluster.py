"""The simulated system: natively it is the simulator; actions from outside cannot break it."""

from collections import Counter

import numpy as np
import pytest
from tests.deploy.simulated_systems import CLUSTER, generated, jobs

import berthline as bl
from berthline.deploy.looks.check_look import check_look, in_order
from berthline.deploy.systems.contract import (
    DONE,
    HELD,
    REFUSED,
    RUNNING,
    UP,
    WAITING,
    Action,
    ActionKind,
)
from berthline.deploy.systems.simulated.simulated_cluster import SimulatedCluster
from berthline.errors import ConfigError
from berthline.model.schedule import FINISH, PREEMPT, REJECT, RESUME, START

CONDITIONS = {"mtbf": 40_000.0, "mttr": 3000.0, "requeue_delay": 100.0}


@pytest.mark.parametrize("conditions", [{}, CONDITIONS])
@pytest.mark.parametrize("native", ["static-priority+easy", "sjf+skip@best-fit"])
def test_without_actions__it_is_the_simulator(conditions, native):
    cluster, workload = CLUSTER.with_conditions(conditions), generated(3, 150)
    log = bl.simulate(workload, cluster, native).log
    system = SimulatedCluster(workload, cluster, native)
    random = np.random.default_rng(0)
    while not system.is_over:
        system.advance(system.now + float(random.exponential(700.0)))
    expected = [
        (
            float(log.time[row]),
            START if log.kind[row] == RESUME else int(log.kind[row]),
            int(log.job[row]),
            log.allocation(row) if log.is_start[row] else {},
        )
        for row in np.flatnonzero(np.isin(log.kind, (START, RESUME, FINISH, REJECT, PREEMPT)))
    ]
    assert system.truth == expected


def place(look, job, free):
    """Return nodes for a job and take them from `free`; empty = no room."""
    nodes, need = {}, job.gpus
    for node in look.nodes:
        gpus = min(need, free[node.name]) if node.state == UP else 0
        if gpus > 0:
            nodes[node.name] = gpus
            need -= gpus
    if need:
        return {}
    for name, gpus in nodes.items():
        free[name] -= gpus
    return nodes


def random_actions(look, random):
    free = {node.name: node.gpus - node.gpus_in_use for node in look.nodes}
    kinds = [ActionKind.START, ActionKind.START, ActionKind.HOLD, ActionKind.RELEASE]
    kinds.append(ActionKind.RANK)
    for job in look.jobs:
        if job.state in (HELD, WAITING) and random.random() < 0.5:
            kind = kinds[random.integers(len(kinds))]
        elif random.random() < 0.03:
            kind = ActionKind.PREEMPT
        else:
            continue
        nodes = place(look, job, free) if kind == ActionKind.START else {}
        yield Action(kind=kind, job=job.id, submitted=job.submitted, nodes=nodes, rank=1, of=5)


@pytest.mark.parametrize("seed", range(12))
def test_random_actions__keep_it_sound_and_lose_no_job(seed):
    random = np.random.default_rng(seed)
    cluster = CLUSTER.with_conditions(CONDITIONS) if seed % 2 else CLUSTER
    workload = generated(seed, 80)
    system = SimulatedCluster(workload, cluster, ids=60 if seed % 3 else None)
    outcomes = Counter()
    for _ in range(300):
        if random.random() < 0.7:
            system.holds_until = system.now + 600
        system.advance(system.now + float(random.exponential(300.0)))
        look = in_order(system.look())
        check_look(look, clock=system.now)
        outcomes.update(one.status for one in system.do(list(random_actions(look, random))))
    assert outcomes[DONE] > 100
    assert system.lift()[1] == 0
    while not system.is_over:
        system.advance(system.now + 3600)
    ended = [job for _, kind, job, _ in system.truth if kind in (FINISH, REJECT)]
    assert sorted(ended) == list(range(80))


def start(system, number, nodes):
    job = next(one for one in system.look().jobs if one.name == f"job {number}")
    action = Action(kind=ActionKind.START, job=job.id, submitted=job.submitted, nodes=nodes)
    return system.do([action])[0]


def test_start__only_where_there_is_room():
    system = SimulatedCluster(jobs((0, 100, 8), (1, 100, 4), (2, 50, 16)), CLUSTER, closed=[3])
    system.holds_until = 1e9
    system.advance(5)
    assert start(system, 1, {"node0": 8}).status == REFUSED  # node0 is full, and 4 are asked for
    assert start(system, 1, {"node0": 4}).status == REFUSED
    assert start(system, 1, {"node9": 4}).status == REFUSED
    assert start(system, 1, {"node3": 4}).status == REFUSED  # closed
    assert start(system, 2, {"node1": 8, "node2": 8}).status == DONE
    assert start(system, 2, {"node1": 8, "node2": 8}).status == DONE  # it runs: nothing happens
    assert start(system, 1, {"node1": 4}).status == REFUSED
    system.advance(56)
    states = {job.name: job.state for job in system.look().jobs}
    assert states == {"job 0": RUNNING, "job 1": HELD, "job 2": "finished"}
    assert system.lift() == (1, 0)
    system.advance(57)
    assert system.truth[-1][:3] == (56.0, START, 1)


def test_unusable_parts__are_refused():
    halves = bl.Workload.from_columns(submit=[0], run=[1], gpus=[1], gpu_milli=[500])
    with pytest.raises(ConfigError, match="parts of a GPU"):
        SimulatedCluster(halves, CLUSTER)
    with pytest.raises(ConfigError, match="tick"):
        SimulatedCluster(jobs((0, 1, 1)), CLUSTER.with_conditions({"tick": 10.0}))
