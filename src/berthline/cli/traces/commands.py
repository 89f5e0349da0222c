"""`berthline traces commands`: write lists of commands to run on one node."""

from __future__ import annotations

from typing import Annotated

import msgspec
from tyro.conf import arg

from berthline.cli.options import Json, Seed, parse_options
from berthline.cli.output import counted, print_facts, print_json


class Commands(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Write lists of commands for `berthline deploy node`: jobs of 1 to 30 seconds.

    Their program, load_job.py, is written beside them; it needs only Python.

    Examples:
      berthline traces commands --out lists
      berthline traces commands --out lists --files 1 --slots 2 --load 1.2 --seed 7
    """

    out: Annotated[str, arg(metavar="DIR")]
    """A new directory for the lists, node-00.csv and so on."""
    files: Annotated[int, arg(metavar="N")] = 10
    """Lists to write."""
    jobs: Annotated[int, arg(metavar="N")] = 50
    """Jobs in each."""
    slots: Annotated[int, arg(metavar="N")] = 4
    """GPUs or slots of the node that they are for."""
    load: Annotated[float, arg(metavar="X")] = 0.9
    """Submitted GPU-seconds a second, as a share of the slots."""
    cpu: Annotated[float, arg(metavar="SHARE")] = 1.0
    """Share of its time that a job computes; the rest it sleeps."""
    gpu_load: Annotated[bool, arg(help_behavior_hint="")] = False
    """Compute on the GPU, which needs torch where the jobs run."""
    seed: Seed = 0
    json: Json = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(Commands, argv, verb="traces commands")
    from berthline.traces.generators.command_lists.generate_lists import (
        SCRIPT,
        ListSettings,
        write_command_lists,
    )

    settings = ListSettings(
        files=options.files,
        jobs=options.jobs,
        slots=options.slots,
        load=options.load,
        seed=options.seed,
        cpu=options.cpu,
        gpu_load=options.gpu_load,
    )
    lists = write_command_lists(options.out, settings)
    if options.json:
        print_json(
            {"out": options.out, "lists": [str(path) for path in lists], "seed": settings.seed}
        )
        return 0
    written = f"{counted(len(lists), 'list')} of {counted(settings.jobs, 'job')}, {SCRIPT}"
    print_facts(
        {
            "written": written,
            "next": f"berthline deploy node {lists[0]} --slots {settings.slots}",
        }
    )
    return 0
