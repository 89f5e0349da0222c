"""load_trace: what is refused before any format sees it, and how formats are chosen."""

from __future__ import annotations

import gzip

import pytest

import berthline as bl
from berthline.errors import TraceError
from berthline.model.workload import Workload
from berthline.traces.formats.detection import Match
from berthline.traces.formats.format_table import FORMATS, Format, detect_format
from berthline.traces.load import load_trace

ROW = b"1 0 0 100 4 -1 -1 -1 -1 -1 1 7 -1 -1 -1 -1 -1 -1\n"


def refused(path, name=None):
    with pytest.raises(TraceError) as caught:
        load_trace(path, name)
    error = caught.value
    assert str(path) in error.where
    assert error.expected
    return error


def test_load_trace_is_public(tmp_path):
    (tmp_path / "a.swf").write_bytes(ROW)
    assert len(bl.load_trace(tmp_path / "a.swf")) == 1
    assert len(bl.load_trace(str(tmp_path / "a.swf"), format="swf")) == 1


def test_what_there_is_to_do_with_traces_is_public(tmp_path):
    (tmp_path / "a.swf").write_bytes(ROW)
    (tmp_path / "nodes.csv").write_text("machineId,number of GPUs\nm1,8\n")
    assert {"read_cluster", "trace_card", "validate_trace"} <= set(dir(bl))
    assert bl.validate_trace(tmp_path / "a.swf").usable
    assert bl.trace_card(bl.load_trace(tmp_path / "a.swf")).jobs == 1
    assert bl.read_cluster(tmp_path / "nodes.csv").total_gpus == 8


@pytest.mark.parametrize("name", [None, "swf"])
def test_unreadable_files_are_refused_with_a_hint(tmp_path, name):
    assert refused(tmp_path / "none.swf", name).what == "no such trace file"
    assert "directory" in refused(tmp_path, name).what
    (tmp_path / "empty.swf").touch()
    assert "empty" in refused(tmp_path / "empty.swf", name).what
    (tmp_path / "empty.gz").write_bytes(gzip.compress(b""))
    assert "empty" in refused(tmp_path / "empty.gz", name).what
    (tmp_path / "binary").write_bytes(b"\x7fELF\0\0\0\x15")
    assert "binary" in refused(tmp_path / "binary", name).what
    (tmp_path / "utf16.swf").write_bytes(ROW.decode().encode("utf-16"))
    assert "UTF-16" in refused(tmp_path / "utf16.swf", name).hint
    assert "cannot read" in refused(tmp_path / ("x" * 300), name).what
    assert "cannot read" in refused(tmp_path / "a\0b", name).what


def test_a_damaged_gzip_file_is_refused(tmp_path):
    packed = gzip.compress(ROW * 20_000)
    (tmp_path / "cut.swf.gz").write_bytes(packed[: len(packed) // 2])
    (tmp_path / "noise.swf.gz").write_bytes(packed[:2] + b"noise" * 100)
    for name in ("cut.swf.gz", "noise.swf.gz"):
        assert "gzip file is damaged" in refused(tmp_path / name, "swf").what
        assert "damaged" in refused(tmp_path / name).what


def test_an_unknown_format_shows_the_first_line(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("\n  when,how_long,cards" + ",x" * 100 + "\n1,2,3\n")
    error = refused(path)
    assert "not recognised" in error.what
    assert "'when,how_long" in error.what
    assert len(error.what) < 150
    assert "swf" in error.expected
    assert "`format=swf`" in error.hint
    assert "`mapping=submit=" in error.hint


def test_a_wrong_format_name_gets_the_nearest(tmp_path):
    error = refused(tmp_path / "none", "swff")
    assert error.what == "unknown trace format 'swff'"
    assert error.hint == "did you mean 'swf'?"


@pytest.mark.parametrize("name", ["philly", "parquet", "lsf-acct", "csv", "gavel"])
def test_a_wrong_format_on_a_fine_file_says_what_it_looks_like(tmp_path, name):
    path = tmp_path / "jobs"
    path.write_bytes(ROW * 3)
    error = refused(path, name)
    assert error.what == f"the file looks like swf and cannot be read as {name}"
    assert error.hint == "omit `format`, or use `format=swf`"


def test_the_right_format_on_a_damaged_file_says_which_line(tmp_path):
    path = tmp_path / "jobs"
    path.write_bytes(ROW * 2 + ROW[:20])
    error = refused(path, "swf")
    assert "looks like" not in error.what
    assert "line 3" in error.where


def test_the_table_is_keyed_by_name():
    for name, entry in FORMATS.items():
        assert entry.name == name
        assert entry.description


def test_the_surest_format_reads_the_file(tmp_path, monkeypatch):
    def unused(path):
        raise AssertionError

    for name, match in (("vague", Match.NAMED), ("never", Match.NO), ("late", Match.CERTAIN)):
        entry = Format(name, "a test", lambda head, path, match=match: match, unused)
        monkeypatch.setitem(FORMATS, name, entry)
    first = detect_format(ROW, tmp_path / "a")
    assert first is FORMATS["swf"]  # equals: the first of the table
    surest = detect_format(b"something else", tmp_path / "a")
    assert surest is FORMATS["late"]


@pytest.mark.parametrize("hint", ["", "it has run times"])
def test_an_option_that_is_needed_is_told_as_it_is_typed(tmp_path, monkeypatch, hint):
    def read(path, table=None):
        raise TraceError("too little", where=str(path), expected="the option table: x", hint=hint)

    entry = Format("odd", "a test", lambda head, path: Match.CERTAIN, read, {"table": "a table"})
    monkeypatch.setitem(FORMATS, "odd", entry)
    (tmp_path / "jobs").write_bytes(ROW)
    error = refused(tmp_path / "jobs", "odd")
    assert error.hint == f"give it as option `table=FILE`{'; ' if hint else ''}{hint}"
    with pytest.raises(TraceError) as caught:
        load_trace(tmp_path / "jobs", "odd", table="y")
    assert caught.value.hint == hint


def test_what_the_workload_itself_refuses_names_the_file(tmp_path, monkeypatch):
    def read(path):
        return Workload.from_columns(submit=[0], run=[float("inf")], gpus=[1], name=path.stem)

    entry = Format("odd", "a test", lambda head, path: Match.NO, read)
    monkeypatch.setitem(FORMATS, "odd", entry)
    path = tmp_path / "jobs.odd"
    with pytest.raises(TraceError) as caught:
        load_trace(path, "odd")
    assert caught.value.where == f"{path}: jobs, row 0"
