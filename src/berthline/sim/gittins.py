"""Gittins indices from the GPU-seconds of finished jobs; `native/src/core/gittins.h` does the same.

The index of a job that has attained `a` GPU-seconds is max over d of P(S - a <= d) / E[min(S - a,
d)], where S is the total of a job that uses at least `a` (Aalto, Ayesta and Righter, Queueing
Systems 2009). The distribution of S is that of finished jobs, counted in buckets whose edges are 1,
1.5, 2, 3, 4, 6, 8, ... GPU-seconds. All indices are computed again whenever the number of finished
jobs has grown by a quarter.
"""

from __future__ import annotations

import bisect

EDGES: tuple[float, ...] = tuple(
    edge for power in range(48) for edge in (2.0**power, 1.5 * 2.0**power)
)


class GittinsTable:
    """The index for every bucket of attained GPU-seconds."""

    def __init__(self) -> None:
        self.count = [0] * (len(EDGES) + 1)
        self.gpu_seconds = [0.0] * (len(EDGES) + 1)
        self.index = [0.0] * (len(EDGES) + 1)
        self.finished = 0
        self.next_update = 1

    def add(self, gpu_seconds: float) -> None:
        """Record a finished job."""
        bucket = bisect.bisect_right(EDGES, gpu_seconds)
        self.count[bucket] += 1
        self.gpu_seconds[bucket] += gpu_seconds
        self.finished += 1
        if self.finished >= self.next_update:
            self.next_update = self.finished + max(1, self.finished // 4)
            self.index = [self._index(bucket) for bucket in range(len(self.count))]

    def of(self, attained: float) -> float:
        """Return the index of a job; 0 = no finished job used as much."""
        return self.index[bisect.bisect_right(EDGES, attained)]

    def _index(self, bucket: int) -> float:
        attained = EDGES[bucket - 1] if bucket else 0.0
        longer = sum(self.count[bucket:])
        best, ended, used = 0.0, 0, 0.0
        for last in range(bucket, len(self.count)):
            ended += self.count[last]
            used += self.gpu_seconds[last]
            if ended == 0:
                continue
            expected = used - attained * ended
            if ended < longer:
                expected += (EDGES[last] - attained) * (longer - ended)
            if expected > 0:
                best = max(best, ended / expected)
            if ended == longer:
                break
        return best
