"""`berthline traces validate`: what is wrong or odd in a trace file."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import msgspec

from berthline.cli.options import Format, Json, parse_options
from berthline.cli.output import counted, note, print_json
from berthline.cli.parameter_names import as_options
from berthline.cli.traces.file import ClusterOption, FormatOptions, Map, TraceFile, format_options

if TYPE_CHECKING:
    from berthline.evaluate.trace_checks.validate import Problem, Validation

FOUND_ERRORS = 1


class Validate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Check a trace: errors (lines that cannot be read) and warnings (what looks odd).

    Exit code 0: the trace is usable, perhaps with warnings; 1: it has errors.

    Examples:
      berthline traces validate trace.swf
      berthline traces validate trace.swf --cluster uniform:8x8:V100 --json
    """

    file: TraceFile
    format: Format = None
    map: Map = None
    set: FormatOptions = ()
    cluster: ClusterOption = None
    json: Json = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(Validate, argv, verb="traces validate")
    from berthline.evaluate.trace_checks.validate import validate_trace
    from berthline.traces.cluster_argument import resolve_cluster

    cluster = None if options.cluster is None else resolve_cluster(options.cluster, note)
    found = validate_trace(
        options.file, options.format, cluster, **format_options(options.map, options.set)
    )
    found = msgspec.structs.replace(
        found,
        errors=[_with_options(problem) for problem in found.errors],
        warnings=[_with_options(problem) for problem in found.warnings],
    )
    if options.json:
        print_json(found)
    else:
        show(found)
    return FOUND_ERRORS if found.errors else 0


def show(found: Validation) -> None:
    """Print the findings, errors first."""
    for kind, problems in (("error", found.errors), ("warning", found.warnings)):
        for problem in problems:
            _show_problem(kind, problem)
    if found.errors or found.warnings:
        print()
    counts = f"{counted(len(found.errors), 'error')}, {counted(len(found.warnings), 'warning')}"
    read = f"{found.format}, {_jobs(found)}" if found.format else "not read"
    print(f"{found.file}: {read}")
    print(f"{counts}: {'usable' if found.usable else 'not usable as it is'}")
    if not found.complete:
        print("there may be more errors: the check ended at these")


def _jobs(found: Validation) -> str:
    """Return the number of jobs, and how many of them use less than one GPU."""
    kinds = {"on a part of one GPU": found.jobs_on_parts, "without GPUs": found.jobs_without_gpus}
    some = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items() if count)
    return counted(found.jobs, "job") + (f" ({some})" if some else "")


def _with_options(problem: Problem) -> Problem:
    """Return a problem whose texts name options instead of parameters."""
    texts = {name: as_options(getattr(problem, name)) for name in ("what", "expected", "hint")}
    return msgspec.structs.replace(problem, **texts)


def _show_problem(kind: str, problem: Problem) -> None:
    where = f"\n  at: {problem.where}" if problem.where else ""
    print(_fold(f"{kind}: {problem.what}", "  ") + where)
    for name, text in (("expected", problem.expected), ("hint", problem.hint)):
        if text:
            print(_fold(f"  {name}: {text}", "    "))


def _fold(text: str, indent: str) -> str:
    return textwrap.fill(
        text, 79, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
