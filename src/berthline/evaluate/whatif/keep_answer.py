"""Keeping an answer of `whatif`: its summary and its run directory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from berthline.evaluate.whatif.candidate_clusters import APART
from berthline.evaluate.whatif.hidden_limits import share_of, with_quotas
from berthline.evaluate.whatif.period import LogClock
from berthline.model.write_cluster_file import cluster_text, write_cluster_file
from berthline.runs.run_layout import CLUSTER
from berthline.traces.inspect.infer_cluster import infer_cluster

if TYPE_CHECKING:
    from collections.abc import Mapping

    from berthline.evaluate.whatif.whatif_result import WhatIf
    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload
    from berthline.runs.run_directory import RunDirectory
    from berthline.runs.run_output import RunOutput


def cluster_of(workload: Workload, found: WhatIf) -> Cluster | None:
    """Return the cluster that was inferred for an answer, with what jobs could use of it.

    None if it was given.
    """
    if not found.cluster.findings:
        return None
    inferred = infer_cluster(workload, apart=found.models[0].pools == APART)
    cluster = share_of(inferred.cluster, found.cluster.available)
    return with_quotas(cluster, found.cluster.user_limits)


def whatif_summary(workload: Workload, found: WhatIf) -> dict[str, Any]:
    """Return plain data, as summary.json of `berthline whatif` has it."""
    clock = LogClock.of(workload)
    inferred = cluster_of(workload, found)
    return {
        "from": clock.show(found.begin),
        "to": clock.show(found.end),
        **msgspec.structs.asdict(found),
        "cluster_toml": None if inferred is None else cluster_text(inferred),
    }


def keep_answer(
    directory: RunDirectory,
    output: RunOutput,
    asked: Mapping[str, Any],
    found: WhatIf,
    workload: Workload,
    cluster: Cluster | None,
) -> None:
    """Write the run directory of an answer.

    Args:
        directory: where.
        output: how the answer was asked for.
        asked: the parameters, unless `output` has others.
        found: the answer.
        workload: the log.
        cluster: the cluster given; None = it was inferred.
    """
    used = cluster_of(workload, found) or cluster
    directory.write(
        command=output.command,
        config=asked if output.config is None else output.config,
        seed=found.seed,
        summary=whatif_summary(workload, found),
        metrics=found.outcomes,
        workload=workload,
        files={CLUSTER: lambda path: used and write_cluster_file(used, path)},
    )
