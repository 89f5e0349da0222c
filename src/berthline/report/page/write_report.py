"""Writing a report into a run directory: figures, the numbers behind them, and the page.

The contents of a report depend on the kind of run; see the table REPORTS.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from berthline.atomic_write import write_atomically
from berthline.errors import ConfigError, OutputError
from berthline.report.figures.figure_table import (
    COMPARISON_FIGURES,
    SEARCH_FIGURES,
    TRAINING_FIGURES,
    WHATIF_FIGURES,
    Drawn,
    FigureKind,
    draw_all,
)
from berthline.report.page import losses, verdict
from berthline.report.page.comparison_page import comparison_page
from berthline.report.page.search_page import search_page, search_sentences
from berthline.report.page.training_page import training_page, training_sentences
from berthline.report.page.whatif_page import whatif_of, whatif_page, whatif_sentences
from berthline.report.run_results import COMPARED, results_of
from berthline.report.suites.shown_suite import shown_suite
from berthline.report.suites.suite_figures import SUITE_FIGURES
from berthline.report.suites.suite_page import suite_page
from berthline.report.suites.suite_sentences import suite_sentences
from berthline.runs.open_run import AS_WRITTEN, open_run
from berthline.runs.run_layout import FIGURES, REPORT, SUMMARY

if TYPE_CHECKING:
    from pathlib import Path

    from berthline.report.run_results import RunResults
    from berthline.runs.open_run import Run

Progress = Callable[[int, int, str], None]
"""Called with (figures done, figures in all, the name of the last)."""


class ReportKind(NamedTuple):
    """The report of a kind of run.

    Attributes:
        figures: its figures, by name.
        source: returns what figures, sentences and the page are made from.
        sentences: returns the verdict, the most important first.
        page: returns the page: (run, source, figures, are figures interactive).
    """

    figures: Mapping[str, FigureKind]
    source: Callable[[Run], Any]
    sentences: Callable[[Any], list[str]]
    page: Callable[[Run, Any, Sequence[Drawn], bool], str]


_COMPARISON = ReportKind(
    COMPARISON_FIGURES,
    results_of,
    verdict.sentences,
    lambda _, results, figures, with_twins: comparison_page(
        results, figures, with_twins=with_twins
    ),
)
REPORTS: dict[str, ReportKind] = {
    **dict.fromkeys(COMPARED, _COMPARISON),
    "train": ReportKind(
        TRAINING_FIGURES,
        lambda run: run,
        training_sentences,
        lambda run, _, figures, __: training_page(run, figures),
    ),
    "search": ReportKind(
        SEARCH_FIGURES,
        lambda run: run,
        search_sentences,
        lambda run, _, figures, __: search_page(run, figures),
    ),
    "whatif": ReportKind(
        WHATIF_FIGURES,
        whatif_of,
        whatif_sentences,
        lambda run, found, figures, _: whatif_page(run, found, figures),
    ),
    "suite": ReportKind(
        SUITE_FIGURES,
        shown_suite,
        suite_sentences,
        lambda run, suite, figures, _: suite_page(run, suite, figures),
    ),
}
"""The report of every kind of run that has one."""


class WrittenReport(NamedTuple):
    """What was written.

    Attributes:
        page: report.html.
        verdict: its first sentences.
        figures: the figures, or the reason why they are missing.
        lacking: the package that is missing for a complete report; empty if none is.
    """

    page: Path
    verdict: list[str]
    figures: list[Drawn]
    lacking: str


def report_kind(run: Run) -> ReportKind:
    """Return the kind of report for a run.

    Raises:
        ConfigError: there is no report for this kind of run.
    """
    if run.kind not in REPORTS:
        raise ConfigError(
            f"there is no report for a run of kind {run.kind}",
            where=str(run.path),
            expected=f"a run of kind {', '.join(REPORTS)}",
        )
    return REPORTS[run.kind]


def write_report(directory: str | Path, *, progress: Progress | None = None) -> WrittenReport:
    """Write `figures/` and `report.html` into a run directory.

    Without matplotlib there are no figures; without plotly, no interactive ones. The page has
    everything else in both cases.

    Args:
        directory: a run directory.
        progress: called after each figure.

    Raises:
        ConfigError: it is not a run directory, has no report, or a file in it cannot be read.
        OutputError: the report cannot be written.
    """
    run = open_run(directory)
    kind = report_kind(run)
    source = kind.source(run)
    lacking = next((name for name in ("matplotlib", "plotly") if not is_installed(name)), "")
    figures: list[Drawn] = []
    path = run.path / REPORT
    try:
        sentences = kind.sentences(source)
        if lacking != "matplotlib":
            drawing = draw_all(
                source, run.path / FIGURES, kind.figures, kinds=kind.figures, for_page=True
            )
            for done, drawn in enumerate(drawing, start=1):
                figures.append(drawn)
                if progress is not None:
                    progress(done, len(kind.figures), drawn.name)
        page = kind.page(run, source, figures, not lacking)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ConfigError(
            f"{SUMMARY} cannot be read: {type(error).__name__}: {error}",
            where=str(run.path),
            expected=AS_WRITTEN,
        ) from error
    if run.kind in COMPARED:
        write_losses(source)
    write_atomically(path, page.encode())
    return WrittenReport(path, sentences, figures, lacking)


def write_losses(run: RunResults) -> None:
    """Write the table of losses next to the figures.

    Raises:
        OutputError: it cannot be written.
    """
    folder = run.run.path / FIGURES
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"cannot make the directory ({error.strerror or error})", where=str(folder)
        ) from None
    table = losses.data(run)
    write_atomically(folder / "losses.csv", table.write_csv(float_precision=6).encode())


def is_installed(package: str) -> bool:
    """Whether a package can be imported."""
    return importlib.util.find_spec(package) is not None
