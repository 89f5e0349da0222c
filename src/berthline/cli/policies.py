"""`berthline policies`: what a scheduler can be made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from tyro.conf import Positional, arg

from berthline.cli.options import Json, check_choice, parse_options
from berthline.cli.output import new_table, print_json, print_table

if TYPE_CHECKING:
    from rich.table import Table


class Policies(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List what schedulers are made of: order[+discipline][@placement][?gate].

    A formula, made of words, may stand for an order or a gate.

    Examples:
      berthline policies
      berthline policies words
      berthline policies orders --json
    """

    topic: Annotated[
        Positional[str], arg(metavar="[TOPIC]", help_behavior_hint="(default: all but words)")
    ] = ""
    """orders, disciplines, placements, gates or words."""
    json: Json = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(Policies, argv, verb="policies")
    if options.topic:
        check_choice("TOPIC", options.topic, TOPICS)
    topics = [options.topic] if options.topic else [topic for topic in TOPICS if topic != "words"]
    if options.json:
        print_json({topic: TOPICS[topic][0]() for topic in topics})
        return 0
    for position, topic in enumerate(topics):
        rows, draw = TOPICS[topic]
        if position:
            print()
        print_table(draw(rows()))
    if options.topic != "placements":
        print("\nt = needs to know run times: any --knowledge but none")
    if options.topic == "words":
        from berthline.policies.formulas import FUNCTIONS

        print("functions: " + " ".join(FUNCTIONS))
        print("operators: + - * / ** and < <= > >= == != (which give 1 or 0)")
    elif not options.topic:
        print("a scheduler: sjf+easy@best-fit?express-lane:T=7200:r=0.2")
        print("a formula in place of a name: [estimate * sqrt(gpus)]+easy; its words:")
        print("berthline policies words")
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
    from berthline.policies.rules import DISCIPLINES, NEEDS_RUN_TIMES

    return [
        {"name": name, "needs_run_times": name in NEEDS_RUN_TIMES, "meaning": meaning}
        for name, meaning in DISCIPLINES.items()
    ]


def placements() -> list[dict[str, Any]]:
    """Return the placements."""
    from berthline.policies.rules import PLACEMENTS

    return [{"name": name, "meaning": meaning} for name, meaning in PLACEMENTS.items()]


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


def words() -> list[dict[str, Any]]:
    """Return the vocabulary of formulas."""
    from berthline.policies.vocabulary import VOCABULARY

    return [
        {
            "name": word.name,
            "scope": word.scope,
            "unit": word.unit,
            "needs_run_times": word.estimate,
            "changes": word.changes,
            "meaning": word.meaning,
        }
        for word in VOCABULARY.values()
    ]


def _orders_table(rows: list[dict[str, Any]]) -> Table:
    table = _text_table("order", "t", "formula, smallest first", "from")
    for row in rows:
        table.add_row(row["name"], _mark(row), row["formula"], row["reference"])
    return table


def _rules_table(title: str) -> Callable[[list[dict[str, Any]]], Table]:
    def draw(rows: list[dict[str, Any]]) -> Table:
        some_need_run_times = any(row.get("needs_run_times") for row in rows)
        mark = ["t"] if some_need_run_times else []
        table = _text_table(title, *mark, "meaning")
        for row in rows:
            table.add_row(row["name"], *([_mark(row)] if mark else []), row["meaning"])
        return table

    return draw


def _gates_table(rows: list[dict[str, Any]]) -> Table:
    table = _text_table("gate", "t", "open while 0 or more; options")
    for row in rows:
        options = ", ".join(f"{key}={value:g}" for key, value in row["options"].items())
        text = f"{row['formula']}; {options}\n{row['meaning']}"
        table.add_row(row["name"], _mark(row), text)
    return table


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


TOPICS: dict[
    str, tuple[Callable[[], list[dict[str, Any]]], Callable[[list[dict[str, Any]]], Table]]
] = {
    "orders": (orders, _orders_table),
    "disciplines": (disciplines, _rules_table("discipline")),
    "placements": (placements, _rules_table("placement")),
    "gates": (gates, _gates_table),
    "words": (words, _words_table),
}
"""For each topic, its rows as plain data and the table made of them."""
