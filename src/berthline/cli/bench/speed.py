"""Measure the simulator: jobs per CPU-second, yardsticks, memory. `berthline bench` prints them.

Only the call of `simulate` is timed, in CPU seconds of this process, which other programs on the
machine hardly affect. The configurations take turns in every round and each keeps its best round,
so that a disturbance does not hit only one of them. Two yardsticks run in the same minute: a plain
Python loop around heapq, and the SimPy reference.
"""

from __future__ import annotations

import gc
import heapq
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from berthline.errors import SimulationError

if TYPE_CHECKING:
    from berthline.model.workload import Workload
    from berthline.sim.simulate import Result

_T = TypeVar("_T")

SEED, LOAD = 42, 0.9

CONFIGURATIONS: dict[str, tuple[str, str]] = {
    "fcfs strict, pool": ("fcfs+strict", "uniform:1x{gpus}"),
    "sjf strict, pool": ("sjf+strict", "uniform:1x{gpus}"),
    "fcfs easy, pool": ("fcfs+easy", "uniform:1x{gpus}"),
    "fcfs skip, pool": ("fcfs+skip", "uniform:1x{gpus}"),
    "fcfs strict, node": ("fcfs+strict@first-fit", "uniform:{nodes}x8"),
    "sjf strict, node": ("sjf+strict@first-fit", "uniform:{nodes}x8"),
}
"""Scheduler and cluster of each. A pool is one node with all GPUs: there is no placement."""

PUBLISHED: dict[tuple[int, int], dict[str, str]] = {
    (1_000, 64): dict(
        zip(
            CONFIGURATIONS,
            ("163.482", "69.055", "106.449", "59.886", "702.517", "352.768"),
            strict=True,
        )
    ),
    (10_000, 512): dict(
        zip(
            CONFIGURATIONS,
            ("97.041", "36.138", "84.372", "43.607", "1144.408", "173.855"),
            strict=True,
        )
    ),
}
"""Mean waits in seconds that three independent programs agree on, by (jobs, GPUs)."""

YARDSTICK = (10_000, 512)
YARDSTICK_CONFIGURATION = "fcfs strict, pool"
MEMORY_JOBS, MEMORY_GPUS = 1_000_000, 512
FEWEST_ROUNDS, MOST_ROUNDS, ENOUGH_SECONDS = 3, 30, 0.5
"""A configuration is run again until its rounds have taken enough time, within these bounds."""


class Speed(msgspec.Struct, frozen=True, kw_only=True):
    """How fast one configuration ran; with its mean wait where a published one exists."""

    configuration: str
    jobs: int
    gpus: int
    jobs_per_cpu_second: float
    rounds: int
    mean_wait: float | None
    published_mean_wait: str | None
    agrees: bool | None


class Yardstick(msgspec.Struct, frozen=True, kw_only=True):
    """How fast a program does the yardstick's run."""

    program: str
    jobs_per_cpu_second: float
    mean_wait: float
    agrees: bool


def common_workload(jobs: int, gpus: int) -> Workload:
    """Return the workload that the published numbers refer to."""
    from berthline.model.cluster import Cluster
    from berthline.traces.generators.synthetic import generate

    cluster = Cluster.uniform(nodes=1, gpus_per_node=gpus)
    return generate("synthetic", cluster=cluster, jobs=jobs, load=LOAD, seed=SEED)


def cpu_seconds(call: Callable[[], _T]) -> tuple[float, _T]:
    """Return the CPU time of this process that a call takes, and what it returns."""
    gc.disable()  # as timeit does: a collection would be charged to an arbitrary call
    try:
        started = time.process_time()
        value = call()
        return time.process_time() - started, value
    finally:
        gc.enable()


def measure_speeds(
    *, quick: bool, report: Callable[[int, int, str], None] = lambda *_: None
) -> Iterator[Speed]:
    """Yield the speed of every configuration for all numbers of jobs and GPUs."""
    sizes = [1_000, 10_000, 100_000, *([] if quick else [1_000_000])]
    cells = [(jobs, gpus) for jobs in sizes for gpus in (64, 512, 4096)]
    for done, (jobs, gpus) in enumerate(cells):
        report(done, len(cells), f"{jobs:,} jobs, {gpus:,} GPUs")
        yield from _measure_cell(jobs, gpus)


def _measure_cell(jobs: int, gpus: int) -> Iterator[Speed]:
    from berthline.model.cluster import Cluster
    from berthline.policies.scheduler import Scheduler
    from berthline.sim.simulate import simulate

    workload = common_workload(jobs, gpus)
    prepared = {
        name: (Scheduler.parse(text), Cluster.parse(cluster.format(gpus=gpus, nodes=gpus // 8)))
        for name, (text, cluster) in CONFIGURATIONS.items()
    }
    best = dict.fromkeys(prepared, float("inf"))
    published = PUBLISHED.get((jobs, gpus), {})
    waits: dict[str, float] = {}
    spent, rounds = 0.0, 0
    enough = ENOUGH_SECONDS * len(prepared)
    while rounds < FEWEST_ROUNDS or (rounds < MOST_ROUNDS and spent < enough):
        rounds += 1
        for name, (scheduler, cluster) in prepared.items():
            taken, result = cpu_seconds(partial(simulate, workload, cluster, scheduler))
            best[name] = min(best[name], taken)
            spent += taken
            if name in published and name not in waits:
                waits[name] = result.metrics().wait.mean
            del result
    for name, seconds in best.items():
        wait, expected = waits.get(name), published.get(name)
        yield Speed(
            configuration=name,
            jobs=jobs,
            gpus=gpus,
            jobs_per_cpu_second=jobs / seconds,
            rounds=rounds,
            mean_wait=wait,
            published_mean_wait=expected,
            agrees=None if wait is None else f"{wait:.3f}" == expected,
        )


def measure_yardsticks() -> list[Yardstick]:
    """Return the speed of the native core, of a plain Python loop and of SimPy on the same run."""
    from berthline.sim.simulate import simulate

    jobs, gpus = YARDSTICK
    workload = common_workload(jobs, gpus)
    scheduler, cluster = CONFIGURATIONS[YARDSTICK_CONFIGURATION]
    columns = (workload.submit.tolist(), workload.run.tolist(), workload.gpus.tolist())

    def simulated(simulator: str) -> Callable[[], Result]:
        return lambda: simulate(workload, cluster.format(gpus=gpus), scheduler, simulator=simulator)

    programs: dict[str, Callable[[], Result | float]] = {
        "native core": simulated("native"),
        "plain Python, heapq": lambda: heapq_fcfs(*columns, gpus),
        "SimPy reference": simulated("reference"),
    }
    best = dict.fromkeys(programs, float("inf"))
    waits = {}
    for _ in range(3):
        for program, call in programs.items():
            for _ in range(10 if best[program] < 0.1 else 1):
                taken, value = cpu_seconds(call)
                best[program] = min(best[program], taken)
            waits[program] = value if isinstance(value, float) else value.metrics().wait.mean
    expected = PUBLISHED[YARDSTICK][YARDSTICK_CONFIGURATION]
    return [
        Yardstick(
            program=program,
            jobs_per_cpu_second=jobs / taken,
            mean_wait=waits[program],
            agrees=f"{waits[program]:.3f}" == expected,
        )
        for program, taken in best.items()
    ]


def heapq_fcfs(submit: list[float], run: list[float], gpus: list[int], total: int) -> float:
    """Return the mean wait under strict FCFS in one pool: the obvious plain loop."""
    free, now, waited = total, 0.0, 0.0
    finishing: list[tuple[float, int]] = []
    queue: list[int] = []
    head, arrived, jobs = 0, 0, len(submit)
    while arrived < jobs or head < len(queue) or finishing:
        next_submit = submit[arrived] if arrived < jobs else float("inf")
        now = min(next_submit, finishing[0][0] if finishing else float("inf"))
        while finishing and finishing[0][0] == now:
            free += gpus[heapq.heappop(finishing)[1]]
        while arrived < jobs and submit[arrived] == now:
            queue.append(arrived)
            arrived += 1
        while head < len(queue) and gpus[queue[head]] <= free:
            job = queue[head]
            head += 1
            free -= gpus[job]
            waited += now - submit[job]
            heapq.heappush(finishing, (now + run[job], job))
    return waited / jobs


def max_rss_mb(jobs: int, gpus: int) -> float | None:
    """Return the peak memory of a fresh process that simulates `jobs` jobs, in MB.

    Raises:
        SimulationError: that process failed.
    """
    code = f"from berthline.cli.bench.speed import run_for_memory; run_for_memory({jobs}, {gpus})"
    child = subprocess.run(  # our own code in our own interpreter
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    if child.returncode:
        last = (child.stderr.strip().splitlines() or ["no message"])[-1]
        raise SimulationError(f"the run for the memory measurement failed: {last}")
    return float(child.stdout) or None


def run_for_memory(jobs: int, gpus: int) -> None:
    """Generate and simulate, then print this process's peak memory in MB (0 = unknown)."""
    from berthline.sim.simulate import simulate

    workload = common_workload(jobs, gpus)
    result = simulate(workload, f"uniform:1x{gpus}", "fcfs+strict")
    if len(result.log) == 0:
        raise SimulationError("the run for the memory measurement gave an empty log")
    print(peak_memory_mb() or 0.0)


def peak_memory_mb() -> float | None:
    """Return the peak resident memory of this process in MB.

    Linux does not use getrusage, where a new process starts with its parent's peak.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        kib = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
        return int(kib) * 1024 / 1e6
    except (OSError, StopIteration):
        pass
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # macOS counts bytes
