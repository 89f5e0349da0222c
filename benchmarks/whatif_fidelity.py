"""How well `whatif` models the scheduler of a log, for real logs and for simulated logs with known
schedulers; `make results RESULTS=whatif_fidelity` runs it."""

from __future__ import annotations

import dataclasses
import statistics
import sys
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from benchmarks.log_page import run_page

import berthline as bl
from berthline.errors import TraceError
from berthline.evaluate.whatif.fidelity import grade
from berthline.evaluate.whatif.judged_days import DAY
from berthline.evaluate.whatif.whatif import whatif
from berthline.model.history import History
from berthline.model.limits import Quota
from berthline.model.schedule import START

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from benchmarks.result_files import Row

    from berthline.evaluate.whatif.whatif_result import WhatIf

PAGE = "whatif-fidelity"
WEEK = 7 * DAY

LOGS: dict[str, tuple[str, range]] = {
    "CTC-SP2": ("swf/CTC-SP2-1996-3.1-cln.swf.gz", range(4, 49, 4)),
    "HPC2N": ("swf/HPC2N-2002-2.2-cln.swf.gz", range(10, 176, 15)),
    "Alibaba openb": ("alibaba_gpu_v2023/openb_pod_list_default.csv.gz", range(20, 22)),
    "Google 2011": ("google_2011/job_events", range(1, 2)),
    "MIT Supercloud": (
        "mit_supercloud_slurm/slurm_log_sample_2021-01-01_2021-02-14.csv.gz",
        range(1, 2),
    ),
}
"""Logs with recorded waits, and the weeks of each that are replayed, spread over it."""

CLUSTER, JOBS, USER_LIMIT = "uniform:8x8", 6000, 24


def main(argv: Sequence[str] | None = None) -> int:
    """Replay weeks of logs, and write the CSV file and the page."""
    return run_page(PAGE, __doc__, measure=measure, parts=parts, argv=argv)


def measure(folder: Path) -> Iterator[Row]:
    """Yield a row for every week of the real logs, and for every simulated one."""
    yield from real_logs(folder)
    yield from simulated_logs()


def real_logs(folder: Path) -> Iterator[Row]:
    """Yield a row for every week of the real logs.

    Raises:
        TraceError: a log is not there.
    """
    for name, (file, weeks) in LOGS.items():
        if not (folder / file).exists():
            raise TraceError("the log is not there", where=str(folder / file))
        workload = bl.load_trace(folder / file)
        last = float(workload.submit[-1]) + 1
        for week in weeks:
            begin, end = (week - 1) * WEEK, min(week * WEEK, last)
            yield row(name, "real", str(week), whatif(workload, begin=begin, end=end))


def simulated_logs() -> Iterator[Row]:
    """Yield a row for every simulated log; its name says what is hidden in it."""
    jobs = bl.generate(
        "poisson",
        cluster=CLUSTER,
        jobs=JOBS,
        load=0.95,
        seed=3,
        estimates="human",
        estimate_error=1,
        run_median=3600,
        run_high=172_800,
    )
    jobs = bl.Workload.from_columns(
        submit=np.floor(jobs.submit),
        run=np.ceil(jobs.run),
        gpus=jobs.gpus,
        estimate=60 * np.ceil(jobs.estimate / 60),
        user=jobs.user,
        user_names=jobs.user_names,
    )
    for scheduler in ("fcfs", "fcfs+skip", "fcfs+easy", "sjf+easy", "slurm-multifactor+easy"):
        log = recorded(bl.simulate(jobs, CLUSTER, scheduler))
        yield row(f"{scheduler}, nothing hidden", "simulated", "", last_week(log))
    run = bl.simulate(jobs, CLUSTER, "fcfs+easy")
    yield row(
        "fcfs+easy, nodes in another order", "simulated", "", last_week(recorded(run, shuffle=True))
    )
    yield row(
        "fcfs+easy, no lists of nodes", "simulated", "", last_week(recorded(run, nodes=False))
    )
    unknown = bl.simulate(jobs, CLUSTER, "fcfs+easy@worst-fit")
    yield row("fcfs+easy, another placement", "simulated", "", last_week(recorded(unknown)))
    limited = dataclasses.replace(
        bl.Cluster.parse(CLUSTER), quotas=(Quota(gpus=USER_LIMIT, user="*"),)
    )
    held = bl.simulate(jobs, limited, "fcfs+easy")
    yield row(
        f"fcfs+easy, at most {USER_LIMIT} GPUs a user", "simulated", "", last_week(recorded(held))
    )


def recorded(result: bl.Result, *, nodes: bool = True, shuffle: bool = False) -> bl.Workload:
    """Return the jobs of a run with what accounting would have recorded about them."""
    log, jobs = result.log, result.workload
    starts = np.flatnonzero(log.kind == START)
    bounds = np.append(log.detail[starts], len(log.alloc_node))
    names = np.arange(result.cluster.num_nodes)
    if shuffle:
        names = np.random.default_rng(0).permutation(names)
    start = np.full(len(jobs), np.nan)
    start[log.job[starts]] = log.time[starts]
    lists: dict[str, int] = {}
    code = np.full(len(jobs), -1, np.int32)
    for index, at in enumerate(starts.tolist()):
        held = names[log.alloc_node[bounds[index] : bounds[index + 1]]]
        text = ",".join(f"gpu{node:02}" for node in sorted(held.tolist()))
        code[log.job[at]] = lists.setdefault(text, len(lists))
    return bl.Workload.from_columns(
        submit=jobs.submit,
        run=jobs.run,
        gpus=jobs.gpus,
        estimate=jobs.estimate,
        user=jobs.user,
        user_names=jobs.user_names,
        history=History(start, nodes=code, node_lists=tuple(lists)) if nodes else History(start),
        rebase=False,
    )


def last_week(workload: bl.Workload) -> WhatIf:
    """Return the answer for the last week of a log."""
    end = float(workload.submit[-1]) + 1
    return whatif(workload, begin=end - WEEK, end=end)


def row(name: str, kind: str, week: str, found: WhatIf) -> Row:
    """Return an answer as a row of the CSV file."""
    each, idle = found.fidelity, found.idle_waits
    doubts = [
        o.against_today.could_explain
        for o in found.outcomes
        if o.against_today is not None and o.against_today.could_explain is not None
    ]
    print(f"{name} {week}: {found.today}, {grade(each)}", file=sys.stderr)
    values: dict[str, object] = {
        "kind": kind,
        "log": name,
        "week": week,
        "jobs": each.jobs,
        "gpus": found.cluster.gpus,
        "model": found.today,
        "available": found.cluster.available,
        "user_limit": found.models[0].user_limit,
        "chosen_on": found.split.how,
        "error_factor_chosen": found.models[0].fidelity.error_factor,
        "error_factor": each.error_factor,
        "recorded_mean_s": each.recorded_mean,
        "modelled_mean_s": each.simulated_mean,
        "rank_correlation": each.rank_correlation,
        "within_2x": each.within_2x,
        "class_error_factor": each.class_error_factor,
        "idle": None if idle is None else idle.share,
        "idle_standstill": None if idle is None else idle.standstill,
        "idle_own_jobs": None if idle is None else idle.own_jobs,
        "grade": grade(each),
        "alternatives": len(found.outcomes) - 1,
        "alternatives_doubtful": sum(doubt >= 0.5 for doubt in doubts),
    }
    return {
        key: "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
        for key, value in values.items()
    }


def parts(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return the computed parts of the page."""
    return {
        "real": real_table(rows),
        "hidden": hidden_table(rows),
        "simulated": simulated_table(rows),
    }


def real_logs_of(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the weeks of each real log."""
    found: dict[str, list[Row]] = {}
    for each in rows:
        if each["kind"] == "real":
            found.setdefault(each["log"], []).append(each)
    return found


def together(weeks: Sequence[Row]) -> float:
    """Return modelled / recorded mean wait over the jobs of all weeks."""
    jobs = _column(weeks, "jobs")
    modelled, recorded_waits = (
        sum(count * value for count, value in zip(jobs, _column(weeks, key), strict=True))
        for key in ("modelled_mean_s", "recorded_mean_s")
    )
    return modelled / recorded_waits


def real_table(rows: Sequence[Row]) -> list[str]:
    """Return a line for each real log: all its weeks together, medians over weeks, and grades."""
    lines = [
        "| log | weeks | jobs | models chosen | modelled / recorded mean wait | by week |"
        " rank correlation | means of sizes off by | within 2x | grades |",
        "| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for log, mine in real_logs_of(rows).items():
        ratios = [float(each["modelled_mean_s"]) / float(each["recorded_mean_s"]) for each in mine]
        lines.append(
            f"| {log} | {len(mine)} | {sum(int(each['jobs']) for each in mine):,} | "
            f"{_counts(mine, 'model', '`{}`')} | **{together(mine):.2f}** | {_middle(ratios)} | "
            f"{_middle(_column(mine, 'rank_correlation'))} | "
            f"{_middle(_column(mine, 'class_error_factor'))} | "
            f"{_middle(_column(mine, 'within_2x'))} | {_counts(mine, 'grade', '{}')} |"
        )
    return lines


def hidden_table(rows: Sequence[Row]) -> list[str]:
    """Return a line for each real log: the hidden limits, and waits beside free GPUs."""
    lines = [
        "| log | share of GPUs available | weeks with a limit for users | waits beside free GPUs |"
        " of these: nothing started for an hour | the user's own jobs ran | otherwise |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for log, mine in real_logs_of(rows).items():
        weight = [
            float(each["recorded_mean_s"]) * float(each["jobs"]) for each in mine if each["idle"]
        ]
        idle, still, own = (
            sum(w * v for w, v in zip(weight, _column(mine, key), strict=True)) / sum(weight)
            for key in ("idle", "idle_standstill", "idle_own_jobs")
        )
        limited = sum(bool(each["user_limit"]) for each in mine)
        lines.append(
            f"| {log} | {_middle(_column(mine, 'available'))} | {limited} of {len(mine)} | "
            f"{idle:.0%} | {still:.0%} | {own:.0%} | {max(idle - still - own, 0):.0%} |"
        )
    return lines


def simulated_table(rows: Sequence[Row]) -> list[str]:
    """Return a line for each simulated log."""
    lines = [
        "| log | model chosen | limit for users | recorded mean wait, h | modelled |"
        " rank correlation | within 2x | waits beside free GPUs | grade |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for each in rows:
        if each["kind"] == "simulated":
            recorded_mean, modelled = (
                float(each[key]) / 3600 for key in ("recorded_mean_s", "modelled_mean_s")
            )
            lines.append(
                f"| {each['log']} | `{each['model']}` | {each['user_limit'] or '-'} | "
                f"{recorded_mean:.2f} | {modelled:.2f} | "
                f"{float(each['rank_correlation'] or 'nan'):.2f} | {float(each['within_2x']):.2f} "
                f"| {float(each['idle'] or 'nan'):.2f} | {each['grade']} |"
            )
    return lines


def _counts(rows: Sequence[Row], key: str, form: str) -> str:
    """Return how often each value of a column occurs, the most frequent first."""
    counted = Counter(each[key] for each in rows).most_common()
    return ", ".join(f"{form.format(value)} {count}" for value, count in counted)


def _column(rows: Sequence[Row], key: str) -> list[float]:
    return [float(each[key]) for each in rows if each[key]]


def _middle(values: Sequence[float]) -> str:
    """Return the median, and the range if there are several values."""
    if not values:
        return "-"
    middle = f"{statistics.median(values):.2f}"
    return middle if len(values) == 1 else f"{middle} ({min(values):.2f} to {max(values):.2f})"


if __name__ == "__main__":
    sys.exit(main())
