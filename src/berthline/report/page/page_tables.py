"""Tables of a report, as HTML: values with intervals, tails, cells, losses."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from berthline.evaluate.metrics.compared_metrics import METRICS
from berthline.evaluate.metrics.starvation import wait_words
from berthline.number_text import duration, signed_percent
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
FACTOR = 3
"""From this ratio on, a factor is easier to read than a percentage."""
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
    lines = [f'<div class="scroll"><table><caption>{caption}</caption><thead><tr>']
    for head, kind in zip(heads, kinds, strict=True):
        words = ' class="words"' if kind == "words" else ""
        lines.append(f'<th scope="col"{words}><button type="button">{head}</button></th>')
    lines.append("</tr></thead><tbody>")
    for row_class, entries in rows:
        lines.append(f'<tr class="{row_class}">' if row_class else "<tr>")
        for entry in entries:
            kind = f' class="{entry.kind}"' if entry.kind else ""
            value = entry.value
            if isinstance(value, float):
                value = f"{value:.9g}" if math.isfinite(value) else ""
            lines.append(f'<td{kind} data-value="{html.escape(str(value))}">{entry.text}</td>')
        lines.append("</tr>")
    lines.append("</tbody></table></div>")
    return "".join(lines)


def values_table(run: RunResults) -> str:
    """Return the main table: every metric of every scheduler, with its change to the baseline."""
    shown = ("jct_mean", "jct_p99", "bounded_slowdown_mean", "makespan", "utilization")
    best = {metric: run.ranked(metric)[0] for metric in shown}
    alike = {*equals_of(run, best["jct_mean"], "jct_mean"), best["jct_mean"]}
    bound = mean_bound(run)
    heads = ["scheduler", *(METRICS[metric].label for metric in shown)]
    heads += ["above the bound"] if bound else []
    heads.append("mean JCT, in words")
    rows = []
    for name in run.ranked("jct_mean"):
        entries = [Entry(f"<code>{html.escape(name)}</code>", name)]
        entries += [_value(run, name, metric, is_best=name == best[metric]) for metric in shown]
        if bound:
            gap = mean(run.values(name, "jct_mean")) / bound - 1
            entries.append(Entry(f"{100 * gap:,.3g} %", gap))
        words = (
            "the baseline"
            if name == run.baseline
            else in_words(run, name, run.baseline, "jct_mean")
        )
        if name != best["jct_mean"] and name in alike and len(run.schedulers) > 2:
            words += "; not distinguishable from the best"
        entries.append(Entry(html.escape(words), words, "words"))
        rows.append(("baseline" if name == run.baseline else "", entries))
    over, parts = f"Means over {run.windows} windows", "paired windows"
    if run.cell.get("continuous"):
        over, parts = "Values of the whole run", f"{run.judged_on} blocks of jobs"
        over += f" (means over {run.windows} replicates)" if run.windows > 1 else ""
    note = (
        f"{over}, best mean JCT first; below each value the change against "
        f"{html.escape(run.baseline)} with a 95 % interval over {parts}. Bold: the best of a "
        "column."
    )
    return table(note, heads, rows)


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


def _value(run: RunResults, name: str, metric: str, *, is_best: bool) -> Entry:
    value = mean(run.values(name, metric))
    text = written(metric, value)
    if name != run.baseline:
        ratio = run.ratio(name, run.baseline, metric)
        if ratio.ratio is not None:
            better = (ratio.ratio > 1) == METRICS[metric].higher_is_better
            sure = ratio.low is not None and ratio.high is not None
            sure = sure and not ratio.low <= 1 <= ratio.high  # type: ignore[operator]
            kind = ("better" if better else "worse") if sure else ""
            ends = ""
            if ratio.low is not None and ratio.high is not None:
                ends = f" [{_change(ratio.low)}, {_change(ratio.high)}]"
            text += f'<br><span class="interval {kind}">{_change(ratio.ratio)}{ends} %</span>'
    return Entry(text, value, "best" if is_best and len(run.schedulers) > 1 else "")


def written(metric: str, value: float) -> str:
    """Return a value of a metric with its unit."""
    if metric == "utilization":
        return f"{100 * value:.1f} %"
    if metric == "bounded_slowdown_mean":
        return f"{value:,.2f}" if value < 100 else f"{value:,.0f}"
    return duration(value)


def _change(ratio: float) -> str:
    return signed_percent(ratio - 1).replace("-", "−")


def tails_table(run: RunResults) -> str:
    """Return quantiles of JCT and wait, up to the maximum."""
    heads = ["scheduler"]
    keys = [("jct", "p50"), ("jct", "p95"), ("jct", "p99"), ("jct", "max")]
    keys += [("wait", "p50"), ("wait", "p95"), ("wait", "p99"), ("wait", "max")]
    heads += [f"{'JCT' if what == 'jct' else what} {which}" for what, which in keys]
    columns = {
        key: {name: float(run.result(name)["metrics"][key[0]][key[1]]) for name in run.schedulers}
        for key in keys
    }
    rows = []
    for name in run.ranked("jct_p99"):
        entries = [Entry(f"<code>{html.escape(name)}</code>", name)]
        for key in keys:
            value = columns[key][name]
            best = value == min(columns[key].values()) and len(run.schedulers) > 1
            entries.append(Entry(duration(value), value, "best" if best else ""))
        rows.append(("baseline" if name == run.baseline else "", entries))
    return table(
        "Means over windows of each window's quantile; shortest p99 JCT first.", heads, rows
    )


def cells_table(run: RunResults) -> str:
    """Return one row for each cell: its best scheduler, compared with the baseline."""
    heads = ["cell", "best mean JCT", "its mean JCT", "its slowdown", "its utilisation"]
    heads.append("against the baseline")
    rows = []
    for cell in run.cells:
        names = [str(result["scheduler"]) for result in cell["schedulers"]]
        means = {name: mean(run.values(name, "jct_mean", cell)) for name in names}
        best = min(names, key=lambda name: means[name])
        verdicts: Any = run.result(best, cell).get("against_baseline") or {}
        words = str((verdicts.get("jct_mean") or {}).get("verdict", ""))
        name = cell_name(cell, run.cells)
        slowdown = mean(run.values(best, "bounded_slowdown_mean", cell))
        used = mean(run.values(best, "utilization", cell))
        entries = [
            Entry(html.escape(name), name),
            Entry(f"<code>{html.escape(best)}</code>", best, "words"),
            Entry(duration(means[best]), means[best]),
            Entry(written("bounded_slowdown_mean", slowdown), slowdown),
            Entry(written("utilization", used), used),
            Entry(html.escape(words), words, "words"),
        ]
        rows.append(("", entries))
    return table("Each workload, cluster and load separately.", heads, rows)


def overall_table(run: RunResults) -> str:
    """Return the results over all cells; empty if the run has none."""
    rows = []
    for result in run.overall.get("schedulers") or []:
        name = str(result["scheduler"])
        entries = [Entry(f"<code>{html.escape(name)}</code>", name)]
        entries += [_interval(result["ratio"].get(metric), "ratio") for metric in OVERALL]
        entries.append(_interval(result["improvement"].get("jct_mean"), "share"))
        rows.append(("baseline" if name == run.baseline else "", entries))
    if not rows:
        return ""
    heads = ["scheduler", *(f"{METRICS[metric].label}, change" for metric in OVERALL)]
    note = (
        f"All {run.overall['cells']} cells, {run.overall['windows']} windows: interquartile mean "
        f"of the ratios to {html.escape(run.baseline)}, and how often mean JCT is better, with "
        "95 % intervals."
    )
    return table(note, [*heads, "better in"], rows)


def _interval(found: dict[str, Any] | None, kind: str) -> Entry:
    if not found or found.get("value") is None:
        return Entry("-")
    write = (lambda x: f"{100 * x:.0f}") if kind == "share" else _change
    text = f"{write(found['value'])} %"
    if found.get("low") is not None and found.get("high") is not None:
        ends = f"[{write(found['low'])}, {write(found['high'])}]"
        text += f'<br><span class="interval">{ends}</span>'
    return Entry(text, float(found["value"]))


def losses_table(run: RunResults, losses: pl.DataFrame) -> str:
    """Return, for every scheduler, where it is worse than the baseline or the best."""
    best = run.ranked("jct_mean")[0]
    roles = {best: "best mean JCT", run.baseline: "baseline"}
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
    write = _change if ratio < FACTOR else (lambda end: f"{end:.3g}")
    ends = "" if low is None or high is None else f" [{write(low)}, {write(high)}]"
    jobs = f", {row['jobs']:,} jobs" if row["jobs"] else ""
    return f"{subject} {_percent(ratio)}{ends}{jobs}"


def _percent(ratio: float) -> str:
    return f"x {ratio:.3g}" if ratio >= FACTOR else f"{_change(ratio)} %"
