"""`berthline traces list`: the known traces, formats, generators and clusters."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from tyro.conf import Positional, arg

from berthline.cli.options import Json, check_choice, parse_options
from berthline.cli.output import new_table, number, print_json, print_table

if TYPE_CHECKING:
    from rich.table import Table

_MOST_UNCHECKED = 3


class List(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List public traces; or the formats, generators or clusters that Berthline knows.

    Examples:
      berthline traces list
      berthline traces list formats
      berthline traces list generators bursty
      berthline traces list traces --json
    """

    topic: Annotated[
        Positional[str], arg(metavar="[TOPIC]", help_behavior_hint="(default: traces)")
    ] = "traces"
    """traces, formats, generators or clusters."""
    name: Annotated[Positional[str], arg(metavar="[NAME]", help_behavior_hint="(default: all)")] = (
        ""
    )
    """Only this one; for a generator, also its dials."""
    json: Json = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(List, argv, verb="traces list")
    check_choice("TOPIC", options.topic, TOPICS)
    make_rows, show, remark = TOPICS[options.topic]
    rows = make_rows()
    if options.name:
        check_choice("NAME", options.name, [row["name"] for row in rows])
        rows = [row for row in rows if row["name"] == options.name]
    if options.json:
        print_json({options.topic: rows})
        return 0
    show(rows)
    print(f"\n{remark}")
    return 0


def traces() -> list[dict[str, Any]]:
    """Return the catalog."""
    from berthline.traces.catalog import catalog

    return [
        {
            "name": trace.name,
            "title": trace.title,
            "publisher": trace.publisher,
            "page": trace.page,
            "licence": trace.licence,
            "cite": trace.cite,
            "jobs": trace.jobs,
            "gpus": trace.gpus,
            "days": trace.days,
            "num_bytes": trace.num_bytes,
            "lost": trace.lost,
            "format": trace.format,
            "files": [trace.address_of(file) for file in trace.files],
            "without_checksum": [file.address for file in trace.files if not file.sha256],
        }
        for trace in catalog().values()
    ]


def formats() -> list[dict[str, Any]]:
    """Return the formats that can be read."""
    from berthline.traces.formats.format_table import FORMATS

    return [
        {"name": entry.name, "description": entry.description, "options": dict(entry.options)}
        for entry in FORMATS.values()
    ]


def generators() -> list[dict[str, Any]]:
    """Return the generators and their dials."""
    from berthline.traces.generators.synthetic import GENERATORS

    return [
        {
            "name": entry.name,
            "description": entry.description,
            "dials": [
                {
                    "name": dial.name,
                    "default": dial.default,
                    "accepted": dial.accepted,
                    "meaning": dial.meaning,
                }
                for dial in entry.dials
            ],
        }
        for entry in GENERATORS.values()
    ]


def clusters() -> list[dict[str, Any]]:
    """Return the named clusters."""
    from berthline.model.cluster_presets import PRESETS

    return [
        {
            "name": preset.name,
            "description": preset.description,
            "source": preset.source,
            "nodes": preset.num_nodes,
            "gpus": preset.total_gpus,
            "gpu_types": sorted({group.gpu_type for group in preset.groups}),
            "pools": len({group.pool for group in preset.groups if group.pool}),
        }
        for preset in PRESETS.values()
    ]


def size(num_bytes: int | None) -> str:
    """Return a number of bytes in a readable unit; `-` if it is unknown.

    Example:
        >>> size(1_055_988_361)
        '1.1 GB'
    """
    if num_bytes is None:
        return "-"
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if num_bytes >= scale:
            value = num_bytes / scale
            return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"
    return f"{num_bytes} B"


def _show_traces(rows: list[dict[str, Any]]) -> None:
    table = _table("trace", numbers=("jobs", "GPUs", "days", "to fetch"), texts=("licence",))
    for row in rows:
        table.add_row(
            row["name"],
            number(row["jobs"]),
            number(row["gpus"]),
            number(row["days"]),
            size(row["num_bytes"]),
            row["licence"],
        )
    print_table(table)
    for row in rows:
        print()
        print(textwrap.fill(f"{row['name']}: {row['title']}", 79, subsequent_indent="  "))
        print(f"  {row['page'].removeprefix('https://')}")
        texts = [f"lost: {row['lost']}", f"cite: {row['cite']}"]
        if unchecked := _unchecked(row):
            texts.append(f"no checksum is known: {unchecked}")
        for text in texts:
            print(textwrap.fill(text, 79, initial_indent="  ", subsequent_indent="        "))


def _unchecked(row: dict[str, Any]) -> str:
    """Return which files cannot be checked after fetching; empty if all can."""
    unchecked = row["without_checksum"]
    if len(unchecked) == len(row["files"]) > 1:
        return f"all {len(unchecked)} files"
    if len(unchecked) > _MOST_UNCHECKED:
        return f"{len(unchecked)} of {len(row['files'])} files"
    return ", ".join(unchecked)


def _show_formats(rows: list[dict[str, Any]]) -> None:
    table = _table("format", texts=("description; options",))
    for row in rows:
        options = "".join(f"\n  {name}: {text}" for name, text in row["options"].items())
        table.add_row(row["name"], row["description"] + options)
    print_table(table)


def _show_generators(rows: list[dict[str, Any]]) -> None:
    table = _table("generator", texts=("description",))
    for row in rows:
        table.add_row(row["name"], row["description"])
    print_table(table)
    if len(rows) > 1:
        print("\ndials of a generator: berthline traces list generators NAME")
        return
    print()
    table = _table("--set", numbers=("default",), texts=("meaning; values",))
    for dial in rows[0]["dials"]:
        default = dial["default"]
        shown = default if isinstance(default, str) else f"{default:g}"
        table.add_row(dial["name"], shown, f"{dial['meaning']}; {dial['accepted']}")
    print_table(table)


def _show_clusters(rows: list[dict[str, Any]]) -> None:
    table = _table("cluster", numbers=("nodes", "GPUs", "pools"), texts=("GPU types",))
    for row in rows:
        table.add_row(
            row["name"],
            number(row["nodes"]),
            number(row["gpus"]),
            number(row["pools"] or None),
            ", ".join(row["gpu_types"]),
        )
    print_table(table)
    for row in rows:
        print()
        print(textwrap.fill(f"{row['name']}: {row['description']}", 79, subsequent_indent="  "))
        source = f"source: {row['source']}"
        print(textwrap.fill(source, 79, initial_indent="  ", subsequent_indent="    "))


def _table(first: str, *, numbers: tuple[str, ...] = (), texts: tuple[str, ...] = ()) -> Table:
    """Return a table whose last columns are texts, which may take several lines."""
    table = new_table(first, *numbers)
    for text in texts:
        table.add_column(text)
    for column in table.columns:
        column.vertical = "top"
    return table


TOPICS: dict[
    str,
    tuple[
        Callable[[], list[dict[str, Any]]],
        Callable[[list[dict[str, Any]]], None],
        str,
    ],
] = {
    "traces": (
        traces,
        _show_traces,
        "download one: berthline traces fetch NAME\n"
        "see also: berthline traces list formats | generators | clusters",
    ),
    "formats": (
        formats,
        _show_formats,
        "a file's format is recognised by its content; --format NAME sets it",
    ),
    "generators": (
        generators,
        _show_generators,
        "berthline sim NAME --jobs N --load X --seed S --set DIAL=VALUE",
    ),
    "clusters": (
        clusters,
        _show_clusters,
        "berthline sim WORKLOAD --cluster NAME\n"
        "any other cluster: uniform:NODESxGPUS[:TYPE], or a TOML file with [[nodes]] groups",
    ),
}
"""For each topic, its rows as plain data, how to print them, and how to use them."""
