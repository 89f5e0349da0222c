"""`berthline deploy stop JOURNAL`: end a controller and give everything back."""

from __future__ import annotations

import msgspec

from berthline.cli.deploy.status import JournalName
from berthline.cli.options import Json, parse_options
from berthline.cli.output import counted, print_json
from berthline.deploy.control.run_controller import stop_controller


class Stop(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """End the controller of a journal: what is pending is undone, all our holds are lifted.

    If none runs, what one left held after it was killed is lifted.

    Examples:
      berthline deploy stop berthline-journal
    """

    run: JournalName
    json: Json = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(Stop, argv, verb="deploy stop")
    found = stop_controller(options.run)
    if options.json:
        print_json(found)
    elif found.was_running:
        print("stopped: the system's own scheduler has everything back")
    else:
        print(f"no controller ran; {counted(found.lifted, 'hold')} lifted")
    return 1 if found.left_held else 0
