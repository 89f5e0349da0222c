"""The model of today's scheduler: the candidate whose simulated waits are closest to the recorded.

Candidates are ranked on days other than those on which the winner is evaluated (judged_days.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from berthline.errors import TraceError
from berthline.evaluate.metrics.groups import size_classes
from berthline.evaluate.whatif.candidate_clusters import ClusterExcerpt
from berthline.evaluate.whatif.candidate_models import PLACEMENTS, SLOW, with_placement
from berthline.evaluate.whatif.fidelity import fidelity, group_error_factor, mean_error_factor
from berthline.evaluate.whatif.hidden_limits import with_fewer_gpus, with_user_limits
from berthline.evaluate.whatif.judged_days import FEWEST_JOBS
from berthline.evaluate.whatif.log_excerpt import ExcerptRun, run_excerpt
from berthline.evaluate.whatif.whatif_result import ModelFit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berthline.evaluate.whatif.judged_days import Days

Progress = Callable[[int, int, str], None]

CLOSEST = 3
"""A slow model, and any model on a large log, is tried with other placements only if it is among
this many closest. Hidden limits are tried with these as well."""

USUAL = ("fcfs+easy", "slurm-multifactor+easy")
"""Hidden limits are always tried with these too, the schedulers of most clusters. Without limits,
waits come out too short, and models that waste GPUs look closer than they are."""

FEWEST_FOR_LIMITS = 200
"""The fewest jobs to choose on from which hidden limits are fitted: few jobs fit any limit."""

MARGIN = 1.05
"""A model must be closer by this factor for each hidden limit that it assumes."""


@dataclasses.dataclass(frozen=True, eq=False)
class ExcerptRuns:
    """The runs of schedulers on settings, each simulated once.

    Attributes:
        knowledge: what schedulers know of run times.
        seed: for random decisions of schedulers.
        span: times of the log between which GPU-seconds are counted.
        total: the expected number of runs, for `progress`.
        progress: called before each run with (done, total, label).
    """

    knowledge: str
    seed: int
    span: tuple[float, float]
    total: int
    progress: Progress | None
    _done: dict[tuple[object, ...], ExcerptRun] = dataclasses.field(default_factory=dict)

    def of(self, setting: ClusterExcerpt, scheduler: str) -> ExcerptRun:
        """Return the run of a scheduler on a setting."""
        key = setting.name, setting.available, setting.user_limit, scheduler
        if key not in self._done:
            if self.progress is not None:
                self.progress(len(self._done), self.total, scheduler)
            self._done[key] = run_excerpt(
                setting.excerpt,
                setting.parts,
                scheduler,
                knowledge=self.knowledge,
                seed=self.seed,
                span=self.span,
            )
        return self._done[key]


@dataclasses.dataclass(frozen=True, eq=False)
class FittedModel:
    """A candidate for today's scheduler: how close it is, its cluster, and its run."""

    fit: ModelFit
    setting: ClusterExcerpt
    run: ExcerptRun


def fit_models(
    candidates: Mapping[str, str],
    settings: Sequence[ClusterExcerpt],
    days: Days,
    runs: ExcerptRuns,
    *,
    most_held: float,
    places: bool,
    is_large: bool,
) -> list[FittedModel]:
    """Return all candidates, the closest to the recorded waits first.

    Args:
        candidates: what each scheduler stands for, by its text.
        settings: the possible clusters.
        days: the jobs to choose on.
        runs: makes the runs.
        most_held: the most GPUs that any user has held at once.
        places: try other placements too.
        is_large: the log is large: other placements only for the CLOSEST.

    Raises:
        TraceError: there are too few jobs.
    """
    found = [
        _fit(setting, text, meaning, days, runs)
        for setting in settings
        for text, meaning in candidates.items()
    ]
    found.sort(key=_distance)
    if places:
        found += [
            _fit(
                each.setting,
                with_placement(each.fit.scheduler, placement),
                each.fit.meaning,
                days,
                runs,
            )
            for rank, each in enumerate(found)
            if rank < CLOSEST or not (is_large or each.fit.scheduler in SLOW)
            for placement in PLACEMENTS
        ]
        found.sort(key=_distance)
    if days.chosen.sum() < FEWEST_FOR_LIMITS:
        return found
    for hidden in (lambda setting: with_user_limits(setting, most_held), with_fewer_gpus):
        found += [
            _fit(setting, each.fit.scheduler, each.fit.meaning, days, runs)
            for each in _worth_more(found)
            for setting in hidden(each.setting)
        ]
        found.sort(key=_distance)
    return found


def _worth_more(found: Sequence[FittedModel]) -> list[FittedModel]:
    """Return the models to try hidden limits with: the closest, and each USUAL without limits."""
    quick = [each for each in found if each.fit.scheduler not in SLOW]
    closest = quick[:CLOSEST]
    for usual in USUAL:
        named = [
            each
            for each in quick
            if each.fit.scheduler.partition("@")[0] == usual and each.fit.user_limit is None
        ]
        closest += [each for each in named[:1] if each not in closest]
    return closest


def _distance(each: FittedModel) -> float:
    """Return by what models are ranked: with a hidden limit, one must be closer by a margin."""
    hidden = (each.fit.available < 1) + (each.fit.user_limit is not None)
    return each.fit.distance * MARGIN**hidden


def _fit(
    setting: ClusterExcerpt, scheduler: str, meaning: str, days: Days, runs: ExcerptRuns
) -> FittedModel:
    run = runs.of(setting, scheduler)
    _check_enough(setting, days, run)
    rows, jobs = days.chosen & ~run.rejected, setting.excerpt.workload
    waits = run.wait[rows], setting.excerpt.recorded[rows]
    close = fidelity(*waits)
    sizes = group_error_factor(*waits, size_classes(jobs.gpus, jobs.gpu_milli)[rows])
    fit = ModelFit(
        scheduler=scheduler,
        meaning=meaning,
        pools=setting.name,
        available=setting.available,
        user_limit=setting.user_limit,
        fidelity=close,
        size_error_factor=sizes,
        distance=(close.error_factor * sizes * mean_error_factor(close)) ** (1 / 3),
    )
    return FittedModel(fit, setting, run)


def _check_enough(setting: ClusterExcerpt, days: Days, run: ExcerptRun) -> None:
    """Raise unless there are enough jobs to choose a model on, and to evaluate it on."""
    for mask in (days.chosen, days.judged):
        jobs, fit = int(mask.sum()), int((mask & ~run.rejected).sum())
        if fit < FEWEST_JOBS:
            raise TraceError(
                f"only {fit} of {jobs} jobs of the period can be used",
                where=setting.excerpt.workload.name,
                expected=f"{FEWEST_JOBS} or more with a recorded start, which the cluster can run",
                hint="give a larger cluster" if jobs >= FEWEST_JOBS else "choose a longer period",
            )
