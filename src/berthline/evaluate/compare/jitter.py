"""Jitter: replicates of a workload that differ by an unnoticeable noise.

A schedule is chaotic: a submission a few seconds later can change which job is backfilled, and with
it everything after. One run shows one outcome of many. Replicates show how far apart they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berthline.errors import ConfigError
from berthline.model.workload import Workload
from berthline.model.workload_columns import COLUMN_TYPES

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = 60.0
"""Submissions move by up to this, earlier or later."""

SHARE = 0.01
"""Run times that schedulers know, and therefore their keys, change by up to this share."""


def jittered(workload: Workload, *, seed: int, replicate: int, knowledge: str) -> Workload:
    """Return a replicate of the workload: the same jobs, submitted and known slightly differently.

    Formula: submit' = max(0, submit + 60 s x u), estimate' = estimate x (1 + 0.01 v), with u and v
    uniform in [-1, 1] for each job. An estimate of at least the run time stays so. Where schedulers
    know exact run times, run' = run x (1 + 0.01 v) too, because then the run time is the key.
    Deadlines move with the submission.

    Args:
        workload: the jobs.
        seed: together with the replicate, decides the noise.
        replicate: its number; 0 = the workload as it is.
        knowledge: what schedulers know of run times.
    """
    if replicate == 0:
        return workload
    draws = np.random.Generator(np.random.Philox(np.random.SeedSequence((seed, 3, replicate))))
    shift = SECONDS * draws.uniform(-1, 1, len(workload))
    factor = 1 + SHARE * draws.uniform(-1, 1, len(workload))
    columns = {key: getattr(workload, key).copy() for key in COLUMN_TYPES}
    submit = np.maximum(workload.submit + shift, 0.0)
    columns["deadline"] += submit - workload.submit
    columns["submit"] = submit
    if knowledge == "exact":
        columns["run"] *= factor
    limits = workload.estimate >= workload.run
    columns["estimate"] *= factor
    columns["estimate"][limits] = np.maximum(columns["estimate"], columns["run"])[limits]
    return Workload.from_columns(
        **columns,
        user_names=workload.user_names,
        pool_names=workload.pool_names,
        gpu_type_sets=workload.gpu_type_sets,
        reference_type=workload.reference_type,
        names=workload.names,
        name=f"{workload.name}~{replicate}",
        provenance=workload.provenance,
        rebase=False,  # measurement windows and energy rates are on this clock
    )


def replicated(
    window: Callable[[int], tuple[Workload, float]], *, seed: int, knowledge: str
) -> Callable[[int], tuple[Workload, float]]:
    """Return the replicates of a cell's only window, by number."""

    def replicate(number: int) -> tuple[Workload, float]:
        workload, begins = window(0)
        return jittered(workload, seed=seed, replicate=number, knowledge=knowledge), begins

    return replicate


def check_jitter(jitter: int) -> None:
    """Raise if the number of replicates cannot be meant.

    Raises:
        ConfigError: it is negative.
    """
    if jitter < 0:
        raise ConfigError(f"`jitter` is {jitter}", expected="0 (none) or more replicates")


def jitter_words(jitter: int) -> str:
    """Return what the replicates are, in words; empty if there are none."""
    if not jitter:
        return ""
    return (
        f"values are means over the workload and {jitter} jittered "
        f"{'replicate' if jitter == 1 else 'replicates'} of it: submissions within {SECONDS:g} s, "
        f"known run times within {100 * SHARE:g} %"
    )
