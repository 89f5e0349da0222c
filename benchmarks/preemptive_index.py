"""A tuned preemptive index with few preemptions and unknown run times, against least attained
service; `make results RESULTS=preemptive_index` runs it."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from benchmarks.preemptive_index_page import LAS, PLAIN, draw, parts
from benchmarks.result_files import RESULTS, fill_page, read_rows, write_rows
from benchmarks.tuning import tune
from benchmarks.winning_settings import TRACES

import berthline as bl
from berthline.errors import BerthlineError, TraceError
from berthline.evaluate.compare.protocol import spread_windows
from berthline.evaluate.metrics.job_table import completion_times, job_table
from berthline.evaluate.statistics.blocks import BLOCKS
from berthline.learn.tuning.search_space import Parameter, SearchSpace
from berthline.model.schedule import PREEMPT
from berthline.policies.scheduler import Scheduler
from berthline.traces.offered_load import scale_to_load
from berthline.traces.split import split_by_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.result_files import Row

PAGE = "preemptive-index"
"""Where the logs may be: beside the repository."""

LOGS = {
    "Venus": ("helios_venus/venus_gpu_jobs_2020-03-18_2020-08-31.csv.gz", 1.0),
    "PAI": ("alibaba_pai_v2020/pai_gpu_tasks_sample_day00-41.csv.gz", 1.0),
    "HPC2N": ("swf/HPC2N-2002-2.2-cln.swf.gz", 0.9),
}
"""The file of each log, and the load that its arrivals are scaled to."""
HOMES = {"Venus": "uniform:80x8", "PAI": "uniform:64x8"}
"""The logs to tune on, and the cluster of each."""
CLUSTERS = {
    "Venus": ("uniform:80x8", "uniform:1x640", "uniform:40x8"),
    "PAI": ("uniform:64x8", "uniform:1x512", "uniform:32x8"),
    "HPC2N": ("uniform:1x240",),
}
"""Clusters for evaluation: the one tuned on, one pool, and half the nodes at the same load."""
WINDOWS_ONLY = ("uniform:40x8", "uniform:32x8", "uniform:1x240")
"""Clusters without a continuous run."""
CONDITIONS = {"restart": 30.0, "checkpoint": 0.0}
WINDOW_JOBS, LONG_JOBS, MOST_WINDOWS, DAY = 2000, 5000, 16, 86_400.0
EPOCHS, TRAIN_WINDOWS = 2, 2
SEEDS, VARIANT_SEEDS = range(5), range(1)
"""Seeds of searches for the rule, and for its variants."""
FEWER, PRICE = 5.0, 1.0
"""Preemptions above a fifth of those of plain cost as much as JCT, both in logarithms."""

OTHERS = {
    "gittins": "gittins+skip!gittins:every=120",
    "index as it comes": "las+skip!index:every=120",
    "no preemption": "fcfs+skip",
    "run times known: srpt-area": "srpt-area+skip![remaining * gpus]",
}
_NUMBERS = (
    Parameter("s", -1.0, 3.0, 1.0),
    Parameter("w", 0.0, 2.0, 0.5),
    Parameter("margin", 0.0, 8.0, 4.0),
    Parameter("min_run", 30.0, 7200.0, 60.0, is_log=True),
)
_TEXT = "las+skip!index:{}:s={{s}}:w={{w}}:margin={{margin}}:min_run={{min_run}}:every=120"
_C = Parameter("c", 10.0, 20_000.0, 600.0, is_log=True)
_OWN = "log2(attained + {c}) + {s} * log2(gpus + 1) - {w} * log2(wait + 60)"
SPACES = {
    "index": SearchSpace("index", _TEXT.format("c={c}"), (_C, *_NUMBERS)),
    "index with c=60": SearchSpace(
        "no c", _TEXT.format("a={a}"), (Parameter("a", 0.25, 3.0, 1.0), *_NUMBERS)
    ),
    "index as the order too": SearchSpace(
        "own",
        f"[{_OWN}]+skip![{_OWN}]:margin={{margin}}:min_run={{min_run}}:every=120",
        (_C, *_NUMBERS),
    ),
}
"""The rule; the rule with another weight instead of its constant; and the same index as the order
of waiting jobs, where the others use the queues of `las`."""


class Outcome(NamedTuple):
    """A scheduler's outcome: JCT and number of preemptions of every job."""

    jct: npt.NDArray[np.float64]
    preempted: npt.NDArray[np.int64]


@functools.cache
def log_of(name: str, folder: Path) -> bl.Workload:
    """Return a log, sizes and times only.

    Raises:
        TraceError: it is not there.
    """
    path = folder / LOGS[name][0]
    if not path.exists():
        raise TraceError("the log is not there", where=str(path))
    log = bl.load_trace(path)
    return bl.Workload.from_columns(submit=log.submit, run=log.run, gpus=log.gpus, name=name)


@dataclasses.dataclass(frozen=True)
class Parts:
    """A log on a cluster, split by time; jobs wider than the cluster are cut to its width."""

    cluster: bl.Cluster
    train: tuple[bl.Workload, ...]
    train_long: tuple[bl.Workload, ...]
    val: tuple[bl.Workload, ...]
    val_run: bl.Workload
    report: tuple[bl.Workload, ...]
    report_run: bl.Workload

    @classmethod
    def of(cls, name: str, cluster_text: str, folder: Path) -> Parts:
        """Return the parts of a log."""
        cluster = bl.Cluster.parse(cluster_text).with_conditions(CONDITIONS)
        log = log_of(name, folder)
        whole = bl.Workload.from_columns(
            submit=log.submit,
            run=log.run,
            gpus=log.gpus.clip(max=cluster.total_gpus),
            name=name,
        )
        split = split_by_time(scale_to_load(whole, cluster, LOGS[name][1]), gap_seconds=DAY)
        return cls(
            cluster,
            windows_of(split.train, WINDOW_JOBS),
            windows_of(split.train, LONG_JOBS),
            windows_of(split.validation, WINDOW_JOBS),
            split.validation,
            windows_of(split.test, WINDOW_JOBS),
            split.test,
        )


def windows_of(part: bl.Workload, jobs: int) -> tuple[bl.Workload, ...]:
    """Return up to MOST_WINDOWS windows, spread over a part."""
    count = min(MOST_WINDOWS, len(part) // jobs)
    cuts = spread_windows(len(part), count, jobs, where=part.name)
    return tuple(part.window(*cut) for cut in cuts)


def run(workload: bl.Workload, cluster: bl.Cluster, text: str) -> Outcome:
    """Run a scheduler; run times are hidden from all but the one that uses them."""
    knowledge = "exact" if Scheduler.parse(text).needs_run_times else "none"
    log = bl.simulate(workload, cluster, text, knowledge=knowledge).log
    stopped = log.job[log.kind == PREEMPT]
    return Outcome(
        completion_times(job_table(log, workload), workload),
        np.bincount(stopped, minlength=len(workload)),
    )


class Loss:
    """Mean JCT against plain least attained service, and a price for preemptions.

    Formula: mean over windows of ln(JCT / JCT of plain) + PRICE * max(0, ln(FEWER * preemptions /
    preemptions of plain)).
    """

    def __init__(self, cluster: bl.Cluster) -> None:
        self._cluster = cluster
        self._known: dict[tuple[int, str], tuple[float, float]] = {}

    def _of(self, window: bl.Workload, text: str, *, keep: bool) -> tuple[float, float]:
        key = (id(window), text)
        if key in self._known:
            return self._known[key]
        outcome = run(window, self._cluster, text)
        found = float(outcome.jct.mean()), float(outcome.preempted.mean())
        if keep:
            self._known[key] = found
        return found

    def __call__(self, text: str, windows: Sequence[bl.Workload]) -> float:
        """Return the loss of a scheduler on some windows."""
        ours = np.array([self._of(window, text, keep=False) for window in windows])
        plain = np.array([self._of(window, LAS[PLAIN], keep=True) for window in windows])
        jct = float(np.log(ours[:, 0] / plain[:, 0]).mean())
        excess = math.log(FEWER * max(ours[:, 1].mean(), 1e-9) / plain[:, 1].mean())
        return jct + PRICE * max(excess, 0.0)


def searches(folder: Path) -> Iterator[Row]:
    """Tune everything; yield a row for each search."""
    for log, home in HOMES.items():
        cuts = Parts.of(log, home, folder)
        loss = Loss(cuts.cluster)

        def val_loss(text: str, cuts: Parts = cuts, loss: Loss = loss) -> float:
            return (loss(text, cuts.val) + loss(text, [cuts.val_run])) / 2

        for name, space in SPACES.items():
            for seed in SEEDS if name == "index" else VARIANT_SEEDS:

                def train_loss(
                    text: str, epoch: int, cuts: Parts = cuts, loss: Loss = loss, seed: int = seed
                ) -> float:
                    draws = np.random.Generator(np.random.Philox(key=[seed, epoch]))
                    chosen = draws.choice(len(cuts.train), TRAIN_WINDOWS, replace=False)
                    short = [cuts.train[i] for i in sorted(chosen)]
                    long = cuts.train_long[draws.integers(len(cuts.train_long))]
                    return (loss(text, short) + loss(text, [long])) / 2

                found = tune(space, train_loss, val_loss, epochs=EPOCHS, seed=seed, look_every=2)
                print(f"{log}, {name}, seed {seed}: VAL {found.val_loss:+.4f}", flush=True)
                yield {
                    "log": log,
                    "cluster": home,
                    "space": name,
                    "seed": str(seed),
                    "evaluations": str(found.evaluations),
                    "start_val_loss": repr(found.start_val_loss),
                    "val_loss": repr(found.val_loss),
                    "scheduler": found.scheduler,
                }


def judged(folder: Path, found: Sequence[Row]) -> Iterator[Row]:
    """Read REPORT: run everything everywhere; yield a row for each window and each block."""
    tuned = [row for row in found if row["space"] == "index"]
    best = {
        log: min((row for row in tuned if row["log"] == log), key=lambda r: float(r["val_loss"]))
        for log in HOMES
    }
    for log, clusters in CLUSTERS.items():
        for cluster in clusters:
            cuts = Parts.of(log, cluster, folder)
            schedulers = {**LAS, **OTHERS}
            schedulers |= {
                f"tuned, seed {row['seed']}": row["scheduler"] for row in tuned if row["log"] == log
            }
            schedulers |= {f"tuned on {other}": row["scheduler"] for other, row in best.items()}
            for name, text in schedulers.items():
                row = {"log": log, "cluster": cluster, "name": name, "scheduler": text}
                for number, window in enumerate(cuts.report):
                    yield {**row, "judged": "window", "number": str(number)} | values(
                        run(window, cuts.cluster, text)
                    )
                if cluster in WINDOWS_ONLY:
                    continue
                whole = run(cuts.report_run, cuts.cluster, text)
                edges = [len(whole.jct) * block // BLOCKS for block in range(BLOCKS + 1)]
                for block in range(BLOCKS):
                    span = slice(edges[block], edges[block + 1])
                    yield {**row, "judged": "block", "number": str(block)} | values(
                        Outcome(whole.jct[span], whole.preempted[span])
                    )
            print(f"{log} on {cluster}: evaluated", flush=True)


def values(outcome: Outcome) -> Row:
    """Return the columns of a row that were measured."""
    return {
        "jobs": str(len(outcome.jct)),
        "jct_mean": f"{outcome.jct.mean():.10g}",
        "jct_p99": f"{np.quantile(outcome.jct, 0.99):.10g}",
        "jct_max": f"{outcome.jct.max():.10g}",
        "preemptions": str(int(outcome.preempted.sum())),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Search and evaluate, and write the CSV files, the page and the figure."""
    parser = argparse.ArgumentParser(prog="preemptive_index", description=__doc__)
    parser.add_argument("traces", type=Path, nargs="?", default=TRACES, help="where the logs are")
    parser.add_argument("--from-csv", action="store_true", help="write the page; run nothing")
    options = parser.parse_args(argv)
    found, runs = (RESULTS / f"{PAGE}{end}.csv" for end in ("-searches", ""))
    try:
        if not options.from_csv:
            write_rows(found, searches(options.traces))
            write_rows(runs, judged(options.traces, read_rows(found)))
        fill_page(PAGE, parts(read_rows(found), read_rows(runs)))
        draw(read_rows(runs), RESULTS / f"{PAGE}.png")
    except BerthlineError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(f"written: {PAGE}.csv, -searches.csv, .md and .png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
