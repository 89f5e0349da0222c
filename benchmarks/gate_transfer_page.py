"""The page of gate_transfer.py: its CSV file as matrices, verdicts and a figure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from benchmarks.paired_windows import names

from berthline.evaluate.statistics.paired import Ratio, paired_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.result_files import Row
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

SHIPPED, LANE = "holdback", "lane chosen there"
RIVALS = {"lowest slowdown": "mean_bounded_slowdown", "lowest mean JCT": "mean_jct"}
"""The best named heuristics in hindsight, and the metric in which they are best."""
SHOWN = {
    "mean_bounded_slowdown": ("slowdown", "lowest slowdown"),
    "mean_jct": ("mean JCT", "lowest mean JCT"),
    "p99_jct": ("p99 JCT", "lowest mean JCT"),
    "makespan": ("makespan", "lowest mean JCT"),
}
"""The metrics of a gate, and the heuristic that it is compared with in each."""
TOLERATED = 1.02
"""The limit of gates: mean JCT / lowest mean JCT."""


def column(rows: Sequence[Row], place: str, gate: str, metric: str) -> list[float]:
    """Return a metric of a gate at a place, window by window."""
    chosen = [row for row in rows if (row["place"], row["gate"]) == (place, gate)]
    return [float(row[metric]) for row in sorted(chosen, key=lambda row: int(row["window"]))]


def ratio(rows: Sequence[Row], place: str, gate: str, metric: str, other: str = "") -> Ratio:
    """Return the paired ratio to the best heuristic by that metric, or to another gate."""
    other = other or SHOWN[metric][1]
    return paired_ratio(column(rows, place, gate, metric), column(rows, place, other, metric))


def told(found: Ratio) -> str:
    """Return a ratio with its interval."""
    if found.ratio is None or found.low is None or found.high is None:
        return "-"
    return f"{found.ratio:.2f} [{found.low:.2f}, {found.high:.2f}]"


def is_worse(found: Ratio) -> bool:
    """Return whether a ratio is above 1 beyond chance."""
    return found.low is not None and found.low > 1


def is_better(found: Ratio) -> bool:
    """Return whether a ratio is below 1 beyond chance."""
    return found.high is not None and found.high < 1


def gates_of(rows: Sequence[Row]) -> list[str]:
    """Return all gates, without the rivals."""
    return [gate for gate in names(rows, "gate") if gate not in RIVALS]


def losses(rows: Sequence[Row]) -> list[str]:
    """Return where each gate's slowdown is worse beyond chance, and where its JCT is too high."""
    lines = []
    for gate in gates_of(rows):
        slowdown, jct = [], []
        for place in names(rows, "place"):
            found = ratio(rows, place, gate, "mean_bounded_slowdown")
            if is_worse(found):
                slowdown.append(f"{place} {told(found)}")
            found = ratio(rows, place, gate, "mean_jct")
            if found.low is not None and found.low > TOLERATED:
                jct.append(f"{place} {told(found)}")
        say = [
            f"{what}: {'; '.join(where)}"
            for what, where in (("slowdown worse", slowdown), ("mean JCT above 1.02", jct))
            if where
        ]
        if say:
            lines.append(f"- `{gate}`: {'. '.join(say)}.")
    return lines or ["None that excludes chance."]


def summary(rows: Sequence[Row]) -> list[str]:
    """Return each gate's results over all places but its own."""
    lines = [
        "| gate | slowdown, geometric mean elsewhere | mean JCT | slowdown better at | worse at"
        " | mean JCT above 1.02 at |",
        "| --- |" + " ---: |" * 5,
    ]
    for gate in gates_of(rows):
        places = [place for place in names(rows, "place") if gate != f"tuned on {place}"]
        slowdown = [ratio(rows, place, gate, "mean_bounded_slowdown") for place in places]
        jct = [ratio(rows, place, gate, "mean_jct") for place in places]
        above = sum(1 for one in jct if one.low is not None and one.low > TOLERATED)
        cells = [
            f"{_mean(slowdown):.2f}",
            f"{_mean(jct):.3f}",
            f"{sum(map(is_better, slowdown))} of {len(places)}",
            str(sum(map(is_worse, slowdown))),
            str(above),
        ]
        lines.append(f"| {gate} | {' | '.join(cells)} |")
    return lines


def _mean(ratios: Sequence[Ratio]) -> float:
    logs = [math.log(one.ratio) for one in ratios if one.ratio]
    return math.exp(sum(logs) / len(logs))


def at_home(rows: Sequence[Row]) -> list[str]:
    """Return what tuning at the place itself adds to gates from elsewhere."""
    lines = [
        f"| place | tuned there / `{SHIPPED}`: slowdown | mean JCT"
        f" | tuned there / {LANE}: slowdown | mean JCT |",
        "| --- |" + " ---: |" * 4,
    ]
    for place in names(rows, "place"):
        cells = [
            told(ratio(rows, place, f"tuned on {place}", metric, other))
            for other in (SHIPPED, LANE)
            for metric in ("mean_bounded_slowdown", "mean_jct")
        ]
        lines.append(f"| {place} | {' | '.join(cells)} |")
    return lines


def tables(rows: Sequence[Row]) -> list[str]:
    """Return all gates at each place."""
    lines: list[str] = []
    for place in names(rows, "place"):
        here = [row for row in rows if row["place"] == place]
        windows, jobs = len(names(here, "window")), int(here[0]["jobs"])
        best = [f"`{here_text(here, role)}` ({role})" for role in RIVALS]
        values = column(rows, place, "lowest slowdown", "mean_bounded_slowdown")
        lines += [
            f"**{place}** ({windows} windows of {jobs:,} jobs; against {' and '.join(best)};"
            f" its slowdown is {sum(values) / len(values):.2f})",
            "",
            "| | " + " | ".join(f"{name} [95 %]" for name, _ in SHOWN.values()) + " |",
            "| --- |" + " ---: |" * len(SHOWN),
        ]
        for gate in gates_of(here):
            cells = [told(ratio(rows, place, gate, metric)) for metric in SHOWN]
            lines.append(f"| {gate} | {' | '.join(cells)} |")
        lines.append("")
    return lines[:-1]


def here_text(here: Sequence[Row], gate: str) -> str:
    """Return the scheduler that a gate is at a place."""
    return names(here, "scheduler", gate=gate)[0]


def schedulers(rows: Sequence[Row]) -> list[str]:
    """Return the texts of all gates."""
    lines = ["| gate | scheduler |", "| --- | --- |"]
    for gate in gates_of(rows):
        for text in names(rows, "scheduler", gate=gate):
            where = "; ".join(names(rows, "place", gate=gate, scheduler=text))
            name = f"{gate} ({where})" if gate == LANE else gate
            lines.append(f"| {name} | `{text}` |")
    return lines


def parts(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return the computed parts of the page, by name."""
    return {
        "losses": losses(rows),
        "summary": summary(rows),
        "at home": at_home(rows),
        "schedulers": schedulers(rows),
        "tables": tables(rows),
    }


def draw(rows: Sequence[Row], path: Path) -> None:
    """Write the figure: gates by places, slowdown above, mean JCT below.

    Raises:
        OutputError: the file cannot be written.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from berthline.report.figures.drawing import STYLE, save_figure

    places, gates = names(rows, "place"), gates_of(rows)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.6, 0.6 * len(gates) + 2.2), layout="constrained")
        panels = figure.subplots(2, 1, sharex=True)
        for axes, metric, widest in zip(panels, RIVALS.values(), (4.0, 1.25), strict=True):
            image = _matrix(axes, rows, metric, widest)
            bar = figure.colorbar(image, ax=axes, aspect=40, pad=0.01, extend="both")
            ticks = [1 / widest, widest**-0.5, 1.0, widest**0.5, widest]
            bar.set_ticks([math.log(tick) for tick in ticks], labels=[f"{t:.3g}" for t in ticks])
            bar.outline.set_visible(False)
            axes.set_yticks(range(len(gates)), gates)
        panels[-1].set_xticks(range(len(places)), places, rotation=40, ha="right")
        save_figure(figure, path)


def _matrix(axes: Axes, rows: Sequence[Row], metric: str, widest: float) -> AxesImage:
    """Draw ratios as coloured numbers, bold where the gate was tuned; return their colours."""
    places, gates = names(rows, "place"), gates_of(rows)
    found = [[ratio(rows, place, gate, metric) for place in places] for gate in gates]
    image = axes.imshow(
        [[math.log(one.ratio or 1.0) for one in line] for line in found],
        cmap="PuOr_r",
        vmin=-math.log(widest),
        vmax=math.log(widest),
        aspect="auto",
    )
    for y, line in enumerate(found):
        for x, one in enumerate(line):
            assert one.ratio is not None
            mark = "+" if is_worse(one) else "" if is_better(one) else "·"
            strong = abs(math.log(one.ratio)) > 0.7 * math.log(widest)
            axes.text(
                *(x, y, f"{one.ratio:.2f}{mark}"),
                ha="center",
                va="center",
                fontsize=6.5,
                color="white" if strong else "black",
                fontweight="bold" if gates[y] == f"tuned on {places[x]}" else "normal",
            )
    name, rival = SHOWN[metric]
    axes.set_title(f"{name} / that of the heuristic with the {rival} in hindsight")
    axes.grid(visible=False)
    axes.tick_params(length=0)
    return image
