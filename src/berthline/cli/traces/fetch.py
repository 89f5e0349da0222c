"""`berthline traces fetch`: download a public trace from its publisher."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import msgspec
from tyro.conf import Positional, arg

from berthline.cli.options import Json, parse_options
from berthline.cli.output import counted, note, print_facts, print_json, progress
from berthline.cli.traces.list_known import size


class Fetch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Download the files of a public trace from its publisher, and check them.

    Existing files are kept. The output says how to unpack the files.

    Examples:
      berthline traces fetch hpc2n
      berthline traces fetch openb-2023 --out data/openb
    """

    name: Annotated[Positional[str], arg(metavar="NAME")]
    """A trace in the catalog: berthline traces list."""
    out: Annotated[str, arg(metavar="DIR", help_behavior_hint="(default: traces/NAME)")] = ""
    """Where the files go."""
    unchecked: Annotated[bool, arg(help_behavior_hint="")] = False
    """Accept files that the publisher has changed since their checksum was recorded."""
    json: Json = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(Fetch, argv, verb="traces fetch")
    from berthline.traces.catalog import public_trace
    from berthline.traces.fetch import fetch_trace

    trace = public_trace(options.name)
    folder = Path(options.out or f"traces/{trace.name}")
    if not options.json:
        files = counted(len(trace.files), "file")
        print_facts(
            {
                "trace": trace.title,
                "from": trace.base,
                "size": f"{files}, {size(trace.num_bytes)}" if trace.num_bytes else files,
                "licence": f"{trace.licence}; cite {trace.cite}",
            }
        )
    unknown = [file.address for file in trace.files if not file.sha256]
    if unknown and not options.unchecked:
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        note(f"no checksum is known for {unknown[0]}{more}: not checked")
    with progress("fetching") as report:
        outcome = fetch_trace(trace, folder, check=not options.unchecked, progress=report)
    if options.json:
        print_json(
            {
                "trace": trace.name,
                "files": {str(path): what for path, what in outcome.items()},
                "unpack": trace.unpack,
                "load": str(folder / trace.load),
                "format": trace.format,
            }
        )
        return 0
    place = shlex.quote(str(folder))
    kept = sum(what == "kept" for what in outcome.values())
    fetched = f"{len(outcome) - kept} fetched" + (f", {kept} already there" if kept else "")
    print_facts(
        {
            "done": f"{fetched}: {folder}",
            "unpack": f"(cd {place} && {trace.unpack})" if trace.unpack else "",
            "next": f"berthline traces show {shlex.quote(str(folder / trace.load))}",
        }
    )
    return 0
