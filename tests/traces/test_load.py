"""load_trace: what is refused before any format sees it, and how formats are chosen."""

from __future__ import annotations

import gzip

import pytest

import berthline as bl
from berthline.errors import TraceError
from berthline.model.workload import Workload
from berthline.traces.detection import Match
from berthline.traces.formats import FORMATS, Format, detect_format
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
    assert "--format" in error.hint
    assert "--set mapping=submit=" in error.hint


def test_a_wrong_format_name_gets_the_nearest(tmp_path):
    error = refused(tmp_path / "none", "swff")
    assert error.what == "unknown trace format 'swff'"
    assert error.hint == "did you mean 'swf'?"


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


def test_what_the_workload_itself_refuses_names_the_file(tmp_path, monkeypatch):
    def read(path):
        return Workload.from_columns(submit=[0], run=[float("inf")], gpus=[1], name=path.stem)

    entry = Format("odd", "a test", lambda head, path: Match.NO, read)
    monkeypatch.setitem(FORMATS, "odd", entry)
    path = tmp_path / "jobs.odd"
    with pytest.raises(TraceError) as caught:
        load_trace(path, "odd")
    assert caught.value.where == f"{path}: jobs, row 0"
