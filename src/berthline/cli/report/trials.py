"""`berthline report trials`: what mattered in a sweep."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import msgspec
from tyro.conf import Positional, arg

from berthline.cli.options import Json, parse_options
from berthline.cli.output import print_facts, print_json
from berthline.errors import ConfigError
from berthline.runs.run_layout import SUMMARY


class ReportTrials(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Draw what mattered in a sweep: the share of each parameter, and all trials.

    Examples:
      berthline report trials runs/sweep
      berthline report trials runs/sweep --out sweep.pdf
    """

    directory: Annotated[
        Positional[str], arg(metavar="DIR", help="The directory of berthline train --sweep.")
    ]
    out: Annotated[str, arg(metavar="FILE.png")] = "what-mattered.png"
    """The figure: png, pdf or svg."""
    json: Json = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(ReportTrials, argv, verb="report trials")
    from berthline.report.figures.drawing import check_figure_file
    from berthline.report.figures.trials_figure import draw_trials

    out = check_figure_file(options.out, needed_for="the figure of a sweep")
    file = Path(options.directory) / SUMMARY
    try:
        summary = json.loads(file.read_bytes())
        has_trials = bool(summary["trials"] and summary["vary"])
    except (OSError, ValueError, LookupError, TypeError):
        has_trials = False
    if not has_trials:
        raise ConfigError(
            "there is no complete sweep",
            where=options.directory,
            expected="the directory of berthline train --sweep",
        )
    draw_trials(summary, out)
    if options.json:
        print_json({"figure": str(out), "importance": summary["importance"]})
        return 0
    print_facts({"figure": str(out)})
    return 0
