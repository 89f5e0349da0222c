"""explain: why one job waited, from its submission to its start.

The log of the run is replayed (sim/snapshots/replay.py). At every decision point at which the job
waited, sim/reasons/find_reason.py finds the reason that kept it from starting. Nothing is guessed:
the state is the one in which the decision was made, and the rules are those of the reference
simulator.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from berthline.errors import ConfigError, SimulationError
from berthline.evaluate.explain.job_waits import Wait, waits_of
from berthline.evaluate.explain.overtakers import (
    Overtaker,
    Started,
    overtaker,
    started_meanwhile,
)
from berthline.evaluate.explain.wait_timeline import Interval, Look, seconds_by_reason, timeline_of
from berthline.evaluate.forecast.job_forecast import JobForecast
from berthline.model.schedule import REJECT, REJECT_REASONS, SUBMIT
from berthline.sim.inputs import prepare
from berthline.sim.multiples import next_multiple
from berthline.sim.reasons.find_reason import before_decision, find_reason
from berthline.sim.reasons.reason_codes import Reason
from berthline.sim.reasons.waiting_order import Valued, WaitingOrder
from berthline.sim.reference_backfilling import reserve
from berthline.sim.snapshots.replay import Replay
from berthline.size_limits import check_sizes

if TYPE_CHECKING:
    from collections.abc import Callable

    from berthline.model.workload import FloatColumn
    from berthline.sim.simulate import Result

MAX_POINTS = 300
"""Decision points that are examined; if there are more, this many at equal distances."""


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """One instant of a job's wait, in detail.

    Attributes:
        time: seconds on the workload's clock.
        reason: why it did not start then.
        position: its place in the order, from 1.
        queue: jobs that waited.
        expected_start: when it could start by the estimates of the jobs running then, if no other
            job took what they release; None = not by that alone, or run times are not known.
        order: the formula of the order.
        own: its value and terms for this job.
        ahead: the same for the first jobs before it.
        ahead_in_all: number of jobs before it.
        gate: the value and the terms of the gate, if there is one.
    """

    time: float
    reason: Reason
    position: int
    queue: int
    expected_start: float | None
    order: str
    own: Valued
    ahead: list[Valued]
    ahead_in_all: int
    gate: Valued | None


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why a job waited.

    Attributes:
        job: its id.
        wait: total seconds it waited.
        reject_reason: why it was rejected; None = it was not.
        reasons: seconds waited for each reason, most first.
        waits: when it waited, and what began each wait.
        timeline: its wait, cut where the reason changes.
        moment: one instant in detail: that of `at`, or else the first.
        forecast: when it would start, as known at that instant; None = not requested.
        overtakers: jobs that started while it waited, most GPU-seconds first.
        started_meanwhile: number of such jobs.
        points: decision points at which it waited.
        looked_at: number of them that were examined.
    """

    job: int
    wait: float
    reject_reason: str | None
    reasons: dict[str, float]
    waits: list[Wait]
    timeline: list[Interval]
    moment: Moment | None
    forecast: JobForecast | None
    overtakers: list[Overtaker]
    started_meanwhile: int
    points: int
    looked_at: int


def explain(
    result: Result,
    job: int,
    *,
    at: float | None = None,
    top: int = 5,
    max_points: int = MAX_POINTS,
    draws: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Explanation:
    """Return why a job of a run waited.

    Args:
        result: the run.
        job: the job's id.
        at: an instant of its wait to show in detail, by the last decision point before it; None =
            its first decision point.
        top: number of jobs before it, and of jobs that overtook it, to list.
        max_points: decision points to examine; 0 = all.
        draws: runs of the simulator for the forecast; 0 = no forecast.
        progress: called with the steps done and their number.

    Raises:
        ConfigError: there is no such job, or it did not wait at that instant.
        SimulationError: the log does not belong to this workload, cluster and scheduler.
    """
    check_sizes(lowest=0, top=top, points=max_points, draws=draws)
    log = result.log
    waits = _waits_at(result, job, at)
    inputs = prepare(
        result.workload,
        result.cluster,
        result.scheduler,
        knowledge=result.knowledge,
        seed=result.seed,
        horizon=None if np.isinf(log.horizon) else log.horizon,
        start=result.start,
    )
    sim = Replay(inputs, log, since=waits[0].begin if waits else 0.0)
    points = _points(sim, log.time, waits)
    looked_at = points if not max_points else _thinned(points, max_points)
    meanwhile = started_meanwhile(result, inputs, job, waits)
    # Between two decision points, the earlier one decides.
    moment_at = points[0] if points else None
    if at is not None:
        moment_at = max(time for time in points if time <= at)
    instants = sorted(
        {*looked_at, *(start.time for start in meanwhile[:top])}
        | ({moment_at} if moment_at is not None else set())
    )
    tell = progress or (lambda *_: None)
    seen = _watch(
        sim,
        job,
        instants,
        looked_at=set(looked_at),
        moment_at=moment_at,
        starts=meanwhile[:top],
        top=top,
        tell=lambda number: tell(number, len(instants) + draws),
    )
    outlook: JobForecast | None = None
    if draws and seen.moment is not None:
        from berthline.evaluate.forecast.forecast import forecast
        from berthline.sim.snapshots.take import take_snapshot

        outlook = forecast(
            # The decision of the instant, which did not start the job, is known.
            take_snapshot(result, float(np.nextafter(seen.moment.time, np.inf))),
            result.scheduler,
            history=result,
            draws=draws,
            seed=result.seed,
            jobs=[job],
            progress=lambda made, of: tell(len(instants) + made, len(instants) + of),
        ).of(job)
        outlook = msgspec.structs.replace(outlook, time=seen.moment.time)
    timeline = timeline_of(seen.looks, waits)
    return Explanation(
        job=job,
        wait=sum(wait.seconds for wait in waits),
        reject_reason=_reject_reason(result, job),
        reasons=seconds_by_reason(timeline),
        waits=waits,
        timeline=timeline,
        moment=seen.moment,
        forecast=outlook,
        overtakers=sorted(seen.overtakers, key=lambda other: -other.gpu_seconds),
        started_meanwhile=len(meanwhile),
        points=len(points),
        looked_at=len(looked_at),
    )


def _waits_at(result: Result, job: int, at: float | None) -> list[Wait]:
    """Return when a job waited; `at` must be in one of these waits."""
    workload = result.workload
    if not 0 <= job < len(workload):
        raise ConfigError(
            f"there is no job {job}", where=workload.name, expected=f"0 to {len(workload) - 1}"
        )
    if not ((result.log.kind == SUBMIT) & (result.log.job == job)).any():
        raise ConfigError(
            f"job {job} is submitted at {workload.submit[job]:,.10g} s, after the end of the run",
            where=workload.name,
            expected=f"a job submitted by {result.log.horizon:,.10g} s",
        )
    waits = waits_of(result, job)
    if result.start is not None:
        # What was decided before is not known: the jobs that were over are left out.
        begin = result.start.now
        waits = [
            msgspec.structs.replace(wait, begin=max(wait.begin, begin))
            for wait in waits
            if wait.end > begin
        ]
    if at is not None and not any(w.begin <= at < w.end for w in waits):
        times = "; ".join(f"{wait.begin:g} to {wait.end:g}" for wait in waits)
        raise ConfigError(
            f"job {job} did not wait at {at:g} s",
            expected=f"a time from {times}" if times else "",
            hint="" if times else "it never waited",
        )
    return waits


def _reject_reason(result: Result, job: int) -> str | None:
    log = result.log
    rejected = np.flatnonzero((log.kind == REJECT) & (log.job == job))
    return REJECT_REASONS[log.detail[rejected[0]]] if len(rejected) else None


@dataclasses.dataclass
class _Seen:
    """What a replay showed of a job.

    Attributes:
        looks: why it waited, at each of the requested instants.
        overtakers: jobs that started while it waited.
        moment: the instant in detail.
    """

    looks: list[Look] = dataclasses.field(default_factory=list)
    overtakers: list[Overtaker] = dataclasses.field(default_factory=list)
    moment: Moment | None = None


def _watch(
    sim: Replay,
    job: int,
    instants: list[float],
    *,
    looked_at: set[float],
    moment_at: float | None,
    starts: list[Started],
    top: int,
    tell: Callable[[int], None],
) -> _Seen:
    """Replay the log, and record at each instant what kept the job waiting."""
    order = WaitingOrder(sim)
    seen = _Seen()
    for number, time in enumerate(instants):
        tell(number)
        sim.advance_until_decision(time)
        seen.overtakers += [overtaker(order, job, s) for s in starts if s.time == time]
        before = before_decision(sim, job, order)
        sim.follow_decision()
        if time not in looked_at and time != moment_at:
            continue
        finding = before or find_reason(sim, job, order)
        if finding is None:
            raise SimulationError(
                f"nothing keeps job {job} from starting at {time:g} s, but it does not start",
                expected="the log of this workload, cluster and scheduler, unchanged",
                hint="run berthline sim again, with this version",
            )
        look = Look(time, finding, order.position(job), len(sim.queue))
        if time in looked_at:
            seen.looks.append(look)
        if time == moment_at:
            seen.moment = _moment(sim, order, job, look, top)
    return seen


def _points(sim: Replay, times: FloatColumn, waits: list[Wait]) -> list[float]:
    """Return the instants of the wait at which the reason may change."""
    found: set[float] = set()
    every = sim.interval
    for wait in waits:
        found.add(wait.begin)
        if wait.back is not None and wait.back < wait.end:
            found.add(wait.back)
        if sim.scheduler.discipline == "rounds":
            time = next_multiple(every, wait.begin, at_least=True)
            while time < wait.end:
                found.add(time)
                time = next_multiple(every, time)
            continue
        first, last = np.searchsorted(times, [wait.begin, wait.end])
        inside = set(times[first:last].tolist())
        found.update(inside)
        if every > 0:
            ticks = (next_multiple(every, time, at_least=True) for time in inside)
            found.update(tick for tick in ticks if tick < wait.end)
    return sorted(found)


def _thinned(points: list[float], most: int) -> list[float]:
    """Return at most `most` points, including the first and the last."""
    if len(points) <= most:
        return points
    indices = np.linspace(0, len(points) - 1, most).round().astype(int)
    return [points[index] for index in sorted(set(indices.tolist()))]


def _moment(sim: Replay, order: WaitingOrder, job: int, look: Look, top: int) -> Moment:
    mine = order.key(job)
    ahead = order.of(other for other in sim.queue if order.key(other) < mine)
    knows = sim.inputs.knowledge != "none" and job in sim.queue
    reservation = reserve(sim, job) if knows and not look.finding.fits else None
    expected_start = look.time if look.finding.fits else reservation and reservation[0]
    gate = sim.scheduler.gate
    return Moment(
        time=look.time,
        reason=look.finding.reason,
        position=look.position,
        queue=look.queue,
        expected_start=expected_start,
        order=order.formula.text,
        own=order.valued(job),
        ahead=[order.valued(other) for other in ahead[:top]],
        ahead_in_all=len(ahead),
        gate=None if gate is None else order.valued(job, gate),
    )
