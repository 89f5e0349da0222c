"""The index rule with its margin: the JCT of least attained service, for far fewer preemptions."""

from __future__ import annotations

import numpy as np
import pytest
from tests.shared_traces import SHARED_TRACES

import berthline as bl

TRACE = SHARED_TRACES / "helios_venus"
GPUS, JOBS = 480, 3000
CONDITIONS = {"restart": 30, "checkpoint": 0}


def windows() -> list[bl.Workload]:
    """Return windows of Venus on fewer GPUs than it had, so that jobs compete; one pool."""
    trace = bl.load_trace(next(TRACE.glob("venus_gpu_jobs*.csv.gz")))
    return [
        bl.Workload.from_columns(submit=part.submit, run=part.run, gpus=part.gpus)
        for part in (trace.window(first, first + JOBS) for first in range(5000, 90_000, 11_000))
    ]


@pytest.mark.skipif(not TRACE.is_dir(), reason="the Helios Venus trace is not there")
def test_index__as_good_as_las_with_a_third_of_the_preemptions_or_fewer() -> None:
    """Nothing is known about run times. Against queues (Tiresias), and against plain LAS."""
    schedulers = {
        "index": "las+skip!index",
        "queues": "las+skip!las",
        "plain": "[attained]+skip![attained]:every=60",
    }
    jct: dict[str, float] = {}
    preemptions: dict[str, float] = {}
    for name, scheduler in schedulers.items():
        found = [
            bl.simulate(
                workload,
                f"uniform:1x{GPUS}",
                scheduler,
                knowledge="none",
                conditions=CONDITIONS,
            ).metrics()
            for workload in windows()
        ]
        jct[name] = float(np.mean([one.jct.mean for one in found]))
        preemptions[name] = float(np.mean([one.preemptions for one in found])) / JOBS
        print(f"{scheduler}: mean JCT {jct[name]:.0f} s, {preemptions[name]:.2f} preemptions a job")
    for other in ("queues", "plain"):
        assert jct["index"] < 1.05 * jct[other]
        assert preemptions["index"] < preemptions[other] / 3
