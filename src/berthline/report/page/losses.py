"""Losses: for which jobs, and in which windows, each scheduler is worse than another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from berthline.evaluate.metrics.compared_metrics import METRICS
from berthline.evaluate.statistics.paired import paired_ratio
from berthline.report.figures.by_group import with_groups
from berthline.report.run_results import NotShown

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from berthline.evaluate.statistics.paired import Ratio
    from berthline.report.run_results import RunResults

GROUPINGS = ("size", "priority", "user", "pool")
MOST_GROUPS = 32
"""At most this number of groups is examined, those with the most jobs."""
TOLERANCE = 1.02
"""With one window there is no interval: a ratio up to this is not listed."""
RESAMPLES = 2000
_HIGHER = [metric.label for metric in METRICS.values() if metric.higher_is_better]


def data(run: RunResults) -> pl.DataFrame:
    """Return where schedulers are worse than the baseline, and than the best by mean JCT.

    Formula: `paired_ratio` over windows of a metric, or of the mean JCT of the jobs of a group. It
    is a loss if the whole interval is on the wrong side of 1 (with one window: by more than 2 %). A
    window is a loss if its mean JCT is more than 2 % higher.

    Returns:
        Columns scheduler, against, kind (metric, size, priority, user, pool or window), where,
        jobs, ratio, low, high; largest losses first. Metrics that should be high have the
        inverse ratio: above 1 is always worse.
    """
    import polars as pl

    rows = [*_metric_losses(run), *_window_losses(run)]
    try:
        jobs = run.jobs
    except NotShown:
        jobs = None
    if jobs is not None:
        for by in GROUPINGS:
            if by == "size" or by in jobs.columns:
                rows += _group_losses(run, jobs, by)
    texts = dict.fromkeys(("scheduler", "against", "kind", "where"), pl.String)
    numbers = dict.fromkeys(("ratio", "low", "high"), pl.Float64)
    frame = pl.DataFrame(rows, schema={**texts, "jobs": pl.Int64, **numbers}, orient="row")
    return frame.sort("ratio", descending=True)


def opponents(run: RunResults, scheduler: str) -> list[str]:
    """Return the schedulers to compare with: the baseline, and the best by mean JCT."""
    best = run.ranked("jct_mean")[0]
    return [other for other in dict.fromkeys((run.baseline, best)) if other != scheduler]


def _metric_losses(run: RunResults) -> Iterator[tuple[Any, ...]]:
    for name in run.schedulers:
        for other in opponents(run, name):
            for key, metric in METRICS.items():
                sides = (other, name) if metric.higher_is_better else (name, other)
                if found := _if_worse(run.ratio(*sides, key)):
                    yield (name, other, "metric", metric.label, None, *found)


def _window_losses(run: RunResults) -> Iterator[tuple[Any, ...]]:
    if run.windows == 1:
        return
    for name in run.schedulers:
        for other in opponents(run, name):
            pairs = zip(run.values(name, "jct_mean"), run.values(other, "jct_mean"), strict=True)
            for window, (ours, theirs) in enumerate(pairs):
                if theirs > 0 and ours / theirs > TOLERANCE:
                    yield (name, other, "window", str(window + 1), None, ours / theirs, None, None)


def _group_losses(run: RunResults, jobs: pl.DataFrame, by: str) -> Iterator[tuple[Any, ...]]:
    import polars as pl

    frame, names = with_groups(jobs, by)
    sizes = frame.filter(pl.col("scheduler") == run.baseline)[by].value_counts(sort=True)
    if len(sizes) < 2:
        return
    counts = dict(sizes.head(MOST_GROUPS).iter_rows())
    means = (
        frame.filter(pl.col(by).is_in(sizes[by].head(MOST_GROUPS).implode()))
        .group_by("scheduler", by, "window")
        .agg(pl.col("jct").cast(pl.Float64).mean())
    )
    table: dict[tuple[str, Any], dict[int, float]] = {}
    for scheduler, group, window, jct in means.iter_rows():
        table.setdefault((str(scheduler), group), {})[window] = jct
    for name in run.schedulers:
        for other in opponents(run, name):
            for group, count in counts.items():
                ours, theirs = table[name, group], table[other, group]
                windows = sorted(ours.keys() & theirs.keys())
                found = _loss(
                    [ours[window] for window in windows],
                    [theirs[window] for window in windows],
                    int(run.cell["seed"]),
                )
                if found:
                    where = str(group) if names is None else names[group]
                    yield (name, other, by, where, count, *found)


def _loss(
    ours: list[float], theirs: list[float], seed: int
) -> tuple[float, float | None, float | None] | None:
    """Return the ratio with its interval if it is a loss beyond chance, else None."""
    # The interval takes the most time, so it is computed only if the ratio is above 1.
    if not ours or ours == theirs:
        return None
    quick = paired_ratio(ours, theirs, resamples=1)
    if quick.ratio is None or quick.ratio <= 1:
        return None
    return _if_worse(paired_ratio(ours, theirs, seed=seed, resamples=RESAMPLES))


def _if_worse(found: Ratio) -> tuple[float, float | None, float | None] | None:
    """Return a ratio with its interval if the whole interval is above 1, else None."""
    if found.ratio is None:
        return None
    worse = found.ratio > TOLERANCE if found.low is None else found.low > 1
    return (found.ratio, found.low, found.high) if worse else None


def as_seen(row: dict[str, Any]) -> tuple[float, float | None, float | None]:
    """Return ratio, low and high of a loss for readers: for utilisation, below 1."""
    ratio, low, high = row["ratio"], row["low"], row["high"]
    if row["kind"] != "metric" or row["where"] not in _HIGHER:
        return ratio, low, high
    return 1 / ratio, None if high is None else 1 / high, None if low is None else 1 / low
