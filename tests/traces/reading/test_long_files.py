"""Long lines are refused at once; the first jobs of a long file do not need the rest."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import pytest

from berthline.cli.main import main
from berthline.errors import ConfigError, TraceError
from berthline.traces import load as module
from berthline.traces.formats.format_table import FORMATS
from berthline.traces.formats.parquet import write_parquet
from berthline.traces.load import load_first_jobs, load_trace
from berthline.traces.reading import files
from berthline.traces.workload_argument import resolve_workload

ROW = "{0} {0} 1 10 2 -1 -1 2 60 -1 1 1 1 -1 1 -1 -1 -1\n"


@pytest.mark.parametrize(
    ("name", "head", "line"),
    [
        ("a.csv", "submit,run,gpus\n0,5,1\n", 3),
        ("a.swf", "; MaxProcs: 4\n", 2),
        ("a.txt", "JobID|Submit|ElapsedRaw|AllocTRES\n", 2),
        ("a.acct", '"JOB_FINISH" "10.1" 1 ', 1),
    ],
)
def test_a_line_that_is_too_long_is_refused(tmp_path, monkeypatch, name, head, line):
    monkeypatch.setattr(files, "LONGEST_LINE", 100_000)
    (tmp_path / name).write_text(head + "1 " * 70_000)
    with pytest.raises(TraceError, match="a line is longer than") as caught:
        load_trace(tmp_path / name)
    assert caught.value.where.endswith(f"line {line}")


def test_json_may_be_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LONGEST_LINE", 1000)
    job = (
        '{"job_id": 1, "time": {"submission": 5, "start": 6, "end": 9, "elapsed": 3}, "tres": '
        '{"allocated": [{"type": "gres", "name": "gpu:a100", "count": 1}]}, "nodes": "n[1-2]", '
        f'"account": "lab", "comment": "{"x" * 2000}"}}'
    )
    (tmp_path / "a.json").write_text(f'{{"jobs": [{job}]}}')
    workload = load_trace(tmp_path / "a.json")
    assert [workload.ran_on_types[code] for code in workload.ran_on] == ["a100"]
    assert workload.history.node_lists == ("n[1-2]",)
    assert workload.history.group_names == ("lab",)


@pytest.fixture
def long_file(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LONG_FILE", 1000)
    monkeypatch.setattr(module, "_FIRST_BYTES", 4000)
    monkeypatch.setattr(files, "PIECE_BYTES", 1000)

    def write(rows, name="long.swf"):
        path = tmp_path / name
        text = "".join(ROW.format(number) for number in rows).encode()
        path.write_bytes(gzip.compress(text, 0) if name.endswith(".gz") else text)
        return path

    return write


@pytest.mark.parametrize("name", ["long.swf", "long.swf.gz"])
def test_only_the_start_of_a_sorted_file_is_read(long_file, name):
    path = long_file(range(5000), name)
    whole = load_trace(path)
    found = load_first_jobs(path, 20)
    assert 20 < len(found) < 5000
    assert found.submit[:20].tolist() == whole.submit[:20].tolist()
    assert found.provenance["part_read"] == 512 * 20
    cut = resolve_workload(path, cluster="uniform:1x4", jobs=20)
    assert len(cut) == 20
    assert cut.provenance["part_read"] == 512 * 20


def test_a_file_that_is_not_sorted_is_read_whole(long_file):
    rows = [*range(10, 5000), *range(10)]
    rows[:2] = rows[1::-1]
    found = load_first_jobs(long_file(rows), 5)
    assert len(found) == 5000
    assert "part_read" not in found.provenance
    assert found.provenance["read_whole"] == "its jobs are not in order of submission"


JSON_JOB = (
    '{{"job_id": {0}, "time": {{"submission": {0}, "start": 60, "end": 90, "elapsed": 30}}, '
    '"tres": {{"allocated": [{{"type": "gres", "name": "gpu", "count": 1}}]}}, "nodes": "n1"}}'
)


def test_it_is_said_why_a_format_is_read_whole(tmp_path, monkeypatch, capsys):
    path = tmp_path / "jobs.json"
    jobs = ", ".join(JSON_JOB.format(number) for number in range(1, 30))
    path.write_text(f'{{"jobs": [{jobs}]}}')
    assert "read_whole" not in load_first_jobs(path, 5).provenance  # it is short
    monkeypatch.setattr(module, "LONG_FILE", 1)
    cut = resolve_workload(path, cluster="uniform:1x4", jobs=5)
    assert cut.provenance["read_whole"] == "a JSON document ends with its last line"
    assert main(["sim", str(path), "--jobs", "5", "--cluster", "uniform:1x4"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "all read the whole file, for its first jobs: a JSON document ends" in shown
    # All jobs were asked for.
    assert "read_whole" not in load_first_jobs(path, 29).provenance


def test_it_is_said_why_a_trace_in_parts_is_read_whole(tmp_path, monkeypatch):
    part = tmp_path / "job_events"
    part.mkdir()
    lines = [
        f"{at},,{job},{kind},u,2,j,l" for job in range(1, 10) for at, kind in ((job, 0), (job, 1))
    ]
    lines += [f"{50 + job},,{job},4,u,2,j,l" for job in range(1, 10)]
    (part / "part-00000-of-00500.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(module, "LONG_FILE", 1)
    found = load_first_jobs(part, 5)
    assert len(found) == 9
    assert "last line" in found.provenance["read_whole"]


def test_every_format_is_read_in_part_or_says_why_not():
    for entry in module.FORMATS.values():
        is_part = entry.by_line or entry.read_first is not None
        assert is_part == (not entry.whole), entry.name


def test_more_is_read_if_the_start_has_too_few_jobs(long_file):
    path = long_file(range(5000))
    assert len(load_first_jobs(path, 4900)) == 5000
    with pytest.raises(ConfigError, match="more than the trace has"):
        resolve_workload(path, cluster="uniform:1x4", jobs=5001)


def test_a_wrong_line_near_the_start_is_an_error_at_once(long_file):
    path = long_file(range(5000))
    path.write_text(path.read_text().replace("3 3 1 10", "3 3 1 x", 1))
    with pytest.raises(TraceError, match="run time") as caught:
        load_first_jobs(path, 5)
    assert caught.value.where.endswith("line 4")


def test_only_the_first_jobs_of_a_parquet_file_are_unpacked(tmp_path, monkeypatch):
    whole = resolve_workload("synthetic", cluster="uniform:1x4", jobs=500)
    path = tmp_path / "jobs.parquet"
    write_parquet(whole, path)
    monkeypatch.setattr(module, "LONG_FILE", 1)
    assert len(load_first_jobs(path, 20)) == 21
    cut = resolve_workload(path, cluster="uniform:1x4", jobs=20)
    np.testing.assert_array_equal(cut.submit, whole.submit[:20] - whole.submit[0])
    np.testing.assert_array_equal(cut.run, whole.run[:20])
    assert cut.provenance["origin"]["rows"] == 500
    assert len(resolve_workload(path, cluster="uniform:1x4", jobs=500)) == 500
    with pytest.raises(ConfigError, match="more than the trace has"):
        resolve_workload(path, cluster="uniform:1x4", jobs=501)


def test_formats_that_are_read_whole_are_those_that_the_page_names():
    page = Path(__file__).parents[3] / "docs/reference/traces.md"
    section = page.read_text(encoding="utf-8").partition("## The first jobs only\n")[2]
    named = set(re.findall(r"`([a-z0-9-]+)`", section.partition("\n## ")[0]))
    whole = {name for name, one in FORMATS.items() if not one.by_line and one.read_first is None}
    assert named == whole
