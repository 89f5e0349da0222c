"""Axes shared by several figures: durations, ratios, the legend, and their twins in a page."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from berthline.palette import GREY, INK, PAPER
from berthline.report.figures.drawing import STYLE
from berthline.report.figures.layout import NARROW_INCHES, is_narrow
from berthline.report.figures.lineup import BLACK, COLOURS, PALE
from berthline.report.figures.page_picture import ON_DARK, ON_LIGHT, in_the_dark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from berthline.report.figures.lineup import DrawnAs, Lineup

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

UNITS = ((604_800.0, "wk"), (86_400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))
BEYOND = 10.0
_POWERS = tuple(10.0**power for power in range(-6, 7))
_RATIOS = (0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0)
_NEAR = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.5, 1.8, 2.0)
_NEARER = tuple(tick / 100 for tick in range(80, 126, 5))
_NEAREST = tuple(tick / 200 for tick in range(180, 222))
_MOST_TICKS = 6
_FEWEST_TICKS = 4
_APART, _NARROW_APART = 0.09, 0.18
"""Share of the length of an axis: marks closer than this would overlap."""


_TWIN_AXIS: dict[str, Any] = {
    "gridcolor": "#e3e3e3",
    "linecolor": "#9a9a9a",
    "zerolinecolor": "#9a9a9a",
    "tickcolor": "#9a9a9a",
}


def new_figure(width: float, height: float, *, narrow_height: float | None = None) -> Any:
    """Return a figure outside pyplot, so that no global state is left.

    Args:
        width: inches; narrow figures all have the same.
        height: inches.
        narrow_height: that of the narrow figure, if it differs.
    """
    from matplotlib.figure import Figure

    size = (NARROW_INCHES, narrow_height or height) if is_narrow() else (width, height)
    return Figure(figsize=size, layout="constrained")


def panels_in_a_row(
    width: float, height: float, count: int, *, narrow_panel: float | None = None, **more: Any
) -> tuple[Any, list[Any]]:
    """Return a figure with panels side by side, or below each other if it is narrow.

    Args:
        width: of the wide figure, in inches.
        height: of the wide figure.
        count: number of panels.
        narrow_panel: height of a panel of the narrow figure, if it is not that of the wide one.
        more: passed on to matplotlib's `subplots`; `width_ratios` only if the figure is wide.
    """
    figure = new_figure(width, height, narrow_height=(narrow_panel or height) * count)
    if is_narrow():
        more.pop("width_ratios", None)
        return figure, list(figure.subplots(count, 1, squeeze=False, **more).ravel())
    return figure, list(figure.subplots(1, count, squeeze=False, **more).ravel())


def in_style(draw: Callable[[], Any]) -> Any:
    """Return what `draw` returns, drawn in the style of all figures."""
    import matplotlib as mpl

    with mpl.rc_context(STYLE):
        return draw()


def duration_axis(axis: Any, low: float, high: float) -> None:
    """Make an axis logarithmic, with marks at familiar durations."""
    high = max(high, 1.1 * low)  # one duration alone
    axis.axes.set(**{f"{axis.axis_name}scale": "log", f"{axis.axis_name}lim": (low, high)})
    ticks = duration_ticks(low, high, apart=_NARROW_APART if is_narrow() else _APART)
    axis.set_ticks([at for at, _ in ticks], labels=[text for _, text in ticks])
    axis.set_minor_locator(_no_ticks())


def duration_ticks(low: float, high: float, *, apart: float) -> list[tuple[float, str]]:
    """Return familiar durations for a logarithmic axis.

    Args:
        low: where the axis begins, in seconds.
        high: where it ends.
        apart: least distance between marks, as a share of the axis.
    """
    ticks: list[tuple[float, str]] = []
    for marks in (DURATIONS, FINE_DURATIONS):
        ticks = []
        for at, text in marks:
            if not low <= at * 1.001 <= high * 1.002:
                continue
            if not ticks or math.log(at / ticks[-1][0]) >= apart * math.log(high / low):
                ticks.append((at, text))
        if len(ticks) >= min(_FEWEST_TICKS, int(1 / apart)):
            break
    if len(ticks) < 2:  # the range is too small even for those
        ticks = round_durations(low, high)
        ticks = ticks[:: 2 if len(ticks) * apart > 1 else 1]
    return ticks


def round_durations(low: float, high: float) -> list[tuple[float, str]]:
    """Return marks at round durations within a small range, all in one unit.

    Example:
        >>> [text for _, text in round_durations(2900.0, 6100.0)]
        ['50 min', '60 min', '70 min', '80 min', '90 min', '100 min']
    """
    from matplotlib.ticker import MaxNLocator

    unit, name = next(((u, n) for u, n in UNITS if (low or high / 4) >= u), UNITS[-1])
    found = MaxNLocator(nbins=_MOST_TICKS, steps=[1, 2, 2.5, 5, 10]).tick_values(
        low / unit, high / unit
    )
    within = [float(mark) for mark in found if low <= mark * unit <= high]
    return [(mark * unit, f"{mark:g} {name}") for mark in within]


def ratio_axis(axes: Any, low: float, high: float) -> None:
    """Make the x axis an axis of ratios: logarithmic, with marks at round ratios including 1."""
    low, high = min(low, 0.97), max(high, 1.03)
    margin = (high / low) ** 0.06
    low, high = low / margin, high * margin
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    ticks = ratio_ticks(low, high)
    axes.set_xticks(ticks, [ratio_text(tick) for tick in ticks])
    axes.xaxis.set_minor_locator(_no_ticks())
    axes.axvline(1.0, color=GREY, linewidth=1.0, zorder=1)


def ratio_ticks(low: float, high: float) -> list[float]:
    """Return round ratios within a range, 1 among them."""
    ticks: list[float] = []
    for candidates in (_POWERS, _RATIOS, _NEAR, _NEARER, _NEAREST):
        ticks = [tick for tick in candidates if low <= tick <= high]
        if len(ticks) >= (_FEWEST_TICKS if candidates is _POWERS else 3):
            break
    while len(ticks) > _MOST_TICKS:
        one = ticks.index(1.0)
        ticks = [tick for index, tick in enumerate(ticks) if index % 2 == one % 2]
    return ticks


def slowdown_ticks(highest: float) -> list[int]:
    """Return round slowdowns from 1 up to the highest.

    Example:
        >>> slowdown_ticks(30.0), slowdown_ticks(5000.0)
        ([1, 2, 5, 10, 20], [1, 10, 100, 1000])
    """
    powers = [10**power for power in range(7)]
    if highest >= 300:
        return [power for power in powers if power <= 1.2 * highest]
    return [
        step * power for power in powers for step in (1, 2, 5) if step * power <= 1.05 * highest
    ]


def ratio_text(tick: float) -> str:
    """Return a ratio as a mark of an axis."""
    return f"{tick:,.0f}" if tick >= 1000 else f"{tick:g}"


def ratio_range(
    ratios: Sequence[float | None], ends: Sequence[float | None]
) -> tuple[float, float]:
    """Return the range of an axis of ratios that one interval does not flatten.

    All ratios are within it. An interval may leave it: beyond ten times the largest ratio, or a
    tenth of the smallest, its exact end tells nothing.
    """
    known = [1.0, *(ratio for ratio in ratios if ratio is not None)]
    least, most = min(known) / BEYOND, max(known) * BEYOND
    shown = known + [min(max(end, least), most) for end in ends if end is not None]
    return min(shown), max(shown)


def interval_bars(
    axes: Any, low: Sequence[float], high: Sequence[float], places: Sequence[float], **look: Any
) -> None:
    """Draw intervals; an arrow marks an end beyond the axis. Call it after `ratio_axis`."""
    first, last = axes.get_xlim()
    axes.hlines(places, [max(end, first) for end in low], [min(end, last) for end in high], **look)
    colours = look.get("color")
    for ends, edge, marker in ((low, first, "<"), (high, last, ">")):
        for place, end in enumerate(ends):
            if not first <= end <= last:
                colour = colours[place] if isinstance(colours, list) else colours
                axes.plot(
                    edge, places[place], marker, color=colour, markersize=6, clip_on=False, zorder=6
                )


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
    if is_narrow():
        return 2 if longest <= 14 else 1
    return 2 if longest > 30 else 3 if longest > 20 else 4


def plain_line(axes: Any, x: Any, y: Any, look: DrawnAs, **more: Any) -> None:
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
    name: str, x: Iterable[float], y: Iterable[float], look: DrawnAs, **more: Any
) -> dict[str, Any]:
    """Return a scheduler's line for plotly."""
    dash = (
        "solid" if isinstance(look.line, str) else ",".join(f"{3 * on:g}px" for on in look.line[1])
    )
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


def twin_menu(buttons: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """Return a menu above an interactive figure; light in dark mode too, like its highlight."""
    colours = {"bgcolor": ON_DARK, "font": {"color": ON_LIGHT}}
    return {"buttons": buttons, "x": 0, "xanchor": "left", **colours, **more}


def dark_colours() -> dict[str, str]:
    """Return the colours of interactive figures, and those that replace them in dark mode."""
    axis = [str(colour) for colour in _TWIN_AXIS.values() if str(colour).startswith("#")]
    used = (*COLOURS, BLACK, PALE, GREY, INK, PAPER, *axis)
    return {colour.lower(): in_the_dark(colour) for colour in used}


def twin_layout(**more: Any) -> dict[str, Any]:
    """Return the layout that all interactive figures share."""
    return {
        "template": {"layout": {"xaxis": _TWIN_AXIS, "yaxis": _TWIN_AXIS}},
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": GREY, "activecolor": INK},
        "paper_bgcolor": PAPER,
        "plot_bgcolor": PAPER,
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": INK},
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


def twin_duration_axis(
    title: str, *, within: tuple[float, float] | None = None, **more: Any
) -> dict[str, Any]:
    """Return a logarithmic axis of time for plotly.

    Args:
        title: of the axis.
        within: the range of the times, if marks far apart would be too few.
        more: further properties.
    """
    ticks = TWIN_DURATIONS if within is None else duration_ticks(*within, apart=_NARROW_APART)
    return {
        "type": "log",
        "title": {"text": title},
        "tickvals": [at for at, _ in ticks],
        "ticktext": [text for _, text in ticks],
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
