"""The text that `berthline eval --regimes` prints: a line for each regime, and the sums."""

from __future__ import annotations

from typing import TYPE_CHECKING

from berthline.cli.output import (
    fold_scheduler,
    new_table,
    number,
    print_facts,
    print_table,
    seconds,
)
from berthline.number_text import signed_percent

if TYPE_CHECKING:
    from berthline.evaluate.compare.regimes import RegimesResult


def show_regimes(found: RegimesResult) -> None:
    """Print an evaluation over regimes as text."""
    from berthline.evaluate.metrics.compared_metrics import METRICS

    count = len(found.regimes)
    print(
        f"{fold_scheduler(found.run)} in {count} regimes, {found.windows} windows each\n"
        f"knowledge {found.knowledge}, seed {found.seed}; means of "
        f"{METRICS[found.metric].label}\n"
    )
    heads = ("arrivals", "intensity", "GPUs", "jobs", "policy", "best", "best fixed", "gap, %")
    table = new_table(*heads)
    for regime in found.regimes:
        means = [regime.means[name] for name in (found.run, regime.best)]
        table.add_row(
            regime.shape,
            regime.intensity,
            str(regime.gpus),
            str(regime.jobs),
            *(_value(found.metric, mean) for mean in means),
            fold_scheduler(regime.best),
            _gap(regime.ratio),
        )
    print_table(table)
    print()
    print_facts(
        {
            "mean gap": f"{_gap(found.mean_ratio)} % to the best fixed scheduler of each regime",
            "worst": f"{_gap(found.worst_ratio)} %",
            "not worse": f"in {found.as_good} of {count} regimes, by the interval",
        }
    )


def _value(metric: str, value: float) -> str:
    is_time = metric not in ("bounded_slowdown_mean", "utilization")
    return seconds(value) if is_time else number(value, 3)


def _gap(ratio: float | None) -> str:
    return "-" if ratio is None else signed_percent(ratio - 1, 2)
