"""Gantt: which job held which GPU when, node by node, around the time of the longest queue."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.evaluate.metrics.job_table import job_table
from berthline.evaluate.metrics.stretches import stretches
from berthline.model.schedule import WHOLE_GPUS
from berthline.model.workload import WHOLE_GPU
from berthline.number_text import duration
from berthline.report.figures.axes import (
    DURATIONS,
    duration_ticks,
    in_style,
    new_figure,
    twin_layout,
    twin_menu,
)
from berthline.report.figures.layout import SMALL, is_narrow
from berthline.report.figures.lineup import short_names
from berthline.report.figures.page_picture import ON_DARK
from berthline.report.figures.timeline import gpus_held, jobs_waiting, time_edges

if TYPE_CHECKING:
    import polars as pl

    from berthline.model.cluster import Cluster
    from berthline.model.schedule import Schedule
    from berthline.model.workload import Workload
    from berthline.report.figures.lineup import Lineup
    from berthline.report.run_results import RunResults

MOST_POLICIES = 3
MOST_GPUS = 128
MOST_STRETCHES = 500
"""Largest number of stretches shown, in the first log; more would be too narrow to see."""
MOST_LINES = 32
"""With more nodes, the lines between them would hide what is idle."""
WAITED = "cividis_r"
"""Colour map: the longer a job waited before it started, the darker it is."""


def data(run: RunResults) -> pl.DataFrame:
    """Return which job held which GPUs when, for the baseline and the leaders, in the first window.

    The log has the number of GPUs of a node that a job held, not which. So each job gets the lowest
    free ones, side by side if possible. A job on part of a GPU takes a part of a row.

    Returns:
        Columns scheduler, job, node, gpu (the first), gpus (number from there on), begin, stop,
        wait (seconds before the first start); one row for each block of neighbouring GPUs. In
        every row of a node: node_gpus; in every row: shown_gpus (of the nodes shown), cluster_gpus
        (of all nodes).
    """
    import polars as pl

    names = [name for name in run.lineup.highlighted if name in run.logs][:MOST_POLICIES]
    begin, stop = busiest_time(run, names[0])
    nodes = nodes_shown(run.cluster)
    sizes = dict(enumerate(run.cluster.gpus[:nodes].tolist()))
    return pl.concat(
        gpu_blocks(run.logs[name], run.workload, run.cluster, begin, stop, nodes).select(
            pl.lit(name).alias("scheduler"),
            pl.all(),
            pl.col("node").replace_strict(sizes, return_dtype=pl.Int64).alias("node_gpus"),
            pl.lit(int(run.cluster.gpus[:nodes].sum())).alias("shown_gpus"),
            pl.lit(run.cluster.total_gpus).alias("cluster_gpus"),
        )
        for name in names
    )


def busiest_time(run: RunResults, scheduler: str) -> tuple[float, float]:
    """Return a time span around the longest queue, short enough to show single jobs."""
    log = run.logs[scheduler]
    edges = time_edges(run)
    # Without waiting jobs, the time when most GPUs are in use.
    used = gpus_held(log, run.workload, edges) / run.cluster.total_gpus
    peak = int(np.argmax(jobs_waiting(log, edges) + used))
    middle = float(edges[peak] + edges[peak + 1]) / 2
    ran = stretches(log, job_table(log, run.workload))
    first, last = float(edges[0]), float(edges[-1])
    if len(ran.begin) <= MOST_STRETCHES:
        return first, last
    width = last - first
    while width > 1.0:
        begin = min(max(middle - width / 2, first), last - width)
        within = np.count_nonzero((ran.stop > begin) & (ran.begin < begin + width))
        if within <= MOST_STRETCHES:
            break
        width *= 0.8
    return begin, begin + width


def nodes_shown(cluster: Cluster) -> int:
    """Return how many nodes, from the first on, can be shown: up to MOST_GPUS GPUs in total."""
    total = np.cumsum(cluster.gpus)
    return max(int(np.searchsorted(total, MOST_GPUS, side="right")), 1)


def rows_text(frame: pl.DataFrame) -> str:
    """Return what the rows of the chart are: all GPUs, or the first ones."""
    shown, all_gpus = (int(frame[key][0]) for key in ("shown_gpus", "cluster_gpus"))
    if shown == all_gpus:
        return f"one row for each of the {all_gpus:,} GPUs"
    return f"only the first {shown:,} of {all_gpus:,} GPUs, one row for each"


def gpu_blocks(
    log: Schedule, workload: Workload, cluster: Cluster, begin: float, stop: float, nodes: int
) -> pl.DataFrame:
    """Return the blocks of neighbouring GPUs that jobs held between two times; see `data`."""
    import polars as pl

    table = job_table(log, workload)
    ran = stretches(log, table)
    # A stretch that ends at the first instant shown, or has length 0, is invisible.
    chosen = np.flatnonzero((ran.stop > begin) & (ran.begin < stop) & (ran.stop > ran.begin))
    chosen = chosen[np.argsort(ran.begin[chosen], kind="stable")]
    free = [list(range(int(gpus))) for gpus in cluster.gpus[:nodes]]
    shared: dict[tuple[int, int], _Shared] = {}
    running: list[tuple[float, int, int, list[int], int]] = []
    rows: list[tuple[int, int, float, float, float, float, float]] = []
    for number, stretch in enumerate(chosen.tolist()):
        starts, ends = float(ran.begin[stretch]), float(ran.stop[stretch])
        while running and running[0][0] <= starts:
            _, owner, node, slots, slot = heapq.heappop(running)
            if slot == WHOLE_GPUS:
                free[node] = sorted(free[node] + slots)
            elif shared[node, slot].leave(owner):
                free[node] = sorted([*free[node], shared.pop((node, slot)).gpu])
        job = int(ran.job[stretch])
        waited = float(table.start[job] - workload.submit[job])
        for row in range(int(ran.first[stretch]), int(ran.first[stretch + 1])):
            node, count = int(log.alloc_node[row]), int(log.alloc_gpus[row])
            slot = int(log.alloc_slot[row])
            if node >= nodes or count == 0:
                continue
            if slot == WHOLE_GPUS:
                slots = side_by_side(free[node], count)
                free[node] = [gpu for gpu in free[node] if gpu not in slots]
                blocks = [(float(first), float(size)) for first, size in runs_of(slots)]
            else:
                if (node, slot) not in shared:
                    shared[node, slot] = _Shared(free[node].pop(0))
                part = int(workload.gpu_milli[job]) / WHOLE_GPU
                slots, blocks = [], [(shared[node, slot].enter(number, part), part)]
            heapq.heappush(running, (ends, number, node, slots, slot))
            rows += [
                (job, node, gpu, size, max(starts, begin), min(ends, stop), waited)
                for gpu, size in blocks
            ]
    return pl.DataFrame(
        rows,
        schema={
            "job": pl.Int64,
            "node": pl.Int64,
            **dict.fromkeys(("gpu", "gpus", "begin", "stop", "wait"), pl.Float64),
        },
        orient="row",
    )


class _Shared:
    """A GPU shared by several jobs."""

    def __init__(self, gpu: int) -> None:
        self.gpu = gpu
        self.parts: dict[int, tuple[float, float]] = {}

    def enter(self, owner: int, part: float) -> float:
        """Add a part at the lowest place where it fits, and return that place."""
        at = 0.0
        for begin, size in sorted(self.parts.values()):
            if begin - at >= part - 1e-9:
                break
            at = max(at, begin + size)
        at = min(at, 1.0 - part)
        self.parts[owner] = (at, part)
        return self.gpu + at

    def leave(self, owner: int) -> bool:
        """Remove a part; return whether the GPU is free again."""
        del self.parts[owner]
        return not self.parts


def side_by_side(free: list[int], count: int) -> list[int]:
    """Return the GPUs to take: the lowest block that is large enough, else the lowest GPUs.

    Example:
        >>> side_by_side([0, 2, 3, 5], 2), side_by_side([0, 2, 4], 2)
        ([2, 3], [0, 2])
    """
    for first, size in runs_of(free):
        if size >= count:
            return list(range(first, first + count))
    return free[:count]


def runs_of(numbers: list[int]) -> list[tuple[int, int]]:
    """Return ascending numbers as runs of consecutive numbers: (first, length).

    Example:
        >>> runs_of([1, 2, 3, 7])
        [(1, 3), (7, 1)]
    """
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and number == sum(found[-1]):
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((number, 1))
    return found


def draw(frame: pl.DataFrame, lineup: Lineup) -> Any:  # noqa: ARG001 - the same for all kinds
    """Return the figure: a panel for each scheduler, a row for each GPU, white where it idles."""
    return in_style(lambda: _draw(frame))


def _draw(frame: pl.DataFrame) -> Any:
    import polars as pl
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm

    names = list(dict.fromkeys(frame["scheduler"].to_list()))
    first, total = gpu_rows(frame)
    tall = min(max(1.6, 0.03 * total + 0.6), 2.7)
    figure = new_figure(11.0, 0.8 + tall * len(names), narrow_height=1.3 + tall * len(names))
    panels = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
    longest = max(float(frame["wait"].max() or 0.0), 3600.0)  # type: ignore[arg-type]
    colours = ScalarMappable(LogNorm(60.0, longest), WAITED)
    begin, stop = float(frame["begin"].min()), float(frame["stop"].max())  # type: ignore[arg-type]
    for axes, name in zip(panels, names, strict=True):
        mine = frame.filter(pl.col("scheduler") == name)
        _draw_blocks(axes, mine, first, colours)
        for edge in first.values() if len(first) <= MOST_LINES else ():
            axes.axhline(edge, color="#9A9A9A", linewidth=0.5, zorder=3)
        axes.set_facecolor(ON_DARK)  # idle is white in dark mode too: the longest waits are dark
        axes.set_xlim(begin / 3600, stop / 3600)
        axes.set_ylim(total, 0)
        marks = [(node, row) for node, row in first.items() if node % max(len(first) // 8, 1) == 0]
        axes.set_yticks([row for _, row in marks], [f"node {node}" for node, _ in marks])
        axes.tick_params(axis="y", labelsize=SMALL)
        axes.grid(visible=False)
        axes.set_title(short_names([name], 100)[name])
    panels[-1].set_xlabel(f"hours since the start of the window; {rows_text(frame)}; white = idle")
    where = {"location": "bottom"} if is_narrow() else {"pad": 0.01, "shrink": 0.9}
    bar = figure.colorbar(colours, ax=list(panels), aspect=40, **where)
    marks_of_time = duration_ticks(60.0, longest, apart=0.15)
    bar.set_ticks([at for at, _ in marks_of_time], labels=[text for _, text in marks_of_time])
    bar.minorticks_off()
    bar.set_label("wait before the start")
    bar.outline.set_visible(False)
    return figure


def _draw_blocks(axes: Any, mine: pl.DataFrame, first: dict[int, float], colours: Any) -> None:
    from matplotlib.collections import PolyCollection

    left, right = mine["begin"].to_numpy() / 3600, mine["stop"].to_numpy() / 3600
    rows = np.array([first[node] for node in mine["node"].to_list()])
    top = rows + mine["gpu"].to_numpy()
    bottom = top + mine["gpus"].to_numpy()
    corners = np.stack(
        [
            np.stack([left, top], axis=1),
            np.stack([right, top], axis=1),
            np.stack([right, bottom], axis=1),
            np.stack([left, bottom], axis=1),
        ],
        axis=1,
    )
    shade = colours.to_rgba(np.clip(mine["wait"].to_numpy(), 60.0, None))
    axes.add_collection(
        PolyCollection(
            list(corners), facecolors=shade, edgecolors=ON_DARK, linewidths=0.35, rasterized=True
        )
    )


def gpu_rows(frame: pl.DataFrame) -> tuple[dict[int, float], float]:
    """Return the row at which each node begins, and the number of rows: one for each GPU shown."""
    sizes = frame.select("node", "node_gpus").unique().sort("node")
    largest = float(sizes["node_gpus"].max() or 1.0)  # type: ignore[arg-type]
    last = int(sizes["node"].max() or 0)  # type: ignore[arg-type]
    size_of = dict(sizes.iter_rows())
    first: dict[int, float] = {}
    row = 0.0
    for node in range(last + 1):
        first[node] = row
        row += float(size_of.get(node, largest))
    return first, max(row, float(frame["shown_gpus"][0]))


def interactive(frame: pl.DataFrame, lineup: Lineup) -> dict[str, Any]:
    """Return the figure for plotly: one scheduler at a time, chosen above it."""
    import polars as pl

    first, total = gpu_rows(frame)
    marks = [(node, row) for node, row in first.items() if node % max(len(first) // 16, 1) == 0]
    names = list(dict.fromkeys(frame["scheduler"].to_list()))
    traces: list[dict[str, Any]] = []
    for place, name in enumerate(names):
        mine = frame.filter(pl.col("scheduler") == name)
        rows = [first[node] for node in mine["node"].to_list()]
        middle = [
            row + gpu + gpus / 2
            for row, gpu, gpus in zip(rows, mine["gpu"], mine["gpus"], strict=True)
        ]
        waits = mine["wait"].to_list()
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": lineup.names[name],
                "visible": place == len(names[:2]) - 1,
                "base": [round(value / 3600, 3) for value in mine["begin"]],
                "x": [
                    round((stop - begin) / 3600, 3)
                    for begin, stop in zip(mine["begin"], mine["stop"], strict=True)
                ],
                "y": middle,
                "width": mine["gpus"].to_list(),
                "marker": {
                    "color": [round(float(np.log10(max(wait, 60.0))), 2) for wait in waits],
                    "colorscale": "Cividis",
                    "reversescale": True,
                    "line": {"color": ON_DARK, "width": 0.4},
                    "colorbar": {
                        "title": {"text": "waited"},
                        "tickvals": [np.log10(at) for at, _ in DURATIONS if at >= 60],
                        "ticktext": [text for at, text in DURATIONS if at >= 60],
                    },
                },
                "text": [
                    f"job {job} on node {node}, {gpus:g} GPU{'s' if gpus > 1 else ''}, waited "
                    f"{duration(wait)}"
                    for job, node, gpus, wait in zip(
                        mine["job"], mine["node"], mine["gpus"], waits, strict=True
                    )
                ],
                "textposition": "none",
                "hovertemplate": "%{text}<extra></extra>",
            }
        )
    buttons = [
        {
            "label": lineup.names[name],
            "method": "restyle",
            "args": ["visible", [other == name for other in names]],
        }
        for name in names
    ]
    menu = twin_menu(buttons, active=len(names[:2]) - 1, y=1.16)
    return {
        "data": traces,
        "layout": twin_layout(
            showlegend=False,
            barmode="overlay",
            plot_bgcolor=ON_DARK,
            xaxis={
                "title": {"text": f"hours since the start of the window; {rows_text(frame)}"},
                "range": [min(frame["begin"]) / 3600, max(frame["stop"]) / 3600],
            },
            yaxis={
                "range": [total, 0],
                "tickvals": [row for _, row in marks],
                "ticktext": [f"node {node}" for node, _ in marks],
                "automargin": True,
            },
            updatemenus=[menu],
            height=560,
        ),
    }
