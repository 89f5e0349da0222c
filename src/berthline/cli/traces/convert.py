"""`berthline traces convert`: write a trace in another format, and report what is lost."""

from __future__ import annotations

from typing import Annotated

import msgspec
from tyro.conf import arg

from berthline.cli.options import Format, Json, parse_options
from berthline.cli.output import (
    counted,
    note,
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


class Convert(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Write a trace as SWF (for other simulators) or Parquet, and report what is lost.

    Examples:
      berthline traces convert trace.swf --out trace.parquet
      berthline traces convert trace.parquet --out again.swf
    """

    file: TraceFile
    out: Annotated[str, arg(metavar="FILE")]
    """The file to write; its suffix, .swf or .parquet, sets the format."""
    format: Format = None
    map: Map = None
    set: FormatOptions = ()
    cluster: Annotated[
        str | None, arg(metavar="CLUSTER", help_behavior_hint="(default: what the trace states)")
    ] = None
    """Its GPUs become MaxProcs in the header of an SWF file."""
    force: Replace = False
    json: Json = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(Convert, argv, verb="traces convert")
    from berthline.traces.cluster_argument import resolve_cluster
    from berthline.traces.formats.parquet import write_parquet
    from berthline.traces.formats.swf_writer import write_swf

    out = check_out(options.out, suffixes=(".swf", ".parquet"), force=options.force)
    cluster = None if options.cluster is None else resolve_cluster(options.cluster, note)
    workload = load_file(options.file, options.format, options.map, options.set)
    lost: dict[str, int] = {}
    if out.suffix.lower() == ".swf":
        stated = workload.provenance.get("max_procs")
        processors = stated if cluster is None else cluster.total_gpus
        lost = write_swf(workload, out, max_procs=processors)
    else:
        write_parquet(workload, out)
    left_out = sum((workload.provenance.get("dropped") or {}).values())
    if left_out:
        lost["rows left out when the file was read"] = left_out
    if options.json:
        print_json(
            {
                "file": options.file,
                "format": workload.provenance.get("format"),
                "jobs": len(workload),
                "dropped": workload.provenance.get("dropped") or {},
                "out": str(out),
                "lost": lost,
            }
        )
        return 0
    losses = [
        f"{what}, {counted(count, 'row' if what.startswith('rows ') else 'job')}"
        for what, count in lost.items()
    ]
    facts = {
        "read": f"{options.file}: {workload.provenance.get('format')}, "
        f"{counted(len(workload), 'job')}",
        **trace_facts(workload),
        "written": f"{out}, {size(out.stat().st_size)}",
        "lost": losses[0] if losses else "nothing",
    }
    # Facts with a blank name continue the previous one.
    print_facts(facts | {" " * (n + 1): text for n, text in enumerate(losses[1:])})
    return 0
