"""`berthline report figures`: some figures of a run, in the format a paper needs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from tyro.conf import arg

from berthline.cli.options import Json, check_choice, parse_options
from berthline.cli.output import print_facts, print_json, progress
from berthline.cli.report.command import RunPath
from berthline.errors import ConfigError, unknown_name
from berthline.runs.run_layout import FIGURES

FORMATS = ("png", "svg", "pdf")


class ReportFigures(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Write figures of a run, and the numbers behind each as CSV, without the page.

    For comparisons: ratios, cdf, timeline, gantt, gantt-difference, sizes, users,

    priorities, pools, fairness, oracle, profile, load, gpus, radar, ablation.

    For train: validations, losses. For train es: search.

    For whatif: changes, waits, fidelity.

    Examples:
      berthline report figures runs/compare --only cdf,sizes
      berthline report figures runs/compare --only gantt --format pdf --out paper
    """

    directory: RunPath
    only: Annotated[str | None, arg(metavar="A,B", help_behavior_hint="(default: all)")] = None
    """The kinds to draw, separated by commas."""
    format: Annotated[str, arg(metavar="png|svg|pdf")] = "png"
    """The kind of file."""
    out: Annotated[
        str | None, arg(metavar="FOLDER", help_behavior_hint="(default: DIR/figures)")
    ] = None
    """Where the files go."""
    json: Json = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(ReportFigures, argv, verb="report figures")
    from berthline.report.figures.figure_table import draw_all
    from berthline.report.page.write_report import report_kind
    from berthline.runs.open_run import open_run

    check_choice("--format", options.format, FORMATS)
    run = open_run(options.directory)
    kind = report_kind(run)
    names = list(kind.figures) if options.only is None else options.only.split(",")
    for name in names:
        if name not in kind.figures:
            what, expected, hint = unknown_name("figure", name, kind.figures)
            raise ConfigError(what, where="--only", expected=expected, hint=hint)
    folder = run.path / FIGURES if options.out is None else Path(options.out)
    figures = []
    with progress("drawing") as shown:
        drawing = draw_all(
            kind.source(run), folder, names, kinds=kind.figures, formats=[options.format]
        )
        for drawn in drawing:
            figures.append(drawn)
            shown(len(figures), len(names), drawn.name)
    written = {drawn.name: [str(path) for path in drawn.files] for drawn in figures if drawn.files}
    missing = {drawn.name: drawn.missing for drawn in figures if drawn.missing}
    if not written:
        name, reason = next(iter(missing.items()))
        raise ConfigError(f"there is nothing to draw: {name}: {reason}", where=options.directory)
    if options.json:
        print_json({"figures": written, "not_drawn": missing})
        return 0
    print_facts({name: " ".join(files) for name, files in written.items()})
    if missing:
        print()
        print_facts({name: f"not drawn: {reason}" for name, reason in missing.items()})
    return 0
