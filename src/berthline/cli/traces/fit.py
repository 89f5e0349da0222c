"""`berthline traces fit`: fit a generator to a trace, and report how close it is."""

from __future__ import annotations

from typing import Annotated

import msgspec
from tyro.conf import arg

from berthline.cli.options import Format, Json, Seed, parse_options
from berthline.cli.output import (
    counted,
    new_table,
    print_facts,
    print_json,
    print_table,
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

_SEEDS = 5


class Fit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fit a generator to a trace: load, cycles, bursts, sizes, run times, users.

    It stores shares, quantiles and rates, but no user, job or time of the trace.

    It then generates as many jobs as the trace has and compares them with it.

    It also simulates and compares the waits of the trace and of five seeds.

    The verdict says whether it can replace the trace: good, fair or poor.

    Example:
      berthline traces fit trace.swf --out mine.fit.json
    """

    file: TraceFile
    out: Annotated[str, arg(metavar="FILE.fit.json")]
    """The file to write; every verb accepts it as WORKLOAD."""
    format: Format = None
    map: Map = None
    set: FormatOptions = ()
    seed: Seed = 0
    force: Replace = False
    json: Json = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(Fit, argv, verb="traces fit")
    from berthline.evaluate.trace_checks.closeness import report
    from berthline.evaluate.trace_checks.fit_verdict import fit_verdict
    from berthline.evaluate.trace_checks.wait_check import SCHEDULER, check_waits
    from berthline.traces.generators.fitted.fit import fit
    from berthline.traces.generators.fitted.fitted_generator import SUFFIX

    out = check_out(options.out, suffixes=(SUFFIX,), force=options.force)
    workload = load_file(options.file, options.format, options.map, options.set)
    fitted = fit(workload)
    made = [fitted.generate(seed=options.seed + more) for more in range(_SEEDS)]
    waits = check_waits(workload, made)
    closeness = report(workload, made[0], waits)
    verdict = fit_verdict(closeness)
    fitted.save(out)
    if options.json:
        print_json(
            {
                "file": options.file,
                "jobs": len(workload),
                "dropped": workload.provenance.get("dropped") or {},
                "out": str(out),
                "seed": options.seed,
                "verdict": verdict._asdict(),
                "closeness": closeness.as_dict(),
            }
        )
        return 0
    table = new_table("", "trace", "fitted", "how close")
    for row in closeness.rows():
        table.add_row(*row)
    print_table(table)
    print()
    print_facts(
        {
            "verdict": str(verdict),
            "distance": "0 = the same, 1 = nothing in common",
            "waits": f"{SCHEDULER} on one node, load {waits.load:.2f}; median of {_SEEDS} seeds",
            "read": f"{options.file}, {counted(len(workload), 'job')}",
            **trace_facts(workload),
            "written": f"{out}, {size(out.stat().st_size)}",
            "next": f"berthline sim {out} --load 0.9",
        }
    )
    return 0
