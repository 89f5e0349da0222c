"""The page of training: the policy on held-out episodes, curves, checkpoints, settings."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from berthline.evaluate.metrics.compared_metrics import METRICS
from berthline.number_text import duration
from berthline.report.figures.figure_table import TRAINING_FIGURES, Drawn
from berthline.report.page.html_page import (
    Section,
    figures_section,
    html_page,
    settings_section,
    verdict_section,
    written_by,
)
from berthline.report.page.page_tables import Entry, column_of, table
from berthline.runs.run_layout import CHECKPOINTS, CURVE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berthline.runs.open_run import Run

SHOWN = {
    "jct_mean": "mean_jct",
    "jct_p99": "p99_jct",
    "wait_mean": "mean_wait",
    "bounded_slowdown_mean": "mean_bounded_slowdown",
    "makespan": "makespan",
    "utilization": "utilization",
}
"""The metric that verdicts are about: its name in comparisons, and in episodes."""

BESIDE = {
    "mean_jct": "mean JCT",
    "p99_jct": "p99 JCT",
    "mean_bounded_slowdown": "bounded slowdown",
    "makespan": "makespan",
    "utilization": "GPU utilisation",
}
"""Metrics that are reported with the one that verdicts are about."""


_PURPOSE = {"best": "best on VAL", "last": "to resume from", "step": "kept on the way"}
"""The purpose of each kind of checkpoint."""


def training_page(run: Run, figures: Sequence[Drawn]) -> str:
    """Return the report of a training run as HTML."""
    settings = run.settings
    name = f"{settings.get('algorithm', '')} on {settings.get('seat', '')}"
    seeds = f"seeds {', '.join(_seeds(run))}" if run.parts else f"seed {settings.get('seed', 0)}"
    return html_page(
        f"Training: {name}",
        f"{int(settings.get('steps', 0)):,} steps in {settings.get('num_envs', '?')} environments, "
        f"{seeds}. {written_by(run)}",
        [
            verdict_section(training_sentences(run), _cautions(run)),
            Section("table", "On held-out episodes (REPORT)", _results(run)),
            figures_section(figures, TRAINING_FIGURES),
            Section("checkpoints", "Checkpoints", _checkpoints(run)),
            settings_section(run, _facts(run), figures, TRAINING_FIGURES),
        ],
    )


def training_sentences(run: Run) -> list[str]:
    """Return the result of training in sentences, the most important first."""
    if not run.is_complete:
        return ["The run has not finished: there is no evaluation on held-out episodes yet."]
    results = run.results
    best = str(results["best_heuristic"])
    key, label = _metric(results)
    if run.parts:
        found = _of_all_seeds(results)[best]
        if found["iqm"] is None:
            return [f"Over {len(results['seeds'])} seeds, {label} has no ratio: it can be 0."]
        between = "" if found["low"] is None else f" [{found['low']:.3f} to {found['high']:.3f}]"
        return [
            f"Over {len(results['seeds'])} seeds, {label} on REPORT is {found['iqm']:.3f}"
            f"{between} times that of {best}, the best heuristic on VAL (interquartile mean over "
            f"seeds and episodes, 95 % interval). The worst seed has {found['worst_seed']:.3f}."
        ]
    report = results["report"]
    policy, against = report["policy"], report["against"][best]
    told = [
        f"The policy has a mean JCT of {duration(policy['mean_jct'])} on {report['episodes']} "
        f"held-out episodes (REPORT). Against {best}, the best heuristic on VAL: {label} "
        f"{against[key]['verdict']}.",
        f"Other metrics against {best}: "
        + "; ".join(
            f"{words} {against[other]['verdict']}"
            for other, words in BESIDE.items()
            if other in against and other != key
        )
        + ".",
    ]
    better = [
        name
        for name, other in report["against"].items()
        if other[key]["verdict"].startswith("better")
    ]
    told.append(
        f"It is better in {label} than {len(better)} of {len(report['against'])} baselines"
        + (f": {', '.join(better)}." if better else ".")
    )
    return told


def _metric(results: dict[str, Any]) -> tuple[str, str]:
    """Return the metric that verdicts are about: its name in episodes, and its label."""
    name = str(results.get("metric", "jct_mean"))
    return SHOWN[name], METRICS[name].label


def _of_all_seeds(results: dict[str, Any]) -> dict[str, Any]:
    """Return the ratios over seeds; earlier versions had only those of mean JCT."""
    found: dict[str, Any] = results.get("metric_against") or results["mean_jct_against"]
    return found


def _cautions(run: Run) -> list[str]:
    told = []
    if run.is_complete:
        told += [f"{text[:1].upper()}{text[1:]}." for text in run.results.get("remarks", [])]
    if not run.is_complete:
        told.append("Resume the run with the command below to complete it.")
    elif not run.parts and not str(run.results.get("best_checkpoint", "")):
        told.append("No checkpoint was kept.")
    if run.is_complete and len(run.parts) in (0, 2):
        number = max(len(run.parts), 1)
        told.append(
            f"{number} seed{'s' if number > 1 else ''}: the variation between seeds is unknown. "
            "Train with 3 seeds or more."
        )
    return told


def _seeds(run: Run) -> list[str]:
    return [name.partition("-")[2] for name in run.parts]


def _results(run: Run) -> str:
    if not run.is_complete:
        return ""
    return _of_seeds(run.results) if run.parts else _of_policy(run.results)


def _of_policy(results: dict[str, Any]) -> str:
    report, best = results["report"], results["best_heuristic"]
    policy = report["policy"]
    key, label = _metric(results)
    ranked = sorted(report["against"].items(), key=lambda item: item[1]["mean_jct"]["mean"])
    columns: list[tuple[str, list[Entry]]] = []
    jct_like = [float(policy["mean_jct"])]
    for name in ("mean_jct", "p99_jct", "mean_bounded_slowdown"):
        values = [float(policy[name]), *(float(other[name]["mean"]) for _, other in ranked)]
        metric = "bounded_slowdown_mean" if name == "mean_bounded_slowdown" else name
        unit, texts = column_of(metric, values, like=jct_like)
        columns.append((unit, [Entry(*pair) for pair in zip(texts, values, strict=True)]))
    (jct_unit, jct), (p99_unit, p99), (_, slowdown) = columns
    heads = ["scheduler", f"mean JCT{jct_unit}", f"p99 JCT{p99_unit}", "bounded slowdown"]
    heads.append(f"{label} of the policy is")
    policy = html.escape(str(results.get("policy", results["algorithm"])))
    own = [
        Entry(f"<strong>{policy}</strong>", "policy"),
        jct[0],
        p99[0],
        slowdown[0],
        Entry("", "", "words"),
    ]
    rows = [("baseline", own)]
    for row, (name, other) in enumerate(ranked, start=1):
        mark = " (best on VAL)" if name == best else ""
        words = str(other[key]["verdict"])
        entries = [
            Entry(f"<code>{html.escape(name)}</code>{mark}", name),
            jct[row],
            p99[row],
            slowdown[row],
            Entry(html.escape(words), words, "words"),
        ]
        rows.append(("", entries))
    caption = (
        f"Means over {report['episodes']} held-out episodes, with 95 % intervals over paired "
        "episodes."
    )
    return table(caption, heads, rows)


def _of_seeds(results: dict[str, Any]) -> str:
    rows = []
    key, label = _metric(results)
    for name, found in _of_all_seeds(results).items():
        if found["iqm"] is None:
            continue
        mark = " (best on VAL)" if name == results["best_heuristic"] else ""
        between = "-" if found["low"] is None else f"{found['low']:.3f} to {found['high']:.3f}"
        entries = [
            Entry(f"<code>{html.escape(name)}</code>{mark}", name),
            Entry(f"{found['iqm']:.3f}", float(found["iqm"])),
            Entry(between),
            Entry(f"{found['worst_seed']:.3f}", float(found["worst_seed"])),
        ]
        rows.append(("", entries))
    caption = (
        f"{label[:1].upper()}{label[1:]} of the policies / that of a baseline on REPORT, "
        f"interquartile mean over {len(results['seeds'])} seeds and all episodes; "
        f"{'above' if key == 'utilization' else 'below'} 1 is better."
    )
    return table(caption, ["against", "ratio", "95 % interval", "worst seed"], rows)


def _checkpoints(run: Run) -> str:
    rows = []
    for name, part in (run.parts or {"": run}).items():
        if not (part.path / CHECKPOINTS).is_dir():
            continue
        values = _returns(part)
        for checkpoint, path in part.checkpoints.items():
            kind, _, digits = checkpoint.partition("-")
            step = int(digits) if digits.isdecimal() else -1
            value = values.get(step)
            entries = [
                Entry(f"<code>{html.escape(str(path.relative_to(run.path)))}</code>", checkpoint),
                Entry(_PURPOSE.get(kind, kind), kind, "words"),
                Entry(f"{step:,}", float(step)),
                Entry("-" if value is None else f"{value:.4g}", value if value is not None else ""),
            ]
            if run.parts:
                entries.insert(0, Entry(html.escape(name), name))
            rows.append(("", entries))
    if not rows:
        return ""
    heads = [*(["run"] if run.parts else []), "directory", "kind", "step", "return on VAL"]
    return table("A checkpoint is a scheduler: use its directory as the name.", heads, rows)


def _returns(part: Run) -> dict[int, float]:
    """Return the return on VAL by step."""
    if not (part.path / CURVE).is_file() or "return" not in part.curve.columns:
        return {}
    steps, values = (part.curve[name].to_list() for name in ("step", "return"))
    return dict(zip(steps, values, strict=True))


def _facts(run: Run) -> dict[str, object]:
    options = run.settings.get("options") or {}
    return {
        "environment": "; ".join(f"{key} {value}" for key, value in options.items()),
        "seed": run.settings.get("seed", ""),
    }
