"""The state in which an excerpt of a log begins: running jobs hold GPUs of their nodes."""

from __future__ import annotations

import numpy as np
from benchmarks.whatif_fidelity import recorded

from berthline.evaluate.metrics.job_table import job_table
from berthline.evaluate.whatif.candidate_clusters import settings_of
from berthline.evaluate.whatif.log_excerpt import _spread, run_excerpt, state_at_begin
from berthline.model.schedule import START
from berthline.sim.simulate import simulate
from berthline.traces.generators.synthetic import generate


def test_jobs_are_where_they_ran() -> None:
    workload = generate(
        "synthetic", cluster="uniform:8x8", jobs=1000, load=0.95, seed=6, estimate_error=0.5
    )
    result = simulate(workload, "uniform:8x8", "fcfs+easy")
    log = recorded(result)
    begin = 0.5 * float(log.submit[-1])
    (setting,) = settings_of(log, None, begin, begin + 86400)
    (part,) = setting.parts
    state = state_at_begin(part)
    table = job_table(result.log, result.workload)
    running = np.flatnonzero((table.start < begin) & (table.finish > begin))
    assert sorted(setting.excerpt.rows[: setting.excerpt.running]) == running.tolist()
    assert len(running) > 10
    first = np.append(result.log.detail[result.log.is_start], len(result.log.alloc_node))
    order = result.log.job[result.log.is_start].tolist()
    for number, job in enumerate(setting.excerpt.rows[: setting.excerpt.running].tolist()):
        row = order.index(job)
        nodes = result.log.alloc_node[first[row] : first[row + 1]]
        assert part.held[number].tolist() == sorted(nodes.tolist())
    starts = np.append(state.log.detail[state.log.kind == START], len(state.log.alloc_node))
    for index, job in enumerate(state.log.job[state.log.kind == START].tolist()):
        held = state.log.alloc_node[starts[index] : starts[index + 1]]
        assert held.tolist() == part.held[job].tolist()
    used = np.bincount(state.log.alloc_node, state.log.alloc_gpus, 8)
    assert (used <= 8).all()
    assert (state.log.kind == START).sum() == len(running)
    # From there, today's scheduler does what it did.
    run = run_excerpt(
        setting.excerpt,
        setting.parts,
        "fcfs+easy",
        knowledge="estimate",
        seed=0,
        span=(begin, begin + 86400),
    )
    later = slice(setting.excerpt.running + setting.excerpt.queued, None)
    late = np.abs(run.wait - setting.excerpt.recorded)[later]
    assert (late < 3).mean() > 0.95


def test_gpus_are_spread_evenly_where_they_are_free() -> None:
    def spread(gpus: int, nodes: list[int], free: list[int]) -> list[tuple[int, int]]:
        return _spread(gpus, np.array(nodes, np.int64), np.array(free, np.int64))

    assert spread(8, [0, 1], [8, 8]) == [(0, 4), (1, 4)]
    assert spread(12, [0, 1], [4, 8]) == [(0, 4), (1, 8)]
    assert spread(7, [1, 2], [0, 3, 8]) == [(1, 3), (2, 4)]
    # Too few, a full node, no nodes: the job waits.
    assert spread(9, [0], [8]) == []
    assert spread(4, [0, 1], [0, 8]) == []
    assert spread(1, [], [8]) == []
