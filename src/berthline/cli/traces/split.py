"""`berthline traces split`: train, validation and test parts of a trace, by time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from tyro.conf import arg

from berthline.atomic_write import complete_directory
from berthline.cli.options import Format, Json, parse_options, seconds_of
from berthline.cli.output import (
    new_table,
    number,
    print_facts,
    print_json,
    print_table,
    trace_facts,
)
from berthline.cli.traces.file import FormatOptions, Map, Replace, TraceFile, load_file
from berthline.errors import ConfigError
from berthline.traces.split import FRACTIONS

if TYPE_CHECKING:
    from berthline.model.workload import Workload
    from berthline.traces.split import TraceParts

_DAY = 86_400.0
_SUMMARY = "summary.json"
_FRACTIONS = ",".join(f"{fraction:g}" for fraction in FRACTIONS)


class Split(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Split a trace by time into train, validation and test parts, with gaps.

    Evaluate a scheduler on later jobs than those it learned from.

    The gaps separate jobs that were in the queue together.

    Examples:
      berthline traces split trace.swf --out parts --gap 5m
      berthline traces split trace.swf --out parts --fractions 0.6,0.2,0.2 --gap 0
    """

    file: TraceFile
    out: Annotated[str, arg(metavar="DIR")]
    """Where train.parquet, validation.parquet, test.parquet and summary.json go."""
    fractions: Annotated[str, arg(metavar="A,B,C")] = _FRACTIONS
    """Shares of the jobs; jobs in a gap are taken from the part after it."""
    gap: Annotated[str, arg(metavar="TIME")] = "1d"
    """Time without jobs before validation and before test: 90s, 30m, 12h, 1d, 2w, or 0."""
    format: Format = None
    map: Map = None
    set: FormatOptions = ()
    force: Replace = False
    json: Json = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(Split, argv, verb="traces split")
    from berthline.traces.split import PARTS, split_by_time

    fractions = _fractions(options.fractions)
    gap_seconds = seconds_of("--gap", options.gap)
    folder = Path(options.out)
    names = (*(f"{part}.parquet" for part in PARTS), _SUMMARY)
    _check_folder(folder, names, force=options.force)
    workload = load_file(options.file, options.format, options.map, options.set)
    parts = split_by_time(workload, fractions, gap_seconds=gap_seconds)
    summary = summarise(parts, workload, options, gap_seconds)
    _write(parts, summary, folder)
    if options.json:
        print_json(summary)
        return 0
    table = new_table("part", "jobs", "days", "GPU-hours", "from")
    for name in PARTS:
        row = summary["parts"][name]
        table.add_row(
            name,
            number(row["jobs"]),
            number(row["span_seconds"] / _DAY, 1),
            number(row["gpu_hours"]),
            row["first"] or f"day {row['start_seconds'] / _DAY:,.1f}",
        )
    print_table(table)
    print()
    print_facts(
        {
            **trace_facts(workload),
            "gaps": f"{options.gap} each; their {number(sum(parts.gap))} jobs are in no part",
            "written": str(folder),
            "next": f"berthline compare {folder / 'test.parquet'} --schedulers fcfs,fcfs+easy",
        }
    )
    return 0


def summarise(
    parts: TraceParts, workload: Workload, options: Split, gap_seconds: float
) -> dict[str, Any]:
    """Return the object that `--json` prints and `summary.json` holds."""
    from berthline.traces.inspect.arrival_pattern import local_clock
    from berthline.traces.split import PARTS

    rows = {}
    for name in PARTS:
        part: Workload = getattr(parts, name)
        clock = local_clock(part)
        rows[name] = {
            "jobs": len(part),
            "start_seconds": float(workload.submit[part.provenance["split"]["first"]]),
            "span_seconds": float(part.submit[-1]),
            "first": clock.date(0),
            "last": clock.date(-1),
            "gpu_hours": part.work / 3600,
        }
    return {
        "file": options.file,
        "jobs": len(workload),
        "fractions": options.fractions,
        "gap_seconds": gap_seconds,
        "gap_jobs": list(parts.gap),
        "parts": rows,
    }


def _fractions(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ConfigError(
            f"--fractions is {text!r}",
            expected=f"three numbers that add up to 1: {_FRACTIONS}",
        ) from None


def _check_folder(folder: Path, names: tuple[str, ...], *, force: bool) -> None:
    """Raise unless the folder is new, empty, or an earlier split that may be replaced."""
    if folder.exists() and not folder.is_dir():
        raise ConfigError("--out is an existing file", where=str(folder), expected="a directory")
    present = sorted(entry.name for entry in folder.iterdir()) if folder.exists() else []
    if present and not force:
        raise ConfigError(
            "--out exists and is not empty",
            where=str(folder),
            expected="a new or an empty directory",
            hint="choose another, or replace an earlier split with --force",
        )
    foreign = [name for name in present if name not in names]
    if foreign:
        raise ConfigError(
            f"--force would delete {foreign[0]!r}, which is not part of a split",
            where=str(folder),
            hint="move it away, or choose another directory",
        )


def _write(parts: TraceParts, summary: dict[str, Any], folder: Path) -> None:
    """Write the parts into a new folder, which gets its name when all are written."""
    from berthline.traces.formats.parquet import write_parquet
    from berthline.traces.split import PARTS

    with complete_directory(folder, what="the parts") as staging:
        for name in PARTS:
            write_parquet(getattr(parts, name), staging / f"{name}.parquet")
        text = msgspec.json.format(msgspec.json.encode(summary), indent=2)
        (staging / _SUMMARY).write_bytes(text + b"\n")
