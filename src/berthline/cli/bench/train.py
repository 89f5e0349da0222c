"""`berthline bench train`: environment steps per second of PPO, learning included.

Four epochs over every step. The fastest of several iterations counts, in CPU time with one thread;
two threads are measured in wall-clock time, which needs two free cores. The library it is compared
with has the same environments, network, rollouts and minibatches.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from berthline.cli.output import new_table, number, print_table
from berthline.errors import MissingExtraError

ENVS, ROLLOUT, EPOCHS, MINIBATCHES = 256, 32, 4, 4
QUICK_ENVS = 16
ITERATIONS, QUICK_ITERATIONS = 3, 1
SEED = 1
STEPS_TARGET, LIBRARY_TARGET = 30_000.0, 1.1
THREADS = 2

_JOBS_ONLY: dict[str, Any] = {"nodes": [], "running": [], "globals": []}
_OPTIONS: dict[str, Any] = {"cluster": "uniform:8x8:V100", "load": 1.1, "episode_jobs": 256}


class _Case(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    network: str
    hidden: tuple[int, ...]
    options: dict[str, Any]
    threads: int = 1
    target: float | None = None
    program: str = "berthline"


CASES = (
    _Case(
        name="per-job kernel, jobs only",
        network="kernel",
        hidden=(32, 16),
        options={**_OPTIONS, "features": _JOBS_ONLY},
    ),
    _Case(
        name="per-job kernel, jobs only",
        network="kernel",
        hidden=(32, 16),
        options={**_OPTIONS, "features": _JOBS_ONLY},
        threads=THREADS,
        target=STEPS_TARGET,
    ),
    _Case(name="per-job kernel, every table", network="kernel", hidden=(32, 16), options=_OPTIONS),
    _Case(name="MLP 256, 256, every table", network="mlp", hidden=(256, 256), options=_OPTIONS),
    _Case(
        name="MLP 256, 256, every table",
        network="mlp",
        hidden=(256, 256),
        options=_OPTIONS,
        program="sb3-contrib",
    ),
)


class TrainSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """How fast one configuration learns."""

    case: str
    program: str
    envs: int
    threads: int
    steps_per_cpu_second: float
    steps_per_second: float
    target: float | None
    """Steps per wall-clock second."""
    meets_target: bool | None
    """None = there is no target, or too few steps to tell."""


class TrainReport(msgspec.Struct, frozen=True, kw_only=True):
    """Results of the training benchmark."""

    machine: str
    quick: bool
    speeds: list[TrainSpeed]
    against_library: float | None
    """CPU time of sb3-contrib / our CPU time, for the same steps; None = it is not installed."""
    against_library_target: float = LIBRARY_TARGET


def measure_training(
    *, quick: bool, report: Callable[[int, int, str], None] = lambda *_: None
) -> Iterator[TrainSpeed]:
    """Yield how fast PPO learns, case by case.

    Raises:
        MissingExtraError: torch is not installed.
    """
    if importlib.util.find_spec("torch") is None:
        raise MissingExtraError("torch", "train", "berthline bench train")
    import torch

    threads_before = torch.get_num_threads()
    try:
        for done, case in enumerate(CASES):
            report(done, len(CASES), case.name)
            if case.program != "berthline" and importlib.util.find_spec("sb3_contrib") is None:
                continue
            torch.set_num_threads(case.threads)
            make = _own if case.program == "berthline" else _library
            envs = QUICK_ENVS if quick else ENVS
            cpu, wall = _fastest(make(case, envs), QUICK_ITERATIONS if quick else ITERATIONS)
            steps = envs * ROLLOUT
            is_judged = case.target is not None and not quick
            yield TrainSpeed(
                case=case.name,
                program=case.program,
                envs=envs,
                threads=case.threads,
                steps_per_cpu_second=steps / cpu,
                steps_per_second=steps / wall,
                target=case.target,
                meets_target=steps / wall >= (case.target or 0.0) if is_judged else None,
            )
    finally:
        torch.set_num_threads(threads_before)


def against_library(speeds: list[TrainSpeed]) -> float | None:
    """Return our steps per CPU-second / those of sb3-contrib, with the same network."""
    theirs = next((speed for speed in speeds if speed.program != "berthline"), None)
    if theirs is None:
        return None
    ours = next(s for s in speeds if s.case == theirs.case and s.program == "berthline")
    return ours.steps_per_cpu_second / theirs.steps_per_cpu_second


def _fastest(iterate: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Return the lowest CPU and wall-clock time of an iteration, after an uncounted one."""
    iterate()
    found = []
    for _ in range(rounds):
        cpu, wall = time.process_time(), time.perf_counter()
        iterate()
        found.append((time.process_time() - cpu, time.perf_counter() - wall))
    return min(cpu for cpu, _ in found), min(wall for _, wall in found)


def _own(case: _Case, num: int) -> Callable[[], object]:
    from berthline.learn.algorithms.configs import PPOConfig
    from berthline.learn.algorithms.ppo import PPO
    from berthline.learn.networks.networks import NetworkConfig
    from berthline.learn.training.environments import Environments

    envs = Environments("pick", num=num, seed=SEED, options=case.options, num_threads=case.threads)
    config = PPOConfig(rollout=ROLLOUT, epochs=EPOCHS, minibatches=MINIBATCHES, target_kl=None)
    network = NetworkConfig(kind=case.network, hidden=case.hidden)
    ppo = PPO(envs, network, config, seed=SEED)
    return lambda: ppo.iterate(0.0)


def _library(case: _Case, num: int) -> Callable[[], object]:
    from sb3_contrib import MaskablePPO

    from berthline.compat import sb3

    envs = sb3.make("berthline/Pick-v0", num_envs=num, observation="flat", **case.options)
    model = MaskablePPO(
        "MlpPolicy",
        envs,
        n_steps=ROLLOUT,
        batch_size=ROLLOUT * num // MINIBATCHES,
        n_epochs=EPOCHS,
        policy_kwargs={"net_arch": list(case.hidden)},
        seed=SEED,
        device="cpu",
    )
    return lambda: model.learn(ROLLOUT * num, reset_num_timesteps=False)


def show_training(found: TrainReport) -> None:
    """Print the measurements as text."""
    print(f"\nsteps per second of PPO on Pick, learning included, {EPOCHS} epochs:\n")
    table = new_table("network", "by", "envs", "threads", "per CPU-s", "per s", "target", "")
    marks = {True: "met", False: "missed", None: ""}
    for speed in found.speeds:
        table.add_row(
            speed.case,
            speed.program,
            number(speed.envs),
            str(speed.threads),
            number(speed.steps_per_cpu_second),
            number(speed.steps_per_second),
            "" if speed.target is None else f">= {speed.target:,.0f}",
            marks[speed.meets_target],
        )
    print_table(table)
    if found.against_library is not None:
        print(
            f"\nthe same network: {found.against_library:.2f} x sb3-contrib "
            f"(target {found.against_library_target:g})"
        )
