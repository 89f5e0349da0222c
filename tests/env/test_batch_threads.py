"""Threads of batches, in separate programs: an error here would end or block the process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BEGIN = """
import gc, os, threading
import numpy as np
from berthline.env.vector import SchedulingVectorEnv
from berthline.errors import ConfigError, SimulationError

def make(num_envs, num_threads):
    options = {"cluster": "uniform:3x4:V100", "episode_jobs": 16, "load": 1.5, "window": 5}
    return SchedulingVectorEnv(
        num_envs, "pick", num_threads=num_threads, observation="flat", **options
    )

def play(envs, steps):
    seen = []
    for _ in range(steps):
        observations, rewards, *_ = envs.step(envs.action_masks().argmax(axis=1))
        seen.append(observations.tobytes() + rewards.tobytes())
    return seen

def count_threads():
    return len(os.listdir("/proc/self/task"))
"""

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
needs_proc = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="there is no /proc")


def run(program: str) -> str:
    """Return what a program prints; it must end by itself, without an error."""
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BEGIN + program],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


@needs_fork
@pytest.mark.parametrize("end", ["del envs; gc.collect()", "envs.close()"])
def test_fork__the_child_steps_alone_and_drops_the_batch(end: str) -> None:
    """It has none of the threads, and goes on exactly as its parent does."""
    found = run(f"""
envs = make(8, 3)
envs.reset(seed=1)
play(envs, 20)
child = os.fork()
seen = play(envs, 50)
if child == 0:
    other = make(8, 3)  # with threads of its own
    other.reset(seed=1)
    play(other, 20)
    is_same = play(other, 50) == seen
    {end}
    os._exit(0 if is_same else 3)
print(os.waitpid(child, 0)[1])
play(envs, 20)
envs.close()
""")
    assert found == "0"


@needs_proc
def test_close__ends_the_threads() -> None:
    found = run("""
before = count_threads()
kept = []
for _ in range(20):
    kept.append(make(8, 4))
    kept[-1].reset(seed=1)
    play(kept[-1], 3)
    kept[-1].close()
print(count_threads() - before)
""")
    assert found == "0"


@needs_proc
def test_threads_that_cannot_be_started__are_an_error() -> None:
    """The threads that were started end; there is not enough memory for all their stacks."""
    found = run("""
import resource
make(8, 2).close()
before = count_threads()
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + 2**30, resource.RLIM_INFINITY))
try:
    make(1000, 1000)
except ConfigError as error:
    print(error.what, "/", error.hint, "/", count_threads() - before)
""")
    assert found == "the system cannot start more threads / a smaller num_threads / 0"


@pytest.mark.parametrize("num_threads", [1, 2])
def test_two_threads_that_step_one_batch__one_of_them_is_refused(num_threads: int) -> None:
    """Every time, whatever they call; afterwards the batch still works."""
    found = run(f"""
envs, refused, others = make(64, {num_threads}), [], []
envs.reset(seed=1)
is_over = threading.Event()

def use(*calls):
    while not is_over.is_set():
        for call in calls:
            try:
                call()
            except SimulationError as error:
                refused.append(error.what)
                if len(refused) > 200:
                    is_over.set()
            except Exception as error:
                others.append(repr(error))
                is_over.set()

threads = [
    threading.Thread(target=use, args=calls)
    for calls in (
        [lambda: play(envs, 1)],
        [lambda: play(envs, 1), lambda: envs.log(3), lambda: envs.question(5)],
        [envs.reset, lambda: envs.workload(1), lambda: envs.set_load(1.2)],
    )
]
for thread in threads:
    thread.start()
is_over.wait(60)
is_over.set()
for thread in threads:
    thread.join()
envs.set_load(1.5)
envs.reset(seed=1)
fresh = make(64, 1)
fresh.reset(seed=1)
print(others, set(refused), play(envs, 100) == play(fresh, 100))
""")
    assert found == "[] {'two threads use the environments at once'} True"
