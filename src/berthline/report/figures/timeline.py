"""GPUs in use and jobs waiting over time, in the first window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.evaluate.metrics.job_table import job_table
from berthline.evaluate.metrics.stretches import shares, stretches
from berthline.model.schedule import PREEMPT, REJECT, SUBMIT
from berthline.report.figures.axes import (
    in_style,
    legend_below,
    new_figure,
    plain_line,
    twin_layout,
    twin_line,
)

if TYPE_CHECKING:
    import polars as pl

    from berthline.model.schedule import Schedule
    from berthline.model.workload import FloatColumn, Workload
    from berthline.report.figures.lineup import Lineup
    from berthline.report.run_results import RunResults

BINS = 200
MARK_EVERY = 25
"""Bins between the markers of a line."""
TWIN_LEAST = 0.5
"""Jobs waiting; fewer are drawn here on a logarithmic axis, which has no zero."""
DRAINING = 0.1
"""Time shown after the last submission, as a share of the time before it: the last job alone may
run for days."""


def data(run: RunResults) -> pl.DataFrame:
    """Return the share of GPUs held and the number of waiting jobs, as means over short bins.

    Returns:
        Columns scheduler, hours (the middle of the bin), utilization (0 to 1), queue.
    """
    import polars as pl

    workload, cluster, logs = run.workload, run.cluster, run.logs
    edges = time_edges(run)
    middle = (edges[1:] + edges[:-1]) / 2 / 3600
    parts = [
        pl.DataFrame(
            {
                "scheduler": [name] * len(middle),
                "hours": middle,
                "utilization": gpus_held(logs[name], workload, edges) / cluster.total_gpus,
                "queue": jobs_waiting(logs[name], edges),
            }
        )
        for name in run.schedulers
        if name in logs
    ]
    return pl.concat(parts)


def time_edges(run: RunResults, bins: int = BINS) -> FloatColumn:
    """Return the edges of the bins, from the beginning of the run on.

    Of a run that began in the middle, what happened before is not complete.
    """
    start = run.run.start
    begin = 0.0 if start is None else start.now
    last_submit = float(run.workload.submit[-1])
    end = max(float(log.time[-1]) for log in run.logs.values())
    shown = min(end, begin + (1 + DRAINING) * (last_submit - begin)) if last_submit > begin else end
    return np.linspace(begin, shown if shown > begin else begin + 1.0, bins + 1)


def gpus_held(log: Schedule, workload: Workload, edges: FloatColumn) -> FloatColumn:
    """Return the mean number of GPUs held between edges."""
    table = job_table(log, workload)
    total = np.zeros(len(edges))
    for part in shares(log, workload, stretches(log, table)):
        total += ramp(part.begin, part.amount, edges)
        total -= ramp(part.stop, part.amount, edges)
    return np.diff(total) / np.diff(edges)


def jobs_waiting(log: Schedule, edges: FloatColumn) -> FloatColumn:
    """Return the mean number of waiting jobs between edges."""
    change = np.zeros(len(log))
    change[(log.kind == SUBMIT) | (log.kind == PREEMPT)] = 1.0
    change[log.is_start | (log.kind == REJECT)] = -1.0
    return np.diff(ramp(log.time, change, edges)) / np.diff(edges)


def ramp(time: FloatColumn, amount: FloatColumn, at: FloatColumn) -> FloatColumn:
    """Return the integral, up to each of `at`, of a step function that changes by `amount`.

    Formula: sum of amount x (at - time) over the changes before `at`; one pass over sorted times.
    """
    order = np.argsort(time, kind="stable")
    time, amount = time[order], amount[order]
    sums = np.concatenate([[0.0], np.cumsum(amount)])
    moments = np.concatenate([[0.0], np.cumsum(amount * time)])
    place = np.searchsorted(time, at)
    found: FloatColumn = sums[place] * at - moments[place]
    return found


def draw(frame: pl.DataFrame, lineup: Lineup) -> Any:
    """Return the figure: utilisation above, queue below."""
    return in_style(lambda: _draw(frame, lineup))


def _draw(frame: pl.DataFrame, lineup: Lineup) -> Any:
    figure = new_figure(10.0, 5.0, narrow_height=5.6)
    upper, lower = figure.subplots(2, 1, sharex=True)
    for place, (name, mine) in enumerate(_each(frame, lineup)):
        look = lineup.looks[name]._replace(line="-")
        thin = look._replace(width=min(look.width, 1.4))
        # Markers tell the lines apart without colour; each line has its own at other places.
        marks = {"marker": look.marker, "markersize": 4, "markevery": (3 * place, MARK_EVERY)}
        more = marks if look.stands_out else {}
        hours = mine["hours"].to_numpy()
        plain_line(upper, hours, 100 * mine["utilization"].to_numpy(), thin, **more)
        plain_line(lower, hours, mine["queue"].to_numpy(), thin, **more)
    upper.set_ylim(0, 103)
    upper.set_title("GPUs in use, %")
    if _one_towers(frame):
        lower.set_yscale("symlog", linthresh=10)
        lower.set_yticks([0, 10, 100, 1000, 10_000], ["0", "10", "100", "1,000", "10,000"])
    lower.set_ylim(0, 1.05 * float(frame["queue"].max() or 1.0))  # type: ignore[arg-type]
    lower.set_title("Jobs waiting" + (" (logarithmic above 10)" if _one_towers(frame) else ""))
    lower.set_xlabel("hours since the start of the window")
    hours = frame["hours"].to_numpy()
    # The edge of the first bin: a run that began in the middle has nothing before.
    begin = max(float(hours[0] - (hours[1] - hours[0]) / 2), 0.0)
    lower.set_xlim(begin, float(hours.max() or 1.0))
    legend_below(figure, lineup._replace(looks=_solid(lineup)), markers=True)
    return figure


def interactive(frame: pl.DataFrame, lineup: Lineup) -> dict[str, Any]:
    """Return the figure for plotly."""
    traces = []
    for name, mine in _each(frame, lineup):
        look = lineup.looks[name]
        least = TWIN_LEAST if _one_towers(frame) else 0.0
        for column, axis, scale in (("utilization", "y2", 100.0), ("queue", "y", 1.0)):
            values = scale * mine[column].to_numpy()
            traces.append(
                twin_line(
                    lineup.names[name],
                    mine["hours"].to_list(),
                    (np.maximum(values, least) if column == "queue" else values).tolist(),
                    look,
                    yaxis=axis,
                    showlegend=axis == "y2",
                    hovertemplate="%{y:.4g} at %{x:.1f} h",
                )
            )
    grid = {"gridcolor": "#E3E3E3", "rangemode": "tozero"}
    return {
        "data": traces,
        "layout": twin_layout(
            height=560,
            xaxis={"title": {"text": "hours since the start of the window"}, "anchor": "y"},
            yaxis={"title": {"text": "jobs waiting"}, "domain": [0, 0.46], **_twin_queue(frame)},
            yaxis2={"title": {"text": "GPUs in use, %"}, "domain": [0.54, 1], **grid},
        ),
    }


def _twin_queue(frame: pl.DataFrame) -> dict[str, Any]:
    """Return the axis of the queue for plotly: logarithmic if one queue towers over the others."""
    if not _one_towers(frame):
        return {"gridcolor": "#E3E3E3", "rangemode": "tozero"}
    ticks = [10**power for power in range(7)]
    return {
        "type": "log",
        "gridcolor": "#E3E3E3",
        "tickvals": ticks,
        "ticktext": [f"{tick:,}" for tick in ticks],
    }


def _each(frame: pl.DataFrame, lineup: Lineup) -> list[tuple[str, pl.DataFrame]]:
    import polars as pl

    found = [(name, frame.filter(pl.col("scheduler") == name)) for name in lineup.by_weight]
    return [(name, mine) for name, mine in found if len(mine)]


def _one_towers(frame: pl.DataFrame) -> bool:
    """Whether one queue is so long that all others would look flat."""
    import polars as pl

    peaks = frame.group_by("scheduler").agg(pl.col("queue").max())["queue"].to_numpy()
    return bool(peaks.max() > 10 * max(float(np.median(peaks)), 1.0))


def _solid(lineup: Lineup) -> dict[str, Any]:
    """Return the looks with solid lines: dashes are hard to see in a jagged curve."""
    return {name: look._replace(line="-") for name, look in lineup.looks.items()}
