"""`--by user|pool|size|priority`: tables of groups of jobs, in `sim` and `compare`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from tyro.conf import UseAppendAction, arg

from berthline.cli.output import (
    BEST,
    fold_scheduler,
    new_table,
    number,
    print_table,
    seconds,
)
from berthline.errors import ConfigError
from berthline.one_line import one_line

if TYPE_CHECKING:
    from berthline.evaluate.metrics.groups import GroupMetrics

By = Annotated[
    UseAppendAction[tuple[str, ...]],
    arg(
        metavar="WHAT",
        help="Also show groups of jobs: user, pool, size or priority; several separated by commas.",
        help_behavior_hint="(repeatable)",
    ),
]

MOST_ROWS = 12
"""If there are more groups, only those with the most GPU-seconds are shown."""


def read_groupings(given: Iterable[str]) -> list[str]:
    """Return the groupings that the `--by` options name.

    Raises:
        ConfigError: a grouping is unknown, empty or given twice.
    """
    from berthline.evaluate.metrics.groups import GROUPINGS, check_grouping

    groupings: list[str] = []
    for text in given:
        for name in (part.strip() for part in text.split(",")):
            if not name:
                raise ConfigError(
                    f"--by has an empty entry: {text!r}",
                    expected="some of " + ", ".join(GROUPINGS),
                )
            check_grouping(name)
            if name in groupings:
                raise ConfigError(f"--by {name} is given twice", expected="each grouping once")
            groupings.append(name)
    return groupings


def show_groups(grouping: str, rows: Sequence[GroupMetrics]) -> None:
    """Print the groups of one run; only the largest if there are many."""
    table = new_table(
        grouping,
        "jobs",
        "JCT\nmean",
        "wait\nmean",
        "wait\nmax",
        "bounded\nslowdown",
        "rho\nmean",
        "GPU\nhours",
        "pre-\nempted",
    )
    shown = _largest(rows)
    for row in shown:
        table.add_row(
            one_line(row.group),
            number(row.jobs),
            seconds(row.jct.mean),
            seconds(row.wait.mean),
            seconds(row.wait.max),
            number(row.bounded_slowdown.mean, 2),
            number(row.rho.mean, 2),
            number(row.gpu_seconds / 3600),
            number(row.preemptions),
        )
    print_table(table)
    _say_how_many_more(grouping, len(rows), len(shown))


def show_compared_groups(
    grouping: str, results: Mapping[str, Mapping[str, GroupMetrics]], windows: int
) -> None:
    """Print the groups of a comparison, each under every scheduler.

    Args:
        grouping: what the jobs are grouped by.
        results: for each scheduler, its groups.
        windows: number of windows averaged.
    """
    table = new_table(grouping)
    table.add_column("scheduler")
    for head in ("jobs", "JCT\nmean", "wait\nmax", "bounded\nslowdown", "rho\nmean"):
        table.add_column(head, justify="right", no_wrap=True, vertical="bottom")
    first = next(iter(results.values()))
    shown = _largest(list(first.values()))
    for group in shown:
        rows = {name: groups[group.group] for name, groups in results.items()}
        best = min(row.jct.mean for row in rows.values())
        for index, (name, row) in enumerate(rows.items()):
            mark = BEST if row.jct.mean == best and len(rows) > 1 else ""
            table.add_row(
                one_line(group.group) if index == 0 else "",
                fold_scheduler(name, 24),
                number(row.jobs),
                mark + seconds(row.jct.mean),
                seconds(row.wait.max),
                number(row.bounded_slowdown.mean, 2),
                number(row.rho.mean, 2),
            )
    print_table(table)
    if windows > 1:
        print("means over windows with such jobs; jobs: total of all windows")
    _say_how_many_more(grouping, len(first), len(shown))


def _largest(rows: Sequence[GroupMetrics]) -> list[GroupMetrics]:
    if len(rows) <= MOST_ROWS:
        return list(rows)
    return sorted(rows, key=lambda row: -row.gpu_seconds)[:MOST_ROWS]


def _say_how_many_more(grouping: str, groups: int, shown: int) -> None:
    if groups > shown:
        print(
            f"the {shown} with the most GPU-hours, of {groups:,}; --json has all in by_{grouping}"
        )
