"""The table of a real run: the metrics of real systems, and how close a simulation comes."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from berthline.evaluate.real_runs.exported_run import exported_run
from berthline.evaluate.real_runs.real_metrics import real_metrics
from berthline.evaluate.real_runs.real_words import closeness_lines, metric_lines
from berthline.evaluate.real_runs.sim_to_real import sim_to_real
from berthline.report.page.page_tables import Entry, table

if TYPE_CHECKING:
    from berthline.runs.open_run import Run

DEPLOY = "deploy"


def real_table(run: Run) -> str:
    """Return the table as HTML; an empty text if the run is a simulation."""
    if run.kind != DEPLOY:
        return ""
    real = exported_run(run)
    lines = metric_lines(real_metrics(real)) | closeness_lines(sim_to_real(real))
    # The time of decisions and of starts is in the journal, not in the export.
    lines = {name: text for name, text in lines.items() if name not in ("decision", "delays")}
    rows = [
        ("", [Entry(html.escape(name)), Entry(html.escape(text))]) for name, text in lines.items()
    ]
    return table("What happened, and a simulation of the same jobs", ("what", "value"), rows)
