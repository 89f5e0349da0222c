"""The trace of a run follows the trace event format, and shows what the log says."""

from __future__ import annotations

import gzip
import itertools
import json
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest
from tests.agreement.random_model_runs import random_model_run
from tests.agreement.random_runs import Run, random_run

from berthline.errors import BerthlineError, OutputError
from berthline.evaluate.metrics.gpu_numbers import NO_GPU, WHOLE, gpu_numbers
from berthline.evaluate.metrics.job_table import job_table
from berthline.evaluate.metrics.stretches import stretches
from berthline.model.cluster import Cluster
from berthline.model.schedule import NODE_DOWN, NODE_UP, PREEMPT, REFUSE, REJECT, RESUME
from berthline.model.workload import Workload
from berthline.report.exports.perfetto import CLUSTER_PID, FIRST_NODE_PID, events, write_perfetto
from berthline.sim.simulate import Result, simulate

REQUIRED = {
    "X": {"name", "cat", "ts", "dur", "pid", "tid", "args"},
    "C": {"name", "ts", "pid", "args"},
    "i": {"name", "s", "ts", "pid", "tid", "args"},
    "s": {"name", "cat", "id", "ts", "pid", "tid"},
    "f": {"name", "cat", "id", "ts", "pid", "tid", "bp"},
    "M": {"name", "pid", "args"},
}


def simulated(run: Run) -> Result | None:
    try:
        return simulate(
            run.workload,
            run.cluster,
            run.scheduler,
            knowledge=run.knowledge,
            seed=run.seed,
            horizon=run.horizon,
        )
    except BerthlineError:
        return None  # refused, or preempted without end


def check_format(found: list[dict[str, Any]]) -> None:
    """Assert the rules of the format, for any trace."""
    last = -1
    slices: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    pids: dict[int, int] = {}
    named: Counter[tuple[str, int, int | None]] = Counter()
    flows: dict[str, dict[int, dict[str, Any]]] = {"s": {}, "f": {}}
    for event in found:
        kind = event["ph"]
        assert REQUIRED[kind] <= set(event), event
        if kind == "M":
            assert last == -1  # names come first
            named[event["name"], event["pid"], event.get("tid")] += 1
            continue
        assert isinstance(event["ts"], int)
        assert event["ts"] >= last
        last = event["ts"]
        if kind in "Xisf":
            # A thread belongs to one process only.
            assert pids.setdefault(event["tid"], event["pid"]) == event["pid"]
            assert named["thread_name", event["pid"], event["tid"]] == 1
        assert named["process_name", event["pid"], None] == 1
        if kind == "X":
            assert isinstance(event["dur"], int)
            assert event["dur"] >= 0
            slices[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
        elif kind == "C":
            assert all(isinstance(value, int | float) for value in event["args"].values())
            assert all(np.isfinite(value) and value >= 0 for value in event["args"].values())
        elif kind in "sf":
            assert event["id"] not in flows[kind]
            flows[kind][event["id"]] = event
            begin, end = slices[event["pid"], event["tid"]][-1]
            assert begin <= event["ts"] <= end
    for track in slices.values():  # in order, without overlap
        for (_, end), (begin, _) in itertools.pairwise(track):
            assert end <= begin
    assert set(flows["s"]) == set(flows["f"])
    for number, begin in flows["s"].items():
        assert begin["ts"] <= flows["f"][number]["ts"]
        assert begin["name"] == flows["f"][number]["name"]
        assert begin["cat"] == flows["f"][number]["cat"]


def check_content(found: list[dict[str, Any]], result: Result) -> None:
    """Assert that the trace says what the log says."""
    log, workload = result.log, result.workload
    ran = stretches(log, job_table(log, workload))
    held = np.repeat(ran.job, np.diff(ran.first))
    counts = np.maximum(log.alloc_gpus, 1)
    expected: Counter[tuple[int, int, int]] = Counter()
    begins, stops = (np.repeat(times, np.diff(ran.first)) for times in (ran.begin, ran.stop))
    rows = zip(held.tolist(), counts.tolist(), begins.tolist(), stops.tolist(), strict=True)
    for job, count, begin, stop in rows:
        expected[job, round(begin * 1e6), round(stop * 1e6)] += count
    seen: Counter[tuple[int, int, int]] = Counter()
    for event in found:
        if event["ph"] == "X":
            seen[event["args"]["job"], event["ts"], event["ts"] + event["dur"]] += 1
    assert seen == expected
    kinds = Counter(event["ph"] for event in found)
    assert kinds["s"] == np.count_nonzero(log.kind == RESUME)
    instants = np.isin(log.kind, [REJECT, REFUSE, NODE_DOWN, NODE_UP])
    assert kinds["i"] == np.count_nonzero(instants)


@pytest.mark.parametrize("block", range(4))
def test_random_runs(block: int) -> None:
    seen = Counter()
    for number in range(block * 40, block * 40 + 40):
        for make in (random_run, random_model_run):
            run = make(number)
            if run.workload.submit[0] > 1e12:
                continue  # a float cannot represent microseconds there
            result = simulated(run)
            if result is None:
                continue
            found = list(events(result))
            check_format(found)
            check_content(found, result)
            seen.update(event["ph"] for event in found)
    assert set(seen) == {"X", "C", "i", "s", "f", "M"}


def test_gpus_are_never_held_twice() -> None:
    parts = 0
    for number in range(60):
        result = simulated(random_model_run(number))
        if result is None:
            continue
        numbers = gpu_numbers(result.log, result.cluster)
        ran = stretches(result.log, job_table(result.log, result.workload))
        taken: dict[tuple[int, int, int], float] = {}
        on_whole: dict[tuple[int, int], float] = {}
        columns = (numbers.stretch, numbers.node, numbers.gpu, numbers.part)
        for stretch, node, gpu, part in zip(*(c.tolist() for c in columns), strict=True):
            begin, stop = float(ran.begin[stretch]), float(ran.stop[stretch])
            assert taken.get((node, gpu, part), -1.0) <= begin
            taken[node, gpu, part] = stop
            if gpu != NO_GPU:
                assert 0 <= gpu < result.cluster.gpus[node]
                parts += part != WHOLE
                if part == WHOLE:
                    assert on_whole.get((node, gpu), -1.0) <= begin
                on_whole[node, gpu] = max(stop, on_whole.get((node, gpu), 0.0))
    assert parts > 100


def test_counters_by_hand() -> None:
    workload = Workload.from_columns(
        submit=[0, 1, 2], run=[10, 10, 10], gpus=[2, 4, 1], estimate=[10, 10, 10]
    )
    result = simulate(workload, Cluster.uniform(nodes=2, gpus_per_node=2), "fcfs")
    found = [event for event in events(result) if event["ph"] == "C"]
    by_name: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for event in found:
        assert event["pid"] == CLUSTER_PID
        [value] = event["args"].values()
        by_name[event["name"]].append((event["ts"] / 1e6, value))
    assert by_name["queue"] == [(0, 0), (1, 1), (2, 2), (10, 1), (20, 0)]
    assert by_name["free GPUs"] == [(0, 2), (10, 0), (20, 3), (30, 4)]
    assert by_name["fragmentation"] == [(0, 0), (20, 0.5), (30, 0)]


def test_file(tmp_path) -> None:
    workload = Workload.from_columns(submit=[0, 5], run=[10, 10], gpus=[1, 8], names=["a", "ü"])
    result = simulate(workload, Cluster.uniform(nodes=1, gpus_per_node=8), "fcfs")
    plain, packed = tmp_path / "run.json", tmp_path / "run.json.gz"
    count = write_perfetto(result, plain)
    assert write_perfetto(result, packed) == count
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    trace = json.loads(plain.read_bytes())
    assert len(trace["traceEvents"]) == count
    assert trace["otherData"]["scheduler"] == "fcfs+strict@first-fit"
    [first] = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["name"] == "job a"]
    assert (first["ts"], first["dur"], first["pid"]) == (0, 10_000_000, FIRST_NODE_PID)
    assert sum(e["ph"] == "X" and e["name"] == "job ü" for e in trace["traceEvents"]) == 8
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.json", "run.json.gz"]


def test_nothing_is_left_of_a_file_that_cannot_be_written(tmp_path) -> None:
    workload = Workload.from_columns(submit=[0], run=[10], gpus=[1])
    result = simulate(workload, "uniform:1x8", "fcfs")
    with pytest.raises(OutputError, match="cannot write the file"):
        write_perfetto(result, tmp_path / "no" / "run.json")

    def stop(done: int, of: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_perfetto(result, tmp_path / "run.json", progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_preempted_says_why() -> None:
    workload = Workload.from_columns(
        submit=[0, 5], run=[100, 10], gpus=[1, 1], priority=[0, 1], estimate=[100, 10]
    )
    result = simulate(workload, "uniform:1x1", "static-priority+skip!priority")
    assert np.count_nonzero(result.log.kind == PREEMPT) == 1
    slices = [event for event in events(result) if event["ph"] == "X"]
    assert [event["args"].get("preempted") for event in slices] == ["for another job", None, None]
