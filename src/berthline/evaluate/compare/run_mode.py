"""Run mode: one continuous run in blocks, or windows; which one is used when neither is requested.

Windows start on an empty cluster and end without a queue, which flatters schedulers that hold GPUs
back or leave jobs behind. A continuous run is therefore the default wherever it has enough jobs for
intervals. See docs/decisions/0024-continuous-by-default.md.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from berthline.errors import ConfigError
from berthline.evaluate.compare.jitter import check_jitter, replicated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berthline.evaluate.compare.grid import Cell
    from berthline.evaluate.metrics.measurement_window import MeasurementWindow

ENOUGH_JOBS = 4_000
"""Jobs of a run that is continuous by default: 16 blocks of 250. In shorter blocks a queue lasts
for several of them, and intervals cover less than they say."""

ASKED_CONTINUOUS, ASKED_WINDOWS = "continuous, as requested", "windows, as requested"


@dataclasses.dataclass(frozen=True)
class RunMode:
    """How a comparison runs.

    Attributes:
        continuous: one run for each scheduler, evaluated in blocks of jobs.
        reason: why, in words.
    """

    continuous: bool
    reason: str


def requested_mode(
    windows: int | None, *, continuous: bool | None, jitter: int, seeds: int = 1
) -> RunMode | None:
    """Return the mode that the parameters require; None = it depends on the number of jobs.

    Raises:
        ConfigError: they contradict each other.
    """
    check_jitter(jitter)
    if jitter and (continuous is False or seeds > 1 or (windows or 1) > 1):
        raise ConfigError(
            "jittered replicates are of one continuous run with one seed",
            expected="`jitter` without `windows` and `seeds`",
        )
    if continuous or jitter:
        return RunMode(continuous=True, reason=ASKED_CONTINUOUS)
    if windows is not None or continuous is False:
        return RunMode(continuous=False, reason=ASKED_WINDOWS)
    if seeds > 1:
        return RunMode(continuous=False, reason="one window, because it runs with several seeds")
    return None


def mode_for(cells: Sequence[Cell], measure: MeasurementWindow | None, otherwise: str) -> RunMode:
    """Return the mode for these jobs: continuous if every cell has enough of them.

    Args:
        cells: the cells, each with one window.
        measure: only jobs submitted in it count; None = all.
        otherwise: what is used if there are too few jobs, in words.
    """
    fewest = min(
        len(cell.source) if measure is None else int(measure.submitted(cell.source).sum())
        for cell in cells
    )
    if all(cell.windows == 1 for cell in cells) and fewest >= ENOUGH_JOBS:
        reason = f"continuous, because {fewest:,} jobs are enough for intervals over blocks"
        return RunMode(continuous=True, reason=reason)
    if any(cell.windows > 1 for cell in cells):
        return RunMode(continuous=False, reason="windows, as given")
    reason = f"{otherwise}, because {fewest:,} jobs are fewer than {ENOUGH_JOBS:,}"
    return RunMode(continuous=False, reason=reason)


def with_replicates(cells: Sequence[Cell], jitter: int, *, seed: int, knowledge: str) -> list[Cell]:
    """Return the cells with this number of jittered replicates besides the workload itself."""
    if not jitter:
        return list(cells)
    return [
        dataclasses.replace(
            cell,
            windows=1 + jitter,
            window=replicated(cell.window, seed=seed, knowledge=knowledge),
        )
        for cell in cells
    ]
