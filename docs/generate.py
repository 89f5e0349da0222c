"""Write the generated parts of the documentation: tables of the registries, help, demo output.

A generated part stands between two comments in a page and is never edited by hand:

    <!-- generated: NAME -->
    <!-- end: NAME -->

`make docs` rewrites all of them. `python docs/generate.py --check` changes nothing and fails when
one is stale, which is what the tests call.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import environment_tables
import metric_tables
from markdown_text import code, mark, options, table

from berthline.cli.main import VERBS, main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parent.parent
HELP_COLUMNS = 120
DEMO_COLUMNS = 80

NOT_RUN = {
    "bench": "it measures speed, for half a minute",
    "train": "it learns for minutes",
    "train es": "it searches for a minute",
    "traces fetch": "it needs the network",
}
"""Verbs whose examples the tests only parse, and why."""

_PART = re.compile(r"(<!-- generated: ([\w -]+) -->\n)(.*?)(<!-- end: \2 -->)", re.DOTALL)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


# --- tables of the registries --------------------------------------------------------------------


def words(scope: str) -> str:
    """Return the words of a job, of a node, or of the cluster."""
    from berthline.policies.vocabulary import VOCABULARY

    return table(
        ("word", "unit", "meaning", "changes", "run times"),
        (
            (code(word.name), word.unit, word.meaning, word.changes, mark(needed=word.estimate))
            for word in VOCABULARY.values()
            if word.scope == scope
        ),
    )


FUNCTION_MEANINGS = {
    "log2": "logarithm to base 2",
    "log10": "logarithm to base 10",
    "ln": "natural logarithm",
    "sqrt": "square root",
    "exp": "e to the power x",
    "abs": "x without its sign",
    "floor": "the largest whole number not above x",
    "tanh": "hyperbolic tangent",
    "min": "the smallest; of equals, and beside what is not a number, the earlier",
    "max": "the largest; of equals, and beside what is not a number, the earlier",
    "clip": "x, but at least low and at most high: `min(max(x, low), high)`",
    "where": "a if c is not 0, else b; both are worked out",
}
"""What each function does; the registry has only names and numbers of arguments."""

FUNCTION_ARGUMENTS = {"clip": "x, low, high", "where": "c, a, b"}


def functions() -> str:
    """Return the functions of formulas."""
    from berthline.policies.formulas import FUNCTIONS

    def arguments(name: str, at_least: int, at_most: int) -> str:
        if name in FUNCTION_ARGUMENTS:
            return FUNCTION_ARGUMENTS[name]
        return "x" if at_least == at_most == 1 else "a, b, ..."

    return table(
        ("function", "value"),
        (
            (code(f"{name}({arguments(name, *counts)})"), FUNCTION_MEANINGS[name])
            for name, counts in FUNCTIONS.items()
        ),
    )


def orders() -> str:
    """Return the named orderings."""
    from berthline.policies.formulas import Formula
    from berthline.policies.orders import ORDERS

    return table(
        ("order", "formula, smallest first", "run times", "what it is, or where it comes from"),
        (
            (
                code(order.name),
                code(order.formula),
                mark(needed=Formula.parse(order.formula).uses_estimate),
                order.reference,
            )
            for order in ORDERS.values()
        ),
    )


def disciplines() -> str:
    """Return the disciplines of the queue."""
    from berthline.policies.rules import DISCIPLINES, NEEDS_RUN_TIMES, ROUND_SECONDS

    return table(
        ("discipline", "run times", "options, with defaults", "meaning"),
        (
            (
                code(name),
                mark(needed=name in NEEDS_RUN_TIMES),
                options({"T": ROUND_SECONDS} if name == "rounds" else {}),
                meaning,
            )
            for name, meaning in DISCIPLINES.items()
        ),
    )


def placements() -> str:
    """Return the placements."""
    from berthline.policies.rules import PLACEMENT_FORMULAS, PLACEMENTS

    return table(
        ("placement", "meaning", "formula, smallest first"),
        ((code(k), v, code(PLACEMENT_FORMULAS.get(k, ""))) for k, v in PLACEMENTS.items()),
    )


def gates() -> str:
    """Return the named gates."""
    from berthline.policies.rules import GATES

    return table(
        ("gate", "open while this is 0 or more", "options, with defaults", "meaning"),
        ((code(g.name), code(g.formula), options(g.options), g.meaning) for g in GATES.values()),
    )


def preemptions() -> str:
    """Return the preemption rules."""
    from berthline.cli.policies import preemptions as rows
    from berthline.policies.rules import PREEMPTIONS

    return table(
        ("rule", "index; the largest yields", "run times", "options, with defaults", "meaning"),
        (
            (
                code(row["name"]),
                code(row["index"]),
                mark(needed=row["needs_run_times"]),
                options(PREEMPTIONS[row["name"]].options),
                row["meaning"],
            )
            for row in rows()
        ),
    )


def conditions() -> str:
    """Return the conditions of clusters."""
    from berthline.cli.policies import conditions as rows

    def default(value: float | str) -> str:
        return value if isinstance(value, str) else f"{value:g}"

    return table(
        ("condition", "default", "meaning"),
        ((code(row["name"]), default(row["default"]), row["meaning"]) for row in rows()),
    )


def preempt_reasons() -> str:
    """Return why a job may be preempted."""
    from berthline.model.schedule import PREEMPT_REASONS

    return table(("detail", "reason"), enumerate(PREEMPT_REASONS))


def fallback_reasons() -> str:
    """Return why best-fit may stand in for a plan."""
    from berthline.model.schedule import FALLBACK_REASONS

    return table(("detail", "reason"), enumerate(FALLBACK_REASONS))


def reject_reasons() -> str:
    """Return why a job may be rejected, in the order in which reasons are tried."""
    from berthline.model.schedule import REJECT_REASONS

    return table(("detail", "reason"), enumerate(REJECT_REASONS))


def reason_codes() -> str:
    """Return why a job may wait."""
    from berthline.evaluate.reason_codes import MEANINGS

    return table(
        ("code", "meaning"), ((code(reason.value), text) for reason, text in MEANINGS.items())
    )


def formats() -> str:
    """Return the formats that can be read, with their options."""
    from berthline.traces.formats import FORMATS

    def options(entry: Any) -> str:
        return "; ".join(f"{code(name)}: {text}" for name, text in entry.options.items())

    return table(
        ("format", "what it is", "options (`--set`)"),
        ((code(e.name), e.description, options(e)) for e in FORMATS.values()),
    )


def generators() -> str:
    """Return the generators, and the load they have by default."""
    from berthline.traces.synthetic import GENERATORS

    def load(entry: Any) -> str:
        if entry.load is not None:
            return f"{entry.load:g}"
        return "its own rate" if entry.own_gap is not None else "none"

    return table(
        ("generator", "load", "what it makes"),
        ((code(e.name), load(e), e.description) for e in GENERATORS.values()),
    )


def dials() -> str:
    """Return every dial once, with the generators that have it and those with other defaults."""
    from berthline.traces.synthetic import GENERATORS

    owners: dict[tuple[str, str], dict[str, str]] = {}
    for entry in GENERATORS.values():
        for dial in entry.dials:
            found = owners.setdefault((dial.name, dial.meaning), {})
            found[entry.name] = dial.default_text
    rows = []
    for (name, meaning), values in owners.items():
        usual = max(values.values(), key=list(values.values()).count)
        others = [f"{value} in {code(who)}" for who, value in values.items() if value != usual]
        missing = [who for who in GENERATORS if who not in values]
        if not missing:
            where = "all"
        elif len(missing) < len(values):
            where = "all but " + ", ".join(map(code, missing))
        else:
            where = ", ".join(map(code, values))
        rows.append((code(name), "; ".join([usual, *others]), meaning, where))
    return table(("`--set`", "default", "meaning", "of"), rows)


def presets() -> str:
    """Return the clusters that have a name."""
    from berthline.model.presets import PRESETS

    return table(
        ("preset", "nodes", "GPUs", "what it is", "source"),
        (
            (code(p.name), f"{p.num_nodes:,}", f"{p.total_gpus:,}", p.description, p.source)
            for p in PRESETS.values()
        ),
    )


def gpu_types() -> str:
    """Return the GPU types with their figures; the source of a guess says so."""
    from berthline.model.gpu_types import ALIASES, GPU_TYPES

    def name(kind: Any) -> str:
        spellings = [code(other) for other in ("V100", "A100") if ALIASES.get(other) == kind.name]
        return ", ".join([code(kind.name), *spellings])

    return table(
        (
            *("type", "speed", "TFLOPS", "single precision", "memory, MiB"),
            *("idle, W", "peak, W", "source"),
        ),
        (
            (
                name(kind),
                f"{kind.speed:.2f}",
                f"{kind.tflops:g}",
                "" if kind.tflops_fp32 is None else f"{kind.tflops_fp32:g}",
                f"{kind.memory_mib:,}",
                f"{kind.idle_w:g}",
                f"{kind.peak_w:g}",
                f"**guess**{kind.source.removeprefix('guess')}" if kind.is_guess else kind.source,
            )
            for kind in GPU_TYPES.values()
        ),
    )


# --- output of commands --------------------------------------------------------------------------


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
    from berthline.cli.report import PARTS as REPORT_PARTS

    forms = {
        "report": ["report", *(f"report {part}" for part in REPORT_PARTS)],
        "train": ["train", "train es"],
    }
    every = [name for verb in VERBS for name in forms.get(verb, [verb])]
    return "\n\n".join(f"## {name}\n\n{verb_help(name)}" for name in every)


def verbs_of_traces() -> str:
    """Return a section for every verb of `traces`."""
    from berthline.cli.traces import VERBS as TRACES_VERBS

    return "\n\n".join(
        f"## traces {verb}\n\n{verb_help(f'traces {verb}')}" for verb in TRACES_VERBS
    )


def spaces() -> str:
    """Return the search spaces, each with its numbers and their ranges."""
    from berthline.learn.search_space import SPACES

    def numbers(space: Any) -> str:
        return "; ".join(
            f"{code(f'{p.name}={p.low:g}:{p.high:g}' + (':log' if p.is_log else ''))} {p.meaning}"
            for p in space.parameters
        )

    return table(
        ("`--space`", "what is tuned", "its numbers", "scheduler"),
        ((code(s.name), s.meaning, numbers(s), code(s.text)) for s in SPACES.values()),
    )


def shipped() -> str:
    """Return the shipped policies, with what they gained first."""
    from berthline.policies.shipped_policies import card_of, shipped_names

    def change(gain: Any) -> str:
        ends = ", ".join(f"{100 * (end - 1):+.0f}" for end in (gain.low, gain.high))
        return f"{100 * (gain.ratio - 1):+.0f} % [{ends}]"

    cards = [card_of(name) for name in shipped_names()]
    return table(
        ("name", "what it does", "knows", "slowdown", "mean JCT", "against", "on"),
        (
            (
                code(card.name),
                card.meaning,
                card.knowledge,
                change(card.measured[0].slowdown),
                change(card.measured[0].jct),
                code(card.measured[0].rival),
                card.measured[0].workload,
            )
            for card in cards
        ),
    )


def figures() -> str:
    """Return the kinds of figures that a report can have."""
    from berthline.report.kinds import KINDS

    return table(
        ("name", "shows", "how to read it"),
        ((code(name), kind.title, kind.reading) for name, kind in KINDS.items()),
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


# --- pages ---------------------------------------------------------------------------------------

PARTS: dict[str, Callable[[], str]] = {
    "words of a job": lambda: words("job"),
    "words of a node": lambda: words("node"),
    "words of the cluster": lambda: words("cluster"),
    "functions": functions,
    "orders": orders,
    "disciplines": disciplines,
    "placements": placements,
    "gates": gates,
    "preemptions": preemptions,
    "conditions": conditions,
    "preempt reasons": preempt_reasons,
    "fallback reasons": fallback_reasons,
    "reject reasons": reject_reasons,
    "reason codes": reason_codes,
    "formats": formats,
    "generators": generators,
    "dials": dials,
    "presets": presets,
    "GPU types": gpu_types,
    "demo": demo,
    "figures": figures,
    "spaces": spaces,
    "shipped": shipped,
    "verbs": verbs,
    "verbs of traces": verbs_of_traces,
    **environment_tables.PARTS,
    **metric_tables.PARTS,
}
"""Each generated part and what makes it."""


def pages() -> Iterator[Path]:
    """Yield every Markdown page of the documentation."""
    yield from sorted(ROOT.glob("*.md"))
    yield from sorted((ROOT / "docs").rglob("*.md"))


def generated(text: str, page: str) -> tuple[str, set[str]]:
    """Return a page's text with its parts made anew, and the names of those parts."""
    names = set()

    def fill(match: re.Match[str]) -> str:
        begin, name, _, end = match.groups()
        if name not in PARTS:
            raise SystemExit(f"error: unknown generated part {name!r}: {page}")
        names.add(name)
        return f"{begin}\n{PARTS[name]()}\n\n{end}"

    filled = _PART.sub(fill, text)
    if text.count("<!-- generated: ") != len(_PART.findall(text)):
        raise SystemExit(f"error: a generated part has no end: {page}")
    return filled, names


def write_pages(argv: list[str]) -> int:
    """Write all pages; with --check, only say what is stale."""
    check = argv == ["--check"]
    if argv and not check:
        raise SystemExit("usage: python docs/generate.py [--check]")
    used: set[str] = set()
    stale = False
    for path in pages():
        page = str(path.relative_to(ROOT))
        before = path.read_text(encoding="utf-8")
        after, names = generated(before, page)
        used |= names
        if after == before:
            continue
        stale = True
        if check:
            difference = difflib.unified_diff(
                before.splitlines(), after.splitlines(), page, "generated now", lineterm="", n=1
            )
            sys.stdout.write("\n".join(difference) + "\n")
        else:
            path.write_text(after, encoding="utf-8")
            sys.stdout.write(f"written: {page}\n")
    if unused := PARTS.keys() - used:
        raise SystemExit(f"error: parts on no page: {', '.join(sorted(unused))}")
    if check and stale:
        sys.stdout.write("hint: make docs\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(write_pages(sys.argv[1:]))
