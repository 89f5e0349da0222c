"""Where the winning policy is tuned and evaluated: real logs, split by time, with what is known of
run times. Clusters and loads are chosen so that jobs queue even in windows that start empty."""

from __future__ import annotations

import dataclasses
import functools
import heapq
from pathlib import Path

import numpy as np
import numpy.typing as npt
from benchmarks.run_time_predictor import RunTimePredictor

import berthline as bl
from berthline.errors import TraceError
from berthline.traces.offered_load import scale_to_load
from berthline.traces.split import TraceParts, split_by_time

Column = npt.NDArray[np.float64]
"""A number for each job."""
TRACES = Path(__file__).parents[2] / "shared" / "traces"
"""Where the logs may be: beside the repository."""
WINDOW_JOBS, MOST_WINDOWS = 256, 140
VAL_WINDOWS = 40
LONG_LOADS = {
    "train": (0.96, 0.98, 1.0, 1.02, 1.04),
    "apart": (0.97, 0.99, 1.01, 1.03),
    "val": (0.96, 0.98, 1.0, 1.02, 1.04),
    "report": (1.0,),
}
"""Loads of a whole part in one run. The slowdown of one run depends on a few jobs: a load that
differs by one percent gives another sample of the same period."""


@dataclasses.dataclass(frozen=True)
class Log:
    """A log: its file, the cluster and load of short windows, and the cluster of one long run."""

    name: str
    file: str
    cluster: str
    load: float
    whole: str


LOGS = {
    log.name: log
    for log in (
        Log(
            "Venus",
            "helios_venus/venus_gpu_jobs_2020-03-18_2020-08-31.csv.gz",
            "uniform:16x8",
            1.0,
            "uniform:80x8",
        ),
        Log("HPC2N", "swf/HPC2N-2002-2.2-cln.swf.gz", "uniform:1x240", 1.0, "uniform:1x240"),
        Log("CTC", "swf/CTC-SP2-1996-3.1-cln.swf.gz", "uniform:1x338", 1.0, "uniform:1x338"),
        Log(
            "Philly", "philly/philly_2017-09-04_2017-11-14.csv.gz", "uniform:8x8", 3.0,
            "uniform:75x8",
        ),
        Log(
            "PAI", "alibaba_pai_v2020/pai_gpu_tasks_sample_day00-41.csv.gz", "uniform:16x8", 2.0,
            "uniform:64x8",
        ),
    )
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Setting:
    """A log and what is known of it; `long` = one run over the whole period, no short windows."""

    log: str
    known: str
    long: bool = False

    @property
    def name(self) -> str:
        """Its name on the page."""
        return f"{self.log}, {self.known}" + (", one run" if self.long else "")

    @property
    def knowledge(self) -> str:
        """The simulator's knowledge of schedulers; predictions are passed as estimates."""
        return {"history": "estimate", "estimates": "estimate", "none": "none"}.get(
            self.known, "exact"
        )

    @property
    def cluster(self) -> bl.Cluster:
        """The nodes."""
        log = LOGS[self.log]
        return bl.Cluster.parse(log.whole if self.long else log.cluster)

    def windows(self, folder: Path) -> dict[str, list[bl.Workload]]:
        """Return the windows: of TRAIN, of TRAIN to choose on, of VAL, and of REPORT.

        Raises:
            TraceError: the log is not there.
        """
        parts = split_of(self.log, self.known, folder, is_long=self.long)
        if not self.long:
            train = _cut(parts.train, WINDOW_JOBS, MOST_WINDOWS)
            apart = train[::4]
            return {
                "train": [jobs for jobs in train if jobs not in apart],
                "apart": apart,
                "val": _cut(parts.validation, WINDOW_JOBS, VAL_WINDOWS),
                "report": _cut(parts.test, WINDOW_JOBS, MOST_WINDOWS),
            }
        whole = {
            "train": parts.train, "apart": parts.train,
            "val": parts.validation, "report": parts.test,
        }  # fmt: skip
        return {
            part: [scale_to_load(whole[part], self.cluster, load) for load in loads]
            for part, loads in LONG_LOADS.items()
        }


@functools.lru_cache(maxsize=2)
def split_of(name: str, known: str, folder: Path, *, is_long: bool) -> TraceParts:
    """Return the parts of a log, scaled to its load, with the estimates of a setting."""
    log = LOGS[name]
    file = folder / log.file
    if not file.exists():
        raise TraceError("the log is not there", where=str(file))
    cluster = bl.Cluster.parse(log.whole if is_long else log.cluster)
    read = bl.load_trace(file)
    fits = read.gpus <= cluster.total_gpus
    estimate, doubt = knowledge_of(read, known)
    jobs = bl.Workload.from_columns(
        submit=read.submit[fits],
        run=read.run[fits],
        gpus=read.gpus[fits],
        user=read.user[fits],
        estimate=estimate[fits],
        # No rival reads priorities: here they are the uncertainty of the prediction.
        priority=doubt[fits],
        name=name,
    )
    return split_by_time(
        scale_to_load(jobs, cluster, log.load), gap_jobs=WINDOW_JOBS, gap_seconds=86_400.0
    )


def knowledge_of(log: bl.Workload, known: str) -> tuple[Column, Column]:
    """Return the run times that schedulers may see, and their uncertainty.

    The uncertainty is known only for predictions: in doublings; 0 = not known.
    """
    if known == "history":
        return predictions(log)
    sure = np.zeros(len(log))
    if known != "estimates":
        return log.run.astype(np.float64), sure
    stated = log.estimate.astype(np.float64)
    if np.isnan(stated).mean() < 0.5:
        return np.where(np.isnan(stated), np.nanmedian(stated), stated), sure
    # Logs of GPU clusters have none, so we draw them: unbiased in the logarithm, sigma = 1.
    noise = np.random.Generator(np.random.Philox(key=[0, 17])).standard_normal(len(log))
    return np.maximum(log.run * np.exp(noise), 1.0), sure


def predictions(log: bl.Workload) -> tuple[Column, Column]:
    """Return predictions made at submission from jobs finished by then, and their uncertainty.

    A job is taken to finish a run time after it started, as recorded; without a record, after it
    was submitted.
    """
    predictor = RunTimePredictor()
    begin = log.submit if log.history is None else log.history.start
    begin = np.where(np.isnan(begin), log.submit, np.maximum(begin, log.submit))
    running: list[tuple[float, int]] = []
    found, doubt = np.empty(len(log)), np.empty(len(log))
    for job in range(len(log)):
        now = float(log.submit[job])
        while running and running[0][0] <= now:
            _, done = heapq.heappop(running)
            predictor.finished(**_who(log, done), run=float(log.run[done]))
        found[job] = predictor.predict(**_who(log, job))
        doubt[job] = predictor.doubt(**_who(log, job))
        heapq.heappush(running, (float(begin[job] + log.run[job]), job))
    return found, doubt


def _who(log: bl.Workload, job: int) -> dict:
    return {"user": int(log.user[job]), "pool": int(log.pool[job]), "gpus": float(log.gpus[job])}


def _cut(jobs: bl.Workload, length: int, most: int) -> list[bl.Workload]:
    """Return disjoint windows, spread over all jobs."""
    count = min(len(jobs) // length, most)
    starts = np.linspace(0, len(jobs) - length, count).astype(int) if count > 1 else [0]
    return [jobs.window(int(first), int(first) + length) for first in starts]
