"""The computed parts of docs/results/winning-policy.md, from the rows of its CSV file."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from benchmarks.winning_choice import numbers_of
from benchmarks.winning_spaces import SURE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from benchmarks.result_files import Row

    Picked = Callable[[Callable[..., list[Row]]], list[Row]]
    """Returns some of the rows that another function selects."""

SLOWDOWN, JCT, P99, MAKESPAN = "mean_bounded_slowdown", "mean_jct", "p99_jct", "makespan"
GROUPS = ("exact", "exact, one run", "history", "estimates", "none")
"""The knowledge levels that have a table."""


def parts(rows: Sequence[Row], first: Sequence[Row] = ()) -> dict[str, list[str]]:
    """Return the computed parts of the page, by name.

    Args:
        rows: of the CSV file.
        first: the rows of the policies chosen when REPORT was first read.
    """
    found = {"goals": goals(rows), "losses": losses(rows), "again": again(rows, first)}
    for group in GROUPS:
        found[group] = table(rows, group)
    found["doubt"] = doubt(rows)
    found["schedulers"] = schedulers(rows)
    return found


def goals(rows: Sequence[Row]) -> list[str]:
    """Return the goals, and what the chosen policy, all seeds and the shipped policy reached."""
    lines = [
        "| wanted | chosen on VAL | | the seeds' average | | mean of all seeds | "
        "| `holdback` as shipped | |",
        "| --- |" + " --- |" * 8,
    ]

    def add(wanted: str, metrics: Sequence[str], limits: Sequence[float], picked: Picked) -> None:
        cells = []
        for found in map(picked, (_chosen, _average, _seeds, _shipped)):
            if not found:
                cells += ["-", ""]
                continue
            values = [_mean(found, metric) for metric in metrics]
            is_reached = all(value <= limit for value, limit in zip(values, limits, strict=True))
            text = ", ".join(f"{value:.3f}" for value in values)
            cells += [text, "yes" if is_reached else "**no**"]
        lines.append(f"| {wanted} | {' | '.join(cells)} |")

    def of(known: str, role: str, *logs: str) -> Picked:
        return lambda select: [
            row
            for row in select(rows, role)
            if _known(row) == known and (not logs or row["setting"].startswith(logs))
        ]

    present = {_known(row) for row in rows}
    if "exact" in present:
        count = len({row["setting"] for row in rows if _known(row) == "exact"})
        add(
            f"exact, windows, geometric mean over {count} logs: slowdown 0.70, mean JCT 1.00",
            (SLOWDOWN, JCT),
            (0.70, 1.00),
            of("exact", "slowdown"),
        )
        add(
            "the same against the express lane: slowdown 0.95 at no higher mean JCT",
            (SLOWDOWN, JCT),
            (0.95, 1.00),
            of("exact", "lane"),
        )
    if "exact, one run" in present:
        add(
            "Venus, one run: slowdown 0.70, mean JCT 1.02, p99 1.10",
            (SLOWDOWN, JCT, P99),
            (0.70, 1.02, 1.10),
            of("exact, one run", "slowdown"),
        )
        add(
            "the same against the heuristic with the lowest mean JCT",
            (SLOWDOWN, JCT, P99),
            (0.70, 1.02, 1.10),
            of("exact, one run", "jct"),
        )
        add(
            "the same against the express lane: slowdown 0.95 at no higher mean JCT",
            (SLOWDOWN, JCT),
            (0.95, 1.00),
            of("exact, one run", "lane"),
        )
    for log in ("CTC", "Philly"):
        if "history" in present:
            found = of("history", "slowdown", log)
            add(f"{log}, history alone: slowdown 0.85", (SLOWDOWN,), (0.85,), found)
    if "estimates" in present:
        lines.append(_no_loss(rows))
    if "none" in present:
        lines.append(_parity(rows))
    return lines


def _no_loss(rows: Sequence[Row]) -> str:
    cells = []
    for select in (_chosen, _average, _seeds, _shipped):
        known = [row for row in select(rows, "slowdown") if _known(row) == "estimates"]
        if not known:
            cells += ["-", ""]
            continue
        worse = {r["setting"].partition(",")[0] for r in known if _value(r, SLOWDOWN, "low") > 1}
        cells += [f"worse on {', '.join(sorted(worse))}" if worse else "worse on none"]
        cells += ["**no**" if worse else "yes"]
    return f"| estimates: slowdown on no log worse beyond chance | {' | '.join(cells)} |"


def _parity(rows: Sequence[Row]) -> str:
    cells = []
    for select in (_chosen, _average, _seeds, _shipped):
        by_log: dict[str, list[Row]] = {}
        for row in select(rows, "slowdown"):
            if _known(row) == "none":
                by_log.setdefault(row["setting"].partition(",")[0], []).append(row)
        means = {log: _mean(found, SLOWDOWN) for log, found in by_log.items()}
        if not means:
            cells += ["-", ""]
            continue
        worst = max(means, key=means.__getitem__)
        cells += [f"{means[worst]:.3f} ({worst})", "yes" if means[worst] <= 1.03 else "**no**"]
    return f"| nothing known: slowdown within 3 % on every log; the worst | {' | '.join(cells)} |"


def losses(rows: Sequence[Row]) -> list[str]:
    """Return where the chosen policy is worse than a rival beyond chance."""
    lines = []
    names = {SLOWDOWN: "slowdown", JCT: "mean JCT", P99: "p99 JCT"}
    for row in _chosen(rows, "slowdown", "jct", "lane"):
        worse = [
            f"{name} {_interval(row, metric)}"
            for metric, name in names.items()
            if row[f"{metric}_low"] and _value(row, metric, "low") > 1.0
        ]
        if worse:
            gained = f"; slowdown is {_interval(row, SLOWDOWN)}" if "slow" not in worse[0] else ""
            lines.append(f"- {row['setting']}, against {_rival(row)}: {', '.join(worse)}{gained}")
    return lines or ["None beyond chance."]


def table(rows: Sequence[Row], group: str) -> list[str]:
    """Return the table of the settings with the same knowledge."""
    lines = [
        "| log | against | slowdown | mean JCT | p99 JCT | makespan"
        " | slowdown of all seeds | `holdback` as shipped |",
        "| --- | --- |" + " ---: |" * 6,
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


def again(rows: Sequence[Row], first: Sequence[Row]) -> list[str]:
    """Return how the chosen policies did when REPORT was first read, and how they do now."""
    lines = [
        "| setting | chosen at first: slowdown | mean JCT | p99 JCT"
        " | chosen now: slowdown | mean JCT | p99 JCT |",
        "| --- |" + " ---: |" * 6,
    ]
    then = {row["setting"]: row for row in _chosen(first, "slowdown")}
    for row in _chosen(rows, "slowdown"):
        pair = [then[row["setting"]], row]
        if pair[0]["scheduler"] == row["scheduler"]:
            continue
        cells = [f"{_value(one, metric):.3f}" for one in pair for metric in (SLOWDOWN, JCT, P99)]
        lines.append(f"| {row['setting']} | {' | '.join(cells)} |")
    return lines


def doubt(rows: Sequence[Row]) -> list[str]:
    """Return how the seeds use the uncertainty of predictions."""
    lines = [
        "| log | order: `c` of the seeds | gate: `k` of the seeds |",
        "| --- |" + " ---: |" * 2,
    ]
    seeds = [row for row in _seeds(rows, "slowdown") if _known(row) == "history"]
    for setting in dict.fromkeys(row["setting"] for row in seeds):
        found = [numbers_of(SURE, r["scheduler"]) for r in seeds if r["setting"] == setting]
        cells = [", ".join(f"{one[name]:.2f}" for one in found) for name in ("c", "k")]
        lines.append(f"| {setting.partition(',')[0]} | {' | '.join(cells)} |")
    return lines


def schedulers(rows: Iterable[Row]) -> list[str]:
    """Return the chosen policies."""
    return [f"- {row['setting']}: `{row['scheduler']}`" for row in _chosen(list(rows), "slowdown")]


def _chosen(rows: Sequence[Row], *roles: str) -> list[Row]:
    return [row for row in rows if row["policy"] == "chosen" and row["role"] in roles]


def _seeds(rows: Sequence[Row], *roles: str) -> list[Row]:
    return [row for row in rows if row["policy"].startswith("seed") and row["role"] in roles]


def _average(rows: Sequence[Row], *roles: str) -> list[Row]:
    return [row for row in rows if row["policy"] == "average" and row["role"] in roles]


def _shipped(rows: Sequence[Row], *roles: str) -> list[Row]:
    return [row for row in rows if row["policy"] == "holdback" and row["role"] in roles]


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
