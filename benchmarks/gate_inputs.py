"""What a gate gains by reading the queue, submissions, the kind of waiting jobs, or time of day;
`make results RESULTS=gate_inputs` runs it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from benchmarks.hindsight import HEURISTICS, LANES
from benchmarks.jct_and_slowdown import Ground, Searches, windows_of
from benchmarks.paired_windows import Experiment, Setting, main, names, versus, versus_heads
from benchmarks.winning_settings import LOGS, TRACES

import berthline as bl
from berthline.learn.tuning.search_rivals import usable_rivals
from berthline.learn.tuning.search_space import Parameter, SearchSpace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from benchmarks.result_files import Row

CLUSTER, EPOCHS, SEEDS = "uniform:16x8", 3, (0, 1, 2)
CASES = (("spread", "exact"), ("spread", "estimate"), ("Venus", "exact"))
BLIND = "blind"
_TEXT = (
    "[estimate * gpus ** {g}]+easy@best-fit?[where(estimate > {t},"
    " pool_free_gpus - gpus - pool_total_gpus * clip({r}TERMS, 0, 0.9), 0)]"
)
_NUMBERS = (
    Parameter("g", 0.0, 2.0, 0.8),
    Parameter("t", 300.0, 43_200.0, 3600.0, is_log=True),
    Parameter("r", 0.0, 0.5, 0.1),
)


def weight(name: str) -> Parameter:
    """Return the change in the share of GPUs kept free, per unit of the input."""
    return Parameter(name, -0.15, 0.15, 0.0)


INPUTS = {
    "queue": (" + {q} * log2(1 + queued_gpus / total_gpus)", (weight("q"),)),
    "submissions": (" + {b} * log2(1 + arrival_rate * 60)", (weight("b"),)),
    "mean work of waiting jobs": (
        " + {s} * log2(1 + queued_work / (1 + queue_len) / 3600)",
        (weight("s"),),
    ),
    # 1 at some time of day, -1 half a day later, linear in between.
    "time of day": (
        " + {d} * (4 * abs(now / 86400 + {p} - floor(now / 86400 + {p}) - 0.5) - 1)",
        (weight("d"), Parameter("p", 0.0, 1.0, 0.5)),
    ),
}
"""The inputs of gates; the share kept free depends on them."""


def space(inputs: Sequence[str]) -> SearchSpace:
    """Return gates that read these inputs."""
    terms = "".join(INPUTS[name][0] for name in inputs)
    numbers = tuple(number for name in inputs for number in INPUTS[name][1])
    return SearchSpace("gate", _TEXT.replace("TERMS", terms), (*_NUMBERS, *numbers))


def spaces(jobs: str) -> dict[str, SearchSpace]:
    """Return what is tuned. A log scaled to a load no longer has days."""
    inputs = [name for name in INPUTS if jobs == "spread" or name != "time of day"]
    return {
        BLIND: space(()),
        **{name: space((name,)) for name in inputs},
        "all of them": space(inputs),
    }


def settings(trace: Path | None) -> Iterator[Setting]:
    """Choose and tune on TRAIN and VAL; yield what is then evaluated on REPORT."""
    cluster = bl.Cluster.parse(CLUSTER)
    for jobs, knowledge in CASES:
        ground = Ground(cluster, knowledge)
        windows = windows_of(jobs, cluster, trace or TRACES / LOGS["Venus"].file)
        named = usable_rivals(HEURISTICS, knowledge, preemptive=False)
        searches = Searches(ground, windows, named)
        chosen = {"best lane": min(LANES, key=searches.val_loss)}
        for name, gates in spaces(jobs).items():
            print(f"{jobs}, {knowledge}: {name}", flush=True)
            chosen[name] = searches.best((gates,), epochs=EPOCHS, seeds=SEEDS).scheduler
        for part in list(windows)[2:]:
            rival = ground.lowest_jct(named, windows[part])
            yield Setting(
                f"{jobs}, {knowledge}{part.removeprefix('report')}",
                cluster,
                windows[part],
                {"rival": rival, **chosen},
                knowledge,
            )


def against_blind(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return what gates gain from their inputs."""
    shown = ("bounded_slowdown", "jct_mean", "jct_p99")
    lines = versus_heads("setting", "reads", keys=shown)
    for setting in names(rows, "setting"):
        lines += [
            f"| {setting} | {name} | {versus(rows, setting, name, BLIND, shown)} |"
            for name in names(rows, "scheduler", setting=setting)[3:]
        ]
    return {"blind": lines}


EXPERIMENT = Experiment(
    page="gate-inputs",
    settings=settings,
    measures=("bounded_slowdown", "jct_mean", "jct_p99"),
    shown=3,
    values={"jct_mean": ("s", 1.0), "bounded_slowdown": ("over all windows", 1.0)},
    more=against_blind,
)

if __name__ == "__main__":
    sys.exit(main(EXPERIMENT, __doc__))
