"""`berthline deploy judge JOURNAL`: ours against the native scheduler."""

from __future__ import annotations

from typing import Annotated

import msgspec
from tyro.conf import arg

from berthline.cli.deploy.status import JournalName
from berthline.cli.options import Json, parse_options
from berthline.cli.output import new_table, print_facts, print_json, print_table, progress
from berthline.deploy.judge.judge_journal import judge_journal


class Judge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Simulate a journal's period under our scheduler and under a model of the native one.

    The verdict (better, not worse, worse, too early) is kept in the journal: without one that is
    at least "not worse", act mode is refused.

    Examples:
      berthline deploy judge berthline-journal
      berthline deploy judge berthline-journal --scheduler sjf+easy --native fcfs+easy
    """

    run: JournalName
    scheduler: Annotated[
        str, arg(metavar="SCHEDULER", help_behavior_hint="(default: that of the journal)")
    ] = ""
    """The scheduler that is to act."""
    native: Annotated[
        str, arg(metavar="SCHEDULER", help_behavior_hint="(default: what fits best)")
    ] = ""
    """The system's own scheduler."""
    json: Json = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(Judge, argv, verb="deploy judge")
    with progress("judging") as report:
        found = judge_journal(
            options.run, options.scheduler, native=options.native, progress=report
        )
    if options.json:
        print_json(found)
        return 0
    print_facts(
        {
            "verdict": found.words,
            "ours": found.scheduler,
            "native": f"{found.native}, off by {found.wait_error:,.0f} s in the median wait",
            "mean wait": f"{found.wait_recorded:,.0f} s recorded, {found.wait_modelled:,.0f} s in"
            " the model",
            "period": f"{found.hours:,.1f} hours, {found.jobs:,} jobs",
        }
    )
    table = new_table("metric", "ours", "native", "ratio", "95 % interval")
    for name in ("jct_mean", "wait_p99", "bounded_slowdown_mean"):
        one = getattr(found, name)
        ratio = "" if one.ratio is None else f"{one.ratio:.3f}"
        interval = "" if one.low is None else f"{one.low:.3f} to {one.high:.3f}"
        table.add_row(name, f"{one.ours:,.1f}", f"{one.native:,.1f}", ratio, interval)
    print()
    print_table(table)
    return 0
