"""GPU types matter: a placement that looks at them beats one that does not, and by how much."""

from __future__ import annotations

import pytest

import berthline as bl
from berthline.model.cluster import Cluster, NodeGroup

SEEDS = range(10)
AWARE = ("sjf+easy@fastest-type", "sjf+easy@[-node_speed]")


def mixed() -> Cluster:
    """Return 24 nodes of a slow, a middling and a fast type, the slow ones first."""
    groups = [NodeGroup(count=8, gpus=4, gpu_type=kind) for kind in ("P100", "V100", "H100")]
    return Cluster.from_groups(groups, name="P100 + V100 + H100")


# drl-scheduler lists its fastest nodes first, so first-fit is not blind to types there.
@pytest.mark.parametrize(
    ("cluster", "blind", "at_most"),
    [
        (mixed(), "sjf+easy@first-fit", 0.5),
        (mixed(), "sjf+easy@best-fit", 0.5),
        (Cluster.parse("drl-scheduler"), "sjf+easy@best-fit", 0.95),
    ],
    ids=lambda value: value.name if isinstance(value, Cluster) else str(value),
)
def test_mean_jct__is_smaller_where_types_are_seen(
    cluster: Cluster, blind: str, at_most: float
) -> None:
    """Ten generated workloads at a load of 0.8; the paired interval leaves out 1, and more."""
    workloads = [
        bl.generate("synthetic", cluster=cluster, jobs=800, load=0.8, seed=seed) for seed in SEEDS
    ]
    (found,) = bl.compare([workloads], cluster, [blind, *AWARE], knowledge="exact").cells
    for result in found.schedulers[1:]:
        ratio = result.against_baseline.jct_mean
        print(f"{cluster.name}: {result.scheduler} against {blind}: {ratio.verdict}")
        assert ratio.high < at_most
        assert ratio.verdict.startswith("better")


def test_mean_jct__types_that_are_equally_fast_leave_nothing_to_see() -> None:
    """The gain comes from speed alone: without it, fastest-type is best-fit."""
    cluster = mixed().with_conditions({"gpu_speeds": 0})
    for seed in range(3):
        workload = bl.generate("synthetic", cluster=cluster, jobs=300, load=0.8, seed=seed)
        logs = {
            bl.simulate(workload, cluster, f"sjf+easy@{rule}", knowledge="exact").log.sha256()
            for rule in ("fastest-type", "best-fit")
        }
        assert len(logs) == 1
