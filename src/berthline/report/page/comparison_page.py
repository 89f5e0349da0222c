"""The page of a comparison: sim, compare, demo and eval."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING, Any

import msgspec

from berthline.counted import counted
from berthline.evaluate.metrics.measurement_window import MeasurementWindow
from berthline.model.speeds import RunTimeScaling
from berthline.report.figures.figure_table import COMPARISON_FIGURES, Drawn
from berthline.report.page import losses, verdict
from berthline.report.page.html_page import (
    TWINS,
    Section,
    figures_section,
    html_page,
    packed_plotly,
    settings_section,
    verdict_section,
    written_by,
)
from berthline.report.page.page_tables import (
    cells_table,
    losses_table,
    overall_table,
    starvation_table,
    tails_table,
    values_table,
)
from berthline.report.page.real_table import real_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from berthline.report.run_results import RunResults


def comparison_page(run: RunResults, figures: Sequence[Drawn], *, with_twins: bool = True) -> str:
    """Return the report as HTML.

    Args:
        run: the results.
        figures: the figures, with their PNG files or the reason why they are missing.
        with_twins: whether figures are interactive, which needs plotly.
    """
    found = losses.data(run)
    cells = cells_table(run) + overall_table(run) if len(run.cells) > 1 else ""
    sections = [
        verdict_section(verdict.sentences(run), verdict.cautions(run)),
        Section("table", "Values and intervals", values_table(run)),
        Section("cells", "Cells", cells),
        Section("starvation", "Starvation", starvation_table(run)),
        Section("tails", "Tails", tails_table(run)),
        Section("real", "On the real system", real_table(run.run)),
        figures_section(figures, COMPARISON_FIGURES, run.lineup, with_twins=with_twins),
        Section("losses", "Where each scheduler loses", _losses(run, losses_table(run, found))),
        _settings(run, figures),
    ]
    has_twins = with_twins and any(figure.files and figure.name in TWINS for figure in figures)
    return html_page(
        f"{run.cell['workload']} on {run.cell['cluster']}",
        _about(run),
        sections,
        library=packed_plotly() if has_twins else "",
    )


def _about(run: RunResults) -> str:
    cell = run.cell
    jobs = cell.get("window_jobs") or [0]
    few, many = min(jobs), max(jobs)
    count = f"{many:,}" if few == many else f"{few:,} to {many:,}"
    measured, start = "", run.run.start
    window = None
    if cell.get("measure"):
        begin, stop = cell["measure"]
        window = (begin, math.inf if stop is None else stop)
    counts = MeasurementWindow.of_run(window, None if start is None else start.now)
    if start is not None:
        measured = f" The run began at {start.now:,.10g} s, in the state of another run."
    if counts is not None:
        measured += f" Measured: {counts.in_words()}; figures of single jobs show all jobs."
    scaled = _run_times(cell)
    measured += f" Run times are scaled {scaled}." if scaled else ""
    part = f"{cell['part']}: " if cell.get("part") else ""
    length = (
        f"one continuous run of {count} jobs"
        if cell.get("continuous")
        else f"{counted(run.windows, 'window')} of {count} jobs"
    )
    return (
        f"{part}{counted(len(run.schedulers), 'scheduler')}, {length}; knowledge "
        f"of run times: {cell['knowledge']}; seed {cell['seed']}.{measured} {written_by(run.run)}"
    )


def _losses(run: RunResults, content: str) -> str:
    told = (
        "Ratios of mean JCT over paired windows whose whole 95 % interval is worse, by size of "
        "job, priority, user and pool; the same for other metrics."
        if run.windows > 1
        else "Mean JCT longer by more than 2 %, by size of job, priority, user and pool. "
        "One window has no interval."
    )
    return f"<p>{told} With this many comparisons, a few may be due to chance.</p>{content}"


def _run_times(cell: Mapping[str, Any]) -> str:
    """Return how the runs scaled run times, in words; empty = they did not."""
    scaling = cell.get("run_times")
    return "" if not scaling else msgspec.convert(scaling, RunTimeScaling).in_words()


def _settings(run: RunResults, figures: Sequence[Drawn]) -> Section:
    cell = run.cell
    provenance = (run.run.meta.get("workload") or {}).get("provenance") or {}
    shown = {key: value for key, value in provenance.items() if key != "header"}
    facts = {
        "workload": f"{cell['workload']}, {counted(int(cell['windows']), 'window')}",
        "its origin": "; ".join(f"{key}: {value}" for key, value in shown.items() if value),
        "cluster": cell["cluster"],
        "run times": _run_times(cell) or "as recorded",
        "conditions": "; ".join(
            f"{key} {value:g}" for key, value in (cell.get("conditions") or {}).items()
        )
        or "the defaults",
        "knowledge": cell["knowledge"],
        "seed": cell["seed"],
    }
    hashes = "".join(
        f"<dt><code>{html.escape(str(result['scheduler']))}</code></dt><dd><code>"
        + "<br>".join(html.escape(str(value)) for value in result.get("log_sha256") or [])
        + "</code></dd>"
        for result in cell["schedulers"]
    )
    more = (
        "<details><summary>Hashes of the schedule logs (SHA-256), window by window: equal hashes "
        f"mean equal schedules</summary><dl>{hashes}</dl></details>"
    )
    return settings_section(run.run, facts, figures, COMPARISON_FIGURES, more=more)
