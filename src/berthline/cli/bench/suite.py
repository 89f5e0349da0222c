"""The benchmark of suites: CPU time of whole suites, resuming, and what a message costs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from berthline.cli.output import new_table, number, print_facts, print_table
from berthline.engines.engine import LOCAL, RAY, Engine
from berthline.experiments.suites.planned_runs import PlannedRuns, asked_of
from berthline.experiments.suites.run_suite import make_runs, run_suite
from berthline.experiments.suites.suite_plan import SuitePlan, find_suite
from berthline.experiments.suites.suite_work import SuiteWork
from berthline.runs.kept_runs import KeptRun, KeptRuns
from berthline.runs.run_directory import to_toml
from berthline.runs.run_layout import UNFINISHED
from berthline.worker_pool import serve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Progress = Callable[[int, int, str], None]

SEED = 0
KEPT_RUNS, KEPT_RUNS_QUICK = 100_000, 5_000
MESSAGES = 300

_LOAD = """
import json, sys, time
from berthline.runs.kept_runs import KeptRuns
from pathlib import Path
before = time.process_time()
kept = KeptRuns(Path(sys.argv[1]), {})
seconds = time.process_time() - before
import resource
print(json.dumps([len(kept), seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""
_RESUME = """
import json, os, sys, time
from berthline.experiments.suites.suite_plan import find_suite
from berthline.experiments.suites.run_suite import run_suite
def tell(done, total, label):
    print(json.dumps([done, total, time.process_time()]), flush=True)
    os._exit(0)
run_suite(find_suite(sys.argv[1]), out=sys.argv[2], resume=True, workers=1, progress=tell)
"""


class SuiteSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """A whole suite under its rules, with all files, in one process."""

    suite: str
    runs: int
    cpu_seconds: float


class KeptSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """Reading a file of finished runs in a new process, whose memory includes Python."""

    runs: int
    file_mb: float
    cpu_seconds: float
    peak_mb: float


class LastRun(msgspec.Struct, frozen=True, kw_only=True):
    """CPU time of a new process until the last run begins, of a suite where only that is left."""

    suite: str
    runs: int
    cpu_seconds: float


class MessageCost(msgspec.Struct, frozen=True, kw_only=True):
    """Wall-clock time of an empty message and its answer, one worker, after its start."""

    engine: str
    milliseconds: float


class EngineSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """Wall-clock time of a suite on Ray and on as many local workers, one after the other."""

    suite: str
    workers: int
    local_seconds: float
    ray_seconds: float
    ratio: float


class SuitesReport(msgspec.Struct, frozen=True, kw_only=True):
    """Results of the benchmark of suites."""

    machine: str
    quick: bool
    suites: list[SuiteSpeed]
    kept: KeptSpeed
    resumed: LastRun
    messages: list[MessageCost]
    engines: EngineSpeed | None


def measure_suites(*, machine: str, quick: bool, report: Progress) -> SuitesReport:
    """Measure suites; the part about Ray needs RAY_ADDRESS.

    Args:
        machine: a line about this machine.
        quick: small parts of the suites.
        report: called with (parts done, parts in all, next part).
    """
    names = ["core"] if quick else ["core", "robustness"]
    address = os.environ.get("RAY_ADDRESS")
    steps = len(names) + (4 if address else 3)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        speeds = []
        for done, name in enumerate(names):
            report(done, steps, name)
            speeds.append(_whole(_rules_only(name, quick=quick), place / name))
        report(len(names), steps, "finished runs")
        kept = _kept(place, KEPT_RUNS_QUICK if quick else KEPT_RUNS)
        report(len(names) + 1, steps, "resuming")
        resumed = _resumed(_rules_only("core", quick=quick), place)
        report(len(names) + 2, steps, "messages")
        engines = [Engine()] if address is None else [Engine(), Engine(RAY, address)]
        messages = [_message(engine) for engine in engines]
        compared = None
        if address is not None:
            report(len(names) + 3, steps, "Ray")
            compared = _compared(_rules_only(names[-1], quick=quick), engines[-1])
    return SuitesReport(
        machine=machine,
        quick=quick,
        suites=speeds,
        kept=kept,
        resumed=resumed,
        messages=messages,
        engines=compared,
    )


def _rules_only(name: str, *, quick: bool) -> SuitePlan:
    """Return a suite with its rules and no choice on VAL."""
    changes = {"policy": False, "limit": 300 if quick else None}
    return msgspec.structs.replace(find_suite(name), **changes)


def _whole(plan: SuitePlan, out: Path) -> SuiteSpeed:
    before = time.process_time()
    found = run_suite(plan, out=out, workers=1)
    return SuiteSpeed(
        suite=plan.name, runs=found.summary.runs, cpu_seconds=time.process_time() - before
    )


def _kept(place: Path, count: int) -> KeptSpeed:
    """Write a file of runs like those of `core`, and let another process read it."""
    plan = msgspec.structs.replace(_rules_only("core", quick=True), limit=20)
    sample = KeptRuns(place / "sample", asked_of(plan))
    make_runs(SuiteWork(PlannedRuns(plan), sample), None, engine=Engine(), workers=1)
    found = [run for key in sample if (run := sample.find(key)) is not None and run.record]
    sample.close()
    file = place / "many"
    kept = KeptRuns(file, {})
    for position in range(count):
        one = found[position % len(found)]
        kept.add(KeptRun(position.to_bytes(32, "big"), one.record, one.jobs))
    kept.close()
    runs, seconds, peak = json.loads(_child(_LOAD, str(file)))
    return KeptSpeed(
        runs=runs, file_mb=file.stat().st_size / 2**20, cpu_seconds=seconds, peak_mb=peak
    )


def _resumed(plan: SuitePlan, place: Path) -> LastRun:
    """Make all runs but the last, and measure how long another process takes to go on."""
    out = place / "resumed"
    out.mkdir()
    kept = KeptRuns(out / UNFINISHED, asked_of(plan))
    work = SuiteWork(PlannedRuns(plan), kept)
    make_runs(work, None, engine=Engine(), workers=1)
    *_, last = iter(kept)
    length = len(msgspec.msgpack.encode(kept.find(last)))
    kept.close()
    file = out / UNFINISHED
    with file.open("r+b") as stream:
        stream.truncate(file.stat().st_size - length // 2)
    as_file = place / "plan.toml"
    as_file.write_text(to_toml(plan.table()), encoding="utf-8")
    done, total, seconds = json.loads(_child(_RESUME, str(as_file), str(out)))
    if done != total - 1:
        raise AssertionError(f"{done} of {total} runs were kept, not all but one")
    return LastRun(suite=plan.name, runs=total, cpu_seconds=seconds)


def _child(code: str, *words: str) -> str:
    """Run a program with the import path of this one, and return what it prints."""
    start = f"import sys; sys.path[:] = {sys.path!r}\n"
    found = subprocess.run(
        [sys.executable, "-c", start + code, *words], capture_output=True, text=True, check=True
    )
    return found.stdout


def _message(engine: Engine) -> MessageCost:
    left = MESSAGES + 1
    began = 0.0

    def next_message(_: object) -> int | None:
        nonlocal left, began
        left -= 1
        if left == MESSAGES - 1:
            began = time.perf_counter()  # the first answer has come: the worker has started
        return left if left >= 0 else None

    with engine.pool(__name__, None, 1, apart=True) as pool:
        for _ in pool.answers(next_message, lambda *_: None):
            pass
    spent = time.perf_counter() - began
    return MessageCost(engine=engine.name, milliseconds=1000 * spent / MESSAGES)


def answers_of(_: None) -> Callable[[int], Iterator[int]]:
    """Return what answers a message with itself."""

    def answers(message: int) -> Iterator[int]:
        yield message

    return answers


def main() -> None:
    """Run a worker process."""
    serve(answers_of)


def _compared(plan: SuitePlan, ray: Engine) -> EngineSpeed:
    workers = ray.count(None)
    seconds = []
    for engine in (Engine(LOCAL), ray):
        began = time.perf_counter()
        run_suite(plan, engine=engine, workers=workers)
        seconds.append(time.perf_counter() - began)
    return EngineSpeed(
        suite=plan.name,
        workers=workers,
        local_seconds=seconds[0],
        ray_seconds=seconds[1],
        ratio=seconds[1] / seconds[0],
    )


def show_suites(found: SuitesReport) -> None:
    """Print the results as text."""
    print("\nwhole suites under their rules, with all files, one process:\n")
    table = new_table("suite", "runs", "CPU-seconds", "runs per CPU-second")
    for one in found.suites:
        table.add_row(
            one.suite, number(one.runs), number(one.cpu_seconds, 1),
            number(one.runs / one.cpu_seconds),
        )  # fmt: skip
    print_table(table)
    print()
    print_facts(
        {
            "finished": f"{number(found.kept.runs)} finished runs ({found.kept.file_mb:,.0f} MB) "
            f"are read in {found.kept.cpu_seconds:.2f} CPU-seconds, "
            f"{found.kept.peak_mb:,.0f} MB of memory",
            "resuming": f"the last of {number(found.resumed.runs)} runs begins after "
            f"{found.resumed.cpu_seconds:.2f} CPU-seconds",
            **{f"{one.engine}": f"{one.milliseconds:.2f} ms a message" for one in found.messages},
            "Ray": ""
            if found.engines is None
            else f"{found.engines.suite} on {found.engines.workers} workers: "
            f"{found.engines.ray_seconds:.1f} s, local {found.engines.local_seconds:.1f} s: "
            f"{found.engines.ratio:.2f} x",
        }
    )
