"""How long a million rows take to load, and how much memory, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import polars as pl
import pytest

ROWS = 1_000_000
PROGRAM = """
import resource, sys, time
import polars
from berthline.traces.load import load_trace
start = time.process_time()
jobs = len(load_trace(sys.argv[1]))
seconds = time.process_time() - start
print(jobs, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


@pytest.mark.bench
def test_a_million_rows_of_csv_load_in_a_second_and_500_mb(tmp_path):
    random = np.random.default_rng(0)
    path = tmp_path / "jobs.csv"
    columns = {
        "job_id": np.arange(ROWS),
        "submit_time": np.sort(random.integers(0, 10**7, ROWS)),
        "duration": np.round(random.lognormal(7, 1.5, ROWS), 1),
        "num_gpus": random.choice([1, 2, 4, 8], ROWS),
        "user": random.integers(0, 500, ROWS).astype(str),
        "vc": random.integers(0, 9, ROWS).astype(str),
        "priority": random.integers(0, 5, ROWS),
        "requested_time": random.integers(60, 90_000, ROWS),
    }
    pl.DataFrame(columns).write_csv(path)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)], capture_output=True, text=True, check=True
    )
    jobs, seconds, megabytes = map(float, done.stdout.split())
    assert jobs == ROWS
    assert seconds < 1
    assert megabytes < 500
