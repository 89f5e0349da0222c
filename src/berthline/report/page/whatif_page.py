"""The page of whatif: the results of other schedulers, and how far to trust them."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import msgspec

from berthline.counted import counted
from berthline.errors import ConfigError
from berthline.evaluate.metrics.starvation import wait_words
from berthline.evaluate.whatif.fidelity import Fidelity, grade
from berthline.evaluate.whatif.whatif_result import GroupOutcome, SchedulerOutcome, WhatIf
from berthline.evaluate.whatif.whatif_words import (
    TOO_SHORT,
    begins_words,
    hours,
    idle_words,
    in_short,
)
from berthline.number_text import duration
from berthline.report.figures.figure_table import WHATIF_FIGURES, Drawn
from berthline.report.page.html_page import (
    Section,
    figures_section,
    html_page,
    settings_section,
    verdict_section,
    written_by,
)
from berthline.report.page.page_tables import Entry, column_of, table
from berthline.runs.run_layout import SUMMARY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berthline.runs.open_run import Run

SLOWDOWN = "bounded_slowdown_mean"
MOST_USERS = 5
"""Users named in each column; summary.json has all."""


def whatif_of(run: Run) -> WhatIf:
    """Return the result in a run directory.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        return msgspec.convert(run.results, WhatIf)
    except msgspec.ValidationError as error:
        raise ConfigError(
            f"{SUMMARY} cannot be read: {error}",
            where=str(run.path),
            expected="a run directory as it was written",
        ) from None


def whatif_page(run: Run, found: WhatIf, figures: Sequence[Drawn]) -> str:
    """Return the report of whatif as HTML."""
    results = run.results
    return html_page(
        f"{found.log}, {results.get('from', '')} to {results.get('to', '')}",
        f"{found.replay.jobs:,} jobs of {found.replay.users:,} users on {found.cluster.gpus:,} "
        f"GPUs; schedulers know of run times: {found.knowledge}. {written_by(run)}",
        [
            verdict_section(whatif_sentences(found), _cautions(found)),
            Section("table", "Against today's scheduler", _outcomes(found)),
            Section("users", "Users", _users(found)),
            figures_section(figures, WHATIF_FIGURES),
            Section("model", "The model of today's scheduler", _model(found)),
            Section("cluster", "The cluster", _cluster(found)),
            settings_section(run, _facts(found), figures, WHATIF_FIGURES),
        ],
    )


def whatif_sentences(found: WhatIf) -> list[str]:
    """Return the result in sentences, the most important first."""
    first, *rest = in_short(found)
    return [first[:1].upper() + first[1:] if first.startswith("no ") else first, *rest]


def _cautions(found: WhatIf) -> list[str]:
    told = [TOO_SHORT]
    if found.left_out:
        told.append(
            f"Not run, because they are slow on a log of this size: {', '.join(found.left_out)}."
        )
    return told


def _outcomes(found: WhatIf) -> str:
    outcomes = found.outcomes
    heads, columns = ["scheduler"], [[_scheduler(each) for each in outcomes]]
    for label, metric, values in (
        ("mean JCT", "jct_mean", [each.jct.mean for each in outcomes]),
        ("p99 JCT", "jct_p99", [each.jct.p99 for each in outcomes]),
        ("bounded slowdown", SLOWDOWN, [each.bounded_slowdown.mean for each in outcomes]),
        ("mean wait", "wait_mean", [each.wait.mean for each in outcomes]),
        ("GPU utilisation", "utilization", [each.utilization for each in outcomes]),
    ):
        like = [each.jct.mean for each in outcomes] if metric in ("jct_p99", "wait_mean") else ()
        unit, texts = column_of(metric, values, like=like)
        heads.append(f"{label}{unit}")
        columns.append([Entry(*pair) for pair in zip(texts, values, strict=True)])
    heads += ["longest wait", "starved jobs"]
    starved = [each.starvation for each in outcomes]
    columns.append([Entry(wait_words(each.wait), each.wait) for each in starved])
    columns.append([Entry(f"{each.starved:,}", float(each.starved)) for each in starved])
    heads += ["mean JCT, in words", "may be model, %", "users waiting longer", "users waiting less"]
    rows = []
    for each, *entries in zip(outcomes, *columns, strict=True):
        against = each.against_today
        words = "today's scheduler, as modelled" if against is None else against.verdict
        share = None if against is None else against.could_explain
        entries += [
            Entry(html.escape(words), words, "words"),
            Entry("-" if share is None else f"{100 * share:.0f}", -1.0 if share is None else share),
            Entry("-" if against is None else f"{against.users_longer:,}"),
            Entry("-" if against is None else f"{against.users_shorter:,}"),
        ]
        rows.append(("baseline" if against is None else "", entries))
    caption = (
        "The same jobs, simulated under each scheduler; mean JCT against today's with a 95 % "
        "interval over days. May be model: the share of the change in mean wait that the error of "
        "the model could explain."
    )
    return table(caption, heads, rows)


def _scheduler(each: SchedulerOutcome) -> Entry:
    return Entry(f"<code>{html.escape(each.scheduler)}</code>", each.scheduler)


def _users(found: WhatIf) -> str:
    rows = []
    for each in found.outcomes:
        if each.against_today is None:
            continue
        ranked = sorted(each.by_user.items(), key=lambda item: -item[1].wait_change * item[1].jobs)
        longer = [item for item in ranked if item[1].wait_change > 60][:MOST_USERS]
        less = [item for item in ranked[::-1] if item[1].wait_change < -60][:MOST_USERS]
        entries = [
            _scheduler(each),
            Entry(_named(longer), "", "words"),
            Entry(_named(less), "", "words"),
        ]
        rows.append(("", entries))
    if not rows:
        return ""
    error = found.user_error_seconds
    caption = "Change of the mean wait; largest change x jobs first." + (
        ""
        if error is None
        else f" For a single user the model is off by {duration(error)} (median)."
    )
    return table(caption, ["scheduler", "wait longer, h", "wait less, h"], rows)


def _named(users: Sequence[tuple[str, GroupOutcome]]) -> str:
    return (
        "<br>".join(
            f"{html.escape(name)}: {'+' if group.wait_change > 0 else '−'}"
            f"{hours(abs(group.wait_change))} ({counted(group.jobs, 'job')})"
            for name, group in users
        )
        or "none"
    )


def _model(found: WhatIf) -> str:
    best = found.models[0]
    how = (
        "It was given."
        if found.today_given
        else f"It is the closest of {len(found.models)} candidates on {found.split.how} "
        f"({found.split.chosen_jobs:,} jobs): {best.meaning}."
    )
    told = (
        f"<p><code>{html.escape(found.today)}</code>. {html.escape(how)} It is off by "
        f"{duration(found.error_seconds)} in the mean wait of a day; a change of that size could "
        "come from the model, not from the scheduler.</p>"
    )
    if found.idle_waits is not None:
        told += f"<p>{html.escape(idle_words(found.idle_waits))}</p>"
    groups = {"all jobs": found.fidelity}
    groups |= found.fidelity_by_size if len(found.fidelity_by_size) > 1 else {}
    names, judged = list(groups), list(groups.values())
    heads, columns = ["jobs of"], [[Entry(html.escape(name), name) for name in names]]
    heads.append("jobs")
    columns.append([Entry(f"{each.jobs:,}", float(each.jobs)) for each in judged])
    for label, values in (
        ("mean wait, recorded", [each.recorded_mean for each in judged]),
        ("mean wait, modelled", [each.simulated_mean for each in judged]),
        ("median wait, recorded", [each.recorded_median for each in judged]),
        ("median wait, modelled", [each.simulated_median for each in judged]),
    ):
        heads.append(f"{label}, h")
        columns.append([Entry(hours(value), value) for value in values])
    heads += ["rank correlation", "within a factor of 2, %"]
    columns.append([_rank(each) for each in judged])
    columns.append([Entry(f"{100 * each.within_2x:.0f}", each.within_2x) for each in judged])
    rows = [("", list(entries)) for entries in zip(*columns, strict=True)]
    caption = f"Waits of {found.split.judged_jobs:,} jobs: {grade(found.fidelity)}."
    return told + table(caption, heads, rows)


def _rank(each: Fidelity) -> Entry:
    rank = each.rank_correlation
    return Entry("-" if rank is None else f"{rank:.2f}", "" if rank is None else rank)


def _cluster(found: WhatIf) -> str:
    cluster = found.cluster
    told = f"<p>{counted(cluster.gpus, 'GPU')} on {counted(cluster.nodes, 'node')}, "
    if not cluster.findings:
        return f"{told}as given: <code>{html.escape(cluster.name)}</code>.</p>"
    rows = [
        (
            "",
            [
                Entry(html.escape(each.what), each.what),
                Entry(html.escape(each.found), each.found, "words"),
                Entry(html.escape(each.evidence), each.evidence, "words"),
                Entry(html.escape(each.uncertainty), each.uncertainty, "words"),
            ],
        )
        for each in cluster.findings
    ]
    heads = ["what", "found", "evidence", "uncertainty"]
    return f"{told}inferred from the log.</p>" + table("How it was inferred.", heads, rows)


def _facts(found: WhatIf) -> dict[str, object]:
    replay = found.replay
    left_out = {
        "without a recorded start": replay.start_unknown,
        "too large for the cluster": replay.too_large,
        "not started when the log was taken": replay.never_started,
    }
    return {
        "log": found.log,
        "begins": begins_words(replay),
        "left out": "; ".join(f"{count:,} {why}" for why, count in left_out.items() if count),
        "knowledge": found.knowledge,
        "seed": found.seed,
    }
