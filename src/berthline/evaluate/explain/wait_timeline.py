"""The wait of a job, cut where the reason changes."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import msgspec

from berthline.sim.reasons.reason_codes import Finding, Reason

if TYPE_CHECKING:
    from berthline.evaluate.explain.job_waits import Wait


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a job's wait with one reason.

    Attributes:
        begin: seconds on the workload's clock.
        end: its end on the same clock.
        reason: what kept the job from starting.
        position: the job's place in the order when it began, from 1.
        last_position: the same when it ended.
        queue: jobs that waited when it began.
        last_queue: the same when it ended.
        short: by how much each resource was short when it began.
        free_gpus: GPUs that were free on nodes it may use when it began.
        fits: whether it would have fitted there when it began.
        blocker: the job that blocked it longest; None = no single job did.
        blockers: number of different jobs that did.
        until: when this was expected to change, as known when it began.
        late: HEAD_RESERVATION: seconds it would have ended after the reservation.
        value: GATE_CLOSED: what the gate's formula gave.
        detail: further details, in words.
    """

    begin: float
    end: float
    reason: Reason
    position: int
    last_position: int
    queue: int
    last_queue: int
    short: dict[str, float]
    free_gpus: float
    fits: bool
    blocker: int | None
    blockers: int
    until: float | None
    late: float | None
    value: float | None
    detail: str

    @property
    def seconds(self) -> float:
        """Length in seconds."""
        return self.end - self.begin


@dataclasses.dataclass
class Look:
    """What was found at one decision point."""

    time: float
    finding: Finding
    position: int
    queue: int


def timeline_of(looks: list[Look], waits: list[Wait]) -> list[Interval]:
    """Return the wait cut where the reason changes."""
    found: list[Interval] = []
    for wait in waits:
        inside = [look for look in looks if wait.begin <= look.time < wait.end]
        ends = [look.time for look in inside[1:]] + [wait.end]
        groups: list[list[tuple[Look, float]]] = []
        for look, end in zip(inside, ends, strict=True):
            if groups and groups[-1][-1][0].finding.reason == look.finding.reason:
                groups[-1].append((look, end))
            else:
                groups.append([(look, end)])
        found += [_interval(group) for group in groups]
    return found


def _interval(group: list[tuple[Look, float]]) -> Interval:
    [(first, _), *_], (last, end) = group, group[-1]
    seconds: dict[int, float] = {}
    for look, until in group:
        if look.finding.blocker is not None:
            held = seconds.get(look.finding.blocker, 0.0)
            seconds[look.finding.blocker] = held + until - look.time
    finding = first.finding
    return Interval(
        begin=first.time,
        end=end,
        reason=finding.reason,
        position=first.position,
        last_position=last.position,
        queue=first.queue,
        last_queue=last.queue,
        short=finding.short,
        free_gpus=finding.free_gpus,
        fits=finding.fits,
        blocker=max(seconds, key=lambda job: (seconds[job], -job)) if seconds else None,
        blockers=len(seconds),
        until=finding.until,
        late=finding.late,
        value=finding.value,
        detail=finding.detail,
    )


def seconds_by_reason(timeline: list[Interval]) -> dict[str, float]:
    """Return how long a job waited for each reason, longest first."""
    seconds: dict[str, float] = {}
    for interval in timeline:
        seconds[interval.reason.value] = seconds.get(interval.reason.value, 0.0) + interval.seconds
    return dict(sorted(seconds.items(), key=lambda item: -item[1]))
