"""`berthline report`: a page about a run, its figures for a paper, and training curves."""

from __future__ import annotations

import importlib
from typing import Annotated

import msgspec
from tyro.conf import Positional, arg

from berthline.cli.options import Json, parse_options
from berthline.cli.output import note, print_facts, print_json, progress
from berthline.runs.run_layout import FIGURES

PARTS = ("figures", "curve", "trials")
"""First arguments that are not a directory but the name of a module of this room."""

RunPath = Annotated[
    Positional[str],
    arg(metavar="DIR", help="A run directory, written by --out of any verb except bench."),
]


class Report(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Write report.html and figures into a run directory, and print where they are.

    Works on runs of sim, compare, eval, suite, demo, train, train es and whatif.

    The page is self-contained, needs no network, and begins with the verdict.

    The numbers behind every figure are saved beside it as CSV.

    berthline report figures DIR writes only the figures, for a paper.

    berthline report curve FILE.csv ... draws training curves.

    berthline report trials DIR draws what mattered in a sweep of berthline train.

    Examples:
      berthline report runs/compare
      berthline report runs/ppo
      berthline report figures runs/compare --only cdf,gantt --format pdf
      berthline report curve ppo-1.csv ppo-2.csv --y jct_mean --out curve.png
    """

    directory: RunPath
    json: Json = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    if argv and argv[0] in PARTS:
        return int(importlib.import_module(f"berthline.cli.report.{argv[0]}").main(argv[1:]))
    options = parse_options(Report, argv, verb="report")
    from berthline.report.page.write_report import write_report

    with progress("drawing") as shown:
        report = write_report(options.directory, progress=shown)
    note_lacking(report.lacking)
    missing = {drawn.name: drawn.missing for drawn in report.figures if drawn.missing}
    if options.json:
        figures = [str(path) for drawn in report.figures for path in drawn.files]
        print_json(
            {
                "report": str(report.page),
                "verdict": report.verdict,
                "figures": figures,
                "not_drawn": missing,
            }
        )
        return 0
    import textwrap

    for sentence in report.verdict:
        print(textwrap.fill(sentence, 79, break_long_words=False, break_on_hyphens=False))
    print()
    drawn = sum(bool(figure.files) for figure in report.figures)
    print_facts(
        {
            "report": str(report.page),
            "figures": f"{drawn} in {report.page.parent / FIGURES}, each with its CSV"
            if drawn
            else "",
            "not drawn": ", ".join(missing),
        }
    )
    return 0


def note_lacking(package: str) -> None:
    """Print to stderr which package is missing for a complete report."""
    if package:
        what = "figures" if package == "matplotlib" else "interactive figures"
        note(f"no {what}: {package} is not installed; run pip install 'berthline[report]'")
