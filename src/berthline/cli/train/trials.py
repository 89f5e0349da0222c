"""`berthline train ALGORITHM --sweep`: train many times with other settings."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from berthline.cli.options import read_settings
from berthline.cli.output import (
    BEST,
    counted,
    new_table,
    note,
    number,
    print_facts,
    print_json,
    print_table,
)
from berthline.cli.train.signals import StoppedError, stop_signals
from berthline.errors import ConfigError, MissingExtraError
from berthline.runs.run_layout import FIGURES
from berthline.runs.run_output import RunOutput

if TYPE_CHECKING:
    from berthline.cli.train.command import Train

FIGURE = "what-mattered.png"
_MOST_SHOWN = 10


def run(options: Train, argv: list[str]) -> int:
    """Run a sweep, and print its trials and what mattered."""
    if not options.sweep or options.trials is None:
        missing = "--trials" if options.sweep else "--sweep"
        raise ConfigError(f"{missing} is missing", expected="--sweep KEY=VALUES and --trials N")
    from berthline.cli.train.command import parameters

    given = parameters(options)
    words = [word for word in argv if word != "--resume"]
    again = shlex.join(["berthline", "train", *words, "--resume"])
    try:
        with stop_signals() as request:
            from berthline.cli.train.show import watching
            from berthline.learn.training.events import find_callback
            from berthline.learn.tuning.trials import sweep

            found = sweep(
                options.algorithm,
                read_settings(options.sweep, "--sweep"),
                trials=options.trials,
                resume=options.resume,
                device=options.device,
                init_from=options.init_from,
                out=RunOutput(str(options.out), shlex.join(["berthline", "train", *argv])),
                callbacks=[find_callback(text) for text in options.callback],
                must_stop=request,
                watch=watching,
                remark=note,
                **given,
            )
    except StoppedError as stopped:
        note(f"stopped at once; the sweep resumes from the last checkpoint: {again}")
        return 128 + stopped.signal
    if found.summary is None:
        note(f"stopped; all trials so far are saved. to resume: {again}")
        return 128 + request.signal if request.signal else 0
    figure = _draw(found.directory, found.summary)
    if options.json:
        print_json({**found.summary, "figure": figure})
        return 0
    show(found.directory, found.summary, figure)
    return 0


def _draw(path: Path, summary: dict[str, Any]) -> str:
    """Write the figure of a sweep; empty = matplotlib is not installed."""
    from berthline.report.figures.drawing import check_figure_file
    from berthline.report.figures.trials_figure import draw_trials

    try:
        out = check_figure_file(path / FIGURES / FIGURE, needed_for="the figure of a sweep")
    except MissingExtraError as error:
        note(f"no figure: {error.what}; {error.hint}")
        return ""
    draw_trials(summary, out)
    return str(out)


def show(path: Path, summary: dict[str, Any], figure: str) -> None:
    """Print the best trials, what mattered, and how to go on."""
    from berthline.evaluate.metrics.compared_metrics import METRICS

    about = METRICS[summary["metric"]]
    names = list(summary["vary"])
    trials = [trial for trial in summary["trials"] if trial["value"] is not None]
    trials.sort(key=lambda trial: trial["value"], reverse=about.higher_is_better)
    failed = len(summary["trials"]) - len(trials)
    print(
        f"{summary['algorithm']} on {summary['seat']}: {counted(len(summary['trials']), 'trial')}"
        f" of {number(summary['steps'])} steps\n"
        f"VAL: {about.label} relative to the best heuristic; {BEST} best\n"
    )
    table = new_table("trial", "VAL", *(name.removeprefix("config.") for name in names))
    for trial in trials[:_MOST_SHOWN]:
        mark = BEST if trial["trial"] == summary["best"]["trial"] else ""
        values = [_text(trial["params"][name]) for name in names]
        table.add_row(trial["directory"], f"{mark}{trial['value']:.4f}", *values)
    print_table(table)
    shares = ", ".join(f"{name} {share:.0%}" for name, share in summary["importance"].items())
    best = summary["best"]
    print()
    print_facts(
        {
            "more": f"{len(trials) - _MOST_SHOWN} other trials" if trials[_MOST_SHOWN:] else "",
            "failed": f"{counted(failed, 'trial')} without a value" if failed else "",
            "mattered": shares or "too few trials to say",
            "REPORT": _report(summary),
            "caution": "the best of many trials is partly luck: train it again with other seeds",
            "best": str(path / best["directory"]),
            "figure": figure,
        }
    )


def _report(summary: dict[str, Any]) -> str:
    """Return the verdict on the best trial, on REPORT."""
    from berthline.evaluate.metrics.compared_metrics import METRICS
    from berthline.learn.training.episode_metrics import NAME_IN_EPISODES

    rival = summary["best_heuristic"]
    metric = NAME_IN_EPISODES[summary["metric"]]
    verdict = summary["report"]["against"][rival][metric]["verdict"]
    return f"{METRICS[summary['metric']].label} of the best trial {verdict} against {rival}"


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
