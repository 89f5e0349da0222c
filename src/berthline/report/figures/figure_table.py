"""Every figure that a report can have, by name, for each kind of run; writing them to files."""

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
        data: returns the numbers behind it, or raises NotShown; of `RunResults`, of `Run` for
            training and searches, of `WhatIf` for whatif.
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
        "Against the baseline, window by window",
        "Left of 1 is better, for utilisation right of it. A bar that crosses 1 means: not "
        "distinguishable.",
        ratios.data,
        ratios.draw,
        ratios.interactive,
    ),
    "cdf": FigureKind(
        "Distribution of JCT and wait",
        "A line further to the left serves more jobs sooner. The third panel is the tail, where "
        "means hide the jobs that starve.",
        cdf.data,
        cdf.draw,
        cdf.interactive,
    ),
    "timeline": FigureKind(
        "Utilisation and queue over time",
        "The first window. A queue that grows while GPUs are idle is the scheduler's doing.",
        timeline.data,
        timeline.draw,
        timeline.interactive,
    ),
    "gantt": FigureKind(
        "Who held which GPU",
        "Part of the first window, around the longest queue. White is idle; the darker a job, the "
        "longer it had waited.",
        gantt.data,
        gantt.draw,
        gantt.interactive,
    ),
    "gantt-difference": FigureKind(
        "The best scheduler against the baseline, over time",
        "Where and when the one held GPUs that the other did not, and who is ahead.",
        gantt_difference.data,
        gantt_difference.draw,
    ),
    "sizes": FigureKind(
        "JCT by size of job",
        "GPUs a job asks for. On the right how far every scheduler is from the best for such jobs: "
        "where it loses.",
        by_group.size_data,
        partial(by_group.draw, groups_are="GPUs per job"),
        partial(by_group.interactive, groups_are="GPUs per job"),
    ),
    "priorities": FigureKind(
        "JCT by priority",
        "As above, for jobs of one priority.",
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
        "A steep line treats users alike; one further to the left treats all of them better.",
        fairness_cdf.data,
        fairness_cdf.draw,
        fairness_cdf.interactive,
    ),
    "oracle": FigureKind(
        "Distance to the best in hindsight, and to the bound",
        "The oracle is the best fixed scheduler of this report. The bound is proved: no schedule "
        "is below it, and perhaps none reaches it.",
        oracle_gap.data,
        oracle_gap.draw,
    ),
    "profile": FigureKind(
        "How often close to the best",
        "A line further up and to the left is close to the best in more windows.",
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
        "A scheduler that is good at one thing only has one corner far out.",
        radar.data,
        radar.draw,
    ),
    "ablation": FigureKind(
        "What each part is worth",
        "Schedulers that differ from one of them in a single part. Right of 1 is worse, for "
        "utilisation left of it.",
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
        "What the algorithm minimises and watches; useful to find out why training fails.",
        learning_curves.loss_data,
        partial(learning_curves.draw, steps="environment steps"),
    ),
}
"""The figures of training."""

SEARCH_FIGURES: dict[str, FigureKind] = {
    "search": FigureKind(
        "Loss during the search",
        "After each generation; lower is better, and 0 is the reference. Of the best candidates, "
        "the one that is best on VAL is the result.",
        learning_curves.search_data,
        partial(learning_curves.draw, steps="candidates"),
    ),
}
"""The figures of a search (`train es`)."""

WHATIF_FIGURES: dict[str, FigureKind] = {
    "changes": FigureKind(
        "Alternatives against today's scheduler",
        "Ratios of daily means with 95 % intervals. Left of 1 is better. A bar that crosses 1 "
        "means: not distinguishable.",
        whatif_figures.change_data,
        whatif_figures.draw_changes,
    ),
    "waits": FigureKind(
        "Mean wait by size of job",
        "The first row is today's scheduler as modelled.",
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
    """A figure that was written, or why it was not."""

    name: str
    files: tuple[Path, ...] = ()
    frame: pl.DataFrame | None = None
    missing: str = ""


def draw_all(
    source: Any,
    directory: Path,
    names: Iterable[str],
    *,
    kinds: Mapping[str, FigureKind] = COMPARISON_FIGURES,
    formats: Iterable[str] = ("png",),
) -> Iterator[Drawn]:
    """Write figures and the CSV files behind them; yield each when it is there.

    Args:
        source: the results, as `data` of the kinds takes them.
        directory: where to.
        names: of figures.
        kinds: the figures of this kind of run.
        formats: png, pdf or svg.

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
        figure = kind.draw(frame, getattr(source, "lineup", None))
        for path in paths:
            save_figure(figure, path)
        table = directory / f"{name}.csv"
        write_atomically(table, frame.write_csv(float_precision=6).encode())
        yield Drawn(name, (*paths, table), frame)
