"""A native run can be interrupted, reports progress, and lets other Python threads work."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import berthline as bl
from berthline.policies.scheduler import Scheduler
from berthline.sim import native
from berthline.sim.inputs import prepare

# Twice as much work as the GPUs can do, so that the queue, and every decision, grows without end:
# uninterrupted, this takes far longer than any test may.
ENDLESS = """
    import signal

    import numpy as np
    import berthline as bl

    # A shell starts background commands with SIGINT ignored, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    jobs = 1_000_000
    rng = np.random.default_rng(0)
    workload = bl.Workload.from_columns(
        submit=np.cumsum(rng.exponential(1.0, jobs)), run=rng.exponential(64.0, jobs) + 1,
        gpus=rng.choice([1, 2, 4, 8], jobs),
    )
    told = []

    def progress(arrived):
        if not told:
            told.append(arrived)
            print("running", flush=True)

    try:
        bl.simulate(workload, "uniform:16x8", "fcfs+skip", knowledge="none", progress=progress)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is not a POSIX signal there")
def test_interrupt__a_long_run_ends_at_ctrl_c() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(ENDLESS)], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "running\n"
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=120)
        finally:
            process.kill()
    assert output == "interrupted\n"
    assert process.returncode == 0


def workload(num_jobs: int) -> bl.Workload:
    rng = np.random.default_rng(1)
    return bl.Workload.from_columns(
        submit=np.cumsum(rng.exponential(10.0, num_jobs)),
        run=rng.exponential(100.0, num_jobs) + 1,
        gpus=rng.choice([1, 2, 4, 8], num_jobs),
    )


@pytest.mark.parametrize("simulator", ["native", "reference"])
def test_progress__is_told_the_number_of_arrived_jobs(simulator: str) -> None:
    num_jobs = 30_000 if simulator == "native" else 300
    seen: list[int] = []
    bl.simulate(
        workload(num_jobs), "uniform:8x8", "fcfs", simulator=simulator, progress=seen.append
    )
    assert len(seen) > 5
    assert seen == sorted(seen)
    assert 0 < seen[len(seen) // 2] <= num_jobs


@pytest.mark.parametrize("simulator", ["native", "reference"])
def test_progress__an_error_in_it_ends_the_run(simulator: str) -> None:
    def fail(_: int) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        bl.simulate(workload(20_000), "uniform:8x8", "fcfs", simulator=simulator, progress=fail)


def test_progress__also_when_few_decisions_take_long() -> None:
    """Ctrl-C is checked when progress is reported, and users may press it in a run of seconds.

    Under conservative backfilling with a long queue one decision takes milliseconds, so a check
    every few thousand decisions is not enough.
    """
    rng = np.random.default_rng(0)
    num_jobs = 1_000
    jobs = bl.Workload.from_columns(
        submit=np.cumsum(rng.exponential(0.2, num_jobs)),
        run=rng.exponential(64.0, num_jobs) + 1,
        gpus=rng.choice([1, 2, 4, 8], num_jobs),
    )
    seen: list[int] = []
    bl.simulate(jobs, "uniform:16x8", "fcfs+conservative", knowledge="exact", progress=seen.append)
    assert seen


def test_threads__work_while_a_native_run_does() -> None:
    """A thread counts during the run; it cannot, unless the run releases the lock.

    With such a long switch interval, Python code releases the lock only where it waits.
    """
    inputs = prepare(
        workload(300_000),
        bl.Cluster.uniform(nodes=64, gpus_per_node=8),
        Scheduler.parse("fcfs+skip"),
        knowledge="none",
        seed=0,
        horizon=None,
    )
    count, stop = 0, threading.Event()

    def work() -> None:
        nonlocal count
        while not stop.is_set():
            count += 1
            time.sleep(1e-5)

    usual = sys.getswitchinterval()
    thread = threading.Thread(target=work)
    try:
        sys.setswitchinterval(1000.0)
        thread.start()
        before_python = count
        total = sum(range(3_000_000))  # holds the lock
        before_native = count
        for _ in range(30):  # on a busy machine the thread may miss its chance in one run
            log = native.run(inputs)
            if count > before_native:
                break
        after_native = count
    finally:
        sys.setswitchinterval(usual)
        stop.set()
        thread.join()
    assert total > 0
    assert before_native == before_python, "the thread runs only when the run allows it"
    assert after_native > before_native
    assert len(log) == 900_000


def test_threads__runs_at_the_same_time_do_not_meet() -> None:
    """The same runs, one after another and in four threads, give the same logs."""
    schedulers = ["fcfs+easy", "sjf+skip@best-fit", "random@random", "wfp3+skip@worst-fit"] * 2
    jobs = workload(3_000)

    def simulate(index: int) -> str:
        result = bl.simulate(jobs, "uniform:8x8", schedulers[index], knowledge="exact", seed=index)
        return result.log.sha256()

    alone = [simulate(index) for index in range(len(schedulers))]
    together: dict[int, str] = {}
    threads = [
        threading.Thread(target=lambda index=index: together.update({index: simulate(index)}))
        for index in range(len(schedulers))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [together[index] for index in range(len(schedulers))] == alone
    assert len(set(alone)) > 4
