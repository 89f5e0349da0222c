"""The page of preemptive_index.py: its CSV files as tables, verdicts and a figure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from benchmarks.paired_windows import in_words, names

from berthline.evaluate.statistics.blocks import block_ratio
from berthline.evaluate.statistics.paired import Ratio, paired_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.result_files import Row

PLAIN, QUEUES = "plain 2D-LAS", "Tiresias' queues"
LAS = {
    PLAIN: "[attained]+skip![attained]:every=120:min_run=-1",
    QUEUES: "las+skip!las:every=120",
    "queues, no promotion": "las+skip!las:promote=0:every=120",
}
"""The opponents: plain attained GPU-seconds; three queues of them; queues without promotion."""
GOAL_JCT, GOAL_FEWER = 0.98, 5.0
JUDGED = {"window": "windows", "block": "one run"}


def column(rows: Sequence[Row], name: str, key: str) -> list[float]:
    """Return the values of a scheduler, in order; `rows` are of one setting and evaluation."""
    chosen = [row for row in rows if row["name"] == name]
    return [float(row[key]) for row in sorted(chosen, key=lambda row: int(row["number"]))]


def select(rows: Sequence[Row], **where: str) -> list[Row]:
    """Return the rows with these entries."""
    return [row for row in rows if all(row[key] == value for key, value in where.items())]


def ratio(rows: Sequence[Row], name: str, other: str, key: str = "jct_mean") -> Ratio:
    """Return the ratio of two schedulers over windows, or over the blocks of one run."""
    ours, theirs = column(rows, name, key), column(rows, other, key)
    if rows[0]["judged"] == "window":
        return paired_ratio(ours, theirs)
    return block_ratio(ours, theirs, blocks=len(ours))


def best_las(rows: Sequence[Row]) -> str:
    """Return the opponent with the lowest mean JCT, in hindsight."""
    return min(LAS, key=lambda name: sum(map(math.log, column(rows, name, "jct_mean"))))


def per_job(rows: Sequence[Row], name: str) -> float:
    """Return preemptions per job."""
    return sum(column(rows, name, "preemptions")) / sum(column(rows, name, "jobs"))


def fewer(rows: Sequence[Row], name: str, other: str) -> str:
    """Return how many times fewer preemptions a scheduler has than another."""
    ours, theirs = per_job(rows, name), per_job(rows, other)
    return f"{theirs / ours:.1f}" if ours else "none"


def chosen_on_val(found: Sequence[Row], log: str) -> Row:
    """Return the search with the scheduler that VAL chose."""
    searches = select(found, log=log, space="index")
    return min(searches, key=lambda row: float(row["val_loss"]))


def verdicts(found: Sequence[Row], runs: Sequence[Row], *, met: bool) -> list[str]:
    """Return where the tuned index meets or misses its goal against the best opponent."""
    lines = []
    for log in names(found, "log"):
        chosen = f"tuned, seed {chosen_on_val(found, log)['seed']}"
        for cluster in names(runs, "cluster", log=log):
            for judged in names(runs, "judged", log=log, cluster=cluster):
                how, rows = JUDGED[judged], select(runs, log=log, cluster=cluster, judged=judged)
                best = best_las(rows)
                jct = ratio(rows, chosen, best)
                assert jct.ratio is not None
                assert jct.high is not None
                counts = {name: per_job(rows, name) for name in (PLAIN, QUEUES)}
                few = per_job(rows, chosen) * GOAL_FEWER <= per_job(rows, best)
                short = jct.ratio <= GOAL_JCT
                if (few and short) != met:
                    continue
                sure = "" if not met or jct.high < 1 else "; the interval includes 1"
                known = ratio(rows, "run times known: srpt-area", best)
                lines.append(
                    f"- {log} on `{cluster}`, {how}: mean JCT {in_words(jct)} against {best}"
                    f"{sure}; {per_job(rows, chosen):.2f} preemptions a job, plain 2D-LAS"
                    f" {counts[PLAIN]:.2f}, Tiresias' queues {counts[QUEUES]:.2f}."
                    f" With all run times known: {in_words(known)}."
                )
    return lines or ["None."]


def table(rows: Sequence[Row]) -> list[str]:
    """Return all schedulers of a setting, in one evaluation."""
    best = best_las(rows)
    lines = [
        f"| | mean JCT, s | mean JCT against {best} [95 %] | p99 JCT | longest JCT"
        " | preemptions a job |",
        "| --- |" + " ---: |" * 5,
    ]
    for name in names(rows, "name"):
        jct = column(rows, name, "jct_mean")
        jobs = column(rows, name, "jobs")
        mean = sum(x * n for x, n in zip(jct, jobs, strict=True)) / sum(jobs)
        cells = [
            "baseline" if name == best else in_words(ratio(rows, name, best, key))
            for key in ("jct_mean", "jct_p99", "jct_max")
        ]
        count = per_job(rows, name)
        lines.append(f"| {name} | {mean:,.0f} | {' | '.join(cells)} | {count:.2f} |")
    return lines


def parts(found: Sequence[Row], runs: Sequence[Row]) -> dict[str, list[str]]:
    """Return the computed parts of the page, by name."""
    tables: list[str] = []
    for log in names(runs, "log"):
        for cluster in names(runs, "cluster", log=log):
            for judged in names(runs, "judged", log=log, cluster=cluster):
                rows = select(runs, log=log, cluster=cluster, judged=judged)
                count = len(names(rows, "number"))
                told = f"{count} windows" if judged == "window" else f"one run in {count} blocks"
                tables += [f"**{log} on `{cluster}`, {told}**", "", *table(rows), ""]
    return {
        "losses": verdicts(found, runs, met=False),
        "gains": verdicts(found, runs, met=True),
        "seeds": seeds(found, runs),
        "spaces": spaces(found),
        "transfer": transfer(found, runs),
        "schedulers": [
            f"- {log}: `{chosen_on_val(found, log)['scheduler']}`" for log in names(found, "log")
        ],
        "tables": tables[:-1],
    }


def seeds(found: Sequence[Row], runs: Sequence[Row]) -> list[str]:
    """Return all searches for the rule, where they were tuned."""
    lines = [
        "| log | seed | VAL loss | windows: mean JCT against the best of LAS [95 %] | times fewer"
        " preemptions than plain, than queues | one run: mean JCT [95 %] | times fewer |",
        "| --- | ---: | ---: |" + " ---: |" * 4,
    ]
    for row in select(found, space="index"):
        name, cells = f"tuned, seed {row['seed']}", []
        for judged in JUDGED:
            rows = select(runs, log=row["log"], cluster=row["cluster"], judged=judged)
            cells.append(in_words(ratio(rows, name, best_las(rows))))
            cells.append(", ".join(fewer(rows, name, other) for other in (PLAIN, QUEUES)))
        mark = " (chosen)" if row is chosen_on_val(found, row["log"]) else ""
        loss = f"{float(row['val_loss']):+z.3f}"
        lines.append(f"| {row['log']} | {row['seed']}{mark} | {loss} | {' | '.join(cells)} |")
    return lines


def spaces(found: Sequence[Row]) -> list[str]:
    """Return what the extension of the rule gave on VAL."""
    lines = ["| log | searched | VAL loss of each seed |", "| --- | --- | --- |"]
    for log in names(found, "log"):
        for space in names(found, "space", log=log):
            losses = [float(r["val_loss"]) for r in select(found, log=log, space=space)]
            told = ", ".join(f"{loss:+z.3f}" for loss in losses)
            lines.append(f"| {log} | {space} | {told} |")
    return lines


def transfer(found: Sequence[Row], runs: Sequence[Row]) -> list[str]:
    """Return what each log's index does on the other logs, and on other clusters."""
    logs = names(found, "log")
    lines = [
        "| run on | evaluated on |"
        + "".join(f" tuned on {log} |" for log in logs)
        + " as it comes |",
        "| --- | --- |" + " ---: |" * (len(logs) + 1),
    ]
    for log in names(runs, "log"):
        for cluster in names(runs, "cluster", log=log):
            for judged in names(runs, "judged", log=log, cluster=cluster):
                how, rows = JUDGED[judged], select(runs, log=log, cluster=cluster, judged=judged)
                best = best_las(rows)
                cells = [
                    f"{in_words(ratio(rows, name, best))}; {per_job(rows, name):.2f}"
                    for name in (*(f"tuned on {other}" for other in logs), "index as it comes")
                ]
                lines.append(f"| {log}, `{cluster}` | {how} | {' | '.join(cells)} |")
    return lines


def draw(runs: Sequence[Row], path: Path) -> None:
    """Write the figure: mean JCT against preemptions a job, where each log was tuned.

    Raises:
        OutputError: the file cannot be written.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from berthline.palette import BLUE, GREEN, GREY, ORANGE, RED
    from berthline.report.figures.drawing import STYLE, save_figure

    marks = {
        **dict(zip(LAS, (("o", ORANGE), ("s", ORANGE), ("D", ORANGE)), strict=True)),
        "gittins": ("^", GREEN),
        "index as it comes": ("v", BLUE),
        "run times known: srpt-area": ("*", GREY),
    }
    logs = [log for log in names(runs, "log") if select(runs, log=log, judged="block")]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.6, 6.4), layout="constrained")
        panels = figure.subplots(2, len(logs), squeeze=False)
        for place, log in enumerate(logs):
            home = names(runs, "cluster", log=log)[0]
            for line, (judged, how) in enumerate(JUDGED.items()):
                axes = panels[line][place]
                rows = select(runs, log=log, cluster=home, judged=judged)
                best = best_las(rows)
                fewest = per_job(rows, best) / GOAL_FEWER
                axes.axhline(GOAL_JCT, color=GREY, linewidth=0.8, linestyle="--")
                axes.axvline(fewest, color=GREY, linewidth=0.8, linestyle="--")
                tuned = [name for name in names(rows, "name") if name.startswith("tuned, seed")]
                for name in (*marks, *tuned):
                    marker, colour = marks.get(name, ("P", RED))
                    label = "tuned index, each seed" if name == tuned[0] else name
                    axes.plot(
                        per_job(rows, name),
                        ratio(rows, name, best).ratio,
                        marker=marker,
                        color=colour,
                        linestyle="none",
                        markersize=6,
                        label=None if name in tuned[1:] else label,
                    )
                axes.set_xscale("log")
                low, high = axes.get_xlim()
                ticks = [tick for tick in (0.1, 0.2, 0.5, 1, 2, 5, 10) if low <= tick <= high]
                axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
                axes.minorticks_off()
                axes.set_title(f"{log}, {how}")
        for axes in panels[-1]:
            axes.set_xlabel("preemptions a job")
        for line in panels:
            line[0].set_ylabel("mean JCT / best of LAS")
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
        save_figure(figure, path)
