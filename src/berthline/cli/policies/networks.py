"""What `berthline policies` lists about the frozen tasks and the networks trained on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from berthline.cli.output import new_table
from berthline.number_text import signed_percent

if TYPE_CHECKING:
    from rich.table import Table


def networks() -> list[dict[str, Any]]:
    """Return the cards of the shipped networks."""
    import msgspec

    from berthline.policies.shipped_networks import shipped_networks

    return [msgspec.to_builtins(card) for card in shipped_networks().values()]


def networks_table(rows: list[dict[str, Any]]) -> Table:
    """Return a table of what each network does and gains."""
    table = new_table("shipped network")
    table.add_column("task")
    table.add_column("what it does; against the best rule on its task; where it loses")
    for row in rows:
        gain, low, high = (signed_percent(row[key], 1) for key in ("gain", "gain_low", "gain_high"))
        lines = (
            f"{row['meaning']} ({row['algorithm']}, {row['steps']:,} steps, "
            f"{len(row['seeds'])} training seeds)",
            f"{gain} % [{low}, {high}] of the return of {row['against']}",
            *(f"not {text}" for text in row["loses"]),
        )
        table.add_row(row["name"], row["task"], "\n".join(lines))
    return table


def tasks() -> list[dict[str, Any]]:
    """Return the frozen tasks with their options."""
    from berthline.tasks.task_table import TASKS, task_id

    return [
        {
            "name": task.name,
            "id": task_id(task.name),
            "seat": task.seat,
            "meaning": task.meaning,
            "lesson": task.lesson,
            "minus_the_return": task.unit,
            "options": dict(task.options),
        }
        for task in TASKS.values()
    ]


def tasks_table(rows: list[dict[str, Any]]) -> Table:
    """Return a table of what is decided in each task."""
    table = new_table("task")
    table.add_column("seat")
    table.add_column("the agent decides; what there is to learn")
    for row in rows:
        table.add_row(row["id"], row["seat"], f"{row['meaning']}\n{row['lesson']}")
    return table
