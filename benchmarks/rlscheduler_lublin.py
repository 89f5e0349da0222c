"""RLScheduler's published heuristic columns on Lublin-256, recomputed and run in Berthline.

Prints the tables of docs/results/rlscheduler-lublin.md; `make results` runs it.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import hashlib
import math
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from benchmarks.commit_until_start import Job, Key, Rules, start_times

import berthline as bl
from berthline.errors import BerthlineError, TraceError
from berthline.evaluate.statistics.paired import paired_ratio

FETCHED = Path("traces/lublin-256/lublin_256.swf")
"""Where `berthline traces fetch lublin-256` puts it."""

NUM_JOBS = 10_000
PROCESSORS = 256
LENGTH = 1024
WINDOWS = 10
SEED = 1
"""Length, count and seed of the published windows."""
SEEDS = 40
"""Seeds that the page tries."""

ORDERS = ("FCFS", "WFP3", "UNI", "SJF", "F1")
PUBLISHED = {  # the tables of the repository's README, row Lublin-1: (slowdown, utilisation)
    False: ((7273.77, 19753.53, 22274.74, 277.35, 258.37), (0.657, 0.747, 0.691, 0.762, 0.816)),
    True: ((235.82, 133.87, 307.23, 73.31, 75.07), (0.868, 0.864, 0.883, 0.778, 0.840)),
}
BERTHLINE = {"FCFS": "fcfs", "WFP3": "wfp3", "UNI": "unicep", "SJF": "sjf", "F1": "f1"}


# ---- orders --------------------------------------------------------------------------------------


def wfp3(wait: float, job: Job) -> float:
    return -((wait / job.run) ** 3) * job.processors


def unicep(wait: float, job: Job) -> float:
    """Return the published key; the 1e-15 prevents log(1) = 0 for one processor."""
    return -(wait + 1e-15) / (math.log2(job.processors + 1e-15) * job.run)


def f1(job: Job) -> float:
    return math.log10(job.run) * job.processors + 870 * math.log10(job.submit)


TRUE_KEYS: dict[str, Key] = {
    "FCFS": lambda job, _: job.submit,
    "WFP3": lambda job, now: wfp3(now - job.submit, job),
    "UNI": lambda job, now: unicep(now - job.submit, job),
    "SJF": lambda job, _: job.run,
    "F1": lambda job, _: f1(job),
}
PUBLISHED_KEYS: dict[str, Key] = {
    # There, a waiting job's start is stored as -1, and its wait is start - submission.
    **TRUE_KEYS,
    "WFP3": lambda job, _: wfp3(-1 - job.submit, job),
    "UNI": lambda job, _: unicep(-1 - job.submit, job),
}


# ---- windows -------------------------------------------------------------------------------------


def read_jobs(path: Path) -> list[Job]:
    """Return all jobs, on the trace's clock: F1 depends on its zero."""
    fetch = "berthline traces fetch lublin-256"
    if not path.exists():
        raise TraceError("there is no such file", where=str(path), hint=fetch)
    workload = bl.load_trace(path)
    if (workload.provenance["format"], len(workload)) != ("swf", NUM_JOBS):
        raise TraceError(
            f"another trace, of {len(workload)} jobs",
            where=str(path),
            expected=f"lublin_256.swf, of {NUM_JOBS} jobs",
            hint=fetch,
        )
    columns = np.loadtxt(path, comments=";", usecols=(1, 3, 4), dtype=np.int64)
    return [Job(*row) for row in columns.tolist()]


def window_starts(seed: int, jobs: int, *, length: int = LENGTH, count: int = WINDOWS) -> list[int]:
    """Return the starts of the windows that RLScheduler's comparison draws with this seed.

    Gym 0.1x seeds NumPy's Mersenne Twister with the first eight bytes of the SHA-512 of the
    seed's digits; one draw is made per window. NumPy keeps this generator's stream fixed.
    """
    digest = hashlib.sha512(str(seed).encode()).digest()
    generator = np.random.RandomState(list(struct.unpack("<2I", digest[:8])))
    return [int(generator.randint(length, jobs - length - 1)) for _ in range(count)]


def windows_of(jobs: list[Job], seed: int = SEED, *, length: int = LENGTH) -> list[list[Job]]:
    starts = window_starts(seed, len(jobs), length=length)
    return [jobs[start : start + length] for start in starts]


# ---- figures -------------------------------------------------------------------------------------


def bounded_slowdown(window: Sequence[Job], starts: Sequence[float]) -> float:
    """Return the mean over a window's jobs; run times below 10 s count as 10 s."""
    return math.fsum(
        max(1.0, (start - job.submit + job.run) / max(job.run, 10))
        for job, start in zip(window, starts, strict=True)
    ) / len(window)


def utilisation(window: Sequence[Job], starts: Sequence[float], *, to_last_finish: bool) -> float:
    """Return work over capacity: up to the last start, as published, or to the last finish."""
    ends = [s + job.run * to_last_finish for job, s in zip(window, starts, strict=True)]
    work = sum(job.run * job.processors for job in window)
    return work / (max(ends) - window[0].submit) / PROCESSORS


@functools.lru_cache(maxsize=256)
def committed(
    window: tuple[Job, ...], order: str, rules: Rules, *, true_wait: bool = False
) -> list[int]:
    key = (TRUE_KEYS if true_wait else PUBLISHED_KEYS)[order]
    return start_times(window, key, rules, processors=PROCESSORS)


def slowdowns(
    windows: list[list[Job]], order: str, rules: Rules, *, true_wait: bool = False
) -> list[float]:
    """Return one value per window from the separate simulator."""
    return [
        bounded_slowdown(window, committed(tuple(window), order, rules, true_wait=true_wait))
        for window in windows
    ]


def berthline_slowdowns(
    windows: list[list[Job]], scheduler: str, *, rebase: bool = True
) -> list[float]:
    """Return one value per window from Berthline; `rebase`: the clock starts at 0."""
    found = []
    for window in windows:
        submit, run, gpus = np.array(window).T
        workload = bl.Workload.from_columns(submit=submit, run=run, gpus=gpus, rebase=rebase)
        cluster = f"uniform:1x{PROCESSORS}"
        metrics = bl.simulate(workload, cluster, scheduler, knowledge="exact").metrics()
        found.append(metrics.bounded_slowdown.mean)
    return found


def mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


# ---- tables --------------------------------------------------------------------------------------


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(header) + " |"
    yield "|" + " --- |" + " ---: |" * (len(header) - 1)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def published_table(jobs: list[Job]) -> Iterator[str]:
    """Published, reproduced, and Berthline on the same windows."""
    windows, rows = windows_of(jobs), []
    for backfills, (printed, _) in PUBLISHED.items():
        discipline = "easy" if backfills else "strict"
        for order, value in zip(ORDERS, printed, strict=True):
            theirs = slowdowns(windows, order, Rules(backfills=backfills))
            scheduler = f"{BERTHLINE[order]}+{discipline}"
            ours = berthline_slowdowns(windows, scheduler)
            ratio = paired_ratio(ours, theirs)
            rows.append(
                (
                    order + (" with backfilling" if backfills else ""),
                    f"{value:.2f}",
                    f"{mean(theirs):.2f}",
                    f"`{scheduler}`",
                    f"{mean(ours):.2f}",
                    f"{ratio.ratio:.3g} [{ratio.low:.3g}, {ratio.high:.3g}]",
                )
            )
    header = ("order", "published", "reproduced", "Berthline", "its value", "ratio [95 %]")
    yield from table(header, rows)


STEPS = {  # with backfilling: the rules that are switched, one after another
    False: (("RLScheduler", Rules()), ("chosen anew", Rules(commits=False))),
    True: (
        ("RLScheduler", Rules(backfills=True)),
        ("spares", Rules(backfills=True, spares=True)),
        ("own order", Rules(backfills=True, spares=True, own_order=True)),
        ("chosen anew", Rules(commits=False, backfills=True, spares=True, own_order=True)),
    ),
}


def steps_table(jobs: list[Job], *, backfills: bool) -> Iterator[str]:
    """From RLScheduler's semantics to Berthline's, one change at a time."""
    windows, rows = windows_of(jobs), []
    steps = STEPS[backfills]
    for order in ORDERS:
        row = [order, f"{mean(slowdowns(windows, order, steps[0][1])):.2f}"]
        row += [f"{mean(slowdowns(windows, order, r, true_wait=True)):.2f}" for _, r in steps]
        scheduler = f"{BERTHLINE[order]}+{'easy' if backfills else 'strict'}"
        row.append(f"{mean(berthline_slowdowns(windows, scheduler)):.2f}")
        rows.append(row)
    names = [name for name, _ in steps]
    yield from table(["order", names[0], "true wait", *names[1:], "Berthline"], rows)


def seeds_table(jobs: list[Job], *, seeds: int) -> Iterator[str]:
    """The published columns with other seeds."""
    rows, at_seed = [], {}
    for backfills, (printed, _) in PUBLISHED.items():
        for order, value in zip(ORDERS, printed, strict=True):
            per_seed = [
                slowdowns(windows_of(jobs, seed), order, Rules(backfills=backfills))
                for seed in range(SEED, SEED + seeds)
            ]
            means = np.array([mean(values) for values in per_seed])
            at_seed[backfills, order] = means
            rows.append(
                (
                    order + (" with backfilling" if backfills else ""),
                    f"{value:.2f}",
                    f"{means.mean():.2f}",
                    f"{means.std(ddof=1) / means.mean():.1%}",
                    f"{means.min():.2f} to {means.max():.2f}",
                    f"{int((means < means[0]).sum()) + 1}",
                )
            )
    header = ("order", "published (seed 1)", "mean of seeds", "spread", "range", "rank of seed 1")
    yield from table(header, rows)
    yield ""
    for backfills, name in ((False, "without"), (True, "with")):
        wins = int((at_seed[backfills, "SJF"] < at_seed[backfills, "F1"]).sum())
        yield f"SJF is below F1 for {wins} of {seeds} seeds {name} backfilling."


def lengths_table(jobs: list[Job]) -> Iterator[str]:
    """The same ten draws with other window lengths."""
    rows = []
    for length in (256, 512, LENGTH, 2048):
        windows = windows_of(jobs, length=length)
        means = [mean(slowdowns(windows, order, Rules())) for order in ORDERS]
        rows.append([str(length), *(f"{value:.2f}" for value in means)])
    rows.append(["published", *(f"{value:.2f}" for value in PUBLISHED[False][0])])
    yield from table(["jobs in a window", *ORDERS], rows)


def utilisation_table(jobs: list[Job]) -> Iterator[str]:
    """The published utilisation, and utilisation up to the last finish."""
    windows, rows = windows_of(jobs), []
    for backfills, (_, printed) in PUBLISHED.items():
        for order, value in zip(ORDERS, printed, strict=True):
            row = [order + (" with backfilling" if backfills else ""), f"{value:.3f}"]
            for to_last_finish in (False, True):
                values = []
                for window in windows:
                    starts = committed(tuple(window), order, Rules(backfills=backfills))
                    values.append(utilisation(window, starts, to_last_finish=to_last_finish))
                row.append(f"{mean(values):.3f}")
            rows.append(row)
    yield from table(["order", "published", "reproduced", "to the last finish"], rows)


def windows_text(jobs: list[Job]) -> Iterator[str]:
    """The jobs of the windows, their overlap and their load."""
    starts = window_starts(SEED, len(jobs))
    distinct = len({job for start in starts for job in range(start, start + LENGTH)})
    loads = []
    for window in windows_of(jobs):
        span = window[-1].submit - window[0].submit
        loads.append(sum(job.run * job.processors for job in window) / span / PROCESSORS)
    yield f"- First jobs, from 0: {', '.join(map(str, starts))}."
    yield f"- Distinct jobs: {distinct} of {WINDOWS * LENGTH}."
    yield f"- Offered load: {mean(loads):.2f} ({min(loads):.2f} to {max(loads):.2f})."


@dataclasses.dataclass(frozen=True)
class Part:
    """A table of the page."""

    title: str
    lines: Callable[..., Iterator[str]]


def parts(seeds: int) -> dict[str, Part]:
    return {
        "windows": Part("Windows", windows_text),
        "published": Part("Mean bounded slowdown", published_table),
        "lengths": Part("Window lengths", lengths_table),
        "strict": Part("Steps", functools.partial(steps_table, backfills=False)),
        "backfilling": Part(
            "Steps, with backfilling", functools.partial(steps_table, backfills=True)
        ),
        "utilisation": Part("Utilisation", utilisation_table),
        "seeds": Part(f"Seeds {SEED} to {seeds}", functools.partial(seeds_table, seeds=seeds)),
    }


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="rlscheduler_lublin", description=__doc__)
    parser.add_argument(
        "trace", type=Path, nargs="?", default=FETCHED, help=f"plain or gzip'd (default: {FETCHED})"
    )
    parser.add_argument("--only", choices=[*parts(1)], help="print one table")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="seeds of the last table")
    options = parser.parse_args(argv)
    try:
        jobs = read_jobs(options.trace)
    except BerthlineError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    for name, part in parts(options.seeds).items():
        if options.only in (None, name):
            print(f"## {part.title}\n")
            for line in part.lines(jobs):
                print(line, flush=True)
            print(flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
