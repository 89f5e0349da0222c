"""Evaluate a scheduler in every regime of the preset `rlmetadqn`, one by one.

In each regime it is compared with the best fixed scheduler of that regime in hindsight: what a
meta-scheduler that always chose right could not beat by choosing once.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from berthline.env.meta_regimes import meta_regimes
from berthline.env.presets import PRESETS
from berthline.evaluate.compare.compare import with_baseline
from berthline.evaluate.compare.grid import Cell, Grid, Progress
from berthline.evaluate.compare.kept_results import keep_results, make_runs
from berthline.evaluate.compare.protocol import REPORT, protocol_seeds
from berthline.evaluate.compare.run_argument import read_run_argument
from berthline.evaluate.compare.run_mode import ASKED_WINDOWS
from berthline.evaluate.compare.run_record import RunSettings
from berthline.evaluate.metrics.compared_metrics import METRICS, check_metric
from berthline.evaluate.statistics.paired import paired_ratio
from berthline.model.cluster import Cluster
from berthline.policies.scheduler import Scheduler
from berthline.runs.run_directory import open_directory
from berthline.runs.run_output import RunOutput
from berthline.text_or_path import text_of
from berthline.traces.generators.synthetic import generate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from berthline.engines.engine import Engine
    from berthline.model.workload import Workload
    from berthline.text_or_path import TextOrPath

PRESET = "rlmetadqn"
WINDOWS = 8


class RegimeResult(msgspec.Struct, frozen=True, kw_only=True):
    """One regime.

    Attributes:
        shape: of arrivals.
        intensity: of arrivals.
        gpus: of the cluster.
        jobs: in each window.
        means: of the metric over windows, by scheduler.
        best: the fixed scheduler with the best mean.
        ratio: of the evaluated scheduler to the best, a geometric mean over windows; None = the
            metric is 0 somewhere.
        low: of its interval.
        high: of its interval.
    """

    shape: str
    intensity: str
    gpus: int
    jobs: int
    means: dict[str, float]
    best: str
    ratio: float | None
    low: float | None
    high: float | None


class RegimesResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `evaluate_regimes`.

    Attributes:
        run: the scheduler that is evaluated.
        metric: what regimes are compared by.
        windows: in each regime.
        seed: that the windows are made from.
        knowledge: of run times.
        schedulers: the fixed ones.
        mean_ratio: the geometric mean of the ratios to the best of each regime.
        worst_ratio: the largest of them; for utilization, the smallest.
        as_good: number of regimes in which the interval of the ratio does not lie on the wrong side
            of 1, or the values are equal.
        regimes: one by one.
    """

    run: str
    metric: str
    windows: int
    seed: int
    knowledge: str
    schedulers: list[str]
    mean_ratio: float | None
    worst_ratio: float | None
    as_good: int
    regimes: list[RegimeResult]


def evaluate_regimes(
    run: TextOrPath,
    *,
    against: Sequence[TextOrPath] | None = None,
    metric: str | None = None,
    windows: int | None = None,
    seed: int = 0,
    workers: int | None = 1,
    engine: Engine | None = None,
    out: TextOrPath | RunOutput | None = None,
    force: bool = False,
    resume: bool = False,
    progress: Progress | None = None,
) -> RegimesResult:
    """Evaluate a scheduler in the 48 regimes of `rlmetadqn`, as `berthline eval --regimes` does.

    Args:
        run: a scheduler's text, a learned policy, or a run directory; see `evaluate`.
        against: the fixed schedulers; None = the five that the preset chooses from.
        metric: what they are compared by; None = that of a training run, or jct_mean.
        windows: in each regime; None = 8.
        seed: that the windows are made from; no training has these jobs.
        workers: number of processes that make the runs; None = as many as are worth starting.
        engine: where they are, such as `Engine("ray", "10.0.0.1:6379")`; None = this machine.
        out: write a run directory.
        force: replace an earlier evaluation there.
        resume: resume an interrupted evaluation there.
        progress: called after each run with (done, total, label).

    Raises:
        BerthlineError: the scheduler cannot run there, or something cannot be written.
    """
    judged = read_run_argument(text_of("run", run))
    metric = metric or judged.metric
    check_metric(metric)
    own = PRESETS[PRESET].options
    rivals = (
        [f"{order}+{own['discipline']}" for order in own["schedulers"]]
        if against is None
        else [text_of("against", one) for one in against]
    )
    own_text = str(Scheduler.parse(judged.scheduler))
    others = [name for name in rivals if str(Scheduler.parse(name)) != own_text]
    names, _ = with_baseline([judged.scheduler, *others], None)
    # It may be one of the fixed schedulers, and the best somewhere.
    fixed = names if len(others) < len(rivals) else names[1:]
    count = windows or WINDOWS
    cells = [_cell(regime, number, count, seed) for number, regime in enumerate(meta_regimes())]
    output = RunOutput.of(out, "berthline.evaluate_regimes(...)")
    directory = open_directory(
        None if output is None else text_of("out", output.path),
        verb="eval",
        force=force,
        resume=resume,
    )
    knowledge = str(own["knowledge"])
    grid = Grid(
        cells,
        names,
        [seed],
        RunSettings(knowledge=knowledge, keeps_jobs=directory is not None),
        mode=ASKED_WINDOWS,
    )
    config: dict[str, Any] = {
        "run": judged.scheduler,
        "regimes": PRESET,
        "metric": metric,
        "against": names[1:],
        "windows": count,
        "seed": seed,
        "knowledge": knowledge,
    }
    results = make_runs(grid, directory, config, workers=workers, progress=progress, engine=engine)
    of = METRICS[metric]
    regimes = []
    for cell, options in enumerate(meta_regimes()):
        values = {
            name: [float(of.of(each.metrics)) for runs in results.of(cell, number) for each in runs]
            for number, name in enumerate(names)
        }
        regimes.append(_regime(options, values, fixed, cells[cell], higher=of.higher_is_better))
    found = _result(
        regimes, names[0], fixed, metric, count, seed, knowledge, higher=of.higher_is_better
    )
    if directory is not None and output is not None:
        summary = msgspec.structs.asdict(found)
        keep_results(directory, results, command=output.command, config=config, summary=summary)
    return found


def _cell(regime: dict[str, Any], number: int, windows: int, seed: int) -> Cell:
    """Return a regime as a cell of a grid; every regime has jobs of its own."""
    cluster = Cluster.parse(regime["cluster"])
    _, seeds = protocol_seeds(seed * len(meta_regimes()) + number, windows)
    make = functools.partial(_jobs, regime, cluster)
    return Cell(
        workload=_name(regime),
        source=make(seeds[0]),
        cluster=cluster,
        windows=windows,
        window=functools.partial(_window, make, seeds),
        part=REPORT,
    )


def _name(regime: dict[str, Any]) -> str:
    return f"{regime['dials']['shape']}, {regime['dials']['intensity']}"


def _jobs(regime: dict[str, Any], cluster: Cluster, seed: int) -> Workload:
    return generate(
        PRESET, cluster=cluster, jobs=regime["episode_jobs"], seed=seed, **regime["dials"]
    )


def _window(
    make: Callable[[int], Workload], seeds: Sequence[int], number: int
) -> tuple[Workload, float]:
    return make(seeds[number]), 0.0


def _regime(
    options: dict[str, Any],
    values: dict[str, list[float]],
    fixed: Sequence[str],
    cell: Cell,
    *,
    higher: bool,
) -> RegimeResult:
    ours = next(iter(values))
    sign = -1 if higher else 1
    best = min(fixed, key=lambda name: sign * float(np.mean(values[name])))
    ratio = paired_ratio(values[ours], values[best])
    return RegimeResult(
        shape=options["dials"]["shape"],
        intensity=options["dials"]["intensity"],
        gpus=cell.cluster.total_gpus,
        jobs=options["episode_jobs"],
        means={name: float(np.mean(each)) for name, each in values.items()},
        best=best,
        ratio=ratio.ratio,
        low=ratio.low,
        high=ratio.high,
    )


def _result(
    regimes: list[RegimeResult],
    run: str,
    fixed: Sequence[str],
    metric: str,
    windows: int,
    seed: int,
    knowledge: str,
    *,
    higher: bool,
) -> RegimesResult:
    ratios = [regime.ratio for regime in regimes if regime.ratio is not None]
    worst = min if higher else max
    return RegimesResult(
        run=run,
        metric=metric,
        windows=windows,
        seed=seed,
        knowledge=knowledge,
        schedulers=list(fixed),
        mean_ratio=math.exp(float(np.mean(np.log(ratios)))) if ratios else None,
        worst_ratio=worst(ratios) if ratios else None,
        as_good=sum(_is_as_good(regime, higher=higher) for regime in regimes),
        regimes=regimes,
    )


def _is_as_good(regime: RegimeResult, *, higher: bool) -> bool:
    if regime.ratio is None:
        return False
    if regime.low is None or regime.high is None:
        return regime.ratio == 1
    return regime.high >= 1 if higher else regime.low <= 1
