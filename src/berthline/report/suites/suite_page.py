"""The page of a suite: the verdict, tables of schedulers and perturbations, figures, failures."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING

import numpy as np

from berthline.counted import counted
from berthline.evaluate.metrics.compared_metrics import METRICS
from berthline.experiments.robustness_measures import EXPLODES, HOLDS, PARTS, SMALL_QUEUE
from berthline.report.page.html_page import (
    Section,
    figures_section,
    html_page,
    settings_section,
    verdict_section,
    written_by,
)
from berthline.report.page.page_tables import Entry, table
from berthline.report.run_results import NotShown
from berthline.report.suites.against_twin import against_twins, recovery_words
from berthline.report.suites.parts_figure import effects
from berthline.report.suites.suite_figures import SUITE_FIGURES
from berthline.report.suites.suite_sentences import cautions, ratio_words, suite_sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from berthline.report.figures.figure_table import Drawn
    from berthline.report.suites.shown_suite import ShownSuite
    from berthline.runs.open_run import Run

MOST_FAILURES = 50


def suite_page(run: Run, suite: ShownSuite, figures: Sequence[Drawn]) -> str:
    """Return the report of a suite as HTML."""
    plan = suite.plan
    return html_page(
        f"Suite: {plan.name}",
        f"{plan.about}. {written_by(run)}",
        [
            verdict_section(suite_sentences(suite), cautions(suite)),
            Section("schedulers", "Schedulers", _schedulers(suite)),
            Section("parts", "Parts", _parts(suite)),
            Section("perturbations", "Perturbations", _perturbations(suite)),
            figures_section(figures, SUITE_FIGURES),
            Section("published", "By the names of the published suites", _published(suite)),
            Section("failures", "Failures", _failures(suite)),
            settings_section(run, _facts(suite), figures, SUITE_FIGURES),
        ],
    )


def _code(text: str) -> str:
    return f"<code>{html.escape(text)}</code>"


def _schedulers(suite: ShownSuite) -> str:
    rows = []
    for name in suite.ranked:
        overall, worst = suite.overall[name], suite.worst(name)
        mine = [one for one in suite.ratios if one.scheduler == name]
        best = suite.best_in(name)
        worse = sum(
            not one.is_open and one.ratio is not None and (one.ratio > 1) != suite.higher
            for one in mine
        )
        rows.append(
            (
                "baseline" if name == suite.lineup.baseline else "",
                [
                    Entry(_code(name), name, "words"),
                    Entry(html.escape(ratio_words(overall)), overall.ratio or ""),
                    Entry(_number(None if worst is None else worst.ratio), _value(worst)),
                    Entry(_code(worst.cell) if worst else "", "", "words"),
                    Entry(str(best), float(best)),
                    Entry(str(worse), float(worse)),
                    Entry(str(len(mine)), float(len(mine))),
                ],
            )
        )
    if not rows:
        return ""
    label = METRICS[suite.metric].label
    caption = (
        f"{label}, as a ratio to the best fixed rule of each cell in hindsight: geometric means "
        "over cells, with 95 % intervals over them."
    )
    heads = ["scheduler", "ratio", "at worst", "in the cell", "no rule better in", "worse in"]
    return table(html.escape(caption), [*heads, "cells"], rows)


def _value(worst: object) -> float | str:
    ratio = getattr(worst, "ratio", None)
    return "" if ratio is None else float(ratio)


def _number(value: float | None, digits: int = 3) -> str:
    if value is None or math.isnan(value):
        return "-"
    return "∞" if math.isinf(value) else f"{value:,.{digits}f}"


def _parts(suite: ShownSuite) -> str:
    try:
        found = effects(suite)
    except NotShown:
        return ""
    rows = [
        (
            "",
            [
                Entry(html.escape(one.group), one.group, "words"),
                Entry(html.escape(one.part), one.part, "words"),
                Entry(html.escape(ratio_words(one.ratio)), one.ratio.ratio or ""),
                Entry(_p_value(one.p_value), "" if one.p_value is None else one.p_value),
                Entry(str(one.ratio.windows), float(one.ratio.windows)),
                Entry(html.escape(one.verdict), one.verdict, "words"),
            ],
        )
        for one in found
    ]
    caption = (
        "Ratios to the whole; intervals are over training seeds, for rules over seeds of jobs. "
        "P-values and verdicts are corrected by Holm's procedure for the parts of a group."
    )
    heads = ["of", "part", "ratio", "p, corrected", "seeds", "in words"]
    return table(html.escape(caption), heads, rows)


def _p_value(p: float | None) -> str:
    return "&lt;0.001" if p is not None and p < 0.001 else _number(p)


def _perturbations(suite: ShownSuite) -> str:
    try:
        found = against_twins(suite)
    except NotShown:
        return ""
    rows = [
        (
            "",
            [
                Entry(_code(one.perturbation), one.perturbation, "words"),
                Entry(_code(one.scheduler), one.scheduler, "words"),
                Entry(html.escape(ratio_words(one.ratio, digits=2)), one.ratio.ratio or ""),
                Entry(f"{100 * one.exploded:.0f} %", one.exploded),
                Entry(_number(one.longest, 1), one.longest),
                Entry(recovery_words(one.recovery), _sortable(one.recovery)),
                Entry(_share(one.not_recovered), one.not_recovered or 0.0),
                Entry(
                    f"{_number(one.varies, 2)} / {_number(one.twin_varies, 2)}", one.varies or ""
                ),
            ],
        )
        for one in found
    ]
    caption = (
        "Against the clean twin: the same jobs and seed but for the perturbation. A queue explodes "
        f"beyond {EXPLODES:g} times the twin's longest (of at least {SMALL_QUEUE:g} jobs). "
        "Recovery: from the begin of the perturbation until the queue stays in the twin's 95 % "
        f"band for {HOLDS} % of the time of submissions ({PARTS} parts); the median over regimes "
        "and seeds, ∞ = not before the last submission. Variation: coefficient of variation over "
        "seeds, perturbed / clean."
    )
    heads = [
        "perturbation", "scheduler", METRICS[suite.metric].label, "explodes", "longest queue",
        "recovery", "not recovered", "variation",
    ]  # fmt: skip
    return (
        "<details><summary>Every scheduler under every perturbation</summary>"
        f"{table(html.escape(caption), heads, rows)}</details>"
    )


def _sortable(seconds: float | None) -> float:
    return -1.0 if seconds is None else min(seconds, 1e12)


def _share(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"


_PUBLISHED: dict[str, tuple[str, Callable[[float], float], int]] = {
    "avg_jct": ("jct_mean", lambda value: value, 0),
    "p95_jct": ("jct_p95", lambda value: value, 0),
    "p99_jct": ("jct_p99", lambda value: value, 0),
    "avg_slowdown": ("slowdown_mean", lambda value: value, 2),
    "sla_attainment": ("deadline_miss_rate", lambda value: 1 - value, 3),
    "utilization": ("utilization_gpu", lambda value: value, 3),
    "energy_kwh": ("energy_kwh", lambda value: value, 2),
    "mean_queue": ("queue_mean", lambda value: value, 1),
    "max_queue": ("queue_max", lambda value: value, 1),
}
"""Names of the published suites: our column, how it is read, and digits."""


def _published(suite: ShownSuite) -> str:
    import polars as pl

    rows = []
    shown = {
        name: spec
        for name, spec in _PUBLISHED.items()
        if spec[0] in suite.clean.columns and suite.clean[spec[0]].is_not_null().any()
    }
    for scheduler in suite.ranked:
        mine = suite.clean.filter(pl.col("label") == scheduler)
        entries = [Entry(_code(scheduler), scheduler, "words")]
        for column, read, digits in shown.values():
            values = mine[column].drop_nulls().to_numpy()
            mean = read(float(np.mean(values))) if len(values) else None
            entries.append(Entry(_number(mean, digits), "" if mean is None else mean))
        gap = (suite.overall[scheduler].ratio or math.nan) - 1
        entries.append(Entry(_number(gap), gap))
        rows.append(("", entries))
    if not rows:
        return ""
    caption = (
        "Means over clean cells and seeds. The same names mean the same except: JCT and slowdown "
        "are from submission to finish here, and left the wait out there; energy is that of the "
        "GPU types, not 100 W + 250 W for each busy GPU; oracle_gap is the ratio to the best fixed "
        "rule of each cell, minus 1, over geometric means. A queue explosion was a queue of more "
        "than 200 jobs there. Their Jain's index was over JCTs, ours is over users: it is left out."
    )
    return table(html.escape(caption), ["scheduler", *shown, "oracle_gap"], rows)


def _failures(suite: ShownSuite) -> str:
    if not suite.failures:
        return ""
    items = "".join(
        f"<dt>{html.escape(_place(one))}</dt><dd>{html.escape(str(one.get('error', '')))}"
        + (f"<br><code>{html.escape(str(one['command']))}</code>" if one.get("command") else "")
        + "</dd>"
        for one in suite.failures[:MOST_FAILURES]
    )
    more = len(suite.failures) - MOST_FAILURES
    rest = f"<p>and {counted(more, 'more failure')}, in failures.jsonl</p>" if more > 0 else ""
    return f"<dl>{items}</dl>{rest}"


def _place(failure: dict[str, object]) -> str:
    names = ("cell", "scheduler", "part", "seed", "training_seed")
    return ", ".join(
        f"{name} {failure[name]}" for name in names if failure.get(name) not in (None, "")
    )


def _facts(suite: ShownSuite) -> dict[str, object]:
    plan = suite.plan
    return {
        "suite": plan.name,
        "cells": f"{len(suite.clean_cells)} as they are, {_perturbed_cells(suite)} perturbed",
        "runs": f"{len(suite.cells):,}",
        "seeds": plan.seeds,
        "knowledge": plan.knowledge,
        "policy": plan.run,
    }


def _perturbed_cells(suite: ShownSuite) -> int:
    import polars as pl

    return suite.cells.filter(pl.col("perturbation") != "")["cell"].n_unique()
