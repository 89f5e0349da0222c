"""All figures of reports, by name, for each kind of run; writing them to files."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from berthline.atomic_write import write_atomically
from berthline.report.figures import (
    ablation,
    by_group,
    cdf,
    fairness_cdf,
    gantt,
    gantt_difference,
    learning_curves,
    oracle_gap,
    profile_figure,
    radar,
    ratios,
    sweep,
    timeline,
    whatif_figures,
)
from berthline.report.figures.drawing import check_figure_file, save_figure
from berthline.report.figures.layout import named, narrow, settle
from berthline.report.figures.page_picture import page_picture
from berthline.report.run_results import NotShown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    import polars as pl

    from berthline.report.figures.lineup import Lineup


class FigureKind(NamedTuple):
    """A kind of figure.

    Attributes:
        title: what it shows.
        reading: how to read it, in a sentence.
        data: returns the numbers behind it, or raises NotShown; takes `RunResults`, for training
            and searches `Run`, for whatif `WhatIf`.
        draw: returns a matplotlib figure of those numbers.
        interactive: returns the same for plotly; None = a picture is enough.
    """

    title: str
    reading: str
    data: Callable[[Any], pl.DataFrame]
    draw: Callable[[pl.DataFrame, Any], Any]
    interactive: Callable[[pl.DataFrame, Lineup], dict[str, Any]] | None = None


COMPARISON_FIGURES: dict[str, FigureKind] = {
    "ratios": FigureKind(
        "Against the baseline",
        "Left of 1 is better; for utilisation, right of 1. If a bar crosses 1, the two are not "
        "distinguishable. An arrow: the interval goes on.",
        ratios.data,
        ratios.draw,
        ratios.interactive,
    ),
    "cdf": FigureKind(
        "Distribution of JCT and wait",
        "A line further left means shorter times. The third panel is the tail; it shows jobs that "
        "starve, which the mean hides.",
        cdf.data,
        cdf.draw,
        cdf.interactive,
    ),
    "timeline": FigureKind(
        "Utilisation and queue over time",
        "The first window. If the queue grows while GPUs are idle, the scheduler is the cause.",
        timeline.data,
        timeline.draw,
        timeline.interactive,
    ),
    "gantt": FigureKind(
        "Which job held which GPU",
        "Part of the first window, around the longest queue. Of a large cluster only the first "
        "GPUs are drawn; the axis says how many. White is idle; darker jobs had waited longer.",
        gantt.data,
        gantt.draw,
        gantt.interactive,
    ),
    "gantt-difference": FigureKind(
        "The baseline and the best of the others, over time",
        "Where and when one held GPUs that the other did not, and which has finished more jobs.",
        gantt_difference.data,
        gantt_difference.draw,
    ),
    "sizes": FigureKind(
        "JCT by size of job",
        "By requested GPUs. The right panel shows where each scheduler loses: its distance from "
        "the best scheduler for jobs of that size.",
        by_group.size_data,
        partial(by_group.draw, groups_are="GPUs per job"),
        partial(by_group.interactive, groups_are="GPUs per job"),
    ),
    "priorities": FigureKind(
        "JCT by priority",
        "The same, by priority.",
        by_group.priority_data,
        partial(by_group.draw, groups_are="priority"),
        partial(by_group.interactive, groups_are="priority"),
    ),
    "users": FigureKind(
        "JCT by user",
        "The users with the most jobs.",
        by_group.user_data,
        partial(by_group.draw, groups_are="user"),
        partial(by_group.interactive, groups_are="user"),
    ),
    "pools": FigureKind(
        "JCT by pool",
        "Jobs by the pool they are bound to.",
        by_group.pool_data,
        partial(by_group.draw, groups_are="pool"),
        partial(by_group.interactive, groups_are="pool"),
    ),
    "fairness": FigureKind(
        "Fairness between users",
        "A steep line means that users are treated alike; further left is better for users.",
        fairness_cdf.data,
        fairness_cdf.draw,
        fairness_cdf.interactive,
    ),
    "oracle": FigureKind(
        "Distance to the best in hindsight, and to the bound",
        "The oracle is the best fixed scheduler of this report. The bound is proven: no schedule "
        "is below it, and it may not be reachable.",
        oracle_gap.data,
        oracle_gap.draw,
    ),
    "profile": FigureKind(
        "How often close to the best",
        "A scheduler whose line is further up and left is close to the best in more windows.",
        profile_figure.data,
        profile_figure.draw,
    ),
    "load": FigureKind(
        "As the load rises",
        "Means over windows; bands are their 95 % intervals.",
        sweep.load_data,
        sweep.draw,
        sweep.interactive,
    ),
    "gpus": FigureKind(
        "As the cluster grows",
        "Means over windows; bands are their 95 % intervals.",
        sweep.gpu_data,
        sweep.draw,
        sweep.interactive,
    ),
    "radar": FigureKind(
        "Robustness",
        "A scheduler that is good in only one respect has only one corner far out.",
        radar.data,
        radar.draw,
    ),
    "ablation": FigureKind(
        "The effect of each part",
        "Schedulers that differ from one scheduler in a single part. Right of 1 is worse; for "
        "utilisation, left of 1.",
        ablation.data,
        ablation.draw,
    ),
}
"""The figures of a comparison, in the order of a report."""

TRAINING_FIGURES: dict[str, FigureKind] = {
    "validations": FigureKind(
        "Validations during training",
        "The policy on the VAL episodes; the best one is kept. Each seed has a line.",
        learning_curves.validation_data,
        partial(learning_curves.draw, steps="environment steps"),
    ),
    "losses": FigureKind(
        "Losses during training",
        "What the algorithm minimises and monitors; useful to find out why training fails.",
        learning_curves.loss_data,
        partial(learning_curves.draw, steps="environment steps"),
    ),
}
"""The figures of training."""

SEARCH_FIGURES: dict[str, FigureKind] = {
    "search": FigureKind(
        "Loss during the search",
        "After each generation; lower is better, and 0 is the reference. The result is the "
        "candidate that is best on VAL.",
        learning_curves.search_data,
        partial(learning_curves.draw, steps="candidates"),
    ),
}
"""The figures of a search (`train es`)."""

WHATIF_FIGURES: dict[str, FigureKind] = {
    "changes": FigureKind(
        "Alternatives against today's scheduler",
        "Ratios of daily means with 95 % intervals. Left of 1 is better. If a bar crosses 1, the "
        "two are not distinguishable.",
        whatif_figures.change_data,
        whatif_figures.draw_changes,
    ),
    "waits": FigureKind(
        "Mean wait by size of job",
        "The first row is today's scheduler as modelled. Orange: a longer wait than under it; "
        "purple: a shorter one.",
        whatif_figures.wait_data,
        whatif_figures.draw_waits,
    ),
    "fidelity": FigureKind(
        "Recorded and modelled waits",
        "The closer the two dots, the better the model of today's scheduler.",
        whatif_figures.fidelity_data,
        whatif_figures.draw_fidelity,
    ),
}
"""The figures of whatif."""


class Drawn(NamedTuple):
    """A figure that was written, or why it was not.

    Attributes:
        name: its name.
        files: the files that were written.
        frame: the numbers behind it.
        missing: why it was not written.
        wide: the same as SVG for a page; empty if not asked for.
        narrow: the same for a phone.
    """

    name: str
    files: tuple[Path, ...] = ()
    frame: pl.DataFrame | None = None
    missing: str = ""
    wide: str = ""
    narrow: str = ""


def draw_all(
    source: Any,
    directory: Path,
    names: Iterable[str],
    *,
    kinds: Mapping[str, FigureKind] = COMPARISON_FIGURES,
    formats: Iterable[str] = ("png",),
    for_page: bool = False,
) -> Iterator[Drawn]:
    """Write figures and their CSV files; yield each when it is written.

    Args:
        source: the results, as `data` of the kinds takes them.
        directory: where to write.
        names: of the figures.
        kinds: the figures of this kind of run.
        formats: png, pdf or svg.
        for_page: whether to draw each for a page as well.

    Raises:
        OutputError: a file cannot be written.
        MissingExtraError: matplotlib is not installed.
    """
    formats = tuple(formats)
    for name in names:
        kind = kinds[name]
        paths = tuple(directory / f"{name}.{suffix}" for suffix in formats)
        for path in paths:
            check_figure_file(path, needed_for="a figure")
        try:
            frame = kind.data(source)
        except NotShown as reason:
            yield Drawn(name, missing=str(reason))
            continue
        lineup = getattr(source, "lineup", None)
        figure = kind.draw(frame, lineup)
        settle(figure)
        for path in paths:
            save_figure(figure, path)
        table = directory / f"{name}.csv"
        write_atomically(table, frame.write_csv(float_precision=6).encode())
        wide = page_picture(figure) if for_page else ""
        small = page_picture(narrow_figure(kind, frame, lineup)) if for_page else ""
        yield Drawn(name, (*paths, table), frame, wide=wide, narrow=small)


def narrow_figure(kind: FigureKind, frame: pl.DataFrame, lineup: Lineup | None) -> Any:
    """Return a figure laid out for a phone."""
    with narrow():
        figure = kind.draw(frame, named(lineup))
        settle(figure)
        return figure
