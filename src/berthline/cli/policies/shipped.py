"""What `berthline policies` lists about the shipped policies: a table, and their cards in full."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from berthline.cli.output import counted, new_table
from berthline.evaluate.metrics.starvation import wait_words
from berthline.number_text import signed_percent

if TYPE_CHECKING:
    from rich.table import Table

    from berthline.policies.shipped_policies import ContinuousRun, Gain, Measured

WIDTH = 79


def shipped() -> list[dict[str, Any]]:
    """Return the cards of the shipped policies."""
    import msgspec

    from berthline.policies.shipped_policies import card_of, shipped_names

    return [msgspec.to_builtins(card_of(name)) for name in shipped_names()]


def shipped_table(rows: list[dict[str, Any]]) -> Table:
    """Return a table of what each policy does and gains."""
    from berthline.policies.shipped_policies import card_of

    table = new_table("shipped policy")
    table.add_column("knows")
    table.add_column("what it does; what it did to whole logs in one run")
    for row in rows:
        card = card_of(row["name"])
        worst = card.continuous[:1]
        table.add_row(
            card.name, card.knowledge, "\n".join((card.meaning, *map(_continuous, worst)))
        )
    return table


def show_cards() -> None:
    """Print the cards of all shipped policies."""
    from berthline.policies.shipped_policies import card_of, shipped_names

    for position, name in enumerate(shipped_names()):
        card = card_of(name)
        if position:
            print()
        print(f"{card.name}: {_filled(card.meaning, len(card.name) + 2)}\n")
        print(f"  {card.scheduler}\n")
        print("whole logs in one continuous run, the worst first: what to expect on a cluster")
        for run in card.continuous:
            print(f"  {_filled(_continuous(run), 2)}")
        print()
        _fact("knows", card.knowledge)
        _fact("trained on", card.trained_on)
        for what, value in card.training.items():
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            _fact(what.replace("_", " "), text)
        _fact("again", card.command)
        print(
            "\nmeasured on held-out windows, losses first; windows start on an empty cluster,\n"
            "which flatters a policy that holds GPUs back:"
        )
        for found in sorted(card.measured, key=lambda one: not one.is_loss):
            _show_measured(found)
        print("\nnot recommended:")
        for text in card.loses:
            print(f"  {_filled(text, 2)}")


def _continuous(run: ContinuousRun) -> str:
    """Return what the policy did to a log in one continuous run."""
    starves = f"; {counted(run.left_behind, 'job')} left behind" if run.left_behind else ""
    return (
        f"{run.log} ({run.jobs:,} jobs, {run.estimates} estimates): mean JCT {run.jct:.2f} x,"
        f" p99 {run.p99:.2f} x, slowdown {run.slowdown:.2f} x that of {run.rival}; longest wait"
        f" {wait_words(run.longest_wait)}, against {wait_words(run.rival_longest_wait)}{starves}"
    )


def _show_measured(found: Measured) -> None:
    print(f"\n  {_filled(f'{found.workload}; {found.windows} windows', 2)}")
    print(f"  against {_filled(f'{found.rival}, the {found.role}', 10)}")
    for name, gain in (
        ("slowdown", found.slowdown),
        ("mean JCT", found.jct),
        ("p99 JCT", found.p99),
        ("makespan", found.makespan),
    ):
        print(f"    {name}  {_change(gain)}")


def _change(gain: Gain) -> str:
    change, low, high = (signed_percent(r - 1, 1) for r in (gain.ratio, gain.low, gain.high))
    return f"{change} % [{low}, {high}]"


def _fact(name: str, text: str) -> None:
    print(f"{name:<13} {_filled(text, 14)}")


def _filled(text: str, indent: int) -> str:
    """Return text broken into lines, all but the first indented."""
    return f"\n{' ' * indent}".join(textwrap.wrap(text, WIDTH - indent, break_on_hyphens=False))
