"""Berthline's Parquet: bit for bit, whole or refused, and readable by others."""

from __future__ import annotations

import gzip
import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import berthline.traces.formats.parquet as module
from berthline.errors import OutputError, TraceError
from berthline.model.cluster import Cluster
from berthline.model.workload import Workload
from berthline.traces.formats.parquet import write_parquet
from berthline.traces.generators.synthetic import generate
from berthline.traces.load import load_trace

COLUMNS = (
    *(
        "submit",
        "run",
        "gpus",
        "gpu_milli",
        "estimate",
        "cpus",
        "memory_mib",
        "priority",
        "deadline",
    ),
    *("user", "pool", "gpu_types"),
)
FILE_FACTS = ("format", "path", "rows", "used", "dropped", "rounded", "cpu_jobs", "gpus_asked")
FINITE = st.floats(-1e15, 1e15, allow_nan=False)
POSITIVE = st.floats(5e-324, 1e15)
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=8)


def assert_same(one, other):
    for name in COLUMNS:
        left, right = getattr(one, name), getattr(other, name)
        assert left.dtype == right.dtype
        assert left.tobytes() == right.tobytes()
    for name in ("user_names", "pool_names", "gpu_type_sets", "name", "reference_type"):
        assert getattr(one, name) == getattr(other, name)
    assert (one.names is None) == (other.names is None)
    if one.names is not None:
        assert one.names.tolist() == other.names.tolist()
    assert own_and_origin(one) == own_and_origin(other)


def own_and_origin(workload):
    """Return provenance without the place of a file: the same jobs lie in several."""
    about = dict(workload.provenance)
    facts = {key: about.pop(key) for key in FILE_FACTS if key in about}
    if facts.get("format") != "parquet":
        about.setdefault("origin", facts)
    return {key: value for key, value in about.items() if value != {}}


@st.composite
def workloads(draw):
    size = draw(st.integers(1, 6))

    def column(values):
        return draw(st.lists(values, min_size=size, max_size=size))

    users = tuple(draw(st.lists(TEXT, min_size=1, max_size=3)))
    pools = tuple(draw(st.lists(TEXT, max_size=3)))
    types = tuple(draw(st.lists(TEXT, max_size=3)))
    gpus = column(st.integers(0, 2) | st.integers(1, 2**31 - 1))
    return Workload.from_columns(
        submit=column(st.floats(0, 1e15)),
        run=column(POSITIVE),
        gpus=gpus,
        gpu_milli=[draw(st.integers(1, 1000)) if count == 1 else 1000 for count in gpus],
        reference_type=draw(st.sampled_from(["V100-32", "P100", "H800"])),
        estimate=column(st.one_of(POSITIVE, st.just(float("nan")))),
        cpus=column(st.integers(1, 2**31 - 1)),
        memory_mib=column(st.integers(0, 2**38)),
        priority=column(FINITE),
        deadline=column(st.one_of(FINITE, st.just(float("inf")))),
        user=column(st.integers(0, len(users) - 1)),
        pool=column(st.integers(-1, len(pools) - 1)),
        gpu_types=column(st.integers(-1, len(types) - 1)),
        user_names=users,
        pool_names=pools,
        gpu_type_sets=types,
        names=draw(st.one_of(st.none(), st.lists(TEXT, min_size=size, max_size=size))),
        name=draw(TEXT),
        provenance={"dropped": {draw(TEXT): 1}, "zero": draw(FINITE), "list": [None, True]},
        rebase=draw(st.booleans()),
    )


@settings(max_examples=60, deadline=None)
@given(workload=workloads())
def test_what_is_written_is_what_is_read(tmp_path_factory, workload):
    path = write_parquet(workload, tmp_path_factory.mktemp("x") / "x.parquet")
    assert_same(load_trace(path), workload)


def test_a_generated_workload_keeps_its_clock(tmp_path):
    workload = generate(cluster=Cluster.uniform(nodes=2, gpus_per_node=8), jobs=500)
    assert workload.submit[0] > 0
    assert_same(load_trace(write_parquet(workload, tmp_path / "x.parquet")), workload)


def test_counts_of_another_file_are_those_of_the_origin(tmp_path):
    first = {"format": "swf", "path": "log.swf", "rows": 9, "used": 1, "dropped": {"no GPUs": 8}}
    kept = {"max_procs": 64, "origin_unix_time": 1.5e9}
    workload = Workload.from_columns(submit=[0], run=[1], gpus=[1], provenance=first | kept)
    copy = load_trace(write_parquet(workload, tmp_path / "copy.parquet"))
    own = {"format": "parquet", "path": "copy.parquet", "rows": 1, "used": 1, "dropped": {}}
    assert copy.provenance == own | kept | {"origin": first}
    again = load_trace(write_parquet(copy, tmp_path / "again.parquet"))
    assert again.provenance == own | kept | {"origin": first, "path": "again.parquet"}


@pytest.fixture
def file(tmp_path):
    workload = Workload.from_columns(
        submit=[0, 5], run=[60, 0.1], gpus=[1, 8], names=["a", "b"], provenance={"rows": 2}
    )
    return write_parquet(workload, tmp_path / "jobs.parquet")


def test_other_programs_can_read_the_table(file):
    frame = pl.read_parquet(file)
    assert frame["run"].to_list() == [60, 0.1]
    assert frame["name"].to_list() == ["a", "b"]
    assert frame["gpus"].dtype == pl.Int32


def test_gzip_and_any_name_will_do(file, tmp_path):
    path = tmp_path / "x.bin"
    path.write_bytes(gzip.compress(file.read_bytes()))
    assert_same(load_trace(path), load_trace(file))


def test_every_flipped_bit_is_noticed(file):
    content = file.read_bytes()
    for at in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[at] ^= 1 << at % 8
        file.write_bytes(damaged)
        with pytest.raises(TraceError) as caught:
            load_trace(file, "parquet")
        assert str(file) in caught.value.where


def test_a_file_cut_short_is_refused(file):
    content = file.read_bytes()
    for size in range(1, len(content), 11):
        file.write_bytes(content[:size])
        with pytest.raises(TraceError, match=r"not a complete Parquet|damaged|another program"):
            load_trace(file, "parquet")


def test_parquet_of_other_programs_is_refused_with_a_way_out(tmp_path):
    path = tmp_path / "other.parquet"
    pl.DataFrame({"submit": [0.0], "run": [1.0], "gpus": [1]}).write_parquet(path)
    with pytest.raises(TraceError, match="another program wrote") as caught:
        load_trace(path)
    assert "`mapping=submit=" in caught.value.hint


def test_the_layout_without_parts_of_gpus_is_still_read(file, monkeypatch):
    """Written as the version before did it: no column gpu_milli, no reference type."""
    workload = load_trace(file)
    columns = tuple(name for name in module._COLUMNS if name != "gpu_milli")
    dumps = json.dumps

    def without_type(about):
        return dumps({key: value for key, value in about.items() if key != "reference_type"})

    monkeypatch.setattr(module, "SCHEMA", 1)
    monkeypatch.setattr(module, "_COLUMNS", columns)
    monkeypatch.setattr(module.json, "dumps", without_type)
    write_parquet(workload, file)
    monkeypatch.undo()
    assert b"reference_type" not in file.read_bytes()
    assert "gpu_milli" not in pl.read_parquet(file).columns
    again = load_trace(file)
    assert_same(again, workload)
    assert again.gpu_milli.tolist() == [1000, 1000]
    assert again.reference_type == "V100-32"


@pytest.mark.parametrize(
    ("other", "hint"), [(4, "update this one"), (0, "import the trace"), ("x", "import the trace")]
)
def test_another_layout_is_refused(file, monkeypatch, other, hint):
    workload = load_trace(file)
    monkeypatch.setattr(module, "SCHEMA", other)
    write_parquet(workload, file)
    monkeypatch.undo()
    with pytest.raises(TraceError, match=f"layout {other}") as caught:
        load_trace(file)
    assert hint in caught.value.hint


def test_writing_replaces_whole_or_not_at_all(file, tmp_path):
    workload = load_trace(file)
    before = file.read_bytes()
    bad = Workload.from_columns(submit=[0], run=[1], gpus=[1], provenance={"x": np.int64(1)})
    with pytest.raises(TraceError, match="provenance"):
        write_parquet(bad, file)
    assert file.read_bytes() == before
    with pytest.raises(OutputError, match="cannot write") as caught:
        write_parquet(workload, tmp_path / "none" / "x.parquet")
    assert "none" in caught.value.where
    for target in (tmp_path, "", tmp_path / "a\0b"):
        with pytest.raises(OutputError, match="cannot write"):
            write_parquet(workload, target)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["jobs.parquet"]


def test_the_json_beside_the_table_is_plain(file):
    content = file.read_bytes()
    start = content.index(b'{"schema"')
    about, _ = json.JSONDecoder().raw_decode(content[start:].decode("utf-8", errors="replace"))
    assert about["schema"] == module.SCHEMA
    assert about["provenance"] == {"rows": 2}
