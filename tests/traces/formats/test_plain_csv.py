"""Tables of users' own: columns by their names, by a mapping, by numbers; what is refused."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from berthline.errors import ConfigError, TraceError
from berthline.traces.formats.column_mapping import find_sources, parse_mapping
from berthline.traces.load import load_trace


@pytest.fixture
def write(tmp_path):
    def write_file(*lines, name="jobs.csv"):
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n")
        return path

    return write_file


def named(*columns):
    """Return which column of a file is taken for what, by names alone."""
    return {key: str(source) for key, source in find_sources({}, columns, where="").items()}


def test_speaking_names_need_no_mapping(write):
    path = write(
        "job_id,submit_time,duration,num_gpus,user,vc,priority,requested_time,cpus,memory_gb",
        "a,100,60,2,ann,v1,3,120,8,1.5",
        "b,50,600.5,1,bob,,,,,",
    )
    workload = load_trace(path)
    assert workload.provenance["format"] == "csv"
    assert workload.submit.tolist() == [0, 50]
    assert workload.run.tolist() == [600.5, 60]
    assert workload.gpus.tolist() == [1, 2]
    np.testing.assert_array_equal(workload.estimate, [np.nan, 120])
    assert workload.priority.tolist() == [0, 3]
    assert workload.cpus.tolist() == [0, 8]
    assert workload.memory_mib.tolist() == [0, 1536]
    assert [workload.user_names[code] for code in workload.user] == ["bob", "ann"]
    assert workload.pool.tolist() == [-1, 0]
    assert workload.pool_names == ("v1",)
    assert workload.names.tolist() == ["b", "a"]
    assert workload.name == "jobs"
    assert workload.provenance["mapping"]["memory_mib"] == "memory_gb*1024"
    assert workload.provenance["origin_unix_time"] is None


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (("arrival_time", "runtime", "gpus"), {"submit": "arrival_time", "run": "runtime"}),
        (("submitTime", "runTime", "numGpus"), {"submit": "submitTime", "gpus": "numGpus"}),
        (("Submit Time (s)", "Elapsed [min]", "GPU count"), {"run": "Elapsed [min]*60"}),
        (("arrival_s", "service_sec", "gpu_count"), {"submit": "arrival_s", "run": "service_sec"}),
        (("arrival", "duration_ms", "gpus"), {"run": "duration_ms*0.001"}),
        (("queue", "partition", "pool"), {"pool": "pool"}),
        (("start", "end", "duration"), {"run": "duration"}),
        (("mem", "memory"), {}),
        (("duration", "Duration"), {"run": "duration"}),
    ],
)
def test_what_names_are_taken_for(columns, expected):
    sources = named(*columns)
    assert {key: sources[key] for key in expected} == expected
    assert "memory_mib" not in sources
    assert not ({"start", "end"} & sources.keys()) or "run" not in sources


def test_start_and_end_make_a_run_time(write):
    path = write(
        "id;submitted;started;ended;gpus",
        "1;2024-01-01 00:00:00;2024-01-01 00:01:00;2024-01-01 00:11:00;0.25",
        "2;2024-01-01 00:00:01;;;1",
        "3;2024-01-01 00:00:02;2024-01-01 00:01:00;;1",
        "4;;2024-01-01 00:01:00;2024-01-01 00:02:00;1",
        "5;2024-01-01 00:00:02;2024-01-01 00:01:00;2024-01-01 00:01:00;1",
        "6;2024-01-01 00:00:02;2024-01-01 00:01:00;2024-01-01 00:02:00;0",
    )
    workload = load_trace(path)
    assert workload.run.tolist() == [600]
    assert workload.gpus.tolist() == [1]
    assert workload.gpu_milli.tolist() == [250]
    provenance = workload.provenance
    assert "rounded" not in provenance
    assert provenance["dropped"] == {
        "submit time unknown": 1,
        "never started": 1,
        "not finished when the trace ends": 1,
        "run time 0 or unknown": 1,
        "no GPUs": 1,
    }
    assert provenance["origin_unix_time"] == 1_704_067_200
    assert provenance["time_zone"] is None
    assert provenance["mapping"]["submit"] == "submitted@%Y-%m-%d %H:%M:%S%.f"


def test_parts_of_gpus_and_jobs_without_any(write):
    path = write(
        "submit,run,gpus,gpu_milli,cpus,memory_gb,gpu_type",
        "0,5,0.3,,1,1,T4",
        "1,5,1,125,1,1,T4",
        "2,5,2,500,1,1,T4",
        "3,5,1.5,1000,1,1,T4",
        "4,5,,,3,0,A10",
        "5,5,0,,0,0.5,A10",
        "6,5,-1,-1,-1,,A10",
    )
    workload = load_trace(path, cpu_jobs="keep")
    assert workload.gpus.tolist() == [1, 1, 2, 2, 0, 0]
    assert workload.gpu_milli.tolist() == [300, 125, 1000, 1000, 1000, 1000]
    assert workload.cpus.tolist() == [1, 1, 1, 1, 3, 0]
    assert workload.memory_mib.tolist() == [1024, 1024, 1024, 1024, 0, 512]
    assert workload.gpu_type_sets == ("T4",)
    provenance = workload.provenance
    assert provenance["rounded"] == {"fractional GPUs rounded up to whole ones": 2}
    assert provenance["cpu_jobs"] == 2
    assert provenance["dropped"] == {"no GPUs, CPUs or memory": 1}
    assert load_trace(path).provenance["dropped"] == {"no GPUs": 3}
    path = write("submit,run,gpus,percent", "0,5,1,12.5", "1,5,1,100", "2,5,1,")
    percent = load_trace(path, mapping="gpu_milli=percent*10")
    assert percent.gpu_milli.tolist() == [125, 1000, 1000]


def test_a_mapping_overrides_names_units_and_date_forms(write):
    path = write(
        "when,minutes,duration,cards,who",
        "31.12.2023 23:00,1.5,99,4,ann",
        "01.01.2024 00:00,2,99,1,bob",
    )
    mapping = "submit=when@%d.%m.%Y %H:%M,run=minutes*60, gpus = cards ,user="
    workload = load_trace(path, mapping=mapping)
    assert workload.submit.tolist() == [0, 3600]
    assert workload.run.tolist() == [90, 120]
    assert workload.gpus.tolist() == [4, 1]
    assert workload.provenance["mapping"] == {
        "submit": "when@%d.%m.%Y %H:%M",
        "run": "minutes*60",
        "gpus": "cards",
    }
    same = load_trace(path, "csv", mapping=dict(parse_mapping(mapping, where="")))
    assert same.provenance == workload.provenance


def test_zones_in_dates_count(write):
    path = write(
        "submit_time,run_time,gpus",
        "2024-01-01T08:00:00+08:00,60,1",
        "2024-01-01T00:00:30.5Z,60,1",
    )
    workload = load_trace(path)
    assert workload.submit.tolist() == [0, 30.5]
    assert workload.provenance["time_zone"] == "UTC"


def test_columns_by_number_mean_that_there_is_no_header(write):
    path = write("60000\t1\t0", "120000\t8\t5")
    workload = load_trace(path, mapping="run=#1/1000,gpus=#2,submit=#3")
    assert workload.run.tolist() == [60, 120]
    assert workload.provenance["rows"] == 2


def test_a_column_whose_name_looks_like_more_than_a_name(write):
    path = write("a*60,b@x,c", "5,6,1")
    workload = load_trace(path, mapping="submit=a*60,run=b@x,gpus=c")
    assert workload.run.tolist() == [6]


def test_a_mapped_start_and_end_win_over_a_column_that_looks_like_a_run_time(write):
    path = write("submit,duration,t0,t1,gpus", "0,99,5,10,1")
    assert load_trace(path, mapping="start=t0,end=t1").run.tolist() == [5]
    assert load_trace(path).run.tolist() == [99]


def test_gpu_types_and_deadlines(write):
    path = write(
        "submit,run,gpus,gpu_type,deadline",
        "0,5,1,V100M32|A100,100",
        "0,5,1,,",
        "0,5,1,A100|V100,7",
    )
    workload = load_trace(path)
    assert workload.gpu_types.tolist() == [0, -1, 0]
    assert workload.gpu_type_sets == ("A100-80|V100-32",)
    assert workload.deadline.tolist() == [100, np.inf, 7]


def test_gzip_and_unix_times(write, tmp_path):
    path = tmp_path / "jobs.csv.gz"
    path.write_bytes(gzip.compress(b"submit,run,gpus\n1700000000,60,1\n"))
    workload = load_trace(path)
    assert workload.provenance["origin_unix_time"] == 1_700_000_000
    assert workload.name == "jobs"


@pytest.mark.parametrize(
    ("mapping", "what"),
    [
        ("submit", "not a mapping"),
        ("", None),
        ("submitt=when", "unknown column of a workload 'submitt'"),
        ("submit=when,submit=who", "twice"),
        ("submit=when*1e99", "factor"),
        ("submit=when@yesterday", "not a date format"),
    ],
)
def test_mappings_that_make_no_sense_are_refused(write, mapping, what):
    path = write("when,how_long,cards", "0,5,1")
    with pytest.raises(ConfigError if what else TraceError, match=what) as caught:
        load_trace(path, "csv", mapping=mapping)
    assert str(path) in caught.value.where


def test_a_column_that_is_not_there_gets_the_nearest(write):
    path = write("created,how_long,cards", "0,5,1")
    with pytest.raises(TraceError) as caught:
        load_trace(path, mapping="submit=creatd,run=how_long,gpus=cards")
    assert "a column 'creatd'" in caught.value.what
    assert caught.value.hint == "did you mean 'created'?"


def test_what_is_missing_is_named(write):
    with pytest.raises(TraceError) as caught:
        load_trace(write("submit,cards", "0,5"), "csv")
    assert caught.value.what == "no column was recognised as 'gpus' or 'run'"
    assert "submit, cards" in caught.value.hint
    assert "`mapping=submit=" in caught.value.hint


def test_a_bad_cell_has_line_column_and_value(write):
    path = write("submit,run,gpus", "0,5,1", "", "1,soon,1")
    with pytest.raises(TraceError) as caught:
        load_trace(path)
    assert caught.value.what == "column 'run' holds 'soon'"
    assert caught.value.where == f"{path}, line 4"
    assert "`mapping=submit=" in caught.value.hint


def test_a_date_in_another_form_shows_the_form_that_was_expected(write):
    path = write("submit,run,gpus", "2024-01-01 00:00:00Z,5,1", "yesterday,5,1")
    with pytest.raises(TraceError) as caught:
        load_trace(path)
    assert caught.value.what == "column 'submit' holds 'yesterday'"
    assert caught.value.expected == "a time such as 2020-04-01 13:05:59+0800"


def test_two_columns_of_the_same_name_are_refused(write):
    with pytest.raises(TraceError, match="same name, 'run'"):
        load_trace(write("submit,run,gpus,run", "0,5,1,9"))
