"""Why jobs of real logs waited beside free GPUs, over each whole log; `make results
RESULTS=whatif_causes` runs it, and fills its tables on the page about the fidelity of whatif."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from benchmarks.result_files import RESULTS, fill_page, read_rows, write_rows
from benchmarks.whatif_fidelity import LOGS, PAGE, WEEK
from benchmarks.winning_settings import TRACES

import berthline as bl
from berthline.errors import BerthlineError, TraceError
from berthline.evaluate.whatif.candidate_clusters import clusters_of_pools
from berthline.evaluate.whatif.idle_waits import (
    STANDSTILL,
    IdleWaits,
    idle_waits,
    use_over_time,
)
from berthline.evaluate.whatif.judged_days import LEAD
from berthline.evaluate.whatif.log_excerpt import (
    eligible_since,
    make_excerpt,
    parts_of,
    recorded_starts,
    run_excerpt,
)
from berthline.traces.inspect.infer_cluster import infer_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from benchmarks.result_files import Row

    from berthline.model.workload import FloatColumn

TABLE = RESULTS / "whatif-causes.csv"
SAMPLES = 16
"""Instants at which each wait is sampled, evenly spread over it."""
HOUR, HOURS_OF_WEEK, WEEKS_SEEN, WEEKS_CLOSED = 3600.0, 168, 4, 3
"""Nothing started in a dedicated hour of the week in WEEKS_CLOSED of WEEKS_SEEN weeks."""
LENGTHS = (60.0, 600.0, 3600.0)
"""Bounds of short, middling and long waits, in seconds."""
ROUNDING = 1e-6


class Log(NamedTuple):
    """A log with recorded waits."""

    jobs: bl.Workload
    since: FloatColumn
    start: FloatColumn
    capacity: float

    @property
    def end(self) -> FloatColumn:
        return self.start + self.jobs.run

    @property
    def waited(self) -> npt.NDArray[np.int64]:
        """The jobs that waited."""
        return np.flatnonzero(np.isfinite(self.start) & (self.start > self.since))


class Waiting(NamedTuple):
    """Waits in samples: one row for each job that waited, one column for each instant."""

    rows: npt.NDArray[np.int64]
    at: FloatColumn
    seconds: FloatColumn
    free: npt.NDArray[np.bool_]
    """As many GPUs as the job wanted were free."""
    still: npt.NDArray[np.bool_]
    """Nothing started for an hour or more."""

    def share(self, chosen: npt.NDArray[np.bool_]) -> float:
        """Return the share of all waiting time in some of the instants."""
        return float(self.seconds[chosen].sum() / self.seconds.sum())


def read(path: Path) -> Log:
    """Return a log with as many GPUs as its header states, or else as were in use at once.

    Raises:
        TraceError: it is not there.
    """
    if not path.exists():
        raise TraceError("the log is not there", where=str(path))
    jobs = bl.load_trace(path)
    capacity = float(infer_cluster(jobs).cluster.total_gpus)
    return Log(jobs, eligible_since(jobs), recorded_starts(jobs), capacity)


def waiting(log: Log) -> Waiting:
    """Return the waits of a log in samples."""
    rows = log.waited
    length = log.start[rows] - log.since[rows]
    at = log.since[rows, None] + length[:, None] * ((np.arange(SAMPLES) + 0.5) / SAMPLES)
    known = np.isfinite(log.start)
    times, held = use_over_time(log.start[known], log.end[known], log.jobs.gpu_amount[known])
    used = held[np.searchsorted(times, at, side="right")]
    starts = np.concatenate([[-np.inf], np.sort(log.start[np.isfinite(log.start)]), [np.inf]])
    after = np.searchsorted(starts, at, side="right")
    still = starts[after] - starts[after - 1] >= STANDSTILL
    seconds = np.repeat(length[:, None] / SAMPLES, SAMPLES, axis=1)
    free = log.capacity - used >= log.jobs.gpu_amount[rows, None]
    return Waiting(rows, at, seconds, free, still)


def beyond_most(
    log: Log, waits: Waiting, group: npt.NDArray[np.int32], amount: FloatColumn
) -> float:
    """Return the share of the waiting that a limit on a group's amount could explain, at most.

    The limit of each group is the most that it ever held, the tightest one that no job of the log
    breaks. A wait counts where GPUs were free, other jobs started, and the job would have exceeded
    the limit.
    """
    over = np.zeros(waits.at.shape, np.bool_)
    of_job = group[waits.rows]
    for each in np.unique(of_job).tolist():
        mine, here = group == each, of_job == each
        times, used = use_over_time(log.start[mine], log.end[mine], amount[mine])
        held = used[np.searchsorted(times, waits.at[here], side="right")]
        over[here] = held + amount[waits.rows[here], None] > used.max() * (1 + ROUNDING)
    return waits.share(over & waits.free & ~waits.still)


def dedicated(log: Log, waits: Waiting) -> tuple[float, float] | None:
    """Return how much waiting beside free GPUs in standstills fell in hours that looked dedicated.

    Also returns the share of all hours that looked so; None if the log is too short. An hour looks
    dedicated if nothing started in the same hour of the week in WEEKS_CLOSED of the WEEKS_SEEN
    weeks before.
    """
    starts = log.start[np.isfinite(log.start)]
    first = float(starts.min())
    weeks = int((starts.max() - first) // (HOURS_OF_WEEK * HOUR))
    if weeks <= WEEKS_SEEN:
        return None
    hour = ((starts - first) // HOUR).astype(np.int64)
    empty = np.bincount(hour, minlength=(weeks + 1) * HOURS_OF_WEEK) == 0
    empty = empty[: weeks * HOURS_OF_WEEK].reshape(weeks, HOURS_OF_WEEK)
    before = sum(empty[w : weeks - WEEKS_SEEN + w].astype(int) for w in range(WEEKS_SEEN))
    closed = np.zeros(empty.shape, np.bool_)
    closed[WEEKS_SEEN:] = before >= WEEKS_CLOSED
    at = ((waits.at - first) // HOUR).astype(np.int64)
    known = (at >= WEEKS_SEEN * HOURS_OF_WEEK) & (at < weeks * HOURS_OF_WEEK)
    counted = known & waits.free & waits.still
    inside = counted.copy()
    inside[counted] = closed.ravel()[at[counted]]
    seconds = waits.seconds
    return float(seconds[inside].sum() / seconds[counted].sum()), float(closed[WEEKS_SEEN:].mean())


def control(log: Log) -> tuple[str, FloatColumn]:
    """Return the starts of the same jobs under a scheduler that nothing hinders."""
    jobs = log.jobs
    scheduler = "fcfs" if np.isnan(jobs.estimate).all() else "fcfs+easy"
    begin, end = float(log.since.min()) - 1, float(log.since.max()) + 1
    nowhere = np.full(len(jobs), -1, np.int32)
    excerpt = make_excerpt(jobs, nowhere, (), begin=begin, end=end)
    cluster = bl.Cluster.parse(f"uniform:1x{int(log.capacity)}").with_conditions({"gpu_speeds": 0})
    run = run_excerpt(
        excerpt,
        parts_of(excerpt, clusters_of_pools(cluster)),
        scheduler,
        knowledge="none" if scheduler == "fcfs" else "estimate",
        seed=0,
        span=(begin, end),
    )
    start = np.full(len(jobs), np.nan)
    start[excerpt.rows] = excerpt.since + run.wait
    return scheduler, start


def idle(log: Log) -> IdleWaits | None:
    """Return the waits beside free GPUs, with all GPUs in one pool."""
    nowhere = np.full(len(log.jobs), -1, np.int32)
    return idle_waits(
        *(log.since, log.start, log.end, log.jobs.gpu_amount, nowhere, log.jobs.user),
        [log.capacity],
        log.waited,
    )


def weeks_before(log: Log, weeks: Sequence[int]) -> float | None:
    """Return the mean wait of the days before each week, as a ratio to the week's own.

    Formula: sum over weeks of jobs x mean of the days before / sum of the weeks' waits. A model
    that gives every job the same wait would reach it. None if no week has jobs before it.
    """
    wait = log.start - log.since
    said = told = 0.0
    for week in weeks:
        begin, end = (week - 1) * WEEK, week * WEEK
        mine = np.isfinite(wait) & (log.since >= begin) & (log.since < end)
        earlier = np.isfinite(wait) & (log.since >= begin - LEAD) & (log.since < begin)
        if earlier.any():
            said += mine.sum() * float(wait[earlier].mean())
            told += float(wait[mine].sum())
    return said / told if told else None


def measure(folder: Path) -> Iterator[Row]:
    """Yield what was measured of each log: a row for each figure."""
    for name, (file, weeks) in LOGS.items():
        print(name, file=sys.stderr, flush=True)
        log = read(folder / file)
        for subject, what, value in figures(log, list(weeks)):
            told = value if isinstance(value, str) else f"{value:.6g}"
            yield {"log": name, "subject": subject, "what": what, "value": told}


def figures(log: Log, weeks: Sequence[int]) -> Iterator[tuple[str, str, float | str]]:
    """Yield the figures of a log: the subject, what it is, its value."""
    jobs, waits = log.jobs, waiting(log)
    stated = dict(jobs.provenance.get("header") or ()).get("MaxJobs")
    scheduler, start = control(log)
    other = log._replace(start=start)
    yield "log", "jobs", len(jobs)
    yield "log", "jobs recorded once", float(stated) if stated else ""
    yield "log", "control", scheduler
    for whose, each in (("recorded", log), ("control", other)):
        mean = float(np.nansum(np.fmax(each.start - each.since, 0)) / np.isfinite(each.start).sum())
        found = idle(each)
        yield whose, "mean wait", mean
        for part in ("share", "standstill", "own_jobs", "others"):
            yield whose, part, 0.0 if found is None else float(getattr(found, part))
    one = np.ones(len(jobs))
    asked = jobs.gpu_amount * np.where(np.isnan(jobs.estimate), jobs.run, jobs.estimate)
    yield "limit", "jobs of a user", beyond_most(log, waits, jobs.user, one)
    yield "limit", "GPUs of a user", beyond_most(log, waits, jobs.user, jobs.gpu_amount)
    yield "limit", "GPU-seconds of a user", beyond_most(log, waits, jobs.user, asked)
    several = len(jobs.pool_names) > 1
    found = beyond_most(log, waits, jobs.pool, jobs.gpu_amount) if several else ""
    yield "limit", "GPUs of a queue", found
    hours = dedicated(log, waits)
    yield "dedicated", "waiting", "" if hours is None else hours[0]
    yield "dedicated", "hours", "" if hours is None else hours[1]
    length = log.start[waits.rows] - log.since[waits.rows]
    for low, high in zip((0.0, *LENGTHS), (*LENGTHS, np.inf), strict=True):
        mine = (length >= low) & (length < high)
        yield "length", f"below {high:g}", float(length[mine].sum() / length.sum())
    yield "constant", "ratio", "" if (ratio := weeks_before(log, weeks)) is None else ratio
    if several:
        for index, queue in enumerate(jobs.pool_names):
            mine = jobs.pool == index
            here = jobs.pool[waits.rows] == index
            yield f"queue {queue}", "jobs", int(mine.sum())
            yield f"queue {queue}", "GPUs", float(jobs.gpus[mine].mean())
            yield f"queue {queue}", "mean wait", float(np.nanmean((log.start - log.since)[mine]))
            yield f"queue {queue}", "waiting", waits.share(np.repeat(here[:, None], SAMPLES, 1))


def parts(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return the computed parts of the page."""
    logs: dict[str, dict[tuple[str, str], str]] = {}
    for row in rows:
        logs.setdefault(row["log"], {})[row["subject"], row["what"]] = row["value"]
    return {
        "causes": _causes(logs),
        "limits": _limits(logs),
        "lengths": _lengths(logs),
        "queues": _queues(logs),
    }


def _causes(logs: dict[str, dict[tuple[str, str], str]]) -> list[str]:
    lines = [
        "| log | | jobs | mean wait, h | beside free GPUs | nothing started for an hour |"
        " the user's own jobs ran | otherwise |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for log, of in logs.items():
        jobs, once = (of["log", key] for key in ("jobs", "jobs recorded once"))
        jobs = f"{int(float(jobs)):,}" + (f" of {int(float(once)):,}" if once else "")
        for whose in ("recorded", "control"):
            told = "recorded" if whose == "recorded" else f"`{of['log', 'control']}`"
            shares = (f"{float(of[whose, part]):.0%}" for part in ("standstill", "own_jobs"))
            lines.append(
                f"| {log} | {told} | {jobs} | "
                f"{float(of[whose, 'mean wait']) / HOUR:.2f} | {float(of[whose, 'share']):.0%} | "
                f"{' | '.join(shares)} | {float(of[whose, 'others']):.0%} |"
            )
    return lines


def _limits(logs: dict[str, dict[tuple[str, str], str]]) -> list[str]:
    kinds = ("jobs of a user", "GPUs of a user", "GPU-seconds of a user", "GPUs of a queue")
    lines = [
        f"| log | {' | '.join(kinds)} | standstills in dedicated hours | such hours |",
        "| --- |" + " ---: |" * (len(kinds) + 2),
    ]
    for log, of in logs.items():
        cells = [_percent(of["limit", kind], 1) for kind in kinds]
        cells += [_percent(of["dedicated", what], 0) for what in ("waiting", "hours")]
        lines.append(f"| {log} | {' | '.join(cells)} |")
    return lines


def _lengths(logs: dict[str, dict[tuple[str, str], str]]) -> list[str]:
    lines = [
        "| log | in waits below 1 min | 1 to 10 min | 10 min to 1 h | above |"
        " days before / recorded mean wait |",
        "| --- |" + " ---: |" * 5,
    ]
    for log, of in logs.items():
        cells = [_percent(of["length", f"below {high:g}"], 0) for high in (*LENGTHS, np.inf)]
        ratio = of["constant", "ratio"]
        lines.append(f"| {log} | {' | '.join(cells)} | {f'{float(ratio):.2f}' if ratio else '-'} |")
    return lines


def _queues(logs: dict[str, dict[tuple[str, str], str]]) -> list[str]:
    lines = [
        "| log | queue | jobs | mean GPUs | mean wait, h | of all waiting |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for log, of in logs.items():
        lines += [
            f"| {log} | {subject.removeprefix('queue ')} | {int(of[subject, 'jobs']):,} | "
            f"{float(of[subject, 'GPUs']):.1f} | "
            f"{float(of[subject, 'mean wait']) / HOUR:.1f} | "
            f"{_percent(of[subject, 'waiting'], 1)} |"
            for subject in dict.fromkeys(name for name, _ in of if name.startswith("queue "))
        ]
    return lines


def _percent(value: str, digits: int) -> str:
    return f"{100 * float(value):.{digits}f} %" if value else "-"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and write the table and its parts of the page."""
    from pathlib import Path

    parser = argparse.ArgumentParser(prog="whatif_causes", description=__doc__)
    parser.add_argument("traces", type=Path, nargs="?", default=TRACES, help="where the logs are")
    parser.add_argument("--from-csv", action="store_true", help="write the page; measure nothing")
    options = parser.parse_args(argv)
    try:
        if not options.from_csv:
            write_rows(TABLE, measure(options.traces))
        fill_page(PAGE, parts(read_rows(TABLE)))
    except BerthlineError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(f"written: {TABLE.name} and {PAGE}.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
