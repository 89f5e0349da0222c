"""whatif: what other schedulers would have done in a period of a log.

First, today's scheduler is modelled: of some candidates, the one whose simulated waits are closest
to the recorded ones (today_model.py). Alternatives are then compared with that model, never with
the recorded waits: both sides are the same simulator on the same jobs, so both have its errors. The
error of the model is shown beside every difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.evaluate.metrics.groups import SIZES, size_classes
from berthline.evaluate.whatif.candidate_clusters import (
    ClusterExcerpt,
    settings_of,
)
from berthline.evaluate.whatif.candidate_models import (
    PLACEMENTS,
    alternatives_for,
    models_for,
    too_slow,
    with_placement,
)
from berthline.evaluate.whatif.fidelity import daily_error, fidelity
from berthline.evaluate.whatif.hidden_limits import (
    AVAILABLE,
    USER_LIMITS,
    limit_findings,
    most_held_by_a_user,
)
from berthline.evaluate.whatif.idle_waits import IdleWaits, idle_waits
from berthline.evaluate.whatif.judged_days import TAIL, begin_of_excerpt, days_of
from berthline.evaluate.whatif.keep_answer import keep_answer
from berthline.evaluate.whatif.log_excerpt import LogExcerpt, eligible_since, recorded_starts
from berthline.evaluate.whatif.outcome import Judged, outcome, user_error, with_verdicts
from berthline.evaluate.whatif.period import LogClock, read_period
from berthline.evaluate.whatif.read_log import read_log
from berthline.evaluate.whatif.today_model import CLOSEST, USUAL, ExcerptRuns, Progress, fit_models
from berthline.evaluate.whatif.whatif_result import (
    ClusterFacts,
    FidelitySplit,
    Replayed,
    SchedulerOutcome,
    WhatIf,
)
from berthline.policies.scheduler import Scheduler
from berthline.runs.run_directory import open_directory
from berthline.runs.run_output import RunOutput, argument_name
from berthline.text_or_path import text_of
from berthline.traces.cluster_argument import resolve_cluster
from berthline.traces.formats.row_filter import NEVER_STARTED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from berthline.evaluate.whatif.judged_days import Days
    from berthline.evaluate.whatif.log_excerpt import ExcerptRun
    from berthline.evaluate.whatif.today_model import FittedModel
    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload
    from berthline.text_or_path import TextOrPath
    from berthline.traces.inspect.infer_cluster import Conclusion


def whatif(
    workload: Workload | TextOrPath,
    *,
    begin: float | str | None = None,
    end: float | str | None = None,
    week: int | None = None,
    last: str | None = None,
    cluster: Cluster | TextOrPath | None = None,
    today: str | None = None,
    schedulers: Sequence[str] | None = None,
    knowledge: str | None = None,
    seed: int = 0,
    format: str | None = None,  # noqa: A002 - the same name as in load_trace
    settings: Mapping[str, object] | None = None,
    out: TextOrPath | RunOutput | None = None,
    force: bool = False,
    remark: Callable[[str], None] | None = None,
    progress: Progress | None = None,
) -> WhatIf:
    """Return what schedulers would have done to the jobs of a log between two times.

    Args:
        workload: the log: its file, or a Workload with its history.
        begin: start of the period: seconds of the log's clock, a date such as `"2024-03-04"`, or a
            time since the log began such as `"3d"`.
        end: its end; None = 7 days after `begin`.
        week: week N of the log instead; 1 is its first 7 days.
        last: the last part of the log instead, such as `"36h"`; None = the last 7 days.
        cluster: the nodes at the time: a Cluster or a CLUSTER argument; None = infer them from the
            log.
        today: the scheduler in use; None = the candidate that models the waits best.
        schedulers: the alternatives; None = a list that fits what is known.
        knowledge: what schedulers know of run times; None = limits where the log has them.
        seed: for random decisions of schedulers, and for the intervals.
        format: format of a log file; None = recognise it.
        settings: options of its format.
        out: write a run directory, as `berthline whatif` does.
        force: replace an earlier run of `whatif` there.
        remark: called with a sentence if a node list omits something or a value is a guess.
        progress: called before each run with (done, total, label).

    Raises:
        ConfigError: a scheduler needs run times that are not known, there is no such period, or
            the directory must not be replaced.
        TraceError: the log has no recorded starts, or too few jobs in the period.
    """
    asked = {
        "workload": argument_name(workload),
        "cluster": None if cluster is None else argument_name(cluster),
        "today": today,
        "schedulers": None if schedulers is None else list(schedulers),
        "from": begin,
        "to": end,
        "week": week,
        "last": last,
        "knowledge": knowledge,
        "seed": seed,
        "set": {name: str(value) for name, value in (settings or {}).items()},
        "format": format,
    }
    nodes = None if cluster is None else resolve_cluster(cluster, remark)
    output = RunOutput.of(out, "berthline.whatif(...)")
    directory = open_directory(
        None if output is None else text_of("out", output.path), verb="whatif", force=force
    )
    log = read_log(workload, format, settings or {})
    low, high = read_period(
        LogClock.of(log),
        float(eligible_since(log).max()),
        begin=begin,
        end=end,
        week=week,
        last=last,
    )
    found = _answer(log, low, high, nodes, today, schedulers, knowledge, seed, progress)
    if directory is not None and output is not None:
        keep_answer(directory, output, asked, found, log, nodes)
    return found


def _answer(
    workload: Workload,
    begin: float,
    end: float,
    nodes: Cluster | None,
    today: str | None,
    schedulers: Sequence[str] | None,
    knowledge: str | None,
    seed: int,
    progress: Progress | None,
) -> WhatIf:
    """Return the answer about a period of a log that has been read."""
    known = knowledge or ("none" if np.isnan(workload.estimate).all() else "estimate")
    settings = settings_of(workload, nodes, begin_of_excerpt(workload, begin), end + TAIL)
    num_nodes = settings[0].cluster.num_nodes
    left_out = too_slow(len(settings[0].excerpt.workload) * num_nodes)
    candidates = {today: "as given"} if today else models_for(workload, known)
    if not today:
        candidates = {text: candidates[text] for text in candidates if text not in left_out}
    alternatives = list(schedulers or (s for s in alternatives_for(known) if s not in left_out))
    places = not today and num_nodes > 1
    total = len(settings) * len(candidates) + len(set(alternatives) - candidates.keys())
    total += (CLOSEST if left_out else len(candidates)) * len(PLACEMENTS) if places else 0
    if nodes is None:
        tried = min(CLOSEST + len(USUAL), len(candidates))
        total += tried * (1 + len(USER_LIMITS) + (0 if num_nodes > 1 else len(AVAILABLE)))
    runs = ExcerptRuns(known, seed, (begin, end), total, progress)
    days = days_of(settings[0].excerpt, begin, end)
    models = fit_models(
        candidates,
        settings,
        days,
        runs,
        most_held=most_held_by_a_user(workload, recorded_starts(workload), begin),
        places=places,
        is_large=bool(left_out),
    )
    model = models[0]
    basis = _basis(model.setting, days, model.run, begin, end, seed)
    judged = days.judged & ~model.run.rejected
    return WhatIf(
        log=workload.name,
        begin=begin,
        end=end,
        knowledge=known,
        cluster=_cluster_facts(model.setting),
        replay=_replayed(workload, model, days, begin),
        split=FidelitySplit(
            how=days.how, chosen_jobs=int(days.chosen.sum()), judged_jobs=int(judged.sum())
        ),
        models=[each.fit for each in models],
        today=model.fit.scheduler,
        today_given=today is not None,
        fidelity=fidelity(
            model.run.wait[judged],
            model.setting.excerpt.recorded[judged],
            _sizes(model.setting.excerpt)[judged],
        ),
        fidelity_by_size={
            label: fidelity(model.run.wait[rows], model.setting.excerpt.recorded[rows])
            for label, rows in _by_size(model.setting.excerpt, judged).items()
        },
        error_seconds=basis.error,
        user_error_seconds=user_error(model.run, basis, np.flatnonzero(judged)),
        idle_waits=_idle_waits(workload, model.setting, np.flatnonzero(judged)),
        outcomes=with_verdicts(_outcomes(model, alternatives, basis, runs)),
        left_out=[text for text in left_out if text not in alternatives],
        seed=seed,
    )


def _outcomes(
    model: FittedModel, alternatives: Sequence[str], basis: Judged, runs: ExcerptRuns
) -> list[SchedulerOutcome]:
    """Return the outcome of the model, then those of the alternatives.

    Order and discipline are compared: all place jobs as today's scheduler does.
    """
    today = Scheduler.parse(model.fit.scheduler)
    if today.placement in PLACEMENTS:
        alternatives = [with_placement(text, today.placement) for text in alternatives]
    return [outcome(model.fit.scheduler, model.run, model.run, basis)] + [
        outcome(text, runs.of(model.setting, text), model.run, basis)
        for text in alternatives
        if str(Scheduler.parse(text)) != str(today)
    ]


def _cluster_facts(setting: ClusterExcerpt) -> ClusterFacts:
    return ClusterFacts(
        name=setting.cluster.name,
        nodes=setting.cluster.num_nodes,
        gpus=_all_gpus(setting),
        available=setting.available,
        user_limits=dict(setting.user_limits),
        pools=list(setting.cluster.pool_names),
        findings=_findings(setting),
    )


def _findings(setting: ClusterExcerpt) -> list[Conclusion]:
    """Return the findings about an inferred cluster; empty = it was given."""
    if setting.inferred is None:
        return []
    return [*setting.inferred.findings, *limit_findings(setting)]


def _all_gpus(setting: ClusterExcerpt) -> int:
    """Return the GPUs of the cluster, including those that were not available."""
    inferred = setting.inferred
    return setting.cluster.total_gpus if inferred is None else inferred.cluster.total_gpus


def _basis(
    setting: ClusterExcerpt, days: Days, modelled: ExcerptRun, begin: float, end: float, seed: int
) -> Judged:
    excerpt = setting.excerpt
    measured, judged = (mask & ~modelled.rejected for mask in (days.measured, days.judged))
    wait, recorded = modelled.wait, excerpt.recorded
    return Judged(
        excerpt=excerpt,
        rows=np.flatnonzero(measured),
        day=days.day[measured],
        begin=begin,
        end=end,
        gpus=_all_gpus(setting),
        error=daily_error(wait[judged], recorded[judged], days.day[judged]),
        error_by_size={
            label: daily_error(wait[rows], recorded[rows], days.day[rows])
            for label, rows in _by_size(excerpt, judged).items()
        },
        seed=seed,
    )


def _sizes(excerpt: LogExcerpt) -> npt.NDArray[np.int64]:
    return size_classes(excerpt.workload.gpus, excerpt.workload.gpu_milli)


def _by_size(excerpt: LogExcerpt, mask: npt.NDArray[np.bool_]) -> dict[str, npt.NDArray[np.int64]]:
    """Return the rows of each size class."""
    size = _sizes(excerpt)
    return {
        SIZES[each]: np.flatnonzero(mask & (size == each))
        for each in np.unique(size[mask]).tolist()
    }


def _idle_waits(
    workload: Workload, setting: ClusterExcerpt, judged: npt.NDArray[np.int64]
) -> IdleWaits | None:
    """Return the share of recorded waits with enough free GPUs, of some jobs of the excerpt."""
    cluster, start = setting.cluster, recorded_starts(workload)
    pool, capacity = setting.pool, [float(cluster.total_gpus)]
    if (pool >= 0).any():
        capacity = np.bincount(
            np.maximum(cluster.pool, 0), cluster.gpus, len(cluster.pool_names)
        ).tolist()
    return idle_waits(
        eligible_since(workload),
        start,
        start + workload.run,
        workload.gpu_amount,
        pool,
        workload.user,
        capacity,
        setting.excerpt.rows[judged],
    )


def _replayed(workload: Workload, model: FittedModel, days: Days, begin: float) -> Replayed:
    excerpt, history = model.setting.excerpt, workload.history
    since, start = eligible_since(workload), recorded_starts(workload)
    running = history.running if history is not None else None
    measured = days.measured & ~model.run.rejected
    return Replayed(
        jobs=int(measured.sum()),
        users=len(np.unique(excerpt.workload.user[measured])),
        lead_seconds=begin - excerpt.begin,
        running_at_begin=excerpt.running,
        queued_at_begin=excerpt.queued,
        running_at_period=int(((start < begin) & (start + workload.run > begin)).sum()),
        queued_at_period=int(((since < begin) & (start >= begin)).sum()),
        others=len(measured) - excerpt.running - excerpt.queued - int(measured.sum()),
        start_unknown=int(np.isnan(start).sum()),
        eligible_later=int((since > workload.submit).sum()),
        too_large=int((days.measured & model.run.rejected).sum()),
        still_running=0 if running is None else int(running.sum()),
        never_started=int((workload.provenance.get("dropped") or {}).get(NEVER_STARTED, 0)),
    )
