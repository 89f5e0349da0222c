"""Outcome of a scheduler on an excerpt, by user and size, against the model of today's."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt

from berthline.evaluate.compare.judge import JCT_TOLERANCE, TRADE
from berthline.evaluate.metrics.distribution import distribution
from berthline.evaluate.metrics.groups import SIZES, size_classes
from berthline.evaluate.metrics.slowdown import bounded_slowdown
from berthline.evaluate.metrics.starvation import of_waits
from berthline.evaluate.statistics.multiple_comparisons import corrected_verdicts
from berthline.evaluate.statistics.paired import Ratio, paired_ratio
from berthline.evaluate.whatif.log_excerpt import LogExcerpt
from berthline.evaluate.whatif.whatif_result import AgainstToday, GroupOutcome, SchedulerOutcome
from berthline.model.workload_rows import job_name

if TYPE_CHECKING:
    from berthline.evaluate.whatif.log_excerpt import ExcerptRun
    from berthline.model.workload import FloatColumn

NOTICED_SECONDS, NOTICED_SHARE = 60.0, 0.05
"""A user waits longer, or shorter, if the mean wait changes by more than both."""

DOUBTFUL = 0.5
"""If the model's error could explain this share of a change or more, the change is doubtful."""

DOUBT = "; may be the model's error"
"""Added to the verdict on a doubtful change."""

FEWEST_OF_USER = 5


@dataclasses.dataclass(frozen=True, eq=False)
class Judged:
    """What outcomes are measured on.

    Attributes:
        excerpt: the jobs.
        rows: those of the period that count.
        day: the day of the period on which each of these jobs was submitted.
        begin: start of the period, on the log's clock.
        end: its end.
        gpus: of the cluster.
        error: error of the model in the mean wait of a day, in seconds.
        error_by_size: the same by size class.
        seed: of the intervals.
    """

    excerpt: LogExcerpt
    rows: npt.NDArray[np.int64]
    day: npt.NDArray[np.int64]
    begin: float
    end: float
    gpus: int
    error: float
    error_by_size: Mapping[str, float]
    seed: int


def outcome(scheduler: str, run: ExcerptRun, today: ExcerptRun, judged: Judged) -> SchedulerOutcome:
    """Return the outcome of a run; `today` is the run of today's scheduler, or `run` itself."""
    rows, workload = judged.rows, judged.excerpt.workload
    wait, jct = run.wait[rows], run.jct[rows]
    change = wait - today.wait[rows]
    slowdown = bounded_slowdown(jct, workload.run[rows])
    since = judged.excerpt.since[rows]
    order = np.argsort(since, kind="stable")
    finish = since + jct
    longest = int(rows[wait.argmax()])
    sizes = size_classes(workload.gpus[rows], workload.gpu_milli[rows])
    by_user = _groups(workload.user[rows], workload.user_names, wait, jct, change, {})
    return SchedulerOutcome(
        scheduler=scheduler,
        wait=distribution(wait.copy()),
        jct=distribution(jct.copy()),
        bounded_slowdown=distribution(slowdown.copy()),
        starvation=of_waits(
            wait[order],
            since[order],
            workload.run[rows][order],
            job=longest,
            name=job_name(workload, longest),
        ),
        makespan=float(finish.max()) - judged.begin,
        utilization=run.busy / (judged.gpus * (judged.end - judged.begin)),
        by_size=_groups(sizes, SIZES, wait, jct, change, judged.error_by_size),
        by_user=by_user,
        against_today=None if run is today else _against(run, today, judged, by_user),
    )


def user_error(run: ExcerptRun, judged: Judged, rows: npt.NDArray[np.int64]) -> float | None:
    """Return the error in the mean wait of a user: the median over users with enough jobs."""
    user = judged.excerpt.workload.user[rows]
    jobs = np.bincount(user)
    off = np.bincount(user, run.wait[rows] - judged.excerpt.recorded[rows])
    some = jobs >= FEWEST_OF_USER
    return float(np.median(np.abs(off[some]) / jobs[some])) if some.any() else None


def _against(
    run: ExcerptRun, today: ExcerptRun, judged: Judged, by_user: Mapping[str, GroupOutcome]
) -> AgainstToday:
    rows, run_time = judged.rows, judged.excerpt.workload.run[judged.rows]
    change = float((run.wait[rows] - today.wait[rows]).mean())
    jct = _daily(run.jct[rows], today.jct[rows], judged)
    slowdown = _daily(
        bounded_slowdown(run.jct[rows], run_time),
        bounded_slowdown(today.jct[rows], run_time),
        judged,
    )
    share = None if change == 0 else min(1.0, judged.error / abs(change))
    longer = sum(_noticed(group) > 0 for group in by_user.values())
    shorter = sum(_noticed(group) < 0 for group in by_user.values())
    return AgainstToday(
        wait_change=change,
        could_explain=share,
        jct=jct,
        bounded_slowdown=slowdown,
        verdict="",  # set later: it depends on the number of comparisons
        users_longer=longer,
        users_shorter=shorter,
    )


def _noticed(group: GroupOutcome) -> int:
    """Return 1 for a group that waits longer, -1 for one that waits shorter, 0 for neither."""
    before = group.wait_mean - group.wait_change
    if abs(group.wait_change) <= max(NOTICED_SECONDS, NOTICED_SHARE * before):
        return 0
    return 1 if group.wait_change > 0 else -1


def with_verdicts(outcomes: list[SchedulerOutcome]) -> list[SchedulerOutcome]:
    """Return the outcomes with verdicts, which are corrected for the number of comparisons."""
    against = [each.against_today for each in outcomes]
    words = corrected_verdicts([None if each is None else each.jct for each in against])
    return [
        each
        if each.against_today is None
        else msgspec.structs.replace(
            each,
            against_today=msgspec.structs.replace(
                each.against_today, verdict=said(each.against_today, text or "")
            ),
        )
        for each, text in zip(outcomes, words, strict=True)
    ]


def said(against: AgainstToday, jct: str) -> str:
    """Return the verdict: JCT decides; a doubt about the model is added."""
    share, slowdown, ratio = against.could_explain, against.bounded_slowdown, against.jct.ratio
    if share is None:
        return "no change"
    won = slowdown.ratio is not None and (slowdown.high or slowdown.ratio) < 1
    text = TRADE if won and ratio is not None and ratio > JCT_TOLERANCE else jct
    return text + DOUBT if share >= DOUBTFUL else text


def _daily(values: FloatColumn, baseline: FloatColumn, judged: Judged) -> Ratio:
    """Return the ratio of the means of each day, paired by day."""
    day = judged.day - judged.day.min()
    jobs = np.bincount(day)
    some = jobs > 0
    means = [
        (np.bincount(day, column)[some] / jobs[some]).tolist() for column in (values, baseline)
    ]
    return paired_ratio(means[0], means[1], seed=judged.seed)


def _groups(
    member: npt.NDArray[np.integer],
    names: tuple[str, ...],
    wait: FloatColumn,
    jct: FloatColumn,
    change: FloatColumn,
    errors: Mapping[str, float],
) -> dict[str, GroupOutcome]:
    order = np.argsort(member, kind="stable")
    present, first = np.unique(member[order], return_index=True)
    found = {}
    for number, rows in zip(present.tolist(), np.split(order, first[1:]), strict=True):
        found[names[number]] = GroupOutcome(
            jobs=len(rows),
            wait_mean=float(wait[rows].mean()),
            wait_p95=float(np.percentile(wait[rows], 95)),
            jct_mean=float(jct[rows].mean()),
            wait_change=float(change[rows].mean()),
            wait_error=errors.get(names[number]),
        )
    return found
