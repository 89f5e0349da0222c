"""`berthline bench env`, second part: what starts in the middle of a run and forks cost."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec

from berthline.cli.output import new_table, print_table

if TYPE_CHECKING:
    from collections.abc import Callable

ENVS = 256
TRACE_JOBS, QUICK_TRACE_JOBS = 20_000, 2_000
TRACE_LOAD = 0.9
CLUSTER = "uniform:64x8:V100"
SEED = 1
ROUNDS, QUICK_ROUNDS = 20, 2
FIRST_TARGET, TARGET = 5.0, 0.2
"""Milliseconds to begin in a state that must be found first, and in one that is known."""
STEPS = 50
"""Before an environment is forked."""


class StartCost(msgspec.Struct, frozen=True, kw_only=True):
    """CPU time of one environment that begins, or is forked."""

    case: str
    ms_per_env: float
    target: float | None
    meets_target: bool | None
    """None = there is no target, or too few jobs to tell."""


def measure_starts(*, quick: bool) -> list[StartCost]:
    """Return the CPU time of warm starts and of forks, per environment."""
    import gymnasium
    import numpy as np

    import berthline as bl

    cluster = bl.Cluster.parse(CLUSTER)
    jobs = QUICK_TRACE_JOBS if quick else TRACE_JOBS
    trace = bl.generate("lublin", cluster=cluster, jobs=jobs, load=1.0, seed=SEED)
    found: list[StartCost] = []

    def add(case: str, seconds: float, envs: int, target: float | None = None) -> None:
        cost = 1000 * seconds / envs
        meets = None if quick or target is None else cost <= target
        found.append(StartCost(case=case, ms_per_env=cost, target=target, meets_target=meets))

    rounds = QUICK_ROUNDS if quick else ROUNDS
    envs: Any = None

    def reset() -> None:
        envs.reset(seed=SEED)

    for start, load in (("empty", None), ("warm", TRACE_LOAD), ("warm", None)):
        options: dict[str, Any] = {"workload": trace, "cluster": cluster, "start": start}
        options |= {} if load is None else {"load": load}
        envs = gymnasium.make_vec("berthline/Pick-v0", num_envs=ENVS, **options)
        first, again = _seconds(reset, 1), _seconds(reset, rounds)
        what = "an empty cluster" if start == "empty" else f"a cluster that runs {jobs:,} jobs"
        what += "" if load is None else f" at load {load:g}"
        targets = (None, None) if start == "empty" else (FIRST_TARGET, TARGET)
        add(f"{ENVS} environments, {what}, the first time", first, ENVS, targets[0])
        add(f"{ENVS} environments, {what}, afterwards", again, ENVS, targets[1])
    for _ in range(STEPS):
        envs.step(np.argmax(envs.action_masks(), axis=1))
    fork = envs.fork(0, ENVS)
    add(f"{ENVS} forks of one of them, new", _seconds(lambda: envs.fork(0, ENVS), rounds), ENVS)
    again = _seconds(lambda: envs.fork(0, ENVS, into=fork), rounds)
    add(f"{ENVS} forks of one of them, into an earlier fork", again, ENVS)
    env: Any = gymnasium.make("berthline/Pick-v0", **options).unwrapped
    env.reset(seed=SEED)
    for _ in range(STEPS):
        env.step(int(np.argmax(env.action_masks())))
    fork = env.fork()
    add("a fork of a single environment, new", _seconds(env.fork, rounds), 1)
    again = _seconds(lambda: env.fork(into=fork), rounds)
    add("a fork of a single environment, into an earlier fork", again, 1)
    return found


def _seconds(call: Callable[[], object], rounds: int) -> float:
    """Return the least CPU time of a call."""
    best = float("inf")
    for _ in range(rounds):
        began = time.process_time()
        call()
        best = min(best, time.process_time() - began)
    return best


def show_starts(costs: list[StartCost]) -> None:
    """Print the measurements as text."""
    print("\nCPU time per environment, to begin or to be forked:\n")
    table = new_table("environments", "ms", "target", "")
    marks = {True: "met", False: "missed", None: ""}
    for cost in costs:
        target = "" if cost.target is None else f"<= {cost.target:g}"
        table.add_row(cost.case, f"{cost.ms_per_env:.3f}", target, marks[cost.meets_target])
    print_table(table)
