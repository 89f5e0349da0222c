"""The page of a search (`train es`): the tuned scheduler on held-out windows, and the search."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING, Any

from berthline.evaluate.metrics.compared_metrics import METRICS
from berthline.number_text import signed_percent
from berthline.report.figures.figure_table import SEARCH_FIGURES, Drawn
from berthline.report.page.html_page import (
    Section,
    figures_section,
    html_page,
    settings_section,
    verdict_section,
    written_by,
)
from berthline.report.page.page_tables import Entry, column_of, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berthline.runs.open_run import Run

ROLES = {
    "rival": "the best heuristic on VAL",
    "lane": "the best express lane on VAL",
    "reference": "the heuristic with the lowest mean JCT",
    "start": "where the search began",
}
"""The roles of the schedulers that the tuned one is compared with."""


MEASURED = {
    "mean_bounded_slowdown": "bounded_slowdown_mean",
    "mean_jct": "jct_mean",
    "p99_jct": "jct_p99",
}
"""What a search measures, and the metrics of comparisons that are the same."""


def search_page(run: Run, figures: Sequence[Drawn]) -> str:
    """Return the report of a search as HTML."""
    settings = run.settings
    found = _searches(run)
    return html_page(
        f"Search: {settings.get('space') or 'a scheduler'} on {settings.get('workload', '')}",
        f"Goal {settings.get('goal', '')}, on {settings.get('cluster', '')}, seed "
        f"{settings.get('seed', 0)}. {written_by(run)}",
        [
            verdict_section(search_sentences(run), _cautions(found)),
            Section("table", "On held-out windows (REPORT)", "".join(map(_results, found))),
            Section("searches", "Searches", _side_by_side(found) if len(found) > 1 else ""),
            figures_section(figures, SEARCH_FIGURES),
            settings_section(run, _facts(run), figures, SEARCH_FIGURES),
        ],
    )


def search_sentences(run: Run) -> list[str]:
    """Return the result of a search in sentences, the most important first."""
    if not run.is_complete:
        return ["The search has not finished: there is no evaluation on held-out windows yet."]
    results = run.results
    best = results["searches"][results["best_search"]] if "searches" in results else results
    joint = best["report"]["joint"]
    told = [f"The tuned scheduler is {results['scheduler']}"]
    for role in ("rival", "lane"):
        if role in joint:
            other = best["report"]["against"][role]["scheduler"]
            told.append(f"Against {other}, {ROLES[role]}, on REPORT: {joint[role]}.")
    if "searches" in results:
        told.append(f"It was found by {results['best_search']}, the better search on VAL.")
    return told


def _searches(run: Run) -> list[dict[str, Any]]:
    if not run.is_complete:
        return []
    results = run.results
    return list(results["searches"].values()) if "searches" in results else [results]


def _cautions(found: Sequence[dict[str, Any]]) -> list[str]:
    if not found:
        return ["Resume the search with the command below to complete it."]
    windows = int(found[0]["report"]["windows"])
    return [f"Only {windows} windows: intervals are rough. Use 8 or more."] if windows < 8 else []


def _results(one: dict[str, Any]) -> str:
    report = one["report"]
    columns = [_values(report, key, metric) for key, metric in MEASURED.items()]
    rows = [
        (
            "baseline",
            [
                Entry(f"tuned by {html.escape(str(one['search']))}", "tuned"),
                Entry(f"<code>{html.escape(str(one['scheduler']))}</code>", "", "words"),
                *(entries[0] for _, entries in columns),
                Entry("", "", "words"),
            ],
        )
    ]
    for row, (role, other) in enumerate(report["against"].items(), start=1):
        words = str(report["joint"].get(role, ""))
        entries = [
            Entry(html.escape(role), role),
            Entry(f"<code>{html.escape(str(other['scheduler']))}</code>", "", "words"),
            *(values[row] for _, values in columns),
            Entry(html.escape(words), words, "words"),
        ]
        rows.append(("", entries))
    roles = "; ".join(f"{role}: {ROLES[role]}" for role in report["against"] if role in ROLES)
    caption = f"Means over {report['windows']} held-out windows. {roles}."
    heads = ["role", "scheduler", *(head for head, _ in columns), "the tuned one has"]
    return table(html.escape(caption), heads, rows)


def _values(report: dict[str, Any], key: str, metric: str) -> tuple[str, list[Entry]]:
    """Return a column: its head, the tuned scheduler's value, and those of the others."""
    others = (other[key]["mean"] for other in report["against"].values())
    values = [float(report["policy"][key]), *map(float, others)]
    like = [float(report["policy"]["mean_jct"])]
    unit, texts = column_of(metric, values, like=like)
    entries = [Entry(*pair) for pair in zip(texts, values, strict=True)]
    return f"{METRICS[metric].label}{unit}", entries


def _side_by_side(found: Sequence[dict[str, Any]]) -> str:
    rows = []
    for one in found:
        report, name = one["report"], str(one["search"])
        losses = (one["val"]["loss"], report["loss"], report["rival_loss"], report["lane_loss"])
        entries = [Entry(html.escape(name), name), Entry(f"{one['evaluations']:,}")]
        entries += [_change(loss) for loss in losses]
        rows.append(("", entries))
    heads = ["search", "candidates", "VAL", "REPORT", "rival on REPORT", "lane on REPORT"]
    return table("Loss, as a change against the reference.", heads, rows)


def _change(loss: float | None) -> Entry:
    if loss is None:
        return Entry("-")
    return Entry(f"{signed_percent(math.expm1(loss), 1)} %", float(loss))


def _facts(run: Run) -> dict[str, object]:
    settings = run.settings
    return {
        "workload": settings.get("workload", ""),
        "cluster": settings.get("cluster", ""),
        "knowledge": settings.get("knowledge", ""),
        "tuned": settings.get("text", ""),
        "parameters": "; ".join(
            f"{name} from {low:g} to {high:g}, starts at {start:g}{', log scale' if is_log else ''}"
            for name, (low, high, start, is_log) in (settings.get("parameters") or {}).items()
        ),
        "seed": settings.get("seed", ""),
    }
