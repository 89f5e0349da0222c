"""The text that `berthline suite` prints: lists, estimates, progress, results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from berthline.cli.output import (
    clock,
    counted,
    fold_scheduler,
    new_table,
    note,
    number,
    print_facts,
    print_json,
    print_table,
)
from berthline.runs.run_layout import FAILURES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berthline.experiments.suites.estimate import SuiteEstimate
    from berthline.experiments.suites.planned_runs import PlannedRuns
    from berthline.experiments.suites.suite_summary import SuiteSummary

SAMPLE_SECONDS = 0.15
"""For each suite in the list."""
_MOST_SHOWN = 5


def list_suites(*, as_json: bool) -> int:
    """Print the suites that the package brings, with what they take."""
    from berthline.experiments.suites.estimate import estimate_of
    from berthline.experiments.suites.planned_runs import PlannedRuns
    from berthline.experiments.suites.suite_plan import shipped_suites

    plans = shipped_suites()
    found = {
        name: estimate_of(PlannedRuns(plan), seconds=SAMPLE_SECONDS) for name, plan in plans.items()
    }
    if as_json:
        print_json({"suites": list(found.values())})
        return 0
    table = new_table("suite", "runs", "job starts", "CPU time", "trainings")
    for name, one in found.items():
        table.add_row(
            name,
            number(one.runs),
            number(one.job_starts),
            _about(one.cpu_seconds),
            number(one.trainings) if one.trainings else "",
        )
    print_table(table)
    print("\nCPU time from a short sample on this machine, without trainings.\n")
    print_facts({name: plan.about for name, plan in plans.items()}, max(map(len, plans)))
    return 0


def show_estimate(estimate: SuiteEstimate, planned: PlannedRuns) -> None:
    """Print what a suite will take."""
    names = [cell.name for cell in planned.cells]
    more = f", ... {names[-1]}" if len(names) > _MOST_SHOWN else ""
    print_facts(
        {
            "suite": f"{estimate.suite}: {planned.plan.about}",
            "cells": f"{number(estimate.cells)}: {', '.join(names[:_MOST_SHOWN])}{more}",
            "schedulers": number(planned.number_of_schedulers),
            "runs": number(estimate.runs),
            "tasks": f"about {number(estimate.tasks)}",
            "job starts": number(estimate.job_starts),
            "CPU time": f"about {_about(estimate.cpu_seconds)}, from a sample of "
            f"{counted(estimate.sample, 'run')}"
            if estimate.sample
            else "unknown: every scheduler is trained first",
            "disk": "" if estimate.disk_mb is None else f"about {estimate.disk_mb:,.1f} MB",
            "trainings": f"{estimate.trainings} of {number(estimate.training_steps)} steps together"
            if estimate.trainings
            else "",
        }
    )


def show_progress(found: dict[str, Any]) -> None:
    """Print how far a suite is."""
    left = found.get("seconds_left")
    share = found["done"] / found["total"] if found["total"] else 1.0
    print_facts(
        {
            "suite": str(found.get("suite", "")),
            "state": str(found["state"]),
            "runs": f"{number(found['done'])} of {number(found['total'])} ({share:.0%}), "
            f"{number(found['failed'])} failed",
            "time left": clock(left) if left and found["state"] == "running" else "",
            "started": str(found.get("started", "")),
            "changed": str(found.get("changed", "")),
            **{
                f"worker {place + 1}": f"{one['name']} {one['node']}: {one['doing'] or 'idle'}"
                for place, one in enumerate(found.get("workers", ()))
            },
        }
    )


def show_suite(summary: SuiteSummary, out: str) -> None:
    """Print the results of a suite as text."""
    from berthline.evaluate.metrics.compared_metrics import METRICS

    label = METRICS[summary.metric].label
    print(
        f"{summary.suite}: {counted(summary.cells, 'cell')}, {counted(summary.seeds, 'seed')},"
        f" {counted(summary.runs, 'run')}; knowledge {summary.knowledge}\n"
        f"{label} relative to the best fixed rule of each cell in hindsight\n"
    )
    table = new_table("scheduler", "mean", "95 % interval", "worst", "best in", "not worse in")
    for one in summary.schedulers:
        interval = "" if one.low is None else f"[{one.low:.3f}, {one.high:.3f}]"
        table.add_row(
            fold_scheduler(one.scheduler),
            number(one.mean_ratio, 3),
            interval,
            number(one.worst_ratio, 3),
            str(one.best_in),
            f"{one.as_good_in} of {one.cells}",
        )
    print_table(table)
    print()
    incomplete = summary.incomplete_cells
    print_facts(
        {
            "verdict": summary.verdict,
            "part": _chosen(summary),
            "incomplete": f"{counted(len(incomplete), 'cell')}: {', '.join(incomplete[:3])}"
            if incomplete
            else "",
            "results": out,
        }
    )


def _chosen(summary: SuiteSummary) -> str:
    """Return what was chosen of the plan, in words; empty = all of it."""
    parts = []
    if summary.only:
        parts.append(f"only {summary.only}")
    if summary.limit is not None:
        parts.append(f"at most {summary.limit:,} runs: a balanced part of the suite")
    return "; ".join(parts)


def show_failures(failures: Sequence[dict[str, Any]], out: str | None) -> None:
    """Print the first runs that failed to stderr, and where all of them are."""
    note(f"{counted(len(failures), 'run')} failed")
    for line in failures[:_MOST_SHOWN]:
        error = line["error"]
        what = str(error["what"]).strip().splitlines()[-1]
        note(f"{line['cell']}, seed {line['seed']}, {line['scheduler']}: {what}")
    if out is not None:
        note(f"all of them, with commands that repeat them: {Path(out) / FAILURES}")
        note("to repeat them, run the same command with --resume")


def _about(seconds: float | None) -> str:
    """Return a time that is an estimate."""
    if seconds is None:
        return "-"
    if seconds < 120:
        return f"{seconds:,.0f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"
