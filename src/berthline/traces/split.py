"""Splitting a workload by time into train | validation | test, with gaps between the parts.

Jobs are split in order of submission, never at random: a policy must not learn from what happens
after the jobs it is evaluated on. The gap separates jobs that were in the queue together. Jobs
submitted at the same instant stay on the same side of a cut.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from berthline.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from berthline.model.workload import Workload  # noqa: TC004 - numpy would slow `--help` down

PARTS = ("train", "validation", "test")
FRACTIONS = (0.5, 0.15, 0.35)
"""Default shares of the jobs for each part: the test part is long enough to evaluate schedulers."""
SHORT_FRACTIONS = (0.5, 0.25, 0.25)
"""Shares for a trace so short that its validation part would have too few jobs."""
GAP_SECONDS = 86_400.0
"""Default gap; see `usual_gap`."""
_SHORT_GAP = 0.01
"""Gap of a short trace, as a share of the time from its first to its last submission."""


@dataclasses.dataclass(frozen=True)
class TraceParts:
    """The three parts of a workload, each rebased to its first job.

    Attributes:
        train: the first jobs.
        validation: the next jobs.
        test: the last jobs.
        gap: how many jobs are in no part, before validation and before test.
    """

    train: Workload
    validation: Workload
    test: Workload
    gap: tuple[int, int]

    def counts(self) -> dict[str, int]:
        """Return the number of jobs in each part and in the gaps; they add up to all jobs."""
        parts = {name: len(getattr(self, name)) for name in PARTS}
        return {**parts, "gap": sum(self.gap)}


def split_by_time(
    workload: Workload,
    fractions: Sequence[float] = FRACTIONS,
    *,
    gap_seconds: float = 0.0,
    gap_jobs: int = 0,
) -> TraceParts:
    """Return train, validation and test parts, in order of submission.

    `provenance["split"]` of each part states which jobs it has, and the Unix time of time 0 is
    adjusted.

    Args:
        workload: the jobs.
        fractions: the shares of the jobs for each part, which add up to 1; the jobs of a gap are
            taken from the part after it.
        gap_seconds: a part starts at least this long after the last submission of the previous one.
        gap_jobs: at least this many jobs are between parts.

    Raises:
        ConfigError: the fractions or gaps are invalid, or leave a part without jobs.
    """
    _check(fractions, gap_seconds, gap_jobs)
    submit = workload.submit
    first_cut = _cut(submit, fractions[0])
    second_cut = _cut(submit, fractions[0] + fractions[1])
    starts = [0]
    for cut in (first_cut, second_cut):
        if cut == 0:
            starts.append(0)
            continue
        after = int(submit.searchsorted(submit[cut - 1] + gap_seconds, side="left"))
        starts.append(max(cut + gap_jobs, after))
    ends = [first_cut, second_cut, len(workload)]
    for name, start, end in zip(PARTS, starts, ends, strict=True):
        if start >= end:
            raise ConfigError(
                f"the {name} part has no jobs",
                where=workload.name,
                expected=f"larger fractions, or smaller gaps, for {len(workload):,} jobs submitted "
                f"within {float(submit[-1] - submit[0]):,.0f} s",
                hint=f"the gap between the parts is {gap_seconds:,.10g} s: set a smaller one",
            )
    train, validation, test = (
        _part(workload, name, start, end)
        for name, start, end in zip(PARTS, starts, ends, strict=True)
    )
    gap = (starts[1] - first_cut, starts[2] - second_cut)
    return TraceParts(train, validation, test, gap)


def usual_gap(workload: Workload, fractions: Sequence[float] = FRACTIONS) -> float:
    """Return the gap between the parts of a trace if none is given, in seconds.

    It is a day, or one hundredth of the time from the first to the last submission if a day would
    take more than half of the jobs of a part.
    """
    submit = workload.submit
    for cut, share in (
        (_cut(submit, fractions[0]), fractions[1]),
        (_cut(submit, fractions[0] + fractions[1]), fractions[2]),
    ):
        after = int(submit.searchsorted(submit[max(cut, 1) - 1] + GAP_SECONDS, side="left"))
        if after - cut > share * len(submit) / 2:
            return float(submit[-1] - submit[0]) * _SHORT_GAP
    return GAP_SECONDS


def gap_in_words(gap_seconds: float) -> str:
    """Return a remark about the gap of a short trace; empty = it is the usual one."""
    if gap_seconds == GAP_SECONDS:
        return ""
    return (
        f"the trace is short: the gap between its parts is {gap_seconds:,.0f} s instead of "
        f"{GAP_SECONDS:,.0f} s"
    )


def _cut(submit: np.ndarray, fraction: float) -> int:
    """Return how many jobs are before a cut; jobs of the same instant are not separated."""
    count = round(len(submit) * fraction)
    if count <= 0:
        return 0
    return int(submit.searchsorted(submit[count - 1], side="right"))


def _part(workload: Workload, name: str, start: int, end: int) -> Workload:
    window = workload.window(start, end)
    split = {"part": name, "first": start, "last": end - 1, "of": len(workload)}
    return dataclasses.replace(
        window, name=f"{workload.name}-{name}", provenance={**window.provenance, "split": split}
    )


def _check(fractions: Sequence[float], gap_seconds: float, gap_jobs: int) -> None:
    if (
        len(fractions) != len(PARTS)
        or not all(0 < fraction < 1 for fraction in fractions)
        or not math.isclose(sum(fractions), 1, abs_tol=1e-6)
    ):
        raise ConfigError(
            f"the fractions of the split are {', '.join(map(str, fractions))}",
            expected="three numbers between 0 and 1 that add up to 1: train, validation, test",
        )
    if not 0 <= gap_seconds < math.inf or gap_jobs < 0:
        raise ConfigError(
            f"the gap of the split is {gap_seconds:g} s and {gap_jobs} jobs",
            expected="0 or more of each",
        )
