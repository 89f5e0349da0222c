"""What lower slowdown costs in mean JCT when arrivals never stop: hand-made gates of several kinds
on the first half of Venus in one run; `make results RESULTS=gate_frontier` runs it.

It uses TRAIN and VAL: it shows which kinds of gates are worth tuning, and evaluates none.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
from benchmarks.hindsight import Place
from benchmarks.log_page import run_page
from benchmarks.winning_settings import Setting, split_of

from berthline.evaluate.metrics.job_table import completion_times, job_table
from berthline.evaluate.metrics.slowdown import bounded_slowdowns
from berthline.palette import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY
from berthline.report.figures.drawing import STYLE, save_figure
from berthline.sim.simulate import simulate
from berthline.traces.offered_load import scale_to_load

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from benchmarks.result_files import Row

    import berthline as bl
    from berthline.traces.split import TraceParts

PAGE = "gate-frontier"
SETTING = Setting("Venus", "exact", long=True)
BASE = "smallest-area+easy@best-fit"
LANE = f"{BASE}?express-lane:T=14400:r=0.1"
LOADS = (0.96, 0.98, 1.0, 1.02, 1.04)
METRICS = ("mean_jct", "p99_jct", "mean_bounded_slowdown", "makespan")
_BOTH = "min(queued_gpus / total_gpus / 2, arrival_rate * 3600 / 6) > 1"


def held(when: str, share: float, *, free: str = "pool_free_gpus", long: int = 14400) -> str:
    """Return a gate: under a condition, long jobs must leave a share of the GPUs free."""
    kept = f"{free} - gpus - {share} * pool_total_gpus"
    return f"{BASE}?[where(estimate > {long}, where({when}, {kept}, 0), 0)]"


KINDS: dict[str, tuple[str, ...]] = {
    **{
        f"lane, longer than {hours} h": tuple(
            f"{BASE}?express-lane:T={3600 * hours}:r={share}" for share in shares
        )
        for hours, shares in {
            1: (0.025, 0.05, 0.1),
            4: (0.05, 0.075, 0.1),
            12: (0.05, 0.1, 0.15),
        }.items()
    },
    "jobs up to 16 GPUs": tuple(held("gpus <= 16", share) for share in (0.025, 0.05)),
    "jobs of 8 GPUs or more": tuple(held("gpus >= 8", share) for share in (0.05, 0.075, 0.1)),
    "until they have waited a day": tuple(held("wait < 86400", r) for r in (0.025, 0.05)),
    "while much is queued": tuple(
        held("queued_gpus > 2 * total_gpus", share) for share in (0.05, 0.075, 0.1)
    ),
    "while jobs are submitted": tuple(
        held(f"arrival_rate * 3600 > {number}", share)
        for number, share in ((15, 0.06), (15, 0.08), (10, 0.1))
    ),
    "while both": tuple(held(_BOTH, share) for share in (0.06, 0.075, 0.09)),
    "while both, whole nodes": tuple(
        held(_BOTH, share, free="pool_free_gpus * (1 - 0.7 * fragmentation)")
        for share in (0.03, 0.04, 0.05)
    ),
}
"""Gates of each kind, the mildest first."""
COLOURS = (GREY, GREY, GREY, ORANGE, SKY, PURPLE, GREEN, BLUE, RED, "black")

RUNS = (0, 600, 3600, 43_200, float("inf"))
RUN_NAMES = ("up to 10 min", "10 min to 1 h", "1 to 12 h", "longer than 12 h")
SIZES = (0, 4, 8, 16, float("inf"))
SIZE_NAMES = ("1 to 4", "5 to 8", "9 to 16", "more")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the gates; write the CSV file, the figure and the page."""
    return run_page(PAGE, __doc__, measure=measure, parts=parts, draw=draw, argv=argv)


def measure(folder: Path) -> Iterator[Row]:
    """Yield a row for each gate, and one for each class of jobs."""
    split = split_of(SETTING.log, SETTING.known, folder, is_long=True)
    yield from gates(split)
    yield from classes(split.train)


def gates(split: TraceParts) -> Iterator[Row]:
    """Yield a row for each gate: ratios to no gate, geometric means over the loads."""
    place = Place(SETTING.cluster, SETTING.knowledge)
    parts = {
        part: [scale_to_load(jobs, SETTING.cluster, load) for load in LOADS]
        for part, jobs in (("", split.train), ("val_", split.validation))
    }
    base = {part: np.array(place.run(BASE, windows), float) for part, windows in parts.items()}
    for kind, schedulers in KINDS.items():
        for scheduler in schedulers:
            row = {"name": kind, "size": "", "share": "", "wait_hours": ""}
            for part, windows in parts.items():
                ratios = np.log(np.array(place.run(scheduler, windows)) / base[part]).mean(axis=0)
                for metric, ratio in zip(METRICS, np.exp(ratios), strict=True):
                    row[part + metric] = f"{ratio:.4f}"
            yield {**row, "scheduler": scheduler}


def classes(jobs: bl.Workload) -> Iterator[Row]:
    """Yield a row for each class of jobs, by length and size: its part of the means."""
    window = scale_to_load(jobs, SETTING.cluster, 1.0)
    for scheduler in (BASE, LANE):
        log = simulate(window, SETTING.cluster, scheduler, knowledge=SETTING.knowledge).log
        done = job_table(log, window)
        jct, slowdown = completion_times(done, window), bounded_slowdowns(done, window)
        for number, length in enumerate(RUN_NAMES):
            is_so_long = (window.run > RUNS[number]) & (window.run <= RUNS[number + 1])
            for other, size in enumerate(SIZE_NAMES):
                is_in = (
                    is_so_long & (window.gpus > SIZES[other]) & (window.gpus <= SIZES[other + 1])
                )
                yield {
                    "name": length,
                    "size": size,
                    "share": f"{is_in.mean():.5f}",
                    "wait_hours": f"{(jct - window.run)[is_in].mean() / 3600:.3f}",
                    "mean_jct": f"{jct[is_in].sum() / jct.sum():.4f}",
                    "p99_jct": "",
                    "mean_bounded_slowdown": f"{slowdown[is_in].sum() / slowdown.sum():.4f}",
                    "makespan": "",
                    **{f"val_{metric}": "" for metric in METRICS},
                    "scheduler": scheduler,
                }


def parts(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return the computed parts of the page, by name."""
    gates = [
        "| held | slowdown | mean JCT | p99 JCT | makespan | VAL: slowdown | mean JCT | gate |",
        "| --- |" + " ---: |" * 6 + " --- |",
    ]
    jct, p99, slowdown, makespan = METRICS
    order = (slowdown, jct, p99, makespan, f"val_{slowdown}", f"val_{jct}")
    for row in rows:
        if not row["size"]:
            cells = " | ".join(f"{float(row[column]):.3f}" for column in order)
            gates.append(f"| {row['name']} | {cells} | `{row['scheduler']}` |")
    classes = [
        "| run time | GPUs | jobs | of mean JCT | of slowdown | mean wait, h"
        " | the same with a lane, h |",
        "| --- | --- |" + " ---: |" * 5,
    ]
    by_class = {(r["name"], r["size"], r["scheduler"]): r for r in rows if r["size"]}
    for (name, size, scheduler), row in by_class.items():
        if scheduler == BASE:
            shares = (row["share"], row["mean_jct"], row["mean_bounded_slowdown"])
            cells = [f"{100 * float(share):.1f} %" for share in shares]
            cells += [
                f"{float(one['wait_hours']):.1f}" for one in (row, by_class[name, size, LANE])
            ]
            classes.append(f"| {name} | {size} | {' | '.join(cells)} |")
    return {"gates": gates, "classes": classes}


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw slowdown against mean JCT, a line for each kind of gate.

    Raises:
        OutputError: the file cannot be written.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.5, 3.8), layout="constrained")
        panels = figure.subplots(1, 2)
        for panel, part, title in zip(panels, ("", "val_"), ("TRAIN", "VAL"), strict=True):
            panel.axvline(1.02, color=GREY, linewidth=1)
            panel.axhline(0.7, color=GREY, linewidth=1)
            for (kind, schedulers), marker, colour in zip(
                KINDS.items(), "osD^v<>PX*", COLOURS, strict=True
            ):
                found = [r for r in rows if r["scheduler"] in schedulers and not r["size"]]
                x, y = ([float(r[part + METRICS[i]]) for r in found] for i in (0, 2))
                style = "--" if kind.startswith("lane") else "-"
                panel.plot(x, y, style, color=colour, marker=marker, markersize=5, label=kind)
            panel.set_title(title)
            panel.set_xlabel("mean JCT, ratio to no gate")
        panels[0].set_ylabel("mean bounded slowdown, ratio")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right upper", frameon=False)
        save_figure(figure, path)


if __name__ == "__main__":
    sys.exit(main())
