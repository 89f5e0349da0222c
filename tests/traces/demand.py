"""What a trace asks for over time, if every job started on submission."""

from __future__ import annotations

import numpy as np


def concurrent_demand(workload, first=0.0, last=None):
    """Return mean, 95th percentile and maximum of the GPUs asked for from `first` to `last`.

    All over time, exactly; `last` None = the last submission.
    """
    last = float(workload.submit[-1]) if last is None else last
    times = np.concatenate([workload.submit, workload.submit + workload.run])
    change = np.concatenate([workload.gpus, -workload.gpus])
    order = np.argsort(times, kind="stable")
    times, level = times[order], np.cumsum(change[order])
    inside = (times > first) & (times < last)
    begins = np.concatenate([[first], times[inside]])
    levels = np.concatenate([level[np.searchsorted(times, [first], "right") - 1], level[inside]])
    spans = np.diff(begins, append=last)
    by_level = np.argsort(levels, kind="stable")
    share = np.cumsum(spans[by_level]) / spans.sum()
    p95 = levels[by_level][np.searchsorted(share, 0.95)]
    return float(np.dot(levels, spans) / spans.sum()), int(p95), int(levels[spans > 0].max())
