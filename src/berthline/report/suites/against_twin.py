"""Perturbed cells against their clean twins, scheduler by scheduler."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from berthline.evaluate.statistics.paired import Ratio, log_ratios, ratio_of_logs
from berthline.experiments.perturbations import KINDS, begins_at, kind_of
from berthline.experiments.robustness_measures import recovery_seconds, twin_band, variation
from berthline.report.suites.shown_suite import RESAMPLES

if TYPE_CHECKING:
    import polars as pl

    from berthline.report.suites.shown_suite import ShownSuite


class AgainstTwin(msgspec.Struct, frozen=True, kw_only=True):
    """A scheduler under a perturbation, over all regimes that have it.

    Attributes:
        scheduler: its name.
        perturbation: the perturbation.
        kind: of perturbation.
        ratio: of the metric to the clean twin's: a geometric mean over regimes and seeds. Its
            interval is over pairs.
        exploded: share of runs whose queue exploded.
        longest: the largest ratio of the longest queue to the twin's.
        recovery: median over regimes and seeds, in seconds; infinity = most did not recover; None =
            there are too few seeds for a band.
        not_recovered: share of runs that did not.
        varies: mean over regimes of the coefficient of variation over seeds.
        twin_varies: the same of the clean twins.
        runs: number of pairs.
    """

    scheduler: str
    perturbation: str
    kind: str
    ratio: Ratio
    exploded: float
    longest: float
    recovery: float | None
    not_recovered: float | None
    varies: float | None
    twin_varies: float | None
    runs: int


def against_twins(suite: ShownSuite) -> list[AgainstTwin]:
    """Return every scheduler under every perturbation.

    Raises:
        NotShown: nothing is perturbed in this suite.
    """
    import polars as pl

    keys = ["label", "seed", "training_seed"]
    twins = suite.clean.select("cell", *keys, pl.col(suite.column).alias("twin_value"))
    pairs = suite.perturbed.join(
        twins, left_on=["twin", *keys], right_on=["cell", *keys], how="inner", nulls_equal=True
    )
    order = {name: place for place, name in enumerate(KINDS)}
    found = [
        _of(suite, str(label), str(text), part)
        for (text, label), part in pairs.group_by("perturbation", "label", maintain_order=True)
    ]
    found.sort(key=lambda one: order[one.kind])
    return found


def _of(suite: ShownSuite, scheduler: str, text: str, pairs: pl.DataFrame) -> AgainstTwin:
    logs = log_ratios(pairs[suite.column].to_list(), pairs["twin_value"].to_list())
    recoveries: list[float] = []
    varies: list[tuple[float, float]] = []
    for _, cell in pairs.group_by("twin", maintain_order=True):
        band = twin_band(cell["twin_queue_curve"].to_list())
        if band is not None:
            recoveries += [
                recovery_seconds(curve, band, begins=begins_at(text), seconds=seconds)
                for curve, seconds in cell.select("queue_curve", "queue_curve_seconds").iter_rows()
            ]
        both = variation(cell[suite.column].to_numpy()), variation(cell["twin_value"].to_numpy())
        if both[0] is not None and both[1] is not None:
            varies.append((both[0], both[1]))
    unknown = Ratio(ratio=None, low=None, high=None, windows=len(pairs))
    return AgainstTwin(
        scheduler=scheduler,
        perturbation=text,
        kind=kind_of(text),
        ratio=unknown if logs is None else ratio_of_logs(logs, resamples=RESAMPLES),
        exploded=float(np.mean(pairs["queue_exploded"].to_numpy())),
        longest=float(np.max(pairs["queue_max_ratio"].to_numpy())),
        recovery=float(np.median(recoveries)) if recoveries else None,
        not_recovered=float(np.mean(np.isinf(recoveries))) if recoveries else None,
        varies=float(np.mean([one for one, _ in varies])) if varies else None,
        twin_varies=float(np.mean([one for _, one in varies])) if varies else None,
        runs=len(pairs),
    )


def recovery_words(seconds: float | None) -> str:
    """Return a recovery time in words.

    Example:
        >>> [recovery_words(one) for one in (0.0, 5400.0, math.inf, None)]
        ['none needed', '1.5 h', '∞', '-']
    """
    if seconds is None:
        return "-"
    if math.isinf(seconds):
        return "∞"
    return f"{seconds / 3600:.1f} h" if seconds > 0 else "none needed"
