"""`berthline bench env`: steps of environments per CPU-second.

Random legal actions are chosen beforehand, in an untimed run; the timed runs repeat them from the
same seed, so that only the environments are measured. New episodes and their jobs are included.

Other users of a machine slow it down for milliseconds or minutes. Therefore several rounds go
through all kinds of environments; every round times the same pieces of the same steps, and the
best time of each piece counts.
"""

from __future__ import annotations

import itertools
import math
import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from berthline.cli.output import new_table, print_table
from berthline.env.seat_defaults import SEAT_DEFAULTS

ENVS, EPISODE_JOBS = 256, 256
STEPS, QUICK_STEPS = 1500, 50
SINGLE_STEPS, QUICK_SINGLE_STEPS = 100_000, 1_000
ROUNDS, QUICK_ROUNDS = 8, 1
THREAD_ROUNDS = 12
PIECES = 30
SEED = 1
THREADS = 2
THREADS_TARGET = 1.7

_JOBS_ONLY: dict[str, Any] = {"nodes": [], "running": [], "globals": []}
_NARROW: dict[str, Any] = {
    "workload": "synthetic",
    "features": _JOBS_ONLY,
    "semantics": "mask",
    "no_op": "always",
    "window": 64,
    "reward": "mean-jct-hours",
}
"""Eight numbers for each job that can start, and nothing else: the least that a network may see."""
DEFAULT_LOAD: float = SEAT_DEFAULTS["pick"]["load"]
_HOSTS: dict[str, Any] = {
    "jobs": ["gpus / max_node_gpus"],
    "nodes": ["node_free_gpus / max_node_gpus", "node_total_gpus / max_node_gpus"],
    "running": [],
    "globals": [],
}


class _Case(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    env: str
    options: dict[str, Any]
    envs: int = ENVS
    target: float | None = None
    narrow: str | None = None
    """The same with the table of waiting jobs alone: a case that the speed is divided by."""


_SHORT: dict[str, Any] = {"cluster": "uniform:64x8:V100", "load": 0.9}
_LONG: dict[str, Any] = {"cluster": "uniform:8x8:V100", "load": 3.0}
_ALL_TABLES = {name: value for name, value in _NARROW.items() if name != "features"}
_FULL = _Case(
    name="Pick, narrow (64 x 8 numbers), full windows",
    env="Pick",
    options={**_NARROW, **_LONG},
    target=1e6,
)
_SHORT_CASE = _Case(
    name="Pick, narrow (64 x 8 numbers), short queues",
    env="Pick",
    options={**_NARROW, **_SHORT},
    target=3e6,
)
_DEFAULT_JOBS = "Pick as it comes, but jobs only"

CASES = (
    _Case(
        name=f"Pick as it comes: {DEFAULT_LOAD:g} x load, every table",
        env="Pick",
        options={},
        narrow=_DEFAULT_JOBS,
    ),
    _Case(name="Pick as it comes, one environment", env="Pick", options={}, envs=1),
    _Case(name=_DEFAULT_JOBS, env="Pick", options={"features": _JOBS_ONLY}),
    _SHORT_CASE,
    _Case(
        name="Pick, every table, short queues",
        env="Pick",
        options={**_ALL_TABLES, **_SHORT},
        narrow=_SHORT_CASE.name,
    ),
    _FULL,
    _Case(
        name="Pick, every table, full windows",
        env="Pick",
        options={**_ALL_TABLES, **_LONG},
        narrow=_FULL.name,
    ),
    _Case(
        name="Pick, narrow, one environment",
        env="Pick",
        options={**_NARROW, **_SHORT},
        envs=1,
        target=3e5,
    ),
    _Case(
        name="Place on 64 nodes, narrow (64 x 2 numbers)",
        env="Place",
        options={
            "workload": "synthetic",
            **_SHORT,
            "window": 1,
            "features": _HOSTS,
            "reward": "mean-jct-hours",
        },
        target=2e6,
    ),
    _Case(name="Place as it comes", env="Place", options={}),
    _Case(name="Gate as it comes", env="Gate", options={}),
    _Case(name="Meta as it comes", env="Meta", options={}),
)


class EnvSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """How fast one kind of environment steps."""

    case: str
    env: str
    envs: int
    steps_per_cpu_second: float
    target: float | None
    meets_target: bool | None
    """None = there is no target, or too few steps to tell."""
    of_narrow: float | None = None
    """The speed, divided by that of the same environment with the table of waiting jobs alone."""


class ThreadSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """Speedup of two threads in wall-clock time, which needs two free cores."""

    case: str
    threads: int
    one_thread_steps_per_second: float
    steps_per_second: float
    speedup: float
    apart: float
    """Speedup of as many processes that share nothing: the most that the machine allows."""
    target: float
    meets_target: bool | None


def measure_envs(
    *, quick: bool, report: Callable[[int, int, str], None] = lambda *_: None
) -> list[EnvSpeed]:
    """Return how fast environments step, case by case."""
    rounds = QUICK_ROUNDS if quick else ROUNDS
    total = len(CASES) * (rounds + 1) + 1
    runs: list[_Run] = []
    for number, case in enumerate(CASES):
        report(number, total, f"actions for {case.name}")
        runs.append(_single_run(case, quick=quick) if case.envs == 1 else _run(case, quick=quick))
    for round_ in range(rounds):
        for number, (case, run) in enumerate(zip(CASES, runs, strict=True)):
            report((round_ + 1) * len(CASES) + number, total, case.name)
            run.repeat(time.process_time)
    speeds = {case.name: run.speed for case, run in zip(CASES, runs, strict=True)}
    return [
        EnvSpeed(
            case=case.name,
            env=case.env,
            envs=case.envs,
            steps_per_cpu_second=run.speed,
            target=case.target,
            meets_target=None if quick or case.target is None else run.speed >= case.target,
            of_narrow=None if case.narrow is None else run.speed / speeds[case.narrow],
        )
        for case, run in zip(CASES, runs, strict=True)
    ]


def measure_threads(*, quick: bool) -> ThreadSpeed:
    """Return how much a second thread helps with full windows."""
    case = _FULL
    one, several = (_run(case, quick=quick, num_threads=threads) for threads in (1, THREADS))
    alone, together = _Apart(1, quick=quick), _Apart(THREADS, quick=quick)
    with alone, together:
        for _ in range(QUICK_ROUNDS if quick else THREAD_ROUNDS):
            one.repeat(time.perf_counter)  # interleaved: other work slows all equally
            several.repeat(time.perf_counter)
            alone.repeat()
            together.repeat()
    speedup = several.speed / one.speed
    return ThreadSpeed(
        case=case.name,
        threads=THREADS,
        one_thread_steps_per_second=one.speed,
        steps_per_second=several.speed,
        speedup=speedup,
        apart=together.speed / alone.speed,
        target=THREADS_TARGET,
        meets_target=None if quick else speedup >= THREADS_TARGET,
    )


class _Apart:
    """Processes with their own environments, which all step at once on request."""

    def __init__(self, processes: int, *, quick: bool) -> None:
        context = multiprocessing.get_context("spawn")
        self._processes = processes
        self._pool = ProcessPoolExecutor(
            processes, context, initializer=_prepare, initargs=(context.Barrier(processes), quick)
        )
        self.speed = 0.0
        """Steps per second of all processes together."""

    def __enter__(self) -> None:
        self._pool.__enter__()

    def __exit__(self, *raised: Any) -> None:
        self._pool.__exit__(*raised)

    def repeat(self) -> None:
        """Let each process repeat all its steps."""
        self.speed = sum(self._pool.map(_step_apart, range(self._processes)))


class _Prepared(msgspec.Struct):
    """What a process of `_Apart` steps, and the barrier where it waits for the others."""

    run: Any
    start: Any


_prepared: _Prepared


def _prepare(start: Any, quick: bool) -> None:  # noqa: FBT001 - arguments of an initializer
    global _prepared
    _prepared = _Prepared(run=_run(_FULL, quick=quick), start=start)


def _step_apart(_: int) -> float:
    """Return the best steps per second so far of one process, while the others step."""
    _prepared.start.wait(timeout=60)
    _prepared.run.repeat(time.perf_counter)
    return float(_prepared.run.speed)


_Clock = Callable[[], float]


class _Run:
    """Steps that are repeated from the beginning, piece by piece.

    Args:
        steps: number of steps.
        reset: starts again.
        step: takes steps `first` to `end - 1`.
        envs: environments that take each step.
    """

    def __init__(
        self, steps: int, reset: Callable[[], object], step: Callable[[int, int], None], envs: int
    ) -> None:
        self._bounds = np.linspace(0, steps, PIECES + 1).astype(int).tolist()
        self._best = [math.inf] * PIECES
        self._reset, self._step = reset, step
        self._steps = steps * envs

    def repeat(self, clock: _Clock) -> None:
        """Repeat all steps."""
        self._reset()
        for piece, (first, end) in enumerate(itertools.pairwise(self._bounds)):
            began = clock()
            self._step(first, end)
            self._best[piece] = min(self._best[piece], clock() - began)

    @property
    def speed(self) -> float:
        """Environment steps per second."""
        return self._steps / sum(self._best)


def _make(case: _Case, **more: Any) -> Any:
    import gymnasium

    return gymnasium.make_vec(
        f"berthline/{case.env}-v0",
        num_envs=case.envs,
        episode_jobs=EPISODE_JOBS,
        copy=False,
        **case.options,
        **more,
    )


def _record(case: _Case, steps: int) -> list[npt.NDArray[np.int64]]:
    """Return random legal actions of the first steps."""
    env = _make(case)
    _, infos = env.reset(seed=SEED)
    random = np.random.default_rng(SEED)
    actions = []
    for _ in range(steps):
        allowed = infos["action_mask"].cumsum(axis=1)
        chosen = (random.random(case.envs) * allowed[:, -1]).astype(np.int64)
        actions.append((allowed <= chosen[:, None]).sum(axis=1))
        infos = env.step(actions[-1])[-1]
    return actions


def _run(case: _Case, *, quick: bool, **more: Any) -> _Run:
    """Return steps of many environments at once."""
    actions = _record(case, QUICK_STEPS if quick else STEPS)
    env = _make(case, **more)

    def step(first: int, end: int) -> None:
        for action in actions[first:end]:
            env.step(action)

    return _Run(len(actions), lambda: env.reset(seed=SEED), step, case.envs)


def _single_run(case: _Case, *, quick: bool) -> _Run:
    """Return steps of one environment."""
    import gymnasium

    env = gymnasium.make(f"berthline/{case.env}-v0", episode_jobs=EPISODE_JOBS, **case.options)
    random = np.random.default_rng(SEED)
    _, info = env.reset(seed=SEED)
    actions: list[int] = []
    for _ in range(QUICK_SINGLE_STEPS if quick else SINGLE_STEPS):
        actions.append(int(random.choice(np.flatnonzero(info["action_mask"]))))
        *_, terminated, truncated, info = env.step(actions[-1])
        if terminated or truncated:
            _, info = env.reset()

    def step(first: int, end: int) -> None:
        for action in actions[first:end]:
            *_, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()

    return _Run(len(actions), lambda: env.reset(seed=SEED), step, 1)


def show_envs(speeds: list[EnvSpeed], threads: ThreadSpeed) -> None:
    """Print the measurements as text."""
    print(f"\nsteps per CPU-second; episodes of {EPISODE_JOBS} jobs, new episodes included:\n")
    table = new_table("environment", "envs", "steps", "of jobs only", "target", "")
    marks = {True: "met", False: "missed", None: ""}
    for speed in speeds:
        table.add_row(
            speed.case,
            f"{speed.envs:,}",
            f"{speed.steps_per_cpu_second:,.0f}",
            "" if speed.of_narrow is None else f"{speed.of_narrow:.2f} x",
            "" if speed.target is None else f">= {speed.target:,.0f}",
            marks[speed.meets_target],
        )
    print_table(table)
    print(
        f"\n{threads.threads} threads: {threads.steps_per_second:,.0f} steps per second against "
        f"{threads.one_thread_steps_per_second:,.0f} with one: {threads.speedup:.2f} x "
        f"(target {threads.target:g}, on free cores) {marks[threads.meets_target]}".rstrip()
    )
    if threads.meets_target is not None:
        print(
            f"That is {threads.speedup / threads.apart:.0%} of what {threads.threads} processes"
            f" that share nothing gained in the same rounds: {threads.apart:.2f} x. On free cores"
            f" they gain {threads.threads}.00."
        )
