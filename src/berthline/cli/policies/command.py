"""`berthline policies`: the shipped policies, and the parts of schedulers."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from tyro.conf import Positional, arg

from berthline.cli.options import Json, check_choice, parse_options
from berthline.cli.output import new_table, print_json, print_table
from berthline.cli.policies import environments as learning
from berthline.cli.policies.networks import networks, networks_table, tasks, tasks_table
from berthline.cli.policies.shipped import shipped, shipped_table, show_cards

if TYPE_CHECKING:
    from rich.table import Table


class Policies(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List the shipped policies, and the parts of schedulers and environments.

    A scheduler is order[+discipline][@placement][?gate][!preemption].

    A formula, made of words, can replace every part except the discipline.

    Examples:
      berthline policies
      berthline policies shipped
      berthline policies words
      berthline policies preemptions --json
      berthline policies rewards
    """

    topic: Annotated[
        Positional[str],
        arg(
            metavar="[TOPIC]",
            help_behavior_hint="(default: shipped policies and parts of schedulers)",
        ),
    ] = ""
    """shipped (their cards), networks; tasks; orders, disciplines, placements, gates, preemptions;
    bandits; words, conditions; environments, columns, rewards, presets."""
    json: Json = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(Policies, argv, verb="policies")
    if options.topic:
        check_choice("TOPIC", options.topic, TOPICS)
    topics = [options.topic] if options.topic else ["shipped", "networks", *PARTS]
    if options.json:
        print_json({topic: TOPICS[topic][0]() for topic in topics})
        return 0
    for position, topic in enumerate(topics):
        rows, draw = TOPICS[topic]
        if position:
            print()
        if options.topic == "shipped":
            show_cards()
        else:
            print_table(draw(rows()))
    if options.topic not in WITHOUT_MARKS:
        print("\nt = needs to know run times: any --knowledge except none")
    if not options.topic:
        print(EXAMPLES)
    elif options.topic in NOTES:
        print(NOTES[options.topic]())
    return 0


def orders() -> list[dict[str, Any]]:
    """Return the orderings."""
    from berthline.policies.formulas import Formula
    from berthline.policies.orders import ORDERS

    return [
        {
            "name": order.name,
            "formula": order.formula,
            "needs_run_times": Formula.parse(order.formula).uses_estimate,
            "reference": order.reference,
        }
        for order in ORDERS.values()
    ]


def disciplines() -> list[dict[str, Any]]:
    """Return the disciplines of the queue."""
    from berthline.policies.rules import DISCIPLINES, NEEDS_RUN_TIMES, ROUND_SECONDS

    return [
        {
            "name": name,
            "options": {"T": ROUND_SECONDS} if name == "rounds" else {},
            "needs_run_times": name in NEEDS_RUN_TIMES,
            "meaning": meaning,
        }
        for name, meaning in DISCIPLINES.items()
    ]


def placements() -> list[dict[str, Any]]:
    """Return the placements, with the formulas of those that have one."""
    from berthline.policies.rules import PLACEMENT_FORMULAS, PLACEMENTS

    return [
        {"name": name, "formula": PLACEMENT_FORMULAS.get(name, ""), "meaning": meaning}
        for name, meaning in PLACEMENTS.items()
    ]


def gates() -> list[dict[str, Any]]:
    """Return the gates."""
    from berthline.policies.formulas import Formula
    from berthline.policies.rules import GATES

    return [
        {
            "name": gate.name,
            "formula": gate.formula,
            "options": dict(gate.options),
            "needs_run_times": Formula.parse(gate.formula, parameters=gate.options).uses_estimate,
            "meaning": gate.meaning,
        }
        for gate in GATES.values()
    ]


def preemptions() -> list[dict[str, Any]]:
    """Return the preemption rules, with their own and their common options."""
    from berthline.policies.rules import COMMON_OPTIONS, PREEMPTIONS
    from berthline.policies.scheduler import Scheduler

    return [
        {
            "name": rule.name,
            "index": rule.index,
            "options": {
                **rule.options,
                **{k: v for k, v in COMMON_OPTIONS.items() if k not in rule.options},
            },
            "needs_run_times": Scheduler.parse(f"fcfs!{rule.name}").needs_run_times,
            "meaning": rule.meaning,
        }
        for rule in PREEMPTIONS.values()
    ]


def bandits() -> list[dict[str, Any]]:
    """Return the schedulers that learn within the run."""
    from berthline.policies.bandits import BANDITS, PREFIX

    return [
        {
            "name": f"{PREFIX}{name}",
            "options": {option: default for option, (default, _, _) in kind.options.items()},
            "meaning": kind.meaning,
        }
        for name, kind in BANDITS.items()
    ]


def conditions() -> list[dict[str, Any]]:
    """Return the conditions of clusters."""
    from berthline.model.conditions import MEANINGS, Conditions, json_conditions

    defaults = json_conditions(dataclasses.asdict(Conditions()))
    return [
        {"name": name, "default": defaults[name], "meaning": meaning.removesuffix(".")}
        for name, meaning in MEANINGS.items()
    ]


def words() -> list[dict[str, Any]]:
    """Return the words of formulas, including those for rewards only."""
    from berthline.policies.formulas import ALL_WORDS

    return [
        {
            "name": word.name,
            "scope": word.scope,
            "unit": word.unit,
            "needs_run_times": word.estimate,
            "changes": word.changes,
            "meaning": word.meaning,
        }
        for word in ALL_WORDS.values()
    ]


def _orders_table(rows: list[dict[str, Any]]) -> Table:
    table = _text_table("order", "t", "formula, smallest first", "from")
    for row in rows:
        table.add_row(row["name"], _mark(row), row["formula"], row["reference"])
    return table


def _disciplines_table(rows: list[dict[str, Any]]) -> Table:
    table = _text_table("discipline", "t", "meaning; options")
    for row in rows:
        text = "; ".join(filter(None, (row["meaning"], _options(row))))
        table.add_row(row["name"], _mark(row), text)
    return table


def _gates_table(rows: list[dict[str, Any]]) -> Table:
    table = _text_table("gate", "t", "open while 0 or more; options")
    for row in rows:
        text = f"{row['formula']}; {_options(row)}\n{row['meaning']}"
        table.add_row(row["name"], _mark(row), text)
    return table


def _placements_table(rows: list[dict[str, Any]]) -> Table:
    table = _text_table("placement", "meaning; its formula, smallest first")
    for row in rows:
        formula = f"\n{row['formula']}" if row["formula"] else ""
        table.add_row(row["name"], f"{row['meaning']}{formula}")
    return table


def _preemptions_table(rows: list[dict[str, Any]]) -> Table:
    from berthline.policies.rules import PREEMPTIONS

    table = _text_table("preemption", "t", "index, largest yields; options; meaning")
    for row in rows:
        own = {key: row["options"][key] for key in PREEMPTIONS[row["name"]].options}
        parts = filter(None, (row["index"], _options({"options": own})))
        table.add_row(row["name"], _mark(row), "\n".join(("; ".join(parts), row["meaning"])))
    return table


def _bandits_table(rows: list[dict[str, Any]]) -> Table:
    table = _text_table("scheduler", "options", "chooses from the menu of Meta")
    for row in rows:
        table.add_row(row["name"], _options(row), row["meaning"].replace("`", ""))
    return table


def _conditions_table(rows: list[dict[str, Any]]) -> Table:
    table = _text_table("condition", "default", "meaning")
    for row in rows:
        default = row["default"]
        table.add_row(
            row["name"], default if isinstance(default, str) else f"{default:g}", row["meaning"]
        )
    return table


def _options(row: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value:g}" for key, value in row["options"].items())


def _words_table(rows: list[dict[str, Any]]) -> Table:
    table = _text_table("word", "t", "of the", "unit", "meaning")
    for row in rows:
        table.add_row(row["name"], _mark(row), row["scope"], row["unit"], row["meaning"])
    return table


def _text_table(*columns: str) -> Table:
    table = new_table(columns[0])
    for column in columns[1:]:
        table.add_column(column)
    return table


def _mark(row: dict[str, Any]) -> str:
    return "t" if row.get("needs_run_times") else ""


def _note_on_words() -> str:
    from berthline.policies.formulas import FUNCTIONS

    return (
        "words of nodes: only in placements and in columns of nodes\n"
        "words for rewards only: of the system, at any time; of a decision, when it is\n"
        "made; of a finish, when a job finishes; of the end of an episode\n"
        f"functions: {' '.join(FUNCTIONS)}\n"
        "operators: + - * / ** and < <= > >= == != (which give 1 or 0)"
    )


def _note_on_preemptions() -> str:
    from berthline.policies.rules import COMMON_OPTIONS

    defaults = dict(COMMON_OPTIONS)
    return (
        "options of every rule, also of a formula in brackets:\n"
        f"  margin={defaults['margin']:g}  how much larger the index of the preempted job must be\n"
        f"  min_run={defaults['min_run']:g}  seconds a job runs before it may be preempted\n"
        "  max_restarts  how often a job may be preempted; unlimited by default\n"
        f"  every={defaults['every']:g}  seconds between decisions while jobs wait, besides those"
        " at events\n"
        "a scheduler: las+skip!las:min_run=600, fcfs+skip![log2(attained + 60)]:margin=1"
    )


EXAMPLES = """\
schedulers: sjf+easy@best-fit?express-lane:T=7200:r=0.2
            srpt+skip@fastest-type!srpt:min_run=600
            las+rounds:T=3600
a formula instead of a name: [estimate * sqrt(gpus)]+easy@[node_free_gpus]
its words: berthline policies words; how jobs run: berthline policies conditions
for learning: berthline policies environments (columns, rewards, presets)"""

NOTES: dict[str, Callable[[], str]] = {
    "words": _note_on_words,
    "preemptions": _note_on_preemptions,
    "conditions": lambda: "\nin a cluster file: [conditions]; for one run: --condition restart=30",
    **{topic: functools.partial(str, text) for topic, text in learning.NOTES.items()},
}
"""The text below the table of a topic."""

PARTS: dict[
    str, tuple[Callable[[], list[dict[str, Any]]], Callable[[list[dict[str, Any]]], Table]]
] = {
    "orders": (orders, _orders_table),
    "disciplines": (disciplines, _disciplines_table),
    "placements": (placements, _placements_table),
    "gates": (gates, _gates_table),
    "preemptions": (preemptions, _preemptions_table),
}
"""For each part of a scheduler, its rows as plain data and the table made from them."""

TOPICS = {
    "shipped": (shipped, shipped_table),
    "networks": (networks, networks_table),
    "tasks": (tasks, tasks_table),
    **PARTS,
    "bandits": (bandits, _bandits_table),
    "words": (words, _words_table),
    "conditions": (conditions, _conditions_table),
    "environments": (learning.environments, learning.environments_table),
    "columns": (learning.columns, learning.columns_table),
    "rewards": (learning.rewards, learning.rewards_table),
    "presets": (learning.presets, learning.presets_table),
}
"""The same for everything that can be listed."""

WITHOUT_MARKS = (
    *("shipped", "networks", "tasks", "placements", "bandits", "conditions", "environments"),
    *("rewards", "presets"),
)
"""Topics in which nothing is marked as needing run times."""
