"""The page of whatif: the results of other schedulers, and how far to trust them."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import msgspec

from berthline.errors import ConfigError
from berthline.evaluate.metrics.starvation import wait_words
from berthline.evaluate.whatif.fidelity import Fidelity, grade
from berthline.evaluate.whatif.whatif_result import GroupOutcome, WhatIf
from berthline.evaluate.whatif.whatif_words import TOO_SHORT, begins_words, idle_words, in_short
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
from berthline.report.page.page_tables import Entry, table
from berthline.runs.run_layout import SUMMARY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berthline.runs.open_run import Run

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
    rows = []
    for each in found.outcomes:
        against = each.against_today
        words = "today's scheduler, as modelled" if against is None else against.verdict
        share = None if against is None else against.could_explain
        entries = [
            Entry(f"<code>{html.escape(each.scheduler)}</code>", each.scheduler),
            Entry(duration(each.jct.mean), each.jct.mean),
            Entry(duration(each.jct.p99), each.jct.p99),
            Entry(f"{each.bounded_slowdown.mean:,.2f}", each.bounded_slowdown.mean),
            Entry(duration(each.wait.mean), each.wait.mean),
            Entry(wait_words(each.starvation.wait), each.starvation.wait),
            Entry(f"{each.starvation.starved:,}", float(each.starvation.starved)),
            Entry(f"{100 * each.utilization:.1f} %", each.utilization),
            Entry(html.escape(words), words, "words"),
            Entry(
                "-" if share is None else f"{100 * share:.0f} %", -1.0 if share is None else share
            ),
            Entry("-" if against is None else f"{against.users_longer:,}"),
            Entry("-" if against is None else f"{against.users_shorter:,}"),
        ]
        rows.append(("baseline" if against is None else "", entries))
    caption = (
        "The same jobs, simulated under each scheduler; mean JCT against today's with a 95 % "
        "interval over days. May be model: the share of the change in mean wait that the error of "
        "the model could explain."
    )
    heads = ["scheduler", "mean JCT", "p99 JCT", "bounded slowdown", "mean wait"]
    heads += ["longest wait", "starved jobs"]
    heads += ["GPU utilisation", "mean JCT, in words", "may be model"]
    heads += ["users waiting longer", "users waiting less"]
    return table(caption, heads, rows)


def _users(found: WhatIf) -> str:
    rows = []
    for each in found.outcomes:
        if each.against_today is None:
            continue
        ranked = sorted(each.by_user.items(), key=lambda item: -item[1].wait_change * item[1].jobs)
        longer = [item for item in ranked if item[1].wait_change > 60][:MOST_USERS]
        less = [item for item in ranked[::-1] if item[1].wait_change < -60][:MOST_USERS]
        entries = [
            Entry(f"<code>{html.escape(each.scheduler)}</code>", each.scheduler),
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
    return table(caption, ["scheduler", "wait longer", "wait less"], rows)


def _named(users: Sequence[tuple[str, GroupOutcome]]) -> str:
    return (
        "<br>".join(
            f"{html.escape(name)}: {'+' if group.wait_change > 0 else '−'}"
            f"{duration(abs(group.wait_change))} ({group.jobs:,} jobs)"
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
    rows = [("", _fidelity(name, each)) for name, each in groups.items()]
    heads = ["jobs of", "jobs", "mean wait, recorded", "modelled", "median, recorded", "modelled"]
    caption = f"Waits of {found.split.judged_jobs:,} jobs: {grade(found.fidelity)}."
    return told + table(caption, [*heads, "rank correlation", "within a factor of 2"], rows)


def _fidelity(name: str, each: Fidelity) -> list[Entry]:
    rank = each.rank_correlation
    return [
        Entry(html.escape(name), name),
        Entry(f"{each.jobs:,}", float(each.jobs)),
        Entry(duration(each.recorded_mean), each.recorded_mean),
        Entry(duration(each.simulated_mean), each.simulated_mean),
        Entry(duration(each.recorded_median), each.recorded_median),
        Entry(duration(each.simulated_median), each.simulated_median),
        Entry("-" if rank is None else f"{rank:.2f}", "" if rank is None else rank),
        Entry(f"{100 * each.within_2x:.0f} %", each.within_2x),
    ]


def _cluster(found: WhatIf) -> str:
    cluster = found.cluster
    told = f"<p>{cluster.gpus:,} GPUs on {cluster.nodes:,} nodes, "
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
