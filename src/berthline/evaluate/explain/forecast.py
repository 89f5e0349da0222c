"""When a waiting job will start, from what was known at some instant, by replications.

The run is simulated many times with the same past. Each replication draws what was unknown at that
instant:

- Run times of running and waiting jobs, unless the scheduler knows them (`exact`). A job with an
  estimate gets estimate x ratio, where ratio is run time / estimate of a job that had finished by
  then, large enough for the progress of the job. Without estimates, it gets the run time of such a
  job.
- Future jobs: the past is repeated from a random instant on. Its jobs keep their requests and
  estimates, and get run times drawn in the same way if they had not finished.
- Future failures of nodes are not predicted; nodes that are down return as planned.

Decisions before the instant stay the same, because they cannot depend on what is drawn; a
replication in which they differ is left out.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import os
import threading
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt

from berthline.model.schedule import FINISH
from berthline.model.workload import FloatColumn
from berthline.model.workload_rows import workload_of_rows
from berthline.random_streams import stream_key, text_numbers, uniform_at
from berthline.sim.native import run
from berthline.sim.outages import Outages
from berthline.size_limits import check_sizes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from berthline.model.workload import Workload
    from berthline.sim.inputs import Inputs
    from berthline.sim.simulate import Result

REPLICATIONS = 40
LEVEL = 0.8
"""The share of replications inside the interval."""

FEWEST_JOBS = 20
"""With fewer finished jobs, ratios are drawn uniformly from 0 to 1; with fewer submitted jobs, no
future jobs are assumed."""

AHEAD = 8.0
"""Future jobs arrive for this many times the wait without future jobs; a job that has not started
by then starts later than the forecast can say."""

MOST_TURNS = 50
"""The past is repeated at most this many times."""


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """When a job would start, as known at some instant.

    Attributes:
        time: the instant.
        low: the (1 - level) / 2 quantile of the starts over replications.
        median: the median of these starts.
        high: the (1 + level) / 2 quantile; infinity = after all that was simulated.
        level: the share of replications inside.
        replications: number of replications.
        run_times: the source of run times: `exact`, `ratios` or `run times` of finished jobs, or
            `even` if too few have finished.
        jobs_to_come: whether future jobs were assumed.
    """

    time: float
    low: float
    median: float
    high: float
    level: float
    replications: int
    run_times: str
    jobs_to_come: bool


@dataclasses.dataclass(frozen=True, eq=False)
class _Past:
    """What is known at an instant."""

    time: float
    jobs: int  # submitted by then
    finished: npt.NDArray[np.bool_]  # (jobs,)
    done: FloatColumn  # (jobs,) seconds of run time completed
    ratios: FloatColumn  # sorted
    runs: FloatColumn  # sorted


def forecast(
    result: Result,
    inputs: Inputs,
    job: int,
    time: float,
    done: Mapping[int, float],
    *,
    replications: int = REPLICATIONS,
    progress: Callable[[int, int], None] | None = None,
) -> Forecast | None:
    """Return when a waiting job would start, with an interval.

    Args:
        result: the run.
        inputs: of that run.
        job: a job that waits at that instant.
        time: the instant of a decision that did not start it.
        done: seconds of run time that each job running or waiting then has completed.
        replications: number of replications.
        progress: called with the replications done and their number.

    Returns:
        The forecast; None = no replication reproduced the past.
    """
    check_sizes(lowest=0, replications=replications)
    past = _past(result, time, done)
    is_exact = inputs.knowledge == "exact"
    rng = np.random.default_rng(stream_key(result.seed, f"forecast/{job}"))
    first = _one(result, inputs, past, job, rng, span=0.0, horizon=np.inf)
    if first is None:
        return None
    span = 0.0
    if past.jobs >= FEWEST_JOBS and np.isfinite(first):
        length = time - float(result.workload.submit[0])
        span = min(AHEAD * max(first - time, 1.0), MOST_TURNS * length)
    until = time + span if span else np.inf
    starts: list[float] = []
    streams = rng.spawn(replications)
    over = threading.Event()
    pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1)
    try:
        runs = [
            pool.submit(
                _one, result, inputs, past, job, stream, span=span, horizon=until, over=over
            )
            for stream in streams
        ]
        for number, future in enumerate(runs):
            start = future.result()
            if start is not None:
                starts.append(start)
            if progress is not None:
                progress(number + 1, replications)
    finally:
        # After Ctrl-C the rest is unused: no run begins, and those in progress end.
        over.set()
        pool.shutdown(cancel_futures=True)
    if not starts:
        return None
    edges = [(1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2]
    low, median, high = np.quantile(starts, edges, method="inverted_cdf").tolist()
    few = len(past.ratios if len(past.ratios) else past.runs) < FEWEST_JOBS
    drawn = "even" if few else "ratios" if len(past.ratios) else "run times"
    return Forecast(
        time=time,
        low=low,
        median=median,
        high=high,
        level=LEVEL,
        replications=len(starts),
        run_times="exact" if is_exact else drawn,
        jobs_to_come=span > 0,
    )


def _past(result: Result, time: float, done: Mapping[int, float]) -> _Past:
    log, workload = result.log, result.workload
    jobs = int(np.searchsorted(workload.submit, time, side="right"))
    finished = np.zeros(jobs, np.bool_)
    finished[log.job[(log.kind == FINISH) & (log.time <= time)]] = True
    made = np.zeros(jobs)
    made[list(done)] = list(done.values())
    ratios = (workload.run[:jobs] / workload.estimate[:jobs])[finished]
    return _Past(
        time=time,
        jobs=jobs,
        finished=finished,
        done=made,
        ratios=np.sort(ratios[np.isfinite(ratios)]),
        runs=np.sort(workload.run[:jobs][finished]),
    )


def _one(
    result: Result,
    inputs: Inputs,
    past: _Past,
    job: int,
    rng: np.random.Generator,
    *,
    span: float,
    horizon: float,
    over: threading.Event | None = None,
) -> float | None:
    """Return when the job starts in one replication; None = the past differed.

    Raises:
        CancelledError: `over` was set during the run.
    """

    def check(_: int) -> None:
        if over is not None and over.is_set():
            raise concurrent.futures.CancelledError

    workload, log = result.workload, result.log
    again, submit = _to_come(workload.submit[: past.jobs], past.time, span, rng)
    rows = np.concatenate([np.arange(past.jobs), again])
    run_times = workload.run[rows].copy()
    if inputs.knowledge != "exact":
        unknown = np.flatnonzero(~past.finished[rows])
        made = np.where(unknown < past.jobs, past.done[rows[unknown]], 0.0)
        stated = workload.estimate[rows[unknown]]
        run_times[unknown] = _drawn(made, stated, past, rng)
    moved = submit - workload.submit[again]
    drawn = workload_of_rows(
        workload,
        rows,
        submit=np.concatenate([workload.submit[: past.jobs], submit]),
        run=run_times,
        deadline=workload.deadline[rows] + np.concatenate([np.zeros(past.jobs), moved]),
    )
    found = run(_inputs(inputs, drawn, rows, past.time, result.seed, horizon), check)
    same = int(np.searchsorted(log.time, past.time, side="right"))
    is_same = np.searchsorted(found.time, past.time, side="right") == same and all(
        np.array_equal(getattr(found, name)[:same], getattr(log, name)[:same])
        for name in ("time", "kind", "job", "detail")
    )
    if not is_same:
        return None
    starts = np.flatnonzero(found.is_start[same:] & (found.job[same:] == job))
    return float(found.time[same + starts[0]]) if len(starts) else np.inf


def _inputs(
    inputs: Inputs,
    workload: Workload,
    rows: npt.NDArray[np.intp],
    time: float,
    seed: int,
    horizon: float,
) -> Inputs:
    """Return the inputs of a run with other rows of its jobs; what all jobs share stays the same.

    Therefore the job mix, node classes and the substitute for a missing estimate do not change.
    Jobs of the past keep their random draws, and those to come have draws of their own.
    """
    past = int(np.searchsorted(workload.submit, time, side="right"))
    draw = inputs.draw
    if len(draw):
        to_come = np.array([f"to come {number}" for number in range(len(rows) - past)], np.str_)
        draw = np.concatenate([inputs.draw[:past], text_numbers(to_come)])
    changed = dataclasses.replace(
        inputs,
        workload=workload,
        estimate=workload.run if inputs.knowledge == "exact" else inputs.estimate[rows],
        job_class=inputs.job_class[rows],
        reference_speed=inputs.reference_speed[rows],
        quotas=dataclasses.replace(inputs.quotas, job_set=inputs.quotas.job_set[rows]),
        outages=_foreseen(inputs.outages, time),
        draw=draw,
        random=uniform_at(stream_key(seed, "order"), draw if len(inputs.random) else draw[:0]),
        mixes=tuple(mix for mix in inputs.mixes if mix.jobs <= past),
        horizon=horizon,
    )
    if inputs.plan is None:
        return changed
    from berthline.sim.milp_plan import milp_plan

    return dataclasses.replace(changed, plan=milp_plan(changed))


def _to_come(
    submit: FloatColumn, time: float, span: float, rng: np.random.Generator
) -> tuple[npt.NDArray[np.intp], FloatColumn]:
    """Return which jobs of the past are repeated within a span, and when."""
    length = time - float(submit[0])
    if span <= 0 or length <= 0:
        return np.zeros(0, np.intp), np.zeros(0)
    since = (submit - submit[0] - rng.random() * length) % length
    order = np.argsort(since, kind="stable")
    times: list[FloatColumn] = []
    jobs: list[npt.NDArray[np.intp]] = []
    for turn in range(int(span // length) + 1):
        again = since[order] + turn * length
        inside = again < span
        times.append(again[inside])
        jobs.append(order[inside])
    # The instant itself is over: future jobs arrive after it.
    after = np.maximum(time + np.concatenate(times), np.nextafter(time, np.inf))
    return np.concatenate(jobs), after


def _drawn(
    done: FloatColumn, estimate: FloatColumn, past: _Past, rng: np.random.Generator
) -> FloatColumn:
    """Return run times for jobs, each longer than the progress of the job."""
    unit = np.where(np.isnan(estimate), 1.0, estimate)
    chance = rng.random(len(done))
    found = np.empty(len(done))
    for stated, seen in ((True, past.ratios), (False, past.runs)):
        rows = np.flatnonzero(np.isnan(estimate) != stated)
        least = done[rows] / unit[rows]
        if len(seen) < FEWEST_JOBS:
            longest = 1.0 if stated else max(float(past.runs.max(initial=1.0)), 1.0)
            seen = np.linspace(0.0, longest, 101)[1:]
        first = np.searchsorted(seen, least, side="right")
        index = first + (chance[rows] * (len(seen) - first)).astype(np.intp)
        known = first < len(seen)
        ratio = seen[np.minimum(index, len(seen) - 1)]
        # Longer than all that were seen: up to twice the progress.
        found[rows] = np.where(known, ratio, least * (1 + chance[rows])) * unit[rows]
    result: FloatColumn = np.maximum(found, done * (1 + 1e-9) + 1e-3)
    return result


def _foreseen(outages: Outages, time: float) -> Outages:
    """Return the node changes up to an instant, and the return of nodes that are down then."""
    last: dict[int, bool] = {}
    kept = []
    changes = zip(outages.time.tolist(), outages.node.tolist(), outages.up.tolist(), strict=True)
    for row, (when, node, is_up) in enumerate(changes):
        if when <= time:
            last[node] = bool(is_up)
            kept.append(row)
        elif is_up and last.get(node) is False:
            last[node] = True
            kept.append(row)
    return Outages(outages.time[kept], outages.node[kept], outages.up[kept])
