"""Same seed, same bits; other seed, other bits; and nothing else that a run depends on."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest

import berthline as bl


def workload(num_jobs: int = 200) -> bl.Workload:
    rng = np.random.default_rng(3)
    return bl.Workload.from_columns(
        submit=np.cumsum(rng.exponential(3.0, num_jobs)),
        run=rng.exponential(60.0, num_jobs) + 1,
        gpus=rng.choice([1, 2, 4, 8, 12], num_jobs),
    )


SEEDED = ["random", "fcfs@random", "random+easy@random", "sjf+conservative@random", "[random]+skip"]


@pytest.mark.parametrize("simulator", ["native", "reference"])
@pytest.mark.parametrize("scheduler", SEEDED)
def test_seed__decides_all_that_is_random(scheduler: str, simulator: str) -> None:
    def sha256(seed: int) -> str:
        return bl.simulate(
            workload(60),
            "uniform:6x8",
            scheduler,
            knowledge="exact",
            seed=seed,
            simulator=simulator,
        ).log.sha256()

    assert sha256(7) == sha256(7)
    assert len({sha256(seed) for seed in range(5)}) == 5


@pytest.mark.parametrize("scheduler", ["fcfs", "sjf+easy@best-fit", "wfp3+skip@scatter"])
def test_seed__changes_nothing_where_nothing_is_random(scheduler: str) -> None:
    logs = {
        bl.simulate(workload(), "uniform:6x8", scheduler, knowledge="exact", seed=seed).log.sha256()
        for seed in range(4)
    }
    assert len(logs) == 1


def test_seed__order_and_placement_draw_from_streams_of_their_own() -> None:
    """The order of starts on one node is not moved by drawing placements as well."""
    on_one = bl.simulate(workload(), "uniform:1x16", "random", knowledge="none", seed=1).log
    drawn = bl.simulate(workload(), "uniform:1x16", "random@random", knowledge="none", seed=1).log
    assert on_one.sha256() == drawn.sha256()


CODE = """
import hashlib, sys
sys.path.insert(0, {tests!r})
from test_determinism import SEEDED, workload
import berthline as bl
digest = hashlib.sha256()
for scheduler in SEEDED:
    log = bl.simulate(workload(80), "uniform:6x8", scheduler, knowledge="exact", seed=5).log
    digest.update(log.sha256().encode())
print(digest.hexdigest())
"""


def test_process__another_one_with_another_hash_seed_gives_the_same_bits() -> None:
    here = hashlib.sha256()
    for scheduler in SEEDED:
        log = bl.simulate(workload(80), "uniform:6x8", scheduler, knowledge="exact", seed=5).log
        here.update(log.sha256().encode())
    tests = os.path.dirname(__file__)  # noqa: PTH120
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(tests=tests)],
        env=os.environ | {"PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == here.hexdigest()


@pytest.mark.parametrize("simulator", ["native", "reference"])
def test_inputs__are_not_changed_by_a_run(simulator: str) -> None:
    jobs = workload(50)
    before = {name: getattr(jobs, name).copy() for name in ("submit", "run", "gpus", "estimate")}
    bl.simulate(jobs, "uniform:6x8", "sjf+easy", knowledge="predicted", simulator=simulator)
    for name, column in before.items():
        np.testing.assert_array_equal(getattr(jobs, name), column)
