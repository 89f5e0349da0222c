"""Writing a report into a run directory: figures, the numbers behind them, and the page."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from berthline.report import losses
from berthline.report.kinds import KINDS, Drawn, draw_all
from berthline.report.page import write_page
from berthline.report.run_results import read_run_results
from berthline.traces.atomic_write import write_atomically

if TYPE_CHECKING:
    from pathlib import Path

    from berthline.report.run_results import RunResults

Progress = Callable[[int, int, str], None]
"""Called with (figures done, figures in all, the name of the last)."""


class Report(NamedTuple):
    """What was written.

    Attributes:
        page: report.html.
        figures: what was drawn, and what was not and why.
        lacking: the package that is missing for a whole report; empty when nothing is.
    """

    page: Path
    figures: list[Drawn]
    lacking: str


def write_report(directory: str | Path, *, progress: Progress | None = None) -> Report:
    """Write `figures/` and `report.html` into a run directory.

    Without matplotlib there are no figures, without plotly none to zoom into; the page says all
    the rest in either case.

    Args:
        directory: of `berthline compare`, `eval`, `demo` or `sim`.
        progress: called after each figure.

    Raises:
        ConfigError: it is no such directory, or a file in it cannot be read or written.
    """
    run = read_run_results(directory)
    lacking = next((name for name in ("matplotlib", "plotly") if not is_installed(name)), "")
    figures: list[Drawn] = []
    if lacking != "matplotlib":
        for done, drawn in enumerate(draw_all(run, run.path / "figures", KINDS), start=1):
            figures.append(drawn)
            if progress is not None:
                progress(done, len(KINDS), drawn.name)
    write_losses(run)
    page = run.path / "report.html"
    write_page(run, figures, page, with_twins=not lacking)
    return Report(page, figures, lacking)


def write_losses(run: RunResults) -> None:
    """Write where schedulers lose as a table, beside the figures."""
    folder = run.path / "figures"
    folder.mkdir(exist_ok=True)
    table = losses.data(run)
    write_atomically(folder / "losses.csv", table.write_csv(float_precision=6).encode())


def is_installed(package: str) -> bool:
    """Whether a package can be imported."""
    return importlib.util.find_spec(package) is not None
