"""Curves of a suite: utilisation against GPUs, the distribution of JCT, and what runs cost."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.report.figures.axes import (
    duration_axis,
    in_style,
    legend_below,
    panels_in_a_row,
    plain_line,
)
from berthline.report.figures.layout import SMALL
from berthline.report.run_results import NotShown
from berthline.runs.job_tables import STATES
from berthline.runs.run_layout import JOBS

if TYPE_CHECKING:
    import polars as pl

    from berthline.report.figures.lineup import Lineup
    from berthline.report.suites.shown_suite import ShownSuite

LEVELS = np.concatenate([np.linspace(0, 0.99, 100), np.linspace(0.991, 1.0, 10)])
"""Shares of jobs at which a distribution is kept."""


def use_data(suite: ShownSuite) -> pl.DataFrame:
    """Return the mean utilisation of each scheduler, by intensity and GPUs.

    Returns:
        Columns scheduler, intensity, gpus, utilization.

    Raises:
        NotShown: the cells have fewer than three numbers of GPUs.
    """
    import polars as pl

    if suite.clean["gpus"].n_unique() < FEWEST:
        raise NotShown("the cells have fewer than three numbers of GPUs")
    return (
        suite.clean.group_by("label", "intensity", "gpus", maintain_order=True)
        .agg(utilization=pl.col("utilization_gpu").mean())
        .rename({"label": "scheduler"})
        .sort("scheduler", "gpus", maintain_order=True)
    )


def draw_use(frame: pl.DataFrame, lineup: Lineup) -> Any:
    """Return the figure: a panel for each intensity."""
    return in_style(lambda: _draw_use(frame, lineup))


def _draw_use(frame: pl.DataFrame, lineup: Lineup) -> Any:
    import polars as pl

    known = ("low", "medium", "high", "super-high")
    found = frame["intensity"].unique().to_list()
    levels = [name for name in known if name in found] or found
    figure, panels = panels_in_a_row(10.0, 3.7, len(levels), narrow_panel=2.5, sharey=True)
    gpus = sorted(frame["gpus"].unique().to_list())
    for axes, level in zip(panels, levels, strict=True):
        for name in lineup.by_weight:
            mine = frame.filter((pl.col("scheduler") == name) & (pl.col("intensity") == level))
            plain_line(axes, mine["gpus"], 100 * mine["utilization"], lineup.looks[name])
        axes.set_xscale("log")
        axes.set_xticks(gpus, [str(count) for count in gpus])
        axes.minorticks_off()
        axes.set_ylim(0, 103)
        axes.set_title(f"{level} intensity" if level else "GPUs in use, %")
        axes.set_xlabel("GPUs", fontsize=SMALL)
    panels[0].set_ylabel("GPU-seconds in use, %", fontsize=SMALL)
    legend_below(figure, lineup)
    return figure


def cdf_data(suite: ShownSuite) -> pl.DataFrame:
    """Return the distribution of JCT over the completed jobs of all clean cells.

    Returns:
        Columns scheduler, share, seconds.

    Raises:
        NotShown: the suite has no table of jobs.
    """
    import polars as pl

    path = suite.run.path / JOBS
    if not path.is_file():
        raise NotShown("the suite keeps no table of jobs")
    cells = list(dict.fromkeys(suite.cells["cell"].to_list()))
    clean = [number for number, cell in enumerate(cells) if cell in set(suite.clean_cells)]
    jobs = (
        pl.scan_parquet(path)
        .filter(pl.col("cell").is_in(clean) & (pl.col("state") == STATES[0]))
        .select("scheduler", "jct")
        .collect()
    )
    # Policies trained several times are PART#SEED there.
    jobs = jobs.with_columns(pl.col("scheduler").cast(pl.String).str.replace(r"#\d+$", ""))
    parts = []
    for name in suite.schedulers:
        values = np.sort(jobs.filter(pl.col("scheduler") == name)["jct"].to_numpy())
        if not len(values):
            continue
        at = np.maximum(np.ceil(LEVELS * len(values) - 1e-9).astype(np.int64) - 1, 0)
        seconds = values[at].astype(np.float64)
        parts.append(
            pl.DataFrame({"scheduler": [name] * len(LEVELS), "share": LEVELS, "seconds": seconds})
        )
    if not parts:
        raise NotShown("no job was completed")
    return pl.concat(parts)


def draw_cdf(frame: pl.DataFrame, lineup: Lineup) -> Any:
    """Return the figure: all jobs, and the tail."""
    return in_style(lambda: _draw_cdf(frame, lineup))


def _draw_cdf(frame: pl.DataFrame, lineup: Lineup) -> Any:
    import polars as pl

    figure, panels = panels_in_a_row(10.0, 4.0, 2, narrow_panel=2.6)
    least = max(float(frame["seconds"].min() or 1.0), 1.0)  # type: ignore[arg-type]
    most = 1.1 * max(float(frame["seconds"].max() or 1.0), 2 * least)  # type: ignore[arg-type]
    begin = most
    for name in lineup.by_weight:
        mine = frame.filter(pl.col("scheduler") == name)
        if not len(mine):
            continue
        seconds, share = mine["seconds"].to_numpy(), mine["share"].to_numpy()
        look = lineup.looks[name]
        plain_line(panels[0], np.maximum(seconds, least), 100 * share, look)
        tail = (share >= 0.9) & (share < 1)
        begin = min(begin, float(seconds[tail].min()))
        plain_line(panels[1], seconds[tail], 100 * (1 - share[tail]), look)
    duration_axis(panels[0].xaxis, least, most)
    panels[0].set_ylim(0, 101)
    panels[0].set_title("Jobs with a JCT up to, %")
    panels[1].set_yscale("log")
    panels[1].set_yticks([10, 5, 2, 1, 0.5, 0.2, 0.1], ["10", "5", "2", "1", "0.5", "0.2", "0.1"])
    panels[1].minorticks_off()
    duration_axis(panels[1].xaxis, max(begin, 1.0), most)
    panels[1].set_title("The tail: jobs with a longer JCT, %")
    for axes in panels:
        axes.tick_params(axis="x", labelsize=SMALL)
    legend_below(figure, lineup)
    return figure


AXES = {
    "num_jobs": "jobs",
    "nodes": "nodes",
    "queue_mean": "waiting jobs, mean",
}
"""What runs get more expensive with."""
FEWEST = 3
"""Values of an axis for a curve and its slope."""


def cost_data(suite: ShownSuite) -> pl.DataFrame:
    """Return CPU time and memory of runs against what they get more expensive with.

    Formula: medians over seeds. A value belongs to an axis if all other axes of its cell are those
    of at least three cells. The slope is that of ln(CPU seconds) over ln(axis), by least squares:
    1 = in proportion.

    Returns:
        Columns scheduler, axis, line (the cells' other axes), at, cpu_seconds, peak_mb, slope.

    Raises:
        NotShown: costs are not measured in this suite.
    """
    import polars as pl

    if "cpu_seconds" not in suite.clean.columns:
        raise NotShown("this suite does not measure costs")
    nodes = {name: _nodes_of(name) for name in suite.clean["cluster"].unique()}
    cells = (
        suite.clean.with_columns(
            nodes=pl.col("cluster").replace_strict(nodes, return_dtype=pl.Float64)
        )
        .group_by("label", "cell", maintain_order=True)
        .agg(
            pl.col("workload", "cluster", "load", "nodes").first(),
            pl.col("num_jobs", "cpu_seconds", "peak_mb", "queue_mean").median(),
        )
    )
    rows = []
    others = {
        "num_jobs": ("workload", "cluster", "load"),
        "nodes": ("workload", "num_jobs"),
        "queue_mean": ("workload", "cluster", "num_jobs"),
    }
    for name, axis in itertools.product(suite.schedulers, AXES):
        mine = cells.filter(pl.col("label") == name)
        for values, line in mine.group_by(*others[axis], maintain_order=True):
            points = line.filter(pl.col(axis) > 0).sort(axis)
            if points[axis].n_unique() < FEWEST or (points["cpu_seconds"] <= 0).any():
                continue
            slope = float(np.polyfit(np.log(points[axis]), np.log(points["cpu_seconds"]), 1)[0])
            words = ", ".join(str(value) for value in values if value is not None)
            rows += [
                (name, axis, words, float(at), float(seconds), float(peak or math.nan), slope)
                for at, seconds, peak in points.select(axis, "cpu_seconds", "peak_mb").iter_rows()
            ]
    if not rows:
        raise NotShown("no axis of the suite has three values")
    names = ("scheduler", "axis", "line", "at", "cpu_seconds", "peak_mb", "slope")
    return pl.DataFrame(rows, schema=list(names), orient="row")


def draw_costs(frame: pl.DataFrame, lineup: Lineup) -> Any:
    """Return the figure: CPU time and memory, a panel for each axis."""
    return in_style(lambda: _draw_costs(frame, lineup))


def _draw_costs(frame: pl.DataFrame, lineup: Lineup) -> Any:
    import polars as pl

    axes_shown = [axis for axis in AXES if axis in frame["axis"].unique().to_list()]
    panels_of = [(axis, what) for axis in axes_shown for what in ("cpu_seconds", "peak_mb")]
    figure, panels = panels_in_a_row(3.6 * len(panels_of), 3.9, len(panels_of), narrow_panel=2.5)
    titles = {"cpu_seconds": "CPU seconds of a run", "peak_mb": "Peak memory, MB"}
    for panel, (axis, what) in zip(panels, panels_of, strict=True):
        for name in lineup.by_weight:
            mine = frame.filter((pl.col("scheduler") == name) & (pl.col("axis") == axis))
            for _, line in mine.group_by("line", maintain_order=True):
                look = lineup.looks[name]
                plain_line(panel, line["at"], line[what], look, marker=look.marker, markersize=3.5)
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_xlabel(AXES[axis], fontsize=SMALL)
        panel.set_title(titles[what])
        panel.tick_params(labelsize=SMALL)
    legend_below(figure, lineup)
    return figure


def _nodes_of(cluster: str) -> float:
    from berthline.errors import BerthlineError
    from berthline.model.cluster import Cluster

    try:
        return float(Cluster.parse(cluster).num_nodes)
    except BerthlineError:  # a file that has moved since
        return math.nan
