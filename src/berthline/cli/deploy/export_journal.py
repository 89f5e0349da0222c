"""`berthline deploy export JOURNAL`: a journal as a run directory, or an anonymised copy."""

from __future__ import annotations

import shlex
from typing import Annotated

import msgspec
from tyro.conf import arg

from berthline.cli.deploy.status import JournalName
from berthline.cli.options import Force, Json, parse_options
from berthline.cli.output import counted, print_facts, print_json, progress
from berthline.deploy.journal.anonymise_journal import anonymise_journal
from berthline.deploy.journal.export_journal import export_journal
from berthline.runs.run_output import RunOutput


class Export(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Write a journal as a run directory: what really happened, and what was decided.

    report, explain, export and sim --from-snapshot read the directory; whatif reads its
    workload.parquet as a log.

    Examples:
      berthline deploy export berthline-journal --out runs/week
      berthline deploy export berthline-journal --anonymise --out shared-journal
    """

    run: JournalName
    out: Annotated[str, arg(metavar="DIR")]
    """The directory to write."""
    native: Annotated[str, arg(metavar="SCHEDULER", help_behavior_hint="")] = ""
    """The system's own scheduler, for explanations (default: what acted, else fcfs+easy)."""
    anonymise: Annotated[bool, arg(help_behavior_hint="")] = False
    """Write a copy of the journal instead, with users and names hashed."""
    json: Json = False
    force: Force = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(Export, argv, verb="deploy export")
    if options.anonymise:
        with progress("copying") as report:
            copied = anonymise_journal(
                options.run, options.out, progress=lambda n: report(n, 0, counted(n, "cycle"))
            )
        if options.json:
            print_json(copied)
        else:
            print_facts({"journal": options.out, "cycles": f"{copied.cycles:,}"})
        return 0
    command = shlex.join(["berthline", "deploy", "export", *argv])
    result = export_journal(
        options.run,
        RunOutput(options.out, command),
        native=options.native,
        force=options.force,
    )
    if options.json:
        print_json(result.summary())
    else:
        print_facts(
            {
                "results": options.out,
                "jobs": f"{len(result.workload):,}",
                "events": f"{len(result.log):,}",
                "next": f"berthline report {options.out}",
            }
        )
    return 0
