"""`berthline traces import`: read a trace of any format, write Berthline's own Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
from tyro.conf import arg

from berthline.cli.options import Format, Json, check_choice, parse_options
from berthline.cli.output import (
    counted,
    print_facts,
    print_json,
    trace_facts,
)
from berthline.cli.traces.file import (
    FormatOptions,
    Map,
    Replace,
    TraceFile,
    check_out,
    load_file,
)
from berthline.cli.traces.list_known import size
from berthline.errors import ConfigError

CLOCKS = ("drop", "shift", "keep")


class Import(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Read a trace of any format and write it as Parquet, which loses nothing.

    --anonymize turns users, pools and jobs into codes and drops the dates.

    Sizes, run times and times since the first submission stay as they are.

    Examples:
      berthline traces import trace.swf --out trace.parquet
      berthline traces import trace.swf --out shared.parquet --anonymize
    """

    file: TraceFile
    out: Annotated[str, arg(metavar="FILE.parquet")]
    """The file to write."""
    format: Format = None
    map: Map = None
    set: FormatOptions = ()
    anonymize: Annotated[bool, arg(help_behavior_hint="")] = False
    """Hide who ran what, and when."""
    key_file: Annotated[str | None, arg(metavar="FILE", help_behavior_hint="(default: random)")] = (
        None
    )
    """A secret text: files anonymized with the same text have the same codes."""
    clock: Annotated[str, arg(metavar="WHAT")] = "drop"
    """The dates, with --anonymize: drop; shift (whole weeks into the past); keep."""
    force: Replace = False
    json: Json = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(Import, argv, verb="traces import")
    from berthline.traces.anonymize import anonymize
    from berthline.traces.formats.parquet import write_parquet

    check_choice("--clock", options.clock, CLOCKS)
    if not options.anonymize and (options.key_file is not None or options.clock != CLOCKS[0]):
        raise ConfigError("--key-file and --clock need --anonymize", hint="add --anonymize")
    out = check_out(options.out, suffixes=(".parquet",), force=options.force)
    key = None if options.key_file is None else _read_key(options.key_file)
    workload = load_file(options.file, options.format, options.map, options.set)
    left_out = trace_facts(workload)
    provenance: dict[str, Any] = dict(workload.provenance)
    if options.anonymize:
        workload = anonymize(
            workload,
            key=key,
            clock=options.clock,  # type: ignore[arg-type]  # checked above
            name=out.stem,
        )
    write_parquet(workload, out)
    if options.json:
        print_json(
            {
                "file": options.file,
                "format": provenance.get("format"),
                "rows": provenance.get("rows"),
                "jobs": len(workload),
                "dropped": provenance.get("dropped") or {},
                "rounded": provenance.get("rounded") or {},
                "anonymized": workload.provenance.get("anonymized"),
                "out": str(out),
            }
        )
        return 0
    hidden = workload.provenance.get("anonymized")
    print_facts(
        {
            "read": f"{options.file}: {provenance.get('format')}, {counted(len(workload), 'job')}",
            **left_out,
            "hidden": f"names of {hidden['hashed']}; dates: {hidden['clock']}; key: {hidden['key']}"
            if hidden
            else "",
            "written": f"{out}, {size(out.stat().st_size)}",
            "next": f"berthline traces show {out}",
        }
    )
    return 0


def _read_key(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise ConfigError(f"cannot read the key file: {reason}", where=file) from None
