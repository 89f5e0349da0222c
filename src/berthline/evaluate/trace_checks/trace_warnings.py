"""Oddities of a workload: it is readable, but perhaps not what the user expects.

Each check is a function that yields its findings; `CHECKS` lists them. Checks examine the jobs as
loaded; the thresholds are chosen so that the clean public logs pass most of them.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.evaluate.trace_checks.card import trace_card
from berthline.evaluate.trace_checks.cluster_fit import impossible_jobs
from berthline.model.schedule import REJECT_REASONS
from berthline.traces.inspect.arrival_pattern import DAY, local_clock
from berthline.traces.inspect.impossible_records import impossible_use

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload

LONG_RUN = 30 * DAY
LONG_GAP = 2 * DAY
_GAPS = 50
"""A pause is odd if it is also this many times as long as 99 % of all times between jobs."""
_BURST_JOBS, _BURST_SHARE = 100, 0.005
_CUT_JOBS, _CUT_SHARE = 20, 0.002
_EARLIEST, _LATEST = 19 * 365.25 * DAY, 130 * 365.25 * DAY  # 1989 and 2100
_FULL = 1.0


@dataclasses.dataclass(frozen=True)
class TraceWarning:
    """Something odd.

    Attributes:
        what: in words, with the number of jobs.
        job: the row of an example, -1 = not about a single job.
        hint: what to do about it.
        line: the line of an example, if it is known without the job; 0 = not known.
    """

    what: str
    job: int = -1
    hint: str = ""
    line: int = 0


def find_warnings(workload: Workload, cluster: Cluster | None = None) -> list[TraceWarning]:
    """Return everything odd about a workload, and about running it on a cluster."""
    found = [warning for check in CHECKS for warning in check(workload)]
    return found if cluster is None else [*found, *_on_cluster(workload, cluster)]


def _left_out(workload: Workload) -> Iterator[TraceWarning]:
    dropped = workload.provenance.get("dropped") or {}
    for why, count in dropped.items():
        yield TraceWarning(f"{_rows(count)} left out: {why}")
    for what, count in (workload.provenance.get("rounded") or {}).items():
        if count:
            yield TraceWarning(f"{_are(count)} changed: {what}")


def _too_short_estimates(workload: Workload) -> Iterator[TraceWarning]:
    over = workload.run > workload.estimate
    if over.any():
        yield TraceWarning(
            f"{_jobs(over.sum())} ran longer than the estimate",
            _first(over),
            "a batch system would have killed them; here they run to the end",
        )
    known = ~np.isnan(workload.estimate)
    if known.any() and not known.all():
        yield TraceWarning(
            f"{_have((~known).sum())} no estimate, though others do",
            _first(~known),
            "under knowledge estimate they get the largest estimate stated so far",
        )


def _repeated_ids(workload: Workload) -> Iterator[TraceWarning]:
    if workload.names is None:
        columns = (
            *(workload.submit, workload.run, workload.gpu_amount, workload.cpus),
            *(workload.memory_mib, workload.user, workload.pool),
        )
        rows = np.stack([column.astype(np.float64) for column in columns], axis=1)
        _, first = np.unique(rows, axis=0, return_index=True)
        if len(first) < len(rows):
            again = np.ones(len(rows), np.bool_)
            again[first] = False
            yield TraceWarning(
                f"{_are(again.sum())} the same as another in time, size and user",
                _first(again),
                "without ids, repeated rows and equal jobs look the same; all are kept",
            )
        return
    _, inverse, counts = np.unique(workload.names, return_inverse=True, return_counts=True)
    repeated = counts[inverse] > 1
    if repeated.any():
        yield TraceWarning(
            f"{_have(repeated.sum())} the id of another",
            _first(repeated),
            "they are kept as different jobs",
        )


def _bursts(workload: Workload) -> Iterator[TraceWarning]:
    times, first, counts = np.unique(workload.submit, return_index=True, return_counts=True)
    if len(times) == 1 and len(workload) > 1:
        yield TraceWarning("all jobs are submitted at the same time: the load cannot be set")
        return
    large = counts >= max(_BURST_JOBS, _BURST_SHARE * len(workload))
    for at in np.flatnonzero(large)[:3].tolist():
        hint = "they were probably running when the trace began" if at == 0 else ""
        yield TraceWarning(
            f"{_are(counts[at])} submitted at the same instant", int(first[at]), hint
        )


def _clock(workload: Workload) -> Iterator[TraceWarning]:
    gaps = np.diff(workload.submit)
    if gaps.size:
        usual = float(np.quantile(gaps, 0.99))
        long = np.flatnonzero(gaps > max(LONG_GAP, _GAPS * usual))
        if long.size:
            longest = long[np.argmax(gaps[long])]
            more = f", and {long.size - 1} more such pauses" if long.size > 1 else ""
            yield TraceWarning(
                f"no job is submitted for {gaps[longest] / DAY:,.1f} days{more}",
                int(longest) + 1,
                "a downtime, a lost part of the log, or a wrong date",
            )
    origin = workload.provenance.get("origin_unix_time")
    if origin is not None and not _EARLIEST < origin < _LATEST:
        date = local_clock(workload).date(0) or "beyond the calendar"
        yield TraceWarning(
            f"the first job is dated {date}",
            0,
            "the unit or the date is wrong, or the publisher hid the date",
        )


def _run_times(workload: Workload) -> Iterator[TraceWarning]:
    run = workload.run
    long = run > LONG_RUN
    if long.any():
        longest = int(np.argmax(run))
        yield TraceWarning(
            f"{_jobs(long.sum())} ran for more than 30 days, the longest for "
            f"{run[longest] / DAY:,.0f}",
            longest,
        )
    at_most = run == run.max()
    if max(_CUT_JOBS, _CUT_SHARE * len(run)) <= at_most.sum() < len(run) / 2:
        yield TraceWarning(
            f"{_jobs(at_most.sum())} ran for {run.max():,.0f} s exactly, the longest of all",
            _first(at_most),
            "run times look cut off there, by a time limit or by the program that made the file",
        )
    median = float(np.median(run))
    if median > LONG_RUN or median < 1:
        shown = f"{median / DAY:,.0f} days" if median > 1 else f"{median:g} s"
        yield TraceWarning(
            f"half of the jobs run for {shown} or more", -1, "check the unit of run times"
        )


def _machine(workload: Workload) -> Iterator[TraceWarning]:
    processors = workload.provenance.get("max_procs")
    if isinstance(processors, int):
        large = workload.gpus > processors
        if large.any():
            yield TraceWarning(
                f"{_are(large.sum())} larger than the machine that the file states "
                f"({processors:,} processors)",
                _first(large),
            )
    wrong = impossible_use(workload)
    if wrong is not None:
        yield TraceWarning(
            f"impossible records: {wrong.in_words()}",
            wrong.first,
            "berthline whatif takes recorded waits as they are: leave that time out",
        )


CHECKS: tuple[Callable[[Workload], Iterator[TraceWarning]], ...] = (
    _left_out,
    _repeated_ids,
    _clock,
    _bursts,
    _run_times,
    _too_short_estimates,
    _machine,
)
"""All checks of a workload by itself."""


def _on_cluster(workload: Workload, cluster: Cluster) -> Iterator[TraceWarning]:
    reasons = impossible_jobs(workload, cluster)
    for number, reason in enumerate(REJECT_REASONS):
        impossible = reasons == number
        if impossible.any():
            yield TraceWarning(
                f"{_jobs(impossible.sum())} can never run on {cluster.name}: {reason}",
                _first(impossible),
                "the simulator rejects them, and counts them",
            )
    pressed = trace_card(workload, cluster).cluster
    assert pressed is not None
    if pressed.load is not None and pressed.load > _FULL:
        yield TraceWarning(
            f"the load on {cluster.name} is {pressed.load:.2f}: more work than it can do",
            -1,
            "waits grow without limit; use a larger cluster or a load below 1",
        )
    for kind, entries in (("GPU type", pressed.by_gpu_type), ("pool", pressed.by_pool)):
        for entry in entries:
            if entry.oversubscription is not None and entry.oversubscription > _FULL:
                yield TraceWarning(
                    f"{kind} {entry.name} is oversubscribed {entry.oversubscription:.2f} times: "
                    f"{entry.demand_mean:,.0f} GPUs are needed on average, of {entry.gpus:,}"
                )


def _first(jobs: npt.NDArray[np.bool_]) -> int:
    return int(np.argmax(jobs))


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count:,} jobs"


def _are(count: int) -> str:
    return "1 job is" if count == 1 else f"{count:,} jobs are"


def _have(count: int) -> str:
    return "1 job has" if count == 1 else f"{count:,} jobs have"


def _rows(count: int) -> str:
    return "1 row is" if count == 1 else f"{count:,} rows are"
