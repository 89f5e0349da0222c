"""Generators `drift` and `openb`."""

from __future__ import annotations

import numpy as np

import berthline as bl
from berthline.environments import episodes
from berthline.traces.generators.pods import SHAPES
from berthline.traces.offered_load import offered_load

CLUSTER = bl.Cluster.parse("uniform:8x8:V100")


def test_drift__has_phases_of_equal_load() -> None:
    dials = {"phase_jobs": 50, "short_factor": 0.02, "long_share": 0.0, "run_sigma": 0.3}
    jobs = bl.generate("drift", cluster=CLUSTER, jobs=40_000, load=0.8, seed=3, **dials)
    is_short = jobs.run < 300
    changes = np.flatnonzero(np.diff(is_short))
    assert set(np.diff(changes)) == {50}
    assert abs(offered_load(jobs, CLUSTER) / 0.8 - 1) < 0.1
    # The time of a phase is in proportion to its work.
    gaps = np.diff(jobs.submit, prepend=jobs.submit[0])  # before each job
    work = jobs.run * jobs.gpus
    loads = [work[kind].sum() / gaps[kind].sum() / 64 for kind in (is_short, ~is_short)]
    np.testing.assert_allclose(loads, 0.8, rtol=0.1)
    assert jobs.gpus[is_short].max() <= 4


def test_drift__begins_anywhere_in_a_phase() -> None:
    drawn = episodes("drift", cluster=CLUSTER, count=200, jobs=20, phase_jobs=20, long_share=0.0)
    assert len({(np.asarray(row) < 60).sum() for row in drawn.columns["run"]}) > 5


def test_openb__has_the_shapes_of_the_trace() -> None:
    cluster = bl.Cluster.parse("openb-small")
    jobs = bl.generate("openb", cluster=cluster, jobs=20_000, load=1.2, seed=3)
    assert abs(offered_load(jobs, cluster) / 1.2 - 1) < 0.15
    shapes = {(gpus, milli if gpus else 1000) for _, gpus, milli, _, _ in SHAPES}
    assert set(zip(jobs.gpus.tolist(), jobs.gpu_milli.tolist(), strict=True)) == shapes
    shared = (jobs.gpus == 1) & (jobs.gpu_milli < 1000)
    weight = np.array([shape[0] for shape in SHAPES], float)
    expected = sum(w for w, g, m, *_ in SHAPES if g == 1 and m < 1000) / weight.sum()
    assert abs(shared.mean() - expected) < 0.02
    assert jobs.cpus.max() <= 110
    result = bl.simulate(jobs.window(0, 500), cluster, "fcfs+skip@fgd", knowledge="exact")
    assert result.metrics().jobs.rejected == 0
