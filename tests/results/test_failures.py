"""Failures cost time on average, though a single run may be better off with them."""

from __future__ import annotations

import dataclasses

import numpy as np
from tests.sim.scenarios import finishes, jobs, nodes, run, story

import berthline as bl
from berthline.evaluate.statistics.paired import paired_ratio
from berthline.model.limits import Outage

SEEDS = range(100)


def test_failures__cost_on_average_but_not_in_every_run() -> None:
    """Paired: the same jobs on the same cluster, with and without failures."""
    cluster = bl.Cluster.parse("uniform:8x8:V100")
    without, with_failures = [], []
    for seed in SEEDS:
        workload = bl.generate("synthetic", cluster=cluster, jobs=800, load=1.0, seed=seed)
        for conditions, means in (({}, without), ({"mtbf": 259_200}, with_failures)):
            result = bl.simulate(workload, cluster, "fcfs+easy", seed=seed, conditions=conditions)
            means.append(result.metrics().jct.mean)
    ratio = paired_ratio(with_failures, without, seed=0)
    assert ratio.ratio is not None
    assert ratio.low is not None
    shorter = int((np.array(with_failures) < np.array(without)).sum())
    print(f"mean JCT x {ratio.ratio:.3f} [{ratio.low:.3f}, {ratio.high:.3f}], shorter in {shorter}")
    assert ratio.low > 1
    assert ratio.ratio < 1.1
    assert 5 <= shorter <= 25


def test_failures__may_let_short_jobs_go_first() -> None:
    """Job 0 holds both GPUs until 10. If a node fails at 2, jobs 1 and 2 go before it.

    Job 1 takes the GPU that is left. At 3 the node is back, job 0 is reserved for 5, and job 2
    ends by then. Job 0 starts again at 5, after a restart of 2 s. Mean JCT 8.33 instead of 11, with
    a GPU less for a second and all work of job 0 lost.
    """
    workload = jobs((0, 10, 2), (0, 3, 1), (1, 1, 1))
    cluster = nodes(1, 1).with_conditions({"checkpoint": float("inf"), "restart": 2})
    failing = dataclasses.replace(cluster, outages=(Outage(down=2, up=3, nodes=(0,)),))
    assert finishes(run(workload, cluster, "fcfs+easy")) == {0: 10, 1: 13, 2: 11}
    assert story(run(workload, failing, "fcfs+easy"))[4:] == [
        "2 node down 0",
        "2 preempt 0 (its node went down)",
        "2 start 1 on 1:1",
        "3 node up 0",
        "3 start 2 on 0:1",
        "4 finish 2",
        "5 finish 1",
        "5 resume 0 on 0:1 1:1",
        "17 finish 0",
    ]
