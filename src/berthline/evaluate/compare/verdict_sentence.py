"""The verdict of an evaluation, in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from berthline.counted import counted
from berthline.evaluate.metrics.starvation import starves_words
from berthline.evaluate.statistics.change_in_words import change_in_words

if TYPE_CHECKING:
    from berthline.evaluate.compare.protocol import Evaluation


def verdict_sentence(evaluation: Evaluation) -> str:
    """Return the verdict in a sentence, with every metric that a gain must not worsen."""
    against, report = evaluation.against_rival, evaluation.report
    others = ", ".join(
        f"{name} {change_in_words(ratio)} %"
        for name, ratio in (
            ("JCT p99", against.jct_p99),
            ("bounded slowdown", against.bounded_slowdown_mean),
            ("makespan", against.makespan),
            ("GPU use", against.utilization),
        )
    )
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
        f"mean JCT {against.jct_mean.verdict}; {others}{trade}{starves}"
    )
