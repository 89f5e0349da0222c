"""`berthline deploy status JOURNAL`: what a controller does and did last."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from tyro.conf import Positional, arg

from berthline.cli.options import Json, parse_options
from berthline.cli.output import counted, print_facts, print_json
from berthline.deploy.journal.journal_status import JournalStatus, journal_status

JournalName = Annotated[
    Positional[str],
    arg(metavar="JOURNAL", help="The directory that berthline deploy --journal wrote."),
]


class Status(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Show what the controller of a journal does and did last.

    Examples:
      berthline deploy status berthline-journal
      berthline deploy status berthline-journal --json
    """

    run: JournalName
    json: Json = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(Status, argv, verb="deploy status")
    status = journal_status(Path(options.run))
    if options.json:
        print_json(status)
    else:
        show_status(status)
    return 0


def show_status(status: JournalStatus) -> None:
    """Print a status."""
    alive = status.controller is not None
    print_facts(
        {
            "system": status.system,
            "controller": f"process {status.controller}" if alive else "none runs",
            "sign of life": f"{status.heartbeat_age:.1f} s ago" if alive else "",
            "mode": status.mode,
            "scheduler": status.scheduler,
            "cycles": f"{status.cycles:,}",
            "last cycle": f"{status.time:,.0f} s: {status.fault or 'sound'}",
            "jobs": f"{status.waiting:,} waiting, {status.running:,} running",
            "held by us": counted(status.held, "job"),
            "GPUs in use": f"{status.gpus_in_use:,} of {status.gpus:,}",
            "parts": f"{status.parts:,}, {status.megabytes:.1f} MB",
            "last remark": status.remark,
        }
    )
