"""Gantt difference: where and when the best scheduler held GPUs that the baseline did not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from berthline.evaluate.metrics.job_table import job_table
from berthline.evaluate.metrics.stretches import shares, stretches
from berthline.model.schedule import FINISH
from berthline.palette import BLUE, INK
from berthline.report.figures.axes import in_style, new_figure
from berthline.report.figures.layout import is_narrow
from berthline.report.figures.timeline import ramp, time_edges
from berthline.report.run_results import NotShown

if TYPE_CHECKING:
    import polars as pl

    from berthline.model.cluster import Cluster
    from berthline.model.schedule import Schedule
    from berthline.model.workload import FloatColumn, Workload
    from berthline.report.figures.lineup import Lineup
    from berthline.report.run_results import RunResults

BINS = 160
DIVERGING = "PuOr_r"
"""Purple to orange, white in the middle: distinguishable with any kind of colour vision."""
MOST_ROWS = 64
"""With more nodes than this, neighbours share a row."""


def data(run: RunResults) -> pl.DataFrame:
    """Return the GPUs held on each node over time, under the best scheduler and the baseline.

    Returns:
        Columns scheduler (the best by mean JCT), baseline, row (a node, or several neighbours),
        hours, held, held_by_baseline (mean GPUs), gpus (of the row), finished,
        finished_by_baseline (jobs by then, the same in every row).

    Raises:
        NotShown: there is no second scheduler.
    """
    import polars as pl

    best = next((name for name in run.lineup.leaders if name in run.logs), None)
    if best is None or run.baseline not in run.logs:
        raise NotShown("there is one scheduler, and nothing to compare it with")
    edges = time_edges(run, BINS)
    cluster = run.cluster
    group = np.arange(cluster.num_nodes) * min(MOST_ROWS, cluster.num_nodes) // cluster.num_nodes
    held, finished = {}, {}
    for name in (best, run.baseline):
        of_nodes = held_on_nodes(run.logs[name], run.workload, cluster, edges)
        held[name] = np.add.reduceat(of_nodes, np.flatnonzero(np.diff(group, prepend=-1)))
        log = run.logs[name]
        finished[name] = np.searchsorted(log.time[log.kind == FINISH], edges[1:], side="right")
    rows = len(held[best])
    gpus = np.bincount(group, cluster.gpus, minlength=rows)
    return pl.DataFrame(
        {
            "scheduler": [best] * (rows * BINS),
            "baseline": [run.baseline] * (rows * BINS),
            "row": np.repeat(np.arange(rows), BINS),
            "hours": np.tile(edges[1:] / 3600, rows),
            "held": held[best].ravel(),
            "held_by_baseline": held[run.baseline].ravel(),
            "gpus": np.repeat(gpus, BINS),
            "finished": np.tile(finished[best], rows),
            "finished_by_baseline": np.tile(finished[run.baseline], rows),
        }
    )


def held_on_nodes(
    log: Schedule, workload: Workload, cluster: Cluster, edges: FloatColumn
) -> npt.NDArray[np.float64]:
    """Return the mean number of GPUs held on each node between edges, (num_nodes, bins)."""
    total = np.zeros((cluster.num_nodes, len(edges)))
    for part in shares(log, workload, stretches(log, job_table(log, workload))):
        order = np.argsort(part.node, kind="stable")
        cuts = np.searchsorted(part.node[order], np.arange(cluster.num_nodes + 1))
        for node in np.flatnonzero(np.diff(cuts)).tolist():
            mine = order[cuts[node] : cuts[node + 1]]
            total[node] += ramp(part.begin[mine], part.amount[mine], edges)
            total[node] -= ramp(part.stop[mine], part.amount[mine], edges)
    found: npt.NDArray[np.float64] = np.diff(total) / np.diff(edges)
    return found


def draw(frame: pl.DataFrame, lineup: Lineup) -> Any:
    """Return the figure: nodes over time, and below the difference in finished jobs."""
    return in_style(lambda: _draw(frame, lineup))


def _draw(frame: pl.DataFrame, lineup: Lineup) -> Any:
    best, baseline = (lineup.names[frame[key][0]] for key in ("scheduler", "baseline"))
    rows = frame["row"].n_unique()
    hours = frame["hours"].to_numpy()[:BINS]
    share = (frame["held"] - frame["held_by_baseline"]).to_numpy() / frame["gpus"].to_numpy()
    height = 2.6 + min(max(0.14 * rows, 1.2), 4.0)
    figure = new_figure(11.0, height, narrow_height=height + 0.8)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(max(rows / 10, 1.2), 1.0))
    begin = float(hours[0] - (hours[1] - hours[0]))
    image = upper.imshow(
        100 * share.reshape(rows, BINS),
        cmap=DIVERGING,
        vmin=-100,
        vmax=100,
        aspect="auto",
        interpolation="nearest",
        extent=(begin, float(hours[-1]), rows - 0.5, -0.5),
    )
    upper.set_title(
        f"GPUs held, % of a node: orange = more under {best}, purple = more under {baseline}"
    )
    upper.set_ylabel("node" if rows < MOST_ROWS else "nodes")
    upper.yaxis.get_major_locator().set_params(integer=True)
    upper.grid(visible=False)
    below = {"location": "bottom", "aspect": 30} if is_narrow() else {"pad": 0.01}
    bar = figure.colorbar(image, ax=upper, **below)
    bar.outline.set_visible(False)
    ahead = (frame["finished"] - frame["finished_by_baseline"]).to_numpy()[:BINS]
    lower.fill_between(hours, ahead, color=BLUE, alpha=0.35, step="pre", linewidth=0)
    lower.step(hours, ahead, color=BLUE, linewidth=1.2)
    lower.axhline(0, color=INK, linewidth=0.8)
    lower.set_title(f"Jobs finished so far: {best} minus {baseline}")
    lower.set_xlabel("hours since the start of the window")
    lower.set_xlim(begin, float(hours[-1]))
    return figure
