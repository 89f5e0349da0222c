"""Which nodes a job may borrow, and which a quota keeps from it: from the cluster's rules alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from berthline.model.gpu_types import canonical_name
from berthline.model.limits import EACH_USER

if TYPE_CHECKING:
    from tests.agreement.random_runs import Run


def lent_nodes(run: Run, job: int) -> set[int]:
    """Nodes of other pools that the job may borrow."""
    workload, cluster = run.workload, run.cluster
    if workload.pool[job] < 0:
        return set()
    rules = cluster.pool_rules
    own = workload.pool_names[workload.pool[job]]
    if own not in rules or not rules[own].borrow:
        return set()
    lenders = {name for name, rule in rules.items() if rule.lend}
    wanted: set[str] | None = None
    if workload.gpu_types[job] >= 0:
        names = workload.gpu_type_sets[workload.gpu_types[job]].split("|")
        wanted = {*names, *map(canonical_name, names)}
    return {
        node
        for node in range(cluster.num_nodes)
        if cluster.pool[node] >= 0
        and cluster.pool_names[cluster.pool[node]] in lenders
        and (wanted is None or cluster.types[cluster.gpu_type[node]].name in wanted)
    }


def nodes_closed_for_ever(run: Run, job: int) -> set[int]:
    """Nodes of GPU types of which the job needs more than a quota allows."""
    workload, cluster = run.workload, run.cluster
    needed = int(workload.gpus[job]) * int(workload.gpu_milli[job])
    pool = workload.pool_names[workload.pool[job]] if workload.pool[job] >= 0 else ""
    user = workload.user_names[workload.user[job]]
    types = {
        quota.gpu_type
        for quota in cluster.quotas
        if quota.pool in ("", pool)
        and quota.user in ("", EACH_USER, user)
        and needed > 1000 * quota.gpus
    }
    return {
        node
        for node in range(cluster.num_nodes)
        if cluster.types[cluster.gpu_type[node]].name in types
    }
