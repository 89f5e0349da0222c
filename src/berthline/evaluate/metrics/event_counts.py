"""Event counts: preemptions, refused starts and outages, from the rows of the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berthline.model.schedule import NODE_DOWN, PREEMPT, PREEMPT_REASONS, REFUSE

if TYPE_CHECKING:
    from berthline.evaluate.metrics.measurement_window import MeasurementWindow
    from berthline.model.schedule import Schedule


def preemptions(log: Schedule, window: MeasurementWindow | None = None) -> int:
    """Return how often running jobs were stopped.

    Formula: number of preempt events, whatever the reason; a job stopped twice counts twice.
    """
    return _count(log, PREEMPT, window)


def preemptions_by_reason(log: Schedule, window: MeasurementWindow | None = None) -> dict[str, int]:
    """Return how often running jobs were stopped for each reason.

    Formula: number of preempt events with that reason; their sum is `preemptions`.
    """
    rows = log.kind == PREEMPT
    if window is not None:
        rows &= window.has(log.time)
    counts = np.bincount(log.detail[rows], minlength=len(PREEMPT_REASONS))
    return dict(zip(PREEMPT_REASONS, counts.tolist(), strict=True))


def refusals(log: Schedule, window: MeasurementWindow | None = None) -> int:
    """Return how often the system refused a start.

    Formula: number of refuse events; a job refused twice counts twice.
    """
    return _count(log, REFUSE, window)


def outages(log: Schedule, window: MeasurementWindow | None = None) -> int:
    """Return how often nodes went down.

    Formula: number of node-down events; every outage of every node counts.
    """
    return _count(log, NODE_DOWN, window)


def _count(log: Schedule, kind: int, window: MeasurementWindow | None) -> int:
    rows = log.kind == kind
    if window is not None:
        rows &= window.has(log.time)
    return int(np.count_nonzero(rows))
