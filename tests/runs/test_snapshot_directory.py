"""Snapshots on disk: run directories with a horizon, written, read and continued."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.agreement.random_instants import KINDS, arrivals, random_instant

import berthline as bl
from berthline.errors import BerthlineError, ConfigError
from berthline.model.schedule import FINISH
from berthline.model.snapshot import Memory
from berthline.runs.run_layout import EVENTS, META, START
from berthline.sealed_json import seal

if TYPE_CHECKING:
    from pathlib import Path


def a_run(until: float | None = None, out: Path | None = None) -> bl.Result:
    jobs = bl.generate(
        "synthetic",
        cluster=bl.Cluster.uniform(nodes=4, gpus_per_node=8),
        jobs=300,
        load=0.9,
        seed=3,
    )
    return bl.simulate(jobs, "uniform:4x8:V100", "sjf+easy", horizon=until, out=out)


def assert_same(found: bl.Snapshot, expected: bl.Snapshot) -> None:
    assert found.log.sha256() == expected.log.sha256()
    assert found.log.decisions == expected.log.decisions
    for name in ("now", "decides", "timer", "scheduler", "knowledge", "seed"):
        assert getattr(found, name) == getattr(expected, name)
    np.testing.assert_array_equal(found.number, expected.number)
    for field in dataclasses.fields(Memory):
        one, other = getattr(found.memory, field.name), getattr(expected.memory, field.name)
        np.testing.assert_array_equal(one, other)
        assert np.asarray(one).dtype == np.asarray(other).dtype, field.name


def test_directory__a_stopped_run_is_continued_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    whole = a_run()
    a_run(until=30_000.0, out=tmp_path / "first")
    first = bl.open_run(tmp_path / "first")
    snapshot = first.snapshot()
    bl.resume(snapshot, arrivals=first.arrivals(snapshot), horizon=6e4, out=tmp_path / "second")
    second = bl.open_run(tmp_path / "second")
    state = second.snapshot()
    rest = bl.resume(state, arrivals=second.arrivals(state))
    late = whole.log.time > 6e4
    assert late.sum() > 100
    numbers = np.concatenate([state.number, np.arange(state.memory.jobs + state.num_jobs, 300)])
    after = len(rest.log) - int(late.sum())
    assert rest.log.time[after:].tolist() == whole.log.time[late].tolist()
    assert rest.log.kind[after:].tolist() == whole.log.kind[late].tolist()
    assert numbers[rest.log.job[after:]].tolist() == whole.log.job[late].tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_directory__export_import_export_gives_the_same_bytes(kind: str, tmp_path: Path) -> None:
    for number in range(8):
        instant = random_instant(kind, number)
        if instant is None:
            continue
        snapshot = instant.result.snapshot(instant.at)
        one, two = tmp_path / f"{number}-a", tmp_path / f"{number}-b"
        bl.write_snapshot(snapshot, one)
        again = bl.open_run(one).snapshot()
        assert_same(again, snapshot)
        bl.write_snapshot(again, two)
        for file in sorted(one.iterdir()):
            if file.name != META:  # it says when it was written
                assert file.read_bytes() == (two / file.name).read_bytes(), file.name
        to_come = arrivals(instant.result.workload, snapshot)
        runs = [bl.resume(state, arrivals=to_come, horizon=1e4) for state in (snapshot, again)]
        assert runs[0].log.sha256() == runs[1].log.sha256()


def test_directory__run_times_may_be_unknown_and_the_queue_empty(tmp_path: Path) -> None:
    snapshot = a_run().snapshot(50_000.0)
    over = np.isin(np.arange(snapshot.num_jobs), snapshot.log.job[snapshot.log.kind == FINISH])
    jobs = dataclasses.replace(snapshot.workload, run=np.where(over, snapshot.workload.run, np.nan))
    unknown = dataclasses.replace(snapshot, workload=jobs)
    bl.write_snapshot(unknown, tmp_path / "live")
    read = bl.open_run(tmp_path / "live").snapshot()
    assert np.isnan(read.workload.run).any()
    assert bl.decide(read).actions == bl.decide(snapshot).actions
    with pytest.raises(ConfigError, match="is not known"):
        bl.resume(read)
    with pytest.raises(ConfigError, match="knowledge exact"):
        bl.decide(read, knowledge="exact")
    end = a_run()
    bl.write_snapshot(end.snapshot(float(end.log.time[-1]) + 1), tmp_path / "empty")
    empty = bl.open_run(tmp_path / "empty").snapshot()
    assert empty.num_jobs == 0
    assert bl.decide(empty).actions == ()


def test_directory__a_run_to_its_end_needs_an_instant(tmp_path: Path) -> None:
    a_run(out=tmp_path / "run")
    run = bl.open_run(tmp_path / "run")
    with pytest.raises(ConfigError, match="went to its end"):
        run.snapshot()
    assert run.snapshot(50_000.0).num_jobs > 0
    for at in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ConfigError, match="no state at"):
            run.snapshot(at)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"jobs": 10_000}, "is about 10000 jobs"),
        ({"rows": 10**6}, "rows of the log"),
        ({"number": [1, 2]}, "number has the shape"),
        ({"memory": {"jobs": "many"}}, "cannot be read"),
        ({"memory": {"nonsense": 3}}, "cannot be read"),
        ({"now": 1.0}, "an event at"),
        ({"now": "later"}, "cannot be read"),
    ],
)
def test_directory__a_contradictory_start_is_refused(
    change: dict[str, object], message: str, tmp_path: Path
) -> None:
    bl.write_snapshot(a_run().snapshot(50_000.0), tmp_path / "run")
    path = tmp_path / "run" / START
    facts = json.loads(path.read_bytes())
    facts.pop("seal")
    path.write_text(json.dumps(seal({**facts, **change})))
    with pytest.raises(ConfigError, match=message):
        bl.open_run(tmp_path / "run").snapshot()


def test_directory__a_damaged_file_is_refused(tmp_path: Path) -> None:
    bl.write_snapshot(a_run().snapshot(50_000.0), tmp_path / "run")
    path = tmp_path / "run" / START
    path.write_bytes(path.read_bytes().replace(b'"seed": 0', b'"seed": 1'))
    with pytest.raises(ConfigError, match="checksum is wrong"):
        bl.open_run(tmp_path / "run").snapshot()
    (tmp_path / "run" / EVENTS).write_bytes(b"nothing")
    with pytest.raises(BerthlineError, match="cannot be read"):
        bl.open_run(tmp_path / "run").snapshot()
