"""Kinds of figures: every figure a report can have, by name, and writing them to files."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from berthline.report import (
    ablation,
    by_group,
    cdf,
    fairness_cdf,
    gantt,
    gantt_difference,
    oracle_gap,
    profile,
    radar,
    ratios,
    sweep,
    timeline,
)
from berthline.report.figures import check_figure_file, save_figure
from berthline.report.run_results import NotShown
from berthline.traces.atomic_write import write_atomically

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    import polars as pl

    from berthline.report.lineup import Lineup
    from berthline.report.run_results import RunResults


class Kind(NamedTuple):
    """A kind of figure.

    Attributes:
        title: what it shows.
        reading: how to read it, in a sentence.
        data: returns the numbers behind it, or raises NotShown.
        draw: returns a matplotlib figure of those numbers.
        interactive: returns the same for plotly; None = a picture is enough.
    """

    title: str
    reading: str
    data: Callable[[RunResults], pl.DataFrame]
    draw: Callable[[pl.DataFrame, Lineup], Any]
    interactive: Callable[[pl.DataFrame, Lineup], dict[str, Any]] | None = None


KINDS: dict[str, Kind] = {
    "ratios": Kind(
        "Against the baseline, window by window",
        "Left of 1 is better, for utilisation right of it. A bar that crosses 1 means: not "
        "distinguishable.",
        ratios.data,
        ratios.draw,
        ratios.interactive,
    ),
    "cdf": Kind(
        "Distribution of JCT and wait",
        "A line further to the left serves more jobs sooner. The third panel is the tail, where "
        "means hide the jobs that starve.",
        cdf.data,
        cdf.draw,
        cdf.interactive,
    ),
    "timeline": Kind(
        "Utilisation and queue over time",
        "The first window. A queue that grows while GPUs are idle is the scheduler's doing.",
        timeline.data,
        timeline.draw,
        timeline.interactive,
    ),
    "gantt": Kind(
        "Who held which GPU",
        "Part of the first window, around the longest queue. White is idle; the darker a job, the "
        "longer it had waited.",
        gantt.data,
        gantt.draw,
        gantt.interactive,
    ),
    "gantt-difference": Kind(
        "The best scheduler against the baseline, over time",
        "Where and when the one held GPUs that the other did not, and who is ahead.",
        gantt_difference.data,
        gantt_difference.draw,
    ),
    "sizes": Kind(
        "JCT by size of job",
        "GPUs a job asks for. On the right how far every scheduler is from the best for such jobs: "
        "where it loses.",
        by_group.size_data,
        partial(by_group.draw, groups_are="GPUs per job"),
        partial(by_group.interactive, groups_are="GPUs per job"),
    ),
    "priorities": Kind(
        "JCT by priority",
        "As above, for jobs of one priority.",
        by_group.priority_data,
        partial(by_group.draw, groups_are="priority"),
        partial(by_group.interactive, groups_are="priority"),
    ),
    "users": Kind(
        "JCT by user",
        "The users with the most jobs.",
        by_group.user_data,
        partial(by_group.draw, groups_are="user"),
        partial(by_group.interactive, groups_are="user"),
    ),
    "pools": Kind(
        "JCT by pool",
        "Jobs by the pool they are bound to.",
        by_group.pool_data,
        partial(by_group.draw, groups_are="pool"),
        partial(by_group.interactive, groups_are="pool"),
    ),
    "fairness": Kind(
        "Fairness between users",
        "A steep line treats users alike; one further to the left treats all of them better.",
        fairness_cdf.data,
        fairness_cdf.draw,
        fairness_cdf.interactive,
    ),
    "oracle": Kind(
        "Distance to the best in hindsight, and to the bound",
        "The oracle is the best fixed scheduler of this report. The bound is proved: no schedule "
        "is below it, and perhaps none reaches it.",
        oracle_gap.data,
        oracle_gap.draw,
    ),
    "profile": Kind(
        "How often close to the best",
        "A line further up and to the left is close to the best in more windows.",
        profile.data,
        profile.draw,
    ),
    "load": Kind(
        "As the load rises",
        "Means over windows; bands are their 95 % intervals.",
        sweep.load_data,
        sweep.draw,
        sweep.interactive,
    ),
    "gpus": Kind(
        "As the cluster grows",
        "Means over windows; bands are their 95 % intervals.",
        sweep.gpu_data,
        sweep.draw,
        sweep.interactive,
    ),
    "radar": Kind(
        "Robustness",
        "A scheduler that is good at one thing only has one corner far out.",
        radar.data,
        radar.draw,
    ),
    "ablation": Kind(
        "What each part is worth",
        "Schedulers that differ from one of them in a single part. Right of 1 is worse, for "
        "utilisation left of it.",
        ablation.data,
        ablation.draw,
    ),
}
"""Every kind of figure, in the order of a report."""


class Drawn(NamedTuple):
    """A figure that was written, or why it was not."""

    name: str
    files: tuple[Path, ...] = ()
    frame: pl.DataFrame | None = None
    missing: str = ""


def draw_all(
    run: RunResults,
    directory: Path,
    names: Iterable[str],
    *,
    formats: Iterable[str] = ("png",),
) -> Iterator[Drawn]:
    """Write figures and the CSV files behind them; yield each when it is there.

    Args:
        run: the results.
        directory: where to.
        names: of kinds.
        formats: png, pdf or svg.

    Raises:
        ConfigError: a file cannot be written.
        MissingExtraError: matplotlib is not installed.
    """
    formats = tuple(formats)
    for name in names:
        kind = KINDS[name]
        paths = tuple(directory / f"{name}.{suffix}" for suffix in formats)
        for path in paths:
            check_figure_file(path, needed_for="a figure")
        try:
            frame = kind.data(run)
        except NotShown as reason:
            yield Drawn(name, missing=str(reason))
            continue
        figure = kind.draw(frame, run.lineup)
        for path in paths:
            save_figure(figure, path)
        table = directory / f"{name}.csv"
        write_atomically(table, frame.write_csv(float_precision=6).encode())
        yield Drawn(name, (*paths, table), frame)
