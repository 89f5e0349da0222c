"""How well finished jobs predict run times, and how much that helps a scheduler;
`make results RESULTS=run_time_prediction` runs it."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

import numpy as np
from benchmarks.log_page import run_page
from benchmarks.paired_windows import in_words
from benchmarks.prediction_error import LastTwo, prediction_error, replay_predictions
from benchmarks.run_time_predictor import RunTimePredictor

import berthline as bl
from berthline.errors import TraceError
from berthline.evaluate.compare.protocol import spread_windows
from berthline.evaluate.statistics.paired import paired_ratio
from berthline.traces.offered_load import scale_to_load

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from benchmarks.result_files import Row

PAGE = "run-time-prediction"

LOGS: dict[str, tuple[str, int, float]] = {
    "HPC2N": ("swf/HPC2N-2002-2.2-cln.swf.gz", 240, 1.0),
    "CTC-SP2": ("swf/CTC-SP2-1996-3.1-cln.swf.gz", 338, 1.0),
    "Philly": ("philly/philly_2017-09-04_2017-11-14.csv.gz", 64, 3.0),
    "Venus": ("helios_venus/venus_gpu_jobs_2020-03-18_2020-08-31.csv.gz", 128, 1.5),
    "PAI": ("alibaba_pai_v2020/pai_gpu_tasks_sample_day00-41.csv.gz", 128, 2.0),
}
"""Logs, and the size and load of the pool that their windows run on, so that jobs wait."""

RULES = {
    "last two": LastTwo,
    "last two by pool": functools.partial(LastTwo, by_pool=True),
    "faded by size": RunTimePredictor,
}
HAVE_POOLS = ("Philly",)
SCHEDULERS = ("smallest-area+easy", "sjf+skip")
WINDOWS, WINDOW_JOBS = 10, 1500
KEYS = ("mean_factor", "median_factor", "within_two", "rank_correlation", "too_short")
HEADS = ("typical factor", "median factor", "within 2x", "rank correlation", "too short")


def main(argv: Sequence[str] | None = None) -> int:
    """Predict and run, and write the CSV file and the page."""
    return run_page(PAGE, __doc__, measure=measure, parts=parts, argv=argv)


def measure(folder: Path) -> Iterator[Row]:
    """Yield a row for the errors of each rule, and one for each run.

    Raises:
        TraceError: a log is not there.
    """
    for name, (file, gpus, load) in LOGS.items():
        if not (folder / file).exists():
            raise TraceError("the log is not there", where=str(folder / file))
        log = bl.load_trace(folder / file)
        half = len(log) // 2
        known = {"exact": log.run}
        for rule, make in RULES.items():
            if rule == "last two by pool" and name not in HAVE_POOLS:
                continue
            known[rule] = replay_predictions(log, make())
            error = prediction_error(known[rule][half:], log.run[half:])
            for key in KEYS:
                yield row(name, rule, "", "", key, getattr(error, key))
        if np.isfinite(log.estimate).all():
            error = prediction_error(log.estimate[half:], log.run[half:])
            for key in KEYS:
                yield row(name, "users' estimates", "", "", key, getattr(error, key))
        cluster = bl.Cluster.parse(f"uniform:1x{gpus}")
        for window, (first, last) in enumerate(
            spread_windows(len(log) - half, WINDOWS, WINDOW_JOBS, where=name)
        ):
            chosen = slice(half + first, half + last)
            for rule, times in known.items():
                jobs = bl.Workload.from_columns(
                    submit=log.submit[chosen] - log.submit[chosen][0],
                    run=log.run[chosen],
                    gpus=np.minimum(log.gpus[chosen], gpus),
                    estimate=np.maximum(times[chosen], 1.0),
                )
                jobs = scale_to_load(jobs, cluster, load)
                for scheduler in SCHEDULERS:
                    run = bl.simulate(jobs, cluster, scheduler, knowledge="estimate").metrics()
                    yield row(name, rule, scheduler, window, "mean_jct", run.jct.mean)
                    slowdown = run.bounded_slowdown.mean
                    yield row(name, rule, scheduler, window, "mean_bounded_slowdown", slowdown)


def row(log: str, rule: str, scheduler: str, window: object, key: str, value: float) -> Row:
    """Return a row of the CSV file."""
    return {
        "log": log,
        "rule": rule,
        "scheduler": scheduler,
        "window": str(window),
        "metric": key,
        "value": repr(float(value)),
    }


def values(rows: Sequence[Row], **where: str) -> list[float]:
    """Return the values of the rows with these entries."""
    return [float(r["value"]) for r in rows if all(r[k] == v for k, v in where.items())]


def parts(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return the computed parts of the page, by name."""
    errors = ["| log | rule | " + " | ".join(HEADS) + " |", "| --- | --- |" + " ---: |" * 5]
    gains = [
        "| log | scheduler | rule | mean JCT | mean bounded slowdown |",
        "| --- | --- | --- | ---: | ---: |",
    ]
    for log in LOGS:
        for rule in (*RULES, "users' estimates"):
            found = [values(rows, log=log, rule=rule, scheduler="", metric=key) for key in KEYS]
            if all(found):
                cells = " | ".join(f"{one[0]:.2f}" for one in found)
                errors.append(f"| {log} | {rule} | {cells} |")
        for scheduler in SCHEDULERS:
            for rule in (*list(RULES)[1:], "exact"):
                cells = []
                for metric in ("mean_jct", "mean_bounded_slowdown"):
                    ours, base = (
                        values(rows, log=log, rule=r, scheduler=scheduler, metric=metric)
                        for r in (rule, "last two")
                    )
                    if ours:
                        cells.append(in_words(paired_ratio(ours, base)))
                if cells:
                    gains.append(f"| {log} | `{scheduler}` | {rule} | " + " | ".join(cells) + " |")
    return {"errors": errors, "gains": gains}


if __name__ == "__main__":
    sys.exit(main())
