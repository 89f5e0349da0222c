"""Axes shared by several figures: durations, ratios, the legend, and their twins in a page."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from berthline.number_text import duration
from berthline.report.figures.drawing import GREY, STYLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from berthline.report.figures.lineup import Lineup, Look

DURATIONS = (
    (1.0, "1 s"),
    (10.0, "10 s"),
    (60.0, "1 min"),
    (600.0, "10 min"),
    (3600.0, "1 h"),
    (36_000.0, "10 h"),
    (86_400.0, "1 d"),
    (604_800.0, "1 wk"),
    (6_048_000.0, "10 wk"),
)
"""Tick marks of a logarithmic time axis."""

TWIN_DURATIONS = (
    (1.0, "1 s"),
    (60.0, "1 min"),
    (600.0, "10 min"),
    (3600.0, "1 h"),
    (21_600.0, "6 h"),
    (86_400.0, "1 d"),
    (604_800.0, "1 wk"),
    (6_048_000.0, "10 wk"),
)
"""Tick marks inside a page, where panels are narrower."""

FINE_DURATIONS = tuple(
    (count * unit, f"{count} {name}")
    for unit, name, counts in (
        (1.0, "s", (1, 2, 5, 10, 20, 30)),
        (60.0, "min", (1, 2, 5, 10, 20, 30)),
        (3600.0, "h", (1, 2, 3, 6, 12)),
        (86_400.0, "d", (1, 2, 4)),
        (604_800.0, "wk", (1, 2, 4, 10, 20)),
    )
    for count in counts
)
"""Tick marks of an axis with a small range."""

_RATIOS = (0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0)
_NEAR = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 1.75, 2.0)
_NEARER = tuple(tick / 100 for tick in range(80, 126, 5))
_NEAREST = tuple(tick / 200 for tick in range(180, 222))
_MOST_TICKS = 6
_FEWEST_TICKS = 4
_APART = 0.09
"""Share of the length of an axis: marks closer than this would overlap."""


def new_figure(width: float, height: float) -> Any:
    """Return a figure outside pyplot, so that no global state is left."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def in_style(draw: Callable[[], Any]) -> Any:
    """Return what `draw` returns, drawn in the style of all figures."""
    import matplotlib as mpl

    with mpl.rc_context(STYLE):
        return draw()


def duration_axis(axis: Any, low: float, high: float) -> None:
    """Make an axis logarithmic, with marks at familiar durations."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log", f"{axis.axis_name}lim": (low, high)})
    ticks: list[tuple[float, str]] = []
    for marks in (DURATIONS, FINE_DURATIONS):
        ticks = []
        for at, text in marks:
            if not low <= at * 1.001 <= high * 1.002:
                continue
            if not ticks or math.log(at / ticks[-1][0]) >= _APART * math.log(high / low):
                ticks.append((at, text))
        if len(ticks) >= _FEWEST_TICKS:
            break
    if len(ticks) < 2:  # the range is too small even for those
        within = [low * (high / low) ** share for share in (0.05, 0.5, 0.95)]
        ticks = [(mark, duration(mark)) for mark in within]
    axis.set_ticks([at for at, _ in ticks], labels=[text for _, text in ticks])
    axis.set_minor_locator(_no_ticks())


def ratio_axis(axes: Any, low: float, high: float) -> None:
    """Make the x axis an axis of ratios: logarithmic, with marks at round ratios including 1."""
    low, high = min(low, 0.97), max(high, 1.03)
    margin = (high / low) ** 0.06
    low, high = low / margin, high * margin
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    ticks: list[float] = []
    for candidates in (_RATIOS, _NEAR, _NEARER, _NEAREST):
        ticks = [tick for tick in candidates if low <= tick <= high]
        if len(ticks) >= 3:
            break
    while len(ticks) > _MOST_TICKS:
        one = ticks.index(1.0)
        ticks = [tick for index, tick in enumerate(ticks) if index % 2 == one % 2]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.xaxis.set_minor_locator(_no_ticks())
    axes.axvline(1.0, color=GREY, linewidth=1.0, zorder=1)


def legend_below(figure: Any, lineup: Lineup, *, markers: bool = False) -> None:
    """Add a legend below a figure: the highlighted schedulers, and the number of grey ones."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D(
            [],
            [],
            color=look.colour,
            linestyle=look.line,  # type: ignore[arg-type]
            linewidth=look.width,
            marker=look.marker if markers else None,
            markersize=5,
            label=lineup.names[name]
            + (" (baseline)" if name == lineup.baseline and len(lineup.schedulers) > 1 else ""),
        )
        for name in lineup.highlighted
        for look in (lineup.looks[name],)
    ]
    grey = len(lineup.schedulers) - len(handles)
    if grey:
        look = next(look for look in lineup.looks.values() if not look.stands_out)
        handles.append(Line2D([], [], color=look.colour, linewidth=1.4, label=f"{grey} others"))
    figure.legend(handles=handles, loc="outside lower left", ncols=columns_for(lineup))


def columns_for(lineup: Lineup) -> int:
    """Return the number of columns of a legend with these names."""
    longest = max(len(lineup.names[name]) for name in lineup.highlighted)
    return 2 if longest > 30 else 3 if longest > 20 else 4


def plain_line(axes: Any, x: Any, y: Any, look: Look, **more: Any) -> None:
    """Draw a scheduler's line in its look."""
    axes.plot(
        x,
        y,
        color=look.colour,
        linestyle=look.line,
        linewidth=look.width,
        zorder=3 if look.stands_out else 2,
        **more,
    )


def twin_line(
    name: str, x: Iterable[float], y: Iterable[float], look: Look, **more: Any
) -> dict[str, Any]:
    """Return a scheduler's line for plotly."""
    dash = {"-": "solid", "--": "dash", "-.": "dashdot", ":": "dot"}.get(str(look.line), "longdash")
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "legendgroup": name,
        "x": [significant(value) for value in x],
        "y": [significant(value) for value in y],
        "line": {"color": look.colour, "width": look.width, "dash": dash},
        **more,
    }


def twin_layout(**more: Any) -> dict[str, Any]:
    """Return the layout that all interactive figures share."""
    return {
        "template": "none",
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": "#1a1a1a"},
        "margin": {"l": 60, "r": 20, "t": 36, "b": 50},
        "hoverlabel": {"namelength": -1},
        "legend": {
            "orientation": "h",
            "y": -0.3,
            "x": 0,
            "font": {"size": 12},
            "traceorder": "reversed",
        },
        **more,
    }


def twin_duration_axis(title: str, **more: Any) -> dict[str, Any]:
    """Return a logarithmic axis of time for plotly."""
    return {
        "type": "log",
        "title": {"text": title},
        "tickvals": [at for at, _ in TWIN_DURATIONS],
        "ticktext": [text for _, text in TWIN_DURATIONS],
        "tickangle": 0,
        "gridcolor": "#E3E3E3",
        **more,
    }


def significant(value: float) -> float | None:
    """Return a number rounded to five figures, more than a screen shows; None if not finite."""
    return float(f"{value:.5g}") if math.isfinite(value) else None


def hours(seconds: float) -> float:
    """Return seconds as hours."""
    return seconds / 3600.0


def _no_ticks() -> Any:
    from matplotlib.ticker import NullLocator

    return NullLocator()
