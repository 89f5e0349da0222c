"""The generated parts that are output of commands: the help of every verb, and the demo."""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
from typing import TYPE_CHECKING

from berthline.cli.main import VERBS, main

if TYPE_CHECKING:
    from collections.abc import Callable

HELP_COLUMNS = 120
DEMO_COLUMNS = 80

NOT_RUN = {
    "bench": "it measures speed, for half a minute",
    "train": "it learns for minutes",
    "train es": "it searches for a minute",
    "traces fetch": "it needs the network",
}
"""Verbs whose examples the tests only parse, and why."""

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def output_of(*argv: str, columns: int) -> str:
    """Return what a command prints on a terminal of that many columns, without colours."""
    printed = io.StringIO()
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(columns)
    try:
        with contextlib.redirect_stdout(printed):
            status = main(list(argv))
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
    if status:
        raise SystemExit(f"error: berthline {' '.join(argv)} failed with exit code {status}")
    return _COLOUR.sub("", printed.getvalue())


def verb_help(verb: str) -> str:
    """Return a verb's help: its sentences, its examples as commands, its options as text."""
    lines = [
        line.strip("\n")
        for line in output_of(*verb.split(), "--help", columns=HELP_COLUMNS).split("\n")
    ]
    titles = ("positional arguments", "options")
    first = next((i for i, line in enumerate(lines) if line.strip() in titles), len(lines))
    usage, head = lines[0], "\n".join(lines[1:first]).strip()
    text, *examples = re.split(r"\n\nExamples?:\n", head)
    # The help draws a title and a rule above each group; here a title alone is enough.
    options = [
        line.strip() + ":" if line.strip() in titles else line.rstrip()
        for line in lines[first:]
        if line.strip() and not re.fullmatch(r"\s*-+\s*", line) and "--help" not in line
    ]
    commands = [f"$ {line.strip()}" for line in "".join(examples).splitlines() if line.strip()]
    marker = [f"<!-- not run: {NOT_RUN[verb]} -->"] if verb in NOT_RUN else []
    return "\n".join(
        [text, "", *marker, "```console", *commands, "```", "", "```text", usage, *options, "```"]
    )


def verbs() -> str:
    """Return a section for every verb, and for the forms of `report` and `train`."""
    from berthline.cli.report.command import PARTS as REPORT_PARTS

    forms = {
        "report": ["report", *(f"report {part}" for part in REPORT_PARTS)],
        "train": ["train", "train es"],
    }
    every = [name for verb in VERBS for name in forms.get(verb, [verb])]
    return "\n\n".join(f"## {name}\n\n{verb_help(name)}" for name in every)


def verbs_of_traces() -> str:
    """Return a section for every verb of `traces`."""
    from berthline.cli.traces.command import VERBS as TRACES_VERBS

    return "\n\n".join(
        f"## traces {verb}\n\n{verb_help(f'traces {verb}')}" for verb in TRACES_VERBS
    )


def demo() -> str:
    """Return the demo's values and verdict; what is left out is marked by dots."""
    with tempfile.TemporaryDirectory() as folder:
        printed = output_of(
            "demo", "--tables-only", "--out", f"{folder}/demo", columns=DEMO_COLUMNS
        )
    values, _, rest = printed.partition("\nagainst fcfs")
    verdict, _, _ = rest[rest.index("Verdict:") :].partition("\n\ntook")
    kept = [line.rstrip() for line in values.rstrip().splitlines()]
    # The first paragraph says how the demo is set up; the page says that in its own words.
    start = next(i for i, line in enumerate(kept) if line.startswith("diurnal, "))
    return "\n".join(
        ["```console", "$ berthline demo", "...", *kept[start:], "...", verdict, "...", "```"]
    )


PARTS: dict[str, Callable[[], str]] = {
    "verbs": verbs,
    "verbs of traces": verbs_of_traces,
    "demo": demo,
}
"""Each generated part and what makes it."""
