"""A folder with the files that the examples name, and registries as they were before."""

from __future__ import annotations

import functools

import pytest
from tests.docs.pages import files
from tests.evaluate.whatif.sacct_text import sacct_text, whole_seconds

import berthline as bl
from berthline.policies.orders import ORDERS

CLUSTER = """\
[[nodes]]
count = 2
gpus = 8
"""


@functools.cache
def accounting() -> str:
    """Return two weeks of `sacct -P`, simulated on the cluster of the examples."""
    jobs = bl.generate(
        "poisson", cluster="uniform:2x8", jobs=500, run_median=6000, run_high=86_400, seed=1
    )
    return sacct_text(bl.simulate(whole_seconds(jobs), "uniform:2x8", "fcfs+easy"))


def rltune_jobs() -> str:
    """Return a job list of RLTune: 19 columns, virtual cluster 0, P100."""
    return "".join(
        f"{job},{60 * job},-1,{900 + 37 * job % 6000},{2 ** (job % 4)},-1,-1,-1,-1,-1,1,{job % 3}"
        ",-1,-1,-1,-1,-1,0,2\n"
        for job in range(400)
    )


@pytest.fixture
def playground(tmp_path, monkeypatch):
    """Change to a folder with the files of the pages; widths and registries are fixed."""
    rows = [
        f"{job} {60 * job} -1 {100 + 37 * job % 600} {2 ** (job % 4)} -1 -1 -1 900"
        f" -1 1 {job % 3} -1 -1 -1 -1 -1 -1"
        for job in range(120)
    ]
    (tmp_path / "trace.swf").write_text("\n".join(rows) + "\n")
    (tmp_path / "philly.csv").write_text(rltune_jobs())
    (tmp_path / "alibaba.csv").write_text(
        "arrival_time,runtime,gpus,priority\n"
        + "".join(f"{60 * job},{100 + 37 * job % 600},{2 ** (job % 4)},5\n" for job in range(120))
    )
    for name in ("my.toml", "cluster.toml"):
        (tmp_path / name).write_text(CLUSTER)
    (tmp_path / "week.sacct").write_text(accounting())
    for name in ("progress.csv", "ppo-1.csv", "ppo-2.csv"):
        (tmp_path / name).write_text("step,jct_mean\n0,900\n100,700\n200,650\n")
    for name, text in files().items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    before = dict(ORDERS)
    yield tmp_path
    ORDERS.clear()
    ORDERS.update(before)
