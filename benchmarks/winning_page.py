"""The computed parts of docs/results/winning-policy.md, from the rows of its CSV file."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.paired_windows import Row

SLOWDOWN, JCT, P99, MAKESPAN = "mean_bounded_slowdown", "mean_jct", "p99_jct", "makespan"
GROUPS = ("exact", "exact, one run", "history", "estimates", "none")
"""What is known, which the tables are about."""


def parts(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return the computed parts of the page, by name."""
    found = {"goals": goals(rows), "losses": losses(rows)}
    for group in GROUPS:
        found[group] = table(rows, group)
    found["schedulers"] = schedulers(rows)
    return found


def goals(rows: Sequence[Row]) -> list[str]:
    """Return what was wanted, what was reached, and whether that is enough."""
    exact = [row for row in _chosen(rows, "slowdown") if _known(row) == "exact"]
    lane = [row for row in _chosen(rows, "lane") if _known(row) == "exact"]
    lines = ["| wanted | reached | |", "| --- | --- | --- |"]

    def add(wanted: str, reached: str, *, is_reached: bool) -> None:
        lines.append(f"| {wanted} | {reached} | {'yes' if is_reached else '**no**'} |")

    if exact:
        slowdown, jct = _mean(exact, SLOWDOWN), _mean(exact, JCT)
        add(
            f"exact, windows, geometric mean over {len(exact)} logs: slowdown 0.70, mean JCT 1.00",
            f"{slowdown:.2f}, {jct:.3f}",
            is_reached=slowdown <= 0.70 and jct <= 1.0,
        )
        slowdown, jct = _mean(lane, SLOWDOWN), _mean(lane, JCT)
        add(
            "the same against the express lane: slowdown 0.95 at no higher mean JCT",
            f"{slowdown:.3f}, {jct:.3f}",
            is_reached=slowdown <= 0.95 and jct <= 1.0,
        )
    for role, limits in (("slowdown", (0.70, 1.02, 1.10)), ("lane", (0.95, 1.0, 1.10))):
        for row in _chosen(rows, role):
            if _known(row) != "exact, one run":
                continue
            values = tuple(_value(row, metric) for metric in (SLOWDOWN, JCT, P99))
            add(
                f"{row['setting']}, against {_rival(row)}: slowdown {limits[0]:.2f}, mean JCT"
                f" {limits[1]:.2f}, p99 {limits[2]:.2f}",
                ", ".join(f"{value:.3f}" for value in values),
                is_reached=all(map(float.__le__, values, limits)),
            )
    for row in _chosen(rows, "slowdown"):
        if _known(row) == "history" and not row["setting"].startswith("HPC2N"):
            value = _value(row, SLOWDOWN)
            add(f"{row['setting']}: slowdown 0.85", f"{value:.2f}", is_reached=value <= 0.85)
    known = [row for row in _chosen(rows, "slowdown") if _known(row) == "estimates"]
    worse = [row["setting"].partition(",")[0] for row in known if _value(row, SLOWDOWN, "low") > 1]
    if known:
        add(
            "estimates: slowdown on no log worse beyond chance",
            f"worse on {', '.join(worse)}" if worse else "on none",
            is_reached=not worse,
        )
    blind = [row for row in _chosen(rows, "slowdown") if _known(row) == "none"]
    if blind:
        highest = max(_value(row, SLOWDOWN) for row in blind)
        add(
            "nothing known: slowdown within 3 % on every log",
            f"{highest:.2f} at worst",
            is_reached=highest <= 1.03,
        )
    return lines


def losses(rows: Sequence[Row]) -> list[str]:
    """Return where the chosen policy is worse than a rival beyond chance."""
    lines = []
    for row in _chosen(rows, "slowdown", "jct", "lane"):
        for metric, name in ((SLOWDOWN, "slowdown"), (JCT, "mean JCT"), (P99, "p99 JCT")):
            if row[f"{metric}_low"] and _value(row, metric, "low") > 1.0:
                lines.append(
                    f"- {row['setting']}: {name} {_interval(row, metric)} against {_rival(row)}"
                    f" (slowdown {_interval(row, SLOWDOWN)})"
                )
    return lines or ["None beyond chance."]


def table(rows: Sequence[Row], group: str) -> list[str]:
    """Return the table of the settings with the same knowledge."""
    lines = [
        "| log | against | slowdown | mean JCT | p99 JCT | makespan"
        " | slowdown of all seeds | `holdback` as shipped |",
        "| --- | --- | " + "---: | " * 6,
    ]
    for row in _chosen(rows, "slowdown", "jct", "lane"):
        if _known(row) != group:
            continue
        same = [
            other
            for other in rows
            if (other["setting"], other["role"]) == (row["setting"], row["role"])
        ]
        seeds = [other for other in same if other["policy"].startswith("seed")]
        values = [_value(other, SLOWDOWN) for other in seeds]
        spread = f"{_mean(seeds, SLOWDOWN):.2f} ({min(values):.2f} to {max(values):.2f})"
        as_is = [other for other in same if other["policy"] == "holdback"]
        shipped = (
            f"{_value(as_is[0], SLOWDOWN):.2f}, JCT {_value(as_is[0], JCT):.2f}" if as_is else "-"
        )
        cells = [_interval(row, metric) for metric in (SLOWDOWN, JCT, P99)]
        name = row["setting"].partition(",")[0]
        lines.append(
            f"| {name}, {row['windows']} | {_rival(row)} | {' | '.join(cells)}"
            f" | {_value(row, MAKESPAN):.2f} | {spread} | {shipped} |"
        )
    return lines


def schedulers(rows: Iterable[Row]) -> list[str]:
    """Return the chosen policies."""
    return [f"- {row['setting']}: `{row['scheduler']}`" for row in _chosen(list(rows), "slowdown")]


def _chosen(rows: Sequence[Row], *roles: str) -> list[Row]:
    return [row for row in rows if row["policy"] == "chosen" and row["role"] in roles]


def _known(row: Row) -> str:
    return row["setting"].partition(", ")[2]


def _rival(row: Row) -> str:
    role = {"slowdown": "lowest slowdown", "jct": "lowest mean JCT", "lane": "express lane"}
    return f"`{row['rival']}` ({role[row['role']]})"


def _value(row: Row, metric: str, end: str = "ratio") -> float:
    return float(row[f"{metric}_{end}"])


def _interval(row: Row, metric: str) -> str:
    ends = [f"{_value(row, metric, end):.2f}" for end in ("low", "high")]
    return f"{_value(row, metric):.2f} [{', '.join(ends)}]"


def _mean(rows: Sequence[Row], metric: str) -> float:
    return math.exp(float(np.mean([math.log(_value(row, metric)) for row in rows])))
