"""Every named heuristic, the express lane and `holdback`: whole logs, one continuous run each;
`make results RESULTS=continuous_runs` runs it.

Windows that start empty hide what these runs show: a queue that never ends, and jobs that are left
behind for months. The figures of a shipped policy go into its card.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from benchmarks.log_page import run_page

import berthline as bl
from berthline.atomic_write import write_atomically
from berthline.evaluate.metrics.starvation import wait_words
from berthline.model.gpu_types import RECORDED
from berthline.policies.orders import ORDERS
from berthline.policies.shipped_policies import FOLDER, ContinuousRun, card_of, shipped_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from benchmarks.result_files import Row

PAGE = "continuous-runs"
LANE = "smallest-area+easy@best-fit?express-lane"
NOT_HERE = (
    *("edf", "dynamic-heuristic", "static-priority", "static-equal", "random"),
    *("srpt", "srpt-area", "las", "gittins", "lexp"),
)
"""Orders by deadlines or priorities, which these logs do not have; by chance; and orders that equal
another one where no job is preempted."""
HEURISTICS = tuple(f"{name}+easy" for name in ORDERS if name not in NOT_HERE)
SHIPPED = shipped_names()
SCHEDULERS = ("fcfs", *HEURISTICS, LANE, *SHIPPED)
SHOWN = ("fcfs+easy", "wfp3+easy", "sjf+easy", "smallest-area+easy", LANE, *SHIPPED)
"""What the first table shows beside the best heuristic."""


@dataclasses.dataclass(frozen=True)
class Log:
    """A whole log on its cluster; `users` = its users gave estimates, else they are modelled."""

    name: str
    file: str
    cluster: str
    users: bool


LOGS = (
    Log("CTC", "swf/CTC-SP2-1996-3.1-cln.swf.gz", "uniform:1x338", users=True),
    Log("HPC2N", "swf/HPC2N-2002-2.2-cln.swf.gz", "uniform:1x240", users=True),
    Log("NASA", "swf/NASA-iPSC-1993-3.1-cln.swf.gz", "uniform:1x128", users=False),
    Log(
        "Venus", "helios_venus/venus_gpu_jobs_2020-03-18_2020-08-31.csv.gz", "uniform:80x8",
        users=False,
    ),
    Log("Philly", "philly/philly_2017-09-04_2017-11-14.csv.gz", "uniform:75x8", users=False),
)  # fmt: skip


def with_estimates(workload: bl.Workload) -> bl.Workload:
    """Return the jobs with an estimate each: run time x a lognormal factor of at least 1."""
    factor = np.exp(np.abs(np.random.Generator(np.random.Philox(19)).normal(0, 1, len(workload))))
    stated = np.where(np.isnan(workload.estimate), workload.run * factor, workload.estimate)
    return dataclasses.replace(workload, estimate=stated)


def measure(traces: Path) -> Iterator[Row]:
    """Yield a row for each log and scheduler."""
    for log in LOGS:
        workload = with_estimates(bl.load_trace(traces / log.file))
        # The type that run times refer to, so that every job runs as long as recorded.
        known = workload.reference_type != RECORDED
        cluster = bl.Cluster.parse(
            f"{log.cluster}:{workload.reference_type}" if known else log.cluster
        )
        for scheduler in SCHEDULERS:
            found = bl.simulate(workload, cluster, scheduler).metrics()
            starved = found.starvation
            assert starved is not None
            yield {
                "log": log.name,
                "estimates": "users'" if log.users else "modelled",
                "cluster": cluster.name,
                "jobs": str(found.jobs.completed),
                "use": f"{found.utilization.gpu:.3f}",
                "scheduler": scheduler,
                "jct": f"{found.jct.mean:.0f}",
                "p99": f"{found.jct.p99:.0f}",
                "slowdown": f"{found.bounded_slowdown.mean:.2f}",
                "longest_wait": f"{starved.wait:.0f}",
                "starved": str(starved.starved),
                "left_behind": str(starved.left_behind),
            }
            print(f"{log.name} {scheduler}", file=sys.stderr, flush=True)


def best_of(rows: Sequence[Row], log: str) -> Row:
    """Return the heuristic with the lowest mean JCT on a log."""
    return min(
        (row for row in rows if row["log"] == log and row["scheduler"] in HEURISTICS),
        key=lambda row: float(row["jct"]),
    )


def parts(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return the computed parts of the page."""
    logs = list(dict.fromkeys(row["log"] for row in rows))
    found = {(row["log"], row["scheduler"]): row for row in rows}
    return {
        "logs": _logs(logs, found),
        "summary": _summary(logs, rows, found),
        **{name.lower(): _log(name, rows) for name in logs},
    }


def _logs(logs: Sequence[str], found: dict[tuple[str, str], Row]) -> list[str]:
    lines = ["| log | jobs | cluster | estimates |", "| --- | ---: | --- | --- |"]
    for log in logs:
        row = found[log, "fcfs+easy"]
        lines.append(f"| {log} | {int(row['jobs']):,} | `{row['cluster']}` | {row['estimates']} |")
    return lines


def _summary(
    logs: Sequence[str], rows: Sequence[Row], found: dict[tuple[str, str], Row]
) -> list[str]:
    """Return for each scheduler its mean JCT against the best heuristic: mean, and worst log."""
    lines = [
        "| scheduler | mean JCT, geometric mean | worst log | slowdown, worst log "
        "| longest wait | left behind | starves on |",
        "| --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    entries = []
    for scheduler in SCHEDULERS:
        runs = {log: found[log, scheduler] for log in logs}
        jct = {log: _ratio(runs[log], best_of(rows, log), "jct") for log in logs}
        slow = {log: _ratio(runs[log], best_of(rows, log), "slowdown") for log in logs}
        typical = math.exp(sum(map(math.log, jct.values())) / len(jct))
        worst, slowest = max(jct, key=lambda log: jct[log]), max(slow, key=lambda log: slow[log])
        longest = max(logs, key=lambda log: float(runs[log]["longest_wait"]))
        starving = [log for log in logs if int(runs[log]["left_behind"])]
        entries.append(
            (
                jct[worst],
                f"| `{scheduler}` | {typical:.2f} | {jct[worst]:.2f} ({worst}) "
                f"| {slow[slowest]:.2f} ({slowest}) "
                f"| {wait_words(float(runs[longest]['longest_wait']))} ({longest}) "
                f"| {sum(int(run['left_behind']) for run in runs.values()):,} "
                f"| {', '.join(starving) or '-'} |",
            )
        )
    return lines + [line for _, line in sorted(entries)]


def _log(log: str, rows: Sequence[Row]) -> list[str]:
    best = best_of(rows, log)
    lines = [
        "| scheduler | mean JCT, s | p99 JCT, s | bounded slowdown | longest wait | starved | "
        "left behind |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    mine = [row for row in rows if row["log"] == log]
    lines += [
        f"| `{row['scheduler']}` | {int(row['jct']):,} | {int(row['p99']):,} "
        f"| {float(row['slowdown']):,.2f} | {wait_words(float(row['longest_wait']))} "
        f"| {int(row['starved']):,} | {int(row['left_behind']):,} |"
        for row in sorted(mine, key=lambda row: float(row["jct"]))
        if row["scheduler"] in SHOWN or row is best
    ]
    return lines


def _ratio(row: Row, other: Row, column: str) -> float:
    return float(row[column]) / float(other[column])


def card_runs(rows: Sequence[Row], scheduler: str) -> list[ContinuousRun]:
    """Return what a policy's card says about these runs, the worst first."""
    runs = []
    for row in rows:
        if row["scheduler"] != scheduler:
            continue
        best = best_of(rows, row["log"])
        runs.append(
            ContinuousRun(
                log=row["log"],
                jobs=int(row["jobs"]),
                estimates=row["estimates"],
                rival=best["scheduler"],
                jct=round(_ratio(row, best, "jct"), 3),
                p99=round(_ratio(row, best, "p99"), 3),
                slowdown=round(_ratio(row, best, "slowdown"), 3),
                longest_wait=float(row["longest_wait"]),
                rival_longest_wait=float(best["longest_wait"]),
                left_behind=int(row["left_behind"]),
            )
        )
    return sorted(runs, key=lambda run: -run.jct)


def write_cards(rows: Sequence[Row]) -> None:
    """Put the figures into the cards of the shipped policies."""
    for name in SHIPPED:
        card = msgspec.structs.replace(card_of(name), continuous=card_runs(rows, name))
        text = msgspec.json.format(msgspec.json.encode(card), indent=2)
        write_atomically(FOLDER / f"{name}.json", text + b"\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run everything, and write the page, the table and the cards."""

    def computed(rows: Sequence[Row]) -> dict[str, list[str]]:
        write_cards(rows)
        return parts(rows)

    return run_page(PAGE, __doc__, measure=measure, parts=computed, argv=argv)


if __name__ == "__main__":
    sys.exit(main())
