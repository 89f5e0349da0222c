"""The figure of a trace card: arrivals, demand against capacity, run times, sizes, the week."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from berthline.evaluate.trace_checks.card import is_on_part
from berthline.palette import BLUE, GREEN, GREY, ORANGE, RED
from berthline.report.figures.drawing import HEAT, STYLE, check_figure_file, save_figure
from berthline.traces.inspect.arrival_pattern import (
    DAY,
    HOUR,
    WEEKDAYS,
    LocalClock,
    by_hour_of_week,
    local_clock,
)
from berthline.traces.inspect.demand import Demand

if TYPE_CHECKING:
    from pathlib import Path

    from berthline.evaluate.trace_checks.card import TraceCard
    from berthline.model.workload import Workload

_MOST_BINS = 250
_BINS = ((HOUR, "hour"), (6 * HOUR, "6 hours"), (DAY, "day"), (7 * DAY, "week"))
_MARKED_TIMES = ((1, "1 s"), (60, "1 min"), (HOUR, "1 h"), (DAY, "1 d"), (30 * DAY, "30 d"))
_LARGEST_NAMED = 512
_SMALL_LOAD = 0.01
_THOUSANDS = 1000


def draw_trace_card(workload: Workload, card: TraceCard, path: str | Path) -> None:
    """Draw the card of a workload.

    Args:
        workload: the jobs.
        card: their card; its cluster gives the capacity.
        path: the file; its suffix sets the format: png, pdf or svg.

    Raises:
        OutputError: the file cannot be written.
        MissingExtraError: matplotlib is not installed.
    """
    path = check_figure_file(path, needed_for="a figure")
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        # A figure outside pyplot, so that no global state is left.
        figure = Figure(figsize=(11, 8.5), layout="constrained")
        grid = figure.add_gridspec(3, 3, height_ratios=(1, 1, 1.15))
        clock = local_clock(workload)
        arrivals = figure.add_subplot(grid[0, :])
        _draw_arrivals(arrivals, clock)
        _draw_demand(figure.add_subplot(grid[1, :], sharex=arrivals), workload, card, clock)
        _draw_run_times(figure.add_subplot(grid[2, 0]), workload)
        _draw_sizes(figure.add_subplot(grid[2, 1]), workload)
        _draw_week(figure, figure.add_subplot(grid[2, 2]), clock)
        figure.suptitle(_title(card), x=0.01, ha="left", fontsize=11, fontweight="bold")
        save_figure(figure, path)


def _title(card: TraceCard) -> str:
    days = card.span_seconds / DAY
    words = [f"{card.jobs:,} jobs", f"{days:,.1f} days", f"{card.gpu_hours:,.0f} GPU-hours"]
    if card.cluster and card.cluster.load is not None:
        load = card.cluster.load
        shown = f"{load:.2f}" if load >= _SMALL_LOAD else f"{load:.1g}"
        words.append(f"load {shown} on {card.cluster.gpus:,} GPUs")
    return f"{card.name}\n" + ", ".join(words)


def _bins(seconds: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], str]:
    """Return the edges of bins that cover the times, and the name of their length."""
    first, last = float(seconds.min()), float(seconds.max())
    coarse = (last - first) / _MOST_BINS
    width, name = next(
        ((width, name) for width, name in _BINS if width >= coarse),
        (coarse, f"{coarse / DAY:,.0f} days"),
    )
    start = np.floor(first / width) * width
    count = max(int(np.floor((last - start) / width)) + 1, 1)
    return start + width * np.arange(count + 1), name


def _times(seconds: npt.NDArray[np.float64], clock: LocalClock) -> npt.NDArray[Any]:
    """Return times for the x axis: dates if they are known, else days since the start."""
    if clock.has_dates:
        return seconds.astype("datetime64[s]")
    days: npt.NDArray[np.float64] = seconds / DAY
    return days


def _draw_arrivals(axes: Any, clock: LocalClock) -> None:
    edges, name = _bins(clock.seconds)
    counts = np.histogram(clock.seconds, edges)[0]
    axes.stairs(counts, _times(edges, clock), fill=True, color=BLUE)
    axes.set_title(f"Jobs submitted per {name}")
    axes.set_ylim(0)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    begin, end = _times(edges[[0, -1]], clock)
    axes.set_xlim(begin, end)
    if clock.has_dates:
        import matplotlib.dates

        dates: Any = matplotlib.dates  # its functions have no types
        locator = dates.AutoDateLocator()
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))


def _draw_demand(axes: Any, workload: Workload, card: TraceCard, clock: LocalClock) -> None:
    edges, name = _bins(workload.submit)
    edges = np.clip(edges, workload.submit[0], max(workload.submit[-1], workload.submit[0] + 1))
    edges = np.unique(edges)
    # The shift to the local clock; it ignores a change to or from summer time in the trace.
    shift = float(clock.seconds[0] - workload.submit[0])
    means = Demand.of(workload).means(edges)
    axes.stairs(means, _times(edges + shift, clock), fill=True, color=ORANGE, alpha=0.85)
    axes.set_title(f"GPUs requested at once if no job waited, mean per {name}")
    axes.axhline(card.demand_p95, color=GREY, linestyle=":", linewidth=1.2)
    _name_line(axes, card.demand_p95, f"95 % of the time up to {card.demand_p95:,.0f}", GREY)
    if card.cluster:
        axes.axhline(card.cluster.gpus, color=RED, linewidth=1.6)
        _name_line(axes, card.cluster.gpus, f"{card.cluster.name}: {card.cluster.gpus:,} GPUs", RED)
    highest = max(means.max(), card.demand_p95, _shown_capacity(card, means.max()))
    axes.set_ylim(0, 1.15 * highest or 1.0)
    if highest >= _THOUSANDS:
        axes.yaxis.set_major_formatter("{x:,.0f}")
    if not clock.has_dates:
        axes.set_xlabel("days since the first submission")


def _shown_capacity(card: TraceCard, highest: float) -> float:
    """Return the cluster's GPUs, unless the line would flatten everything else."""
    if card.cluster is None or card.cluster.gpus > 4 * highest:
        return 0.0
    return float(card.cluster.gpus)


def _name_line(axes: Any, height: float, text: str, color: str) -> None:
    axes.annotate(
        text,
        (1, height),
        xycoords=("axes fraction", "data"),
        xytext=(-4, 2),
        textcoords="offset points",
        ha="right",
        va="bottom",
        color=color,
        fontweight="bold",
        fontsize=8.5,
        annotation_clip=True,
        bbox={"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 1},
    )


def _draw_run_times(axes: Any, workload: Workload) -> None:
    order = np.argsort(workload.run, kind="stable")
    run = workload.run[order]
    work = np.cumsum(run * workload.gpu_amount[order])
    jobs = np.arange(1, len(run) + 1) / len(run)
    axes.plot(run, jobs, color=BLUE, linewidth=2, label="jobs")
    # The lines differ in more than colour.
    axes.plot(
        run, work / (work[-1] or 1.0), color=ORANGE, linewidth=2, linestyle="-.", label="GPU-hours"
    )
    estimate = np.sort(workload.estimate[~np.isnan(workload.estimate)])
    if estimate.size:
        share = np.arange(1, estimate.size + 1) / estimate.size
        axes.plot(estimate, share, color=GREEN, linestyle="--", label="jobs by estimate")
    axes.set_xscale("log")
    axes.set_xticks([at for at, _ in _MARKED_TIMES], [text for _, text in _MARKED_TIMES])
    axes.minorticks_off()
    axes.set_ylim(0, 1.02)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "25 %", "50 %", "75 %", "100 %"])
    axes.set_title("Share with a run time up to")
    # Below the axes, where it covers no curve.
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=3, columnspacing=1.2)


def _draw_sizes(axes: Any, workload: Workload) -> None:
    largest = max(int(workload.gpus.max()), 1)
    uppers = [1, 2, 4, 8, 16, 32, 64, 128, 256, _LARGEST_NAMED]
    uppers = [upper for upper in uppers if upper < 2 * largest]
    labels = [_range(low + 1, high) for low, high in zip([0, *uppers], uppers, strict=False)]
    if largest > uppers[-1]:
        labels.append(f">{uppers[-1]}")
    bucket = np.searchsorted(uppers, workload.gpus)
    # Jobs with less than one GPU come first.
    smaller = {"part": is_on_part(workload), "0": workload.gpus == 0}
    for label, which in smaller.items():
        if which.any():
            bucket = np.where(which, 0, bucket + 1)
            labels = [label, *labels]
    jobs = np.bincount(bucket, minlength=len(labels)) / len(workload)
    work = np.bincount(bucket, workload.run * workload.gpu_amount, minlength=len(labels))
    at = np.arange(len(labels))
    axes.bar(at - 0.2, 100 * jobs, 0.4, color=BLUE, label="of jobs")
    axes.bar(at + 0.2, 100 * work / (work.sum() or 1.0), 0.4, color=ORANGE, label="of GPU-hours")
    axes.set_xticks(at, labels, rotation=45 if len(labels) > 6 else 0)
    axes.grid(visible=False, axis="x")
    axes.set_title("GPUs per job, %")
    axes.legend(loc="upper right")


def _range(low: int, high: int) -> str:
    return str(high) if low == high else f"{low}-{high}"


def _draw_week(figure: Any, axes: Any, clock: LocalClock) -> None:
    week = by_hour_of_week(clock)
    share = week / week.mean()
    # One burst must not make all other hours dark.
    brightest = max(float(np.quantile(share, 0.985)), 1.5)
    image = axes.imshow(share, cmap=HEAT, aspect="auto", vmin=0, vmax=brightest)
    names = WEEKDAYS if clock.has_dates else tuple(f"day {day}" for day in range(1, 8))
    axes.set_yticks(range(7), names)
    axes.set_xticks(range(0, 24, 6), [f"{hour} h" for hour in range(0, 24, 6)])
    axes.grid(visible=False)
    zone = (clock.zone or "UTC") if clock.has_dates else "from the first job"
    axes.set_title(f"Submissions, {zone}")
    extend = "max" if share.max() > brightest else "neither"
    bar = figure.colorbar(image, ax=axes, shrink=0.9, extend=extend)
    bar.set_label("1 = mean of the week")
    bar.outline.set_visible(False)
