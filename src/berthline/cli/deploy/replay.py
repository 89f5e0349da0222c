"""`berthline deploy replay JOURNAL`: all decisions made again."""

from __future__ import annotations

import msgspec

from berthline.cli.deploy.status import JournalName
from berthline.cli.options import Json, parse_options
from berthline.cli.output import counted, print_json, progress
from berthline.deploy.journal.replay_journal import replay_journal


class Replay(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Make all decisions of a journal again, from the journal alone, and compare them.

    The exit code is 1 if one differs.

    Examples:
      berthline deploy replay berthline-journal
    """

    run: JournalName
    json: Json = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(Replay, argv, verb="deploy replay")
    with progress("replaying") as report:
        found = replay_journal(
            options.run, progress=lambda done: report(done, 0, counted(done, "cycle"))
        )
    if options.json:
        print_json(found)
    elif found.difference:
        print(f"different: {found.difference}")
    else:
        print(f"the same: {counted(found.decisions, 'decision')} of {found.cycles:,} cycles")
    return 1 if found.difference else 0
