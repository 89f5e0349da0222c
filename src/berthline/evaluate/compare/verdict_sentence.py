"""The verdict of an evaluation, in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from berthline.counted import counted
from berthline.evaluate.metrics.compared_metrics import METRICS
from berthline.evaluate.metrics.starvation import starves_words
from berthline.evaluate.statistics.change_in_words import change_in_words

if TYPE_CHECKING:
    from berthline.evaluate.compare.protocol import Evaluation


_OTHERS = {
    "jct_mean": "mean JCT",
    "jct_p99": "JCT p99",
    "bounded_slowdown_mean": "bounded slowdown",
    "makespan": "makespan",
    "utilization": "GPU use",
}
"""What a gain must not worsen, by name and in words."""


def verdict_sentence(evaluation: Evaluation) -> str:
    """Return the verdict in a sentence, with every metric that a gain must not worsen."""
    against, report = evaluation.against_rival, evaluation.report
    others = ", ".join(
        f"{name} {change_in_words(getattr(against, metric))}"
        for metric, name in _OTHERS.items()
        if metric != evaluation.metric
    )
    about = METRICS[evaluation.metric].label
    first = getattr(against, evaluation.metric).verdict
    where = (
        f"{against.jct_mean.windows} blocks of the REPORT run"
        if report.continuous
        else counted(report.windows, "REPORT window")
    )
    trade = "; it trades JCT for slowdown" if evaluation.trades else ""
    judged = {
        each.scheduler: each.starvation
        for each in report.schedulers
        if each.scheduler in (evaluation.run, evaluation.rival)
    }
    starving = starves_words(judged)
    starves = f"; {starving}" if starving else ""
    return (
        f"{evaluation.run} against {evaluation.rival}, the best of "
        f"{counted(len(evaluation.candidates), 'rival')} on VAL, on {where}: "
        f"{about} {first}; {others}{trade}{starves}"
    )
