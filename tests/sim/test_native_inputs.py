"""The native core refuses inputs with unknown indices before it uses them."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from tests.sim.scenarios import jobs, nodes

from berthline.policies.scheduler import Scheduler
from berthline.sim import native
from berthline.sim.inputs import Inputs, JobMix, TypicalJob, prepare


@pytest.fixture
def inputs() -> Inputs:
    """A run with one class of nodes, under a placement that uses typical jobs."""
    return prepare(
        jobs((0, 10, 1), (0, 10, 2)),
        nodes(4, 4),
        Scheduler.parse("fcfs@fgd"),
        knowledge="estimate",
        seed=0,
        horizon=None,
    )


@pytest.mark.parametrize("job_class", [-1, 1, 10**9])
def test_typical_jobs__of_a_class_that_does_not_exist(inputs: Inputs, job_class: int) -> None:
    stray = TypicalJob(gpus=1, gpu_milli=1000, cpus=0, memory_mib=0, job_class=job_class, count=1)
    broken = dataclasses.replace(inputs, mixes=(*inputs.mixes, JobMix(2, (stray,))))
    with pytest.raises(ValueError, match=f"a typical job has class {job_class}; there are 1"):
        native.run(broken)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("job_class", [0, 1], "a job has class 1; there are 1"),
        ("job_class", [-1, 0], "a job has class -1; there are 1"),
        ("borrow_class", [1], "a class borrows from class 1; there are 1"),
        ("borrow_class", [-2], "a class borrows from class -2; there are 1"),
    ],
)
def test_classes__that_do_not_exist(
    inputs: Inputs, column: str, values: list[int], message: str
) -> None:
    changes: dict[str, Any] = {column: np.array(values, np.int32)}
    with pytest.raises(ValueError, match=message):
        native.run(dataclasses.replace(inputs, **changes))


def test_inputs__are_otherwise_run(inputs: Inputs) -> None:
    assert len(native.run(inputs)) > 0
