"""whatif: what other schedulers would have done to a stretch of a log.

Today's scheduler is modelled first: of some candidates, the one whose simulated waits are closest
to the recorded ones, chosen on other days than those on which it is judged. Alternatives are then
compared with that model, never with the recorded waits: both sides are the same simulator on the
same jobs, so what it gets wrong is wrong on both. How wrong it is, is said beside every difference.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.errors import TraceError
from berthline.evaluate.fidelity import daily_error, fidelity, group_error_factor
from berthline.evaluate.groups import SIZES, size_classes
from berthline.evaluate.idle_waits import idle_wait_share
from berthline.evaluate.whatif_days import FEWEST_JOBS, LEAD, begin_of_replay, days_of
from berthline.evaluate.whatif_models import (
    PLACEMENTS,
    SLOW,
    alternatives_for,
    models_for,
    too_slow,
    with_placement,
)
from berthline.evaluate.whatif_outcome import Judged, outcome, user_error, with_verdicts
from berthline.evaluate.whatif_replay import (
    Replay,
    Run,
    eligible_since,
    recorded_starts,
    run_replay,
)
from berthline.evaluate.whatif_result import ClusterFacts, ModelFit, Replayed, Split, WhatIf
from berthline.evaluate.whatif_settings import APART, Setting, settings_of
from berthline.policies.scheduler import Scheduler
from berthline.traces.infer_cluster import infer_cluster
from berthline.traces.usable import NEVER_STARTED

if TYPE_CHECKING:
    from berthline.evaluate.whatif_days import Days
    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload

Progress = Callable[[int, int, str], None]

CLOSEST = 3
"""A slow model, and any model on a large log, is tried with other placements only if it is among so
many of the closest."""


@dataclasses.dataclass(frozen=True, eq=False)
class _Fit:
    """A candidate for today's scheduler, where, and what it gave."""

    model: ModelFit
    setting: Setting
    run: Run

    def distance(self) -> float:
        return self.model.distance


def whatif(
    workload: Workload,
    *,
    begin: float,
    end: float,
    cluster: Cluster | None = None,
    today: str | None = None,
    schedulers: Sequence[str] | None = None,
    knowledge: str | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> WhatIf:
    """Return what schedulers would have done to the jobs of a log between two times.

    Args:
        workload: the jobs of the log, with their history.
        begin: start of the period, in seconds of the log's clock.
        end: its end.
        cluster: the nodes there were; None = infer them from the log.
        today: the scheduler in use; None = the candidate that models the waits best.
        schedulers: the alternatives; None = a list that fits what is known.
        knowledge: what schedulers know of run times; None = limits where the log has them.
        seed: for whatever is random in a scheduler, and for the intervals.
        progress: called after each run with (done, total, label).

    Raises:
        ConfigError: a scheduler needs run times that nobody knew.
        TraceError: the log has no recorded starts, or too few jobs in the period.
    """
    known = knowledge or ("none" if np.isnan(workload.estimate).all() else "estimate")
    settings = settings_of(workload, cluster, begin_of_replay(workload, begin), end + LEAD)
    size = len(settings[0].replay.workload) * settings[0].cluster.num_nodes
    left_out = too_slow(size)
    candidates = models_for(workload, known)
    candidates = {text: candidates[text] for text in candidates if text not in left_out}
    candidates = {today: "as given"} if today else candidates
    alternatives = [text for text in alternatives_for(known) if text not in left_out]
    alternatives = list(schedulers) if schedulers else alternatives
    days = days_of(settings[0].replay, begin, end)
    total = len(settings) * len(candidates) + len(set(alternatives) - candidates.keys())
    places = not today and settings[0].cluster.num_nodes > 1
    total += (CLOSEST if left_out else len(candidates)) * len(PLACEMENTS) if places else 0
    runs: dict[tuple[str, str], Run] = {}

    def run(setting: Setting, scheduler: str) -> Run:
        if (setting.name, scheduler) not in runs:
            if progress is not None:
                progress(len(runs), total, scheduler)
            runs[setting.name, scheduler] = run_replay(
                setting.replay,
                setting.parts,
                scheduler,
                knowledge=known,
                seed=seed,
                span=(begin, end),
            )
        return runs[setting.name, scheduler]

    def fit(setting: Setting, scheduler: str, meaning: str) -> _Fit:
        found = run(setting, scheduler)
        _check_enough(setting, days, found)
        rows = days.chosen & ~found.rejected
        waits = found.wait[rows], setting.replay.recorded[rows]
        close, jobs = fidelity(*waits), setting.replay.workload
        sizes = group_error_factor(*waits, size_classes(jobs.gpus, jobs.gpu_milli)[rows])
        return _Fit(
            ModelFit(
                scheduler=scheduler,
                meaning=meaning,
                pools=setting.name,
                fidelity=close,
                size_error_factor=sizes,
                distance=math.sqrt(close.error_factor * sizes),
            ),
            setting,
            found,
        )

    fits = [fit(s, text, meaning) for s in settings for text, meaning in candidates.items()]
    fits.sort(key=_Fit.distance)
    if places:
        fits += [
            fit(each.setting, with_placement(each.model.scheduler, placement), each.model.meaning)
            for rank, each in enumerate(fits)
            if rank < CLOSEST or not (left_out or each.model.scheduler in SLOW)
            for placement in PLACEMENTS
        ]
        fits.sort(key=_Fit.distance)
    model, setting, modelled = fits[0].model, fits[0].setting, fits[0].run
    # What is compared is the order and the discipline: all place jobs as today's scheduler does.
    placement = Scheduler.parse(model.scheduler).placement
    if placement in PLACEMENTS:
        alternatives = [with_placement(text, placement) for text in alternatives]
    measured, judged = (mask & ~modelled.rejected for mask in (days.measured, days.judged))
    basis = _basis(setting, days, modelled, begin, end, seed)
    outcomes = [outcome(model.scheduler, modelled, modelled, basis)]
    outcomes += [
        outcome(scheduler, run(setting, scheduler), modelled, basis)
        for scheduler in alternatives
        if str(Scheduler.parse(scheduler)) != str(Scheduler.parse(model.scheduler))
    ]
    replay = setting.replay
    return WhatIf(
        log=workload.name,
        begin=begin,
        end=end,
        knowledge=known,
        cluster=ClusterFacts(
            name=setting.cluster.name,
            nodes=setting.cluster.num_nodes,
            gpus=setting.cluster.total_gpus,
            pools=list(setting.cluster.pool_names),
            findings=setting.inferred.findings if setting.inferred else [],
        ),
        replay=_replayed(workload, replay, measured, days.measured & modelled.rejected),
        split=Split(
            how=days.how, chosen_jobs=int(days.chosen.sum()), judged_jobs=int(judged.sum())
        ),
        models=[each.model for each in fits],
        today=model.scheduler,
        today_given=today is not None,
        fidelity=fidelity(modelled.wait[judged], replay.recorded[judged]),
        fidelity_by_size={
            label: fidelity(modelled.wait[rows], replay.recorded[rows])
            for label, rows in _by_size(replay, judged).items()
        },
        error_seconds=basis.error,
        user_error_seconds=user_error(modelled, basis, np.flatnonzero(judged)),
        idle_wait_share=_idle_waits(workload, setting, np.flatnonzero(judged)),
        outcomes=with_verdicts(outcomes),
        left_out=[text for text in left_out if text not in alternatives],
        seed=seed,
    )


def cluster_of(workload: Workload, found: WhatIf) -> Cluster | None:
    """Return the cluster that an answer inferred; None = it was given."""
    if not found.cluster.findings:
        return None
    return infer_cluster(workload, apart=found.models[0].pools == APART).cluster


def _check_enough(setting: Setting, days: Days, run: Run) -> None:
    """Raise unless there are jobs to choose a model on, and to judge it by."""
    for mask in (days.chosen, days.judged):
        jobs, fit = int(mask.sum()), int((mask & ~run.rejected).sum())
        if fit < FEWEST_JOBS:
            raise TraceError(
                f"only {fit} of {jobs} jobs of the period can be used",
                where=setting.replay.workload.name,
                expected=f"{FEWEST_JOBS} or more with a recorded start, which the cluster can run",
                hint="give a larger cluster" if jobs >= FEWEST_JOBS else "choose a longer period",
            )


def _basis(
    setting: Setting, days: Days, modelled: Run, begin: float, end: float, seed: int
) -> Judged:
    replay = setting.replay
    measured, judged = (mask & ~modelled.rejected for mask in (days.measured, days.judged))
    wait, recorded = modelled.wait, replay.recorded
    return Judged(
        replay=replay,
        rows=np.flatnonzero(measured),
        day=days.day[measured],
        begin=begin,
        end=end,
        gpus=setting.cluster.total_gpus,
        error=daily_error(wait[judged], recorded[judged], days.day[judged]),
        error_by_size={
            label: daily_error(wait[rows], recorded[rows], days.day[rows])
            for label, rows in _by_size(replay, judged).items()
        },
        seed=seed,
    )


def _by_size(replay: Replay, mask: npt.NDArray[np.bool_]) -> dict[str, npt.NDArray[np.int64]]:
    """Return the rows of each size class."""
    size = size_classes(replay.workload.gpus, replay.workload.gpu_milli)
    return {
        SIZES[each]: np.flatnonzero(mask & (size == each))
        for each in np.unique(size[mask]).tolist()
    }


def _idle_waits(
    workload: Workload, setting: Setting, judged: npt.NDArray[np.int64]
) -> float | None:
    """Return the share of recorded waits beside enough free GPUs, of some jobs of the replay."""
    cluster, start = setting.cluster, recorded_starts(workload)
    pool = np.zeros(len(workload), np.int32)
    capacity = [float(cluster.total_gpus)]
    if setting.inferred is not None and cluster.pool_names:
        pool = setting.inferred.pool
        capacity = np.bincount(cluster.pool, cluster.gpus).tolist()
    return idle_wait_share(
        eligible_since(workload),
        start,
        start + workload.run,
        workload.gpu_amount,
        pool,
        capacity,
        setting.replay.rows[judged],
    )


def _replayed(
    workload: Workload,
    replay: Replay,
    measured: npt.NDArray[np.bool_],
    too_large: npt.NDArray[np.bool_],
) -> Replayed:
    history = workload.history
    running = history.running if history is not None else None
    return Replayed(
        jobs=int(measured.sum()),
        users=len(np.unique(replay.workload.user[measured])),
        running_at_begin=replay.running,
        queued_at_begin=replay.queued,
        others=len(measured) - replay.running - replay.queued - int(measured.sum()),
        start_unknown=int(np.isnan(recorded_starts(workload)).sum()),
        eligible_later=int((eligible_since(workload) > workload.submit).sum()),
        too_large=int(too_large.sum()),
        still_running=0 if running is None else int(running.sum()),
        never_started=int((workload.provenance.get("dropped") or {}).get(NEVER_STARTED, 0)),
    )
