"""The text that `berthline eval` prints: rivals, values, and the verdict in a sentence."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from berthline.cli.compare.show import (
    bound_in_words,
    caution_of,
    values_table,
    wrapped,
)
from berthline.cli.compare.whole_runs import (
    STARVED,
    disagreements,
    intervals_of,
    replicates_of,
    starving,
    whole_runs_table,
)
from berthline.cli.conditions import header_of
from berthline.cli.output import (
    BEST,
    NARROWEST,
    counted,
    fold_scheduler,
    new_table,
    number,
    print_facts,
    print_table,
    seconds,
)

if TYPE_CHECKING:
    from berthline.evaluate.compare.evaluate import EvaluationResult
    from berthline.evaluate.compare.protocol import Evaluation


def show(found: EvaluationResult) -> None:
    """Print an evaluation as text."""
    from berthline.evaluate.metrics.compared_metrics import METRICS

    evaluation, cluster = found.evaluation, found.inputs[1].cluster
    report = evaluation.report
    few, many = min(report.window_jobs), max(report.window_jobs)
    parts = (
        "a VAL run, and a REPORT run"
        if report.continuous
        else f"{counted(report.windows, 'VAL window')} and as many REPORT windows"
    )
    print(
        f"{report.workload} on {report.cluster} ({counted(cluster.total_gpus, 'GPU')})"
        f"{'' if report.load is None else f', at load {report.load:g}'}\n"
        f"{parts} of {'' if few == many else f'{few:,} to '}{counted(many, 'job')}\n"
        f"knowledge {report.knowledge}, seed {report.seed}; times in seconds, "
        f"{'' if report.continuous else 'means over windows; '}{BEST} best\n"
        f"{header_of(report.conditions, report.run_times)}"
    )
    about = METRICS[evaluation.metric]
    table = new_table("rivals on VAL", about.label)
    for candidate in evaluation.candidates:
        mark = BEST if candidate.scheduler == evaluation.rival else ""
        is_time = evaluation.metric not in ("bounded_slowdown_mean", "utilization")
        value = seconds(candidate.value) if is_time else number(candidate.value, 3)
        table.add_row(fold_scheduler(candidate.scheduler), mark + value)
    print_table(table)
    print("\nall on REPORT, which is held-out:\n")
    print_table(values_table(report))
    over = "all jobs together" if report.continuous else "means over windows"
    print(f"\n{over}, against {evaluation.rival}\n{STARVED}\n")
    print_table(whole_runs_table(report))
    text = textwrap.fill(
        f"Verdict: {found.verdict}.",
        NARROWEST - 1,
        break_long_words=False,
        break_on_hyphens=False,
    )
    print(f"\n{text}\n")
    hindsight = getattr(report.oracle, evaluation.metric).overall
    print_facts(
        {
            "measured": "" if report.measure is None else wrapped(report.measure.in_words()),
            "starves": wrapped(starving(report)),
            "runs": wrapped(report.mode),
            "replicates": wrapped(replicates_of(report)),
            "totals": wrapped(disagreements(report)),
            "intervals": wrapped(intervals_of(report)),
            "caution": wrapped(caution_of(report)),
            "power": wrapped(power_of(evaluation)),
            "bound": bound_in_words(report),
            "oracle": f"best in hindsight by {about.label} on REPORT: {hindsight}",
        }
    )


def power_of(evaluation: Evaluation) -> str:
    """Return how many windows would distinguish the two; empty if they are distinguishable."""
    from berthline.evaluate.statistics.power import power_in_words

    judged = getattr(evaluation.against_rival, evaluation.metric)
    is_open = judged.verdict.startswith("not distinguishable")
    return power_in_words(evaluation.power) if is_open and evaluation.power is not None else ""
