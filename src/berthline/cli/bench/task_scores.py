"""`berthline bench tasks`: what is to be gained in the frozen tasks, and what policies gain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from berthline.cli.output import new_table, note, print_table
from berthline.env.registration import SEATS
from berthline.errors import ConfigError, unknown_name
from berthline.tasks.play import EVALUATION_SEED
from berthline.tasks.published_scores import shipped_for
from berthline.tasks.task_judge import EPISODES, Judge, Measurement, Row
from berthline.tasks.task_table import TASKS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

SEED = EVALUATION_SEED
QUICK_EPISODES = 16
DEFAULTS = {f"{name}-v0": seat for name, seat in SEATS.items()}
"""The environments with their default options: they can be measured like a task."""


def measure_tasks(
    names: Sequence[str],
    policies: Sequence[str],
    *,
    episodes: int | None,
    quick: bool,
    report: Callable[[int, int, str], None],
) -> Iterator[Measurement]:
    """Yield what is to be gained in each task, and what policies gain.

    Args:
        names: of tasks, or of environments with their default options; empty = all tasks.
        policies: schedulers and learned policies; empty = the shipped ones.
        episodes: how many are played; None = EPISODES.
        quick: play QUICK_EPISODES instead.
        report: called with (parts done, parts in total, name of the next part).

    Raises:
        ConfigError: there is no such task.
    """
    chosen = [_known(name) for name in names] or list(TASKS)
    count = episodes or (QUICK_EPISODES if quick else EPISODES)
    for number, name in enumerate(chosen):
        seat, options = _environment(name)
        judge = Judge(name, seat, options, episodes=count)
        named = dict.fromkeys(policies) or shipped_for(name)

        def tell(done: int, total: int, part: str, name: str = name, number: int = number) -> None:
            report(number * total + done, len(chosen) * total, f"{name}: {part}")

        yield judge.measure(policies={text: text for text in named}, tell=tell)


def _environment(name: str) -> tuple[str, dict[str, Any]]:
    if name in TASKS:
        return TASKS[name].seat, dict(TASKS[name].options)
    return DEFAULTS[name], {}


def _known(name: str) -> str:
    """Return the name of a task; the version may be left out.

    Raises:
        ConfigError: there is no such task.
    """
    short = name.removeprefix("berthline/")
    for known in (*TASKS, *DEFAULTS):
        if short in (known, known.partition("-v")[0]):
            return known
    what, expected, hint = unknown_name("task", short, [*TASKS, *DEFAULTS])
    raise ConfigError(what, where="--task", expected=expected, hint=hint)


def show_tasks(found: Sequence[Measurement]) -> None:
    """Print what was measured as text."""
    first = found[0]
    print(f"\nmean returns of {first.episodes} episodes from seed {first.seed:,}; more is better")
    for one in found:
        unit = f"; minus the return is {TASKS[one.name].unit}" if one.name in TASKS else ""
        choices = f"{one.choices:.0%} of {one.decisions:,.0f} decisions have a choice"
        print(f"\n{one.name}: {choices}{unit}")
        table = new_table("policy", "return", "95 % interval", "against the best rule")
        for label, row in _rows(one):
            table.add_row(label, *_cells(row))
        if one.bound is not None:
            table.add_row("bound", f"{one.bound:.4f}", "", _share(one, one.bound))
        print_table(table)
    if any(one.best.value <= one.first.value for one in found):
        note("where no rule is better than the first allowed action, nothing can be learned")


def _rows(one: Measurement) -> list[tuple[str, Row]]:
    return [
        ("random", one.random),
        (one.first.name, one.first),
        *((row.name, row) for row in one.policies),
        (f"best of {one.rules} rules: {one.best.name}", one.best),
    ]


def _cells(row: Row) -> tuple[str, str, str]:
    against = ""
    if row.against is not None:
        against = f"{row.against:+.1%} ({row.against_low:+.1%} to {row.against_high:+.1%})"
    return f"{row.value:.4f}", f"{row.low:.4f} to {row.high:.4f}", against


def _share(one: Measurement, value: float) -> str:
    scale = abs(one.best.value)
    return f"{(value - one.best.value) / scale:+.1%}" if scale else ""


class TasksReport(msgspec.Struct, frozen=True, kw_only=True):
    """Results of the benchmark of tasks."""

    machine: str
    quick: bool
    tasks: list[Measurement]
