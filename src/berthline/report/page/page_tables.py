"""Tables of a report, as HTML: values with intervals, tails, cells, losses."""

from __future__ import annotations

import html
import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from berthline.counted import counted
from berthline.evaluate.metrics.compared_metrics import METRICS
from berthline.evaluate.metrics.starvation import wait_words
from berthline.evaluate.statistics.change_in_words import (
    PERCENT,
    RATIO,
    WithEnds,
    change_in,
    change_in_words,
    column_of_changes,
    is_factor,
    signed_change,
    times,
    unit_of_changes,
)
from berthline.evaluate.statistics.paired import includes_one
from berthline.number_text import column_of_times
from berthline.report.figures.oracle_gap import mean_bound
from berthline.report.figures.radar import cell_name
from berthline.report.page.losses import as_seen
from berthline.report.page.verdict import equals_of, in_words
from berthline.report.run_results import mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import polars as pl

    from berthline.report.run_results import RunResults

MOST_LOSSES = 6
LOSS_FACTOR = 3.0
"""From this ratio on, a loss is written as a factor: losses in a list are mostly large."""
OVERALL = ("jct_mean", "jct_p99", "bounded_slowdown_mean", "makespan", "utilization")


class Entry(NamedTuple):
    """A cell of a table: its HTML, its sort key, its class."""

    text: str
    value: float | str = ""
    kind: str = ""


def table(caption: str, heads: Sequence[str], rows: Iterable[tuple[str, Sequence[Entry]]]) -> str:
    """Return a table that the reader can sort; each row has a class and its entries.

    Entries hold HTML: the caller escapes all texts from outside.
    """
    rows = list(rows)
    kinds = [entry.kind for entry in rows[0][1]]
    plain = [re.sub(r"<[^>]+>", "", head) for head in heads]
    lines = [f'<div class="scroll"><table><caption>{caption}</caption><thead><tr>']
    for head, kind in zip(heads, kinds, strict=True):
        words = ' class="words"' if kind == "words" else ""
        lines.append(f'<th scope="col"{words}><button type="button">{head}</button></th>')
    lines.append("</tr></thead><tbody>")
    for row_class, entries in rows:
        lines.append(f'<tr class="{row_class}">' if row_class else "<tr>")
        for entry, head in zip(entries, plain, strict=True):
            kind = f' class="{entry.kind}"' if entry.kind else ""
            value = entry.value
            if isinstance(value, float):
                value = f"{value:.9g}" if math.isfinite(value) else ""
            # In a block of its own: on a phone, the head of the column stands before it.
            text = f"<div>{entry.text}</div>" if entry.text else ""
            mark = f'data-head="{head}" data-value="{html.escape(str(value))}"'
            lines.append(f"<td{kind} {mark}>{text}</td>")
        lines.append("</tr>")
    lines.append("</tbody></table></div>")
    return "".join(lines)


def values_table(run: RunResults) -> str:
    """Return the main table: every metric of every scheduler, with its change to the baseline."""
    shown = ("jct_mean", "jct_p99", "bounded_slowdown_mean", "makespan", "utilization")
    names = run.ranked("jct_mean")
    best = {metric: run.ranked(metric)[0] for metric in shown}
    alike = {*equals_of(run, best["jct_mean"], "jct_mean"), best["jct_mean"]}
    bound = mean_bound(run)
    heads, columns = ["scheduler"], [[_scheduler(name) for name in names]]
    for metric in shown:
        head, entries = _values(run, names, metric, best[metric])
        heads.append(head)
        columns.append(entries)
    if bound:
        head, entries = _above_bound([mean(run.values(name, "jct_mean")) / bound for name in names])
        heads.append(head)
        columns.append(entries)
    heads.append("mean JCT, in words")
    in_full = []
    for name in names:
        words = (
            "the baseline"
            if name == run.baseline
            else in_words(run, name, run.baseline, "jct_mean")
        )
        if name != best["jct_mean"] and name in alike and len(run.schedulers) > 2:
            words += "; not distinguishable from the best"
        in_full.append(Entry(html.escape(words), words, "words"))
    columns.append(in_full)
    over, parts = f"Means over {counted(run.windows, 'window')}", "paired windows"
    if run.cell.get("continuous"):
        over, parts = "Values of the whole run", f"{run.judged_on} blocks of jobs"
        over += f" (means over {run.windows} replicates)" if run.windows > 1 else ""
    note = (
        f"{over}, best mean JCT first; below each value the change against "
        f"{html.escape(run.baseline)} with a 95 % interval over {parts}. Bold: the best of a "
        "column."
    )
    return table(note, heads, _rows(run, names, columns))


def starvation_table(run: RunResults) -> str:
    """Return the longest wait, the starved jobs and those left behind; empty if not known."""
    found = {name: run.starvation(name) for name in run.ranked("jct_mean")}
    rows = [
        (
            "baseline" if name == run.baseline else "",
            [
                Entry(f"<code>{html.escape(name)}</code>", name),
                Entry(wait_words(one.wait), one.wait, "worse" if one.starves else ""),
                Entry(f"{one.starved:,}", float(one.starved)),
                Entry(f"{one.left_behind:,}", float(one.left_behind)),
                Entry("yes" if one.starves else "no", float(one.starves), "words"),
            ],
        )
        for name, one in found.items()
        if one is not None
    ]
    if not rows:
        return ""
    note = (
        "Starved: waited more than 10 x run time and a day. Left behind: also two weeks, "
        "and 10 x as long as jobs submitted meanwhile. A scheduler starves if it leaves a job "
        "behind."
    )
    return table(note, ["scheduler", "longest wait", "starved", "left behind", "starves"], rows)


def _scheduler(name: str) -> Entry:
    return Entry(f"<code>{html.escape(name)}</code>", name)


def _rows(
    run: RunResults, names: Sequence[str], columns: Sequence[Sequence[Entry]]
) -> list[tuple[str, list[Entry]]]:
    return [
        ("baseline" if name == run.baseline else "", list(entries))
        for name, *entries in zip(names, *columns, strict=True)
    ]


def _values(
    run: RunResults, names: Sequence[str], metric: str, best: str
) -> tuple[str, list[Entry]]:
    """Return the head and the entries of a metric, all values and all changes in one unit."""
    values = [mean(run.values(name, metric)) for name in names]
    like = [mean(run.values(name, "jct_mean")) for name in names] if metric == "jct_p99" else ()
    unit, texts = column_of(metric, values, like=like)
    others = [name for name in names if name != run.baseline]
    ratios = {name: run.ratio(name, run.baseline, metric) for name in others}
    change = unit_of_changes([(each.ratio, each.low, each.high) for each in ratios.values()])
    entries = []
    for name, value, text in zip(names, values, texts, strict=True):
        found = ratios.get(name)
        if found is not None and found.ratio is not None:
            better = (found.ratio > 1) == METRICS[metric].higher_is_better
            sure = found.low is not None and found.high is not None
            sure = sure and not includes_one(found.low, found.high)  # type: ignore[arg-type]
            kind = ("better" if better else "worse") if sure else ""
            words = change_in_words(found, change).replace("-", "−")
            text += f'<br><span class="interval {kind}">{words}</span>'
        entries.append(Entry(text, value, "best" if name == best and others else ""))
    return f"{METRICS[metric].label}{unit}", entries


def column_of(
    metric: str, values: Sequence[float], *, like: Sequence[float] = ()
) -> tuple[str, list[str]]:
    """Return values of a metric in one unit, and that unit as the end of a head.

    Args:
        metric: its name.
        values: of the column.
        like: a column of times with the same unit.
    """
    if metric == "utilization":
        return ", %", [f"{100 * value:.1f}" for value in values]
    if metric == "bounded_slowdown_mean":
        digits = 2 if max(values) < 100 else 1
        return "", [f"{value:,.{digits}f}" for value in values]
    unit, texts = column_of_times(values, like=like)
    return f", {unit}", texts


def _above_bound(ratios: Sequence[float]) -> tuple[str, list[Entry]]:
    if any(is_factor(ratio) for ratio in ratios):
        texts = [f"{ratio:,.1f}" for ratio in ratios]
        return "times the bound", [Entry(*pair) for pair in zip(texts, ratios, strict=True)]
    texts = [f"{100 * (ratio - 1):.0f}" for ratio in ratios]
    return "above the bound, %", [Entry(*pair) for pair in zip(texts, ratios, strict=True)]


def tails_table(run: RunResults) -> str:
    """Return quantiles of JCT and wait, up to the maximum."""
    keys = [("jct", "p50"), ("jct", "p95"), ("jct", "p99"), ("jct", "max")]
    keys += [("wait", "p50"), ("wait", "p95"), ("wait", "p99"), ("wait", "max")]
    names = run.ranked("jct_p99")
    heads, columns = ["scheduler"], [[_scheduler(name) for name in names]]
    found = {
        (what, which): [float(run.result(name)["metrics"][what][which]) for name in names]
        for what, which in keys
    }
    for (what, which), values in found.items():
        # All quantiles of JCT have the unit of its median: they are read from left to right.
        like = found["jct", "p50"] if what == "jct" else found["wait", "p95"]
        unit, texts = column_of_times(values, like=like)
        heads.append(f"{'JCT' if what == 'jct' else what} {which}, {unit}")
        columns.append(
            [
                Entry(text, value, "best" if value == min(values) and len(names) > 1 else "")
                for text, value in zip(texts, values, strict=True)
            ]
        )
    return table(
        "Means over windows of each window's quantile; shortest p99 JCT first.",
        heads,
        _rows(run, names, columns),
    )


def cells_table(run: RunResults) -> str:
    """Return one row for each cell: its best scheduler, compared with the baseline."""
    found = []
    for cell in run.cells:
        names = [str(result["scheduler"]) for result in cell["schedulers"]]
        means = {name: mean(run.values(name, "jct_mean", cell)) for name in names}
        found.append((cell, min(names, key=lambda name: means[name])))
    cells = [cell_name(cell, run.cells) for cell, _ in found]
    heads, columns = ["cell"], [[Entry(html.escape(name), name) for name in cells]]
    heads.append("best mean JCT")
    columns.append([_scheduler(best)._replace(kind="words") for _, best in found])
    shown = {
        "jct_mean": "its mean JCT",
        "bounded_slowdown_mean": "its slowdown",
        "utilization": "its utilisation",
    }
    for metric, label in shown.items():
        values = [mean(run.values(best, metric, cell)) for cell, best in found]
        unit, texts = column_of(metric, values)
        heads.append(f"{label}{unit}")
        columns.append([Entry(*pair) for pair in zip(texts, values, strict=True)])
    heads.append("against the baseline")
    verdicts: list[Any] = [run.result(best, cell).get("against_baseline") for cell, best in found]
    words = [str(((each or {}).get("jct_mean") or {}).get("verdict", "")) for each in verdicts]
    columns.append([Entry(html.escape(text), text, "words") for text in words])
    rows = [("", list(entries)) for entries in zip(*columns, strict=True)]
    return table("Each workload, cluster and load separately.", heads, rows)


def overall_table(run: RunResults) -> str:
    """Return the results over all cells; empty if the run has none."""
    results = run.overall.get("schedulers") or []
    if not results:
        return ""
    names = [str(result["scheduler"]) for result in results]
    heads, columns = ["scheduler"], [[_scheduler(name) for name in names]]
    for metric in OVERALL:
        found = [_ends(result["ratio"].get(metric)) for result in results]
        texts, unit = column_of_changes(found)
        heads.append(f"{METRICS[metric].label}, {'change, %' if unit == PERCENT else unit}")
        columns.append([_interval(text, ends) for text, ends in zip(texts, found, strict=True)])
    heads.append("better in, %")
    found = [_ends(result["improvement"].get("jct_mean")) for result in results]
    columns.append([_interval(_shares(ends), ends) for ends in found])
    note = (
        f"All {run.overall['cells']} cells, {run.overall['windows']} windows: interquartile mean "
        f"of the ratios to {html.escape(run.baseline)}, and how often mean JCT is better, with "
        "95 % intervals."
    )
    return table(note, heads, _rows(run, names, columns))


def _ends(found: dict[str, Any] | None) -> WithEnds:
    found = found or {}
    return found.get("value"), found.get("low"), found.get("high")


def _shares(ends: WithEnds) -> str:
    value, low, high = ends
    if value is None:
        return "-"
    between = "" if low is None or high is None else f" [{100 * low:.0f}, {100 * high:.0f}]"
    return f"{100 * value:.0f}{between}"


def _interval(text: str, ends: WithEnds) -> Entry:
    value, between, interval = text.replace("-", "−").partition(" [")
    if between:
        value += f'<br><span class="interval">[{interval}</span>'
    return Entry("-" if ends[0] is None else value, "" if ends[0] is None else ends[0])


def losses_table(run: RunResults, losses: pl.DataFrame) -> str:
    """Return, for every scheduler, where it is worse than the baseline or the best."""
    best = run.ranked("jct_mean")[0]
    roles = {best: "best mean JCT", run.baseline: "baseline"}
    if best == run.baseline:
        roles = {best: "baseline, best mean JCT"}
    others = list(dict.fromkeys((run.baseline, best)))
    heads = ["scheduler"]
    heads += [f"against <code>{html.escape(other)}</code> ({roles[other]})" for other in others]
    rows = []
    for name in run.ranked("jct_mean"):
        entries = [Entry(f"<code>{html.escape(name)}</code>", name)]
        for other in others:
            words = "" if name == other else _losses_to(run, losses, name, other)
            entries.append(Entry(words or "-", words, "words"))
        rows.append(("baseline" if name == run.baseline else "", entries))
    return table("Largest losses first.", heads, rows)


def _losses_to(run: RunResults, losses: pl.DataFrame, name: str, other: str) -> str:
    """Return where a scheduler is worse than another, in words."""
    import polars as pl

    mine = losses.filter((pl.col("scheduler") == name) & (pl.col("against") == other))
    windows = mine.filter(pl.col("kind") == "window")
    rest = mine.filter(pl.col("kind") != "window")
    words = [_loss(row) for row in rest.head(MOST_LOSSES).to_dicts()]
    if len(rest) > MOST_LOSSES:
        words.append(f"and {len(rest) - MOST_LOSSES} more (losses.csv)")
    if len(windows) and run.windows > 1:
        worst = windows.row(0, named=True)
        words.append(
            f"{len(windows)} of {run.windows} windows, most in window "
            f"{html.escape(worst['where'])} ({_percent(worst['ratio'])})"
        )
    return "<br>".join(words) if words else "nowhere beyond chance"


def _loss(row: dict[str, Any]) -> str:
    """Return one loss in words."""
    where = html.escape(str(row["where"]))
    subject = {
        "metric": where,
        "size": f"JCT of jobs of {where}",
        "priority": f"JCT at priority {where}",
        "user": f"JCT of user {where}",
        "pool": f"JCT in pool {where}",
    }[row["kind"]]
    ratio, low, high = as_seen(row)
    ends = ""
    if low is not None and high is not None:
        unit = RATIO if is_factor(ratio, LOSS_FACTOR) else PERCENT
        ends = f" [{change_in(unit, low)}, {change_in(unit, high)}]".replace("-", "−")
    jobs = f", {row['jobs']:,} jobs" if row["jobs"] else ""
    return f"{subject} {_percent(ratio)}{ends}{jobs}"


def _percent(ratio: float) -> str:
    """Return how much worse a scheduler is: a factor if it is large."""
    return f"x {times(ratio)}" if is_factor(ratio, LOSS_FACTOR) else f"{signed_change(ratio)} %"
