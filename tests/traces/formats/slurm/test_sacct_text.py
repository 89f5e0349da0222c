"""sacct's text: columns in any order, steps, arrays, states, limits, names with bars in them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from tests.shared_traces import SHARED_TRACES

from berthline.errors import ConfigError, TraceError
from berthline.traces.formats.slurm import slurm_fields
from berthline.traces.load import load_trace

SAMPLE = SHARED_TRACES / "format_samples/slurm/sacct_parsable2.txt"
DEFAULTS = {
    "JobID": "1",
    "JobName": "train",
    "User": "ada",
    "Partition": "gpu",
    "State": "COMPLETED",
    "Submit": "2024-03-01T08:00:00",
    "Start": "2024-03-01T08:10:00",
    "End": "2024-03-01T08:20:00",
    "ElapsedRaw": "600",
    "Timelimit": "01:00:00",
    "ReqTRES": "billing=8,cpu=8,gres/gpu=2,mem=64G,node=1",
    "AllocTRES": "billing=8,cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=64G,node=1",
}
COLUMNS = tuple(DEFAULTS)


def table(*rows, columns=COLUMNS, end=""):
    lines = ["|".join(str((DEFAULTS | row)[name]) for name in columns) for row in rows]
    return "\n".join(line + end for line in ["|".join(columns), *lines]) + "\n"


@pytest.fixture
def write(tmp_path):
    def write_file(text):
        path = tmp_path / "sacct.txt"
        path.write_bytes(text.encode())
        return path

    return write_file


def refused(path):
    with pytest.raises(TraceError) as caught:
        load_trace(path)
    assert path.name in caught.value.where
    return caught.value


def test_columns_come_from_the_right_fields(write):
    rows = (
        {},
        {
            "JobID": "2_7",
            "User": "bob",
            "Partition": "big",
            "Submit": "2024-03-01T07:59:00",
            "ElapsedRaw": "90",
            "Timelimit": "2-00:00:00",
            "AllocTRES": "cpu=64,gres/gpu:h100=16,mem=1.5T",
        },
    )
    workload = load_trace(write(table(*rows)))
    assert workload.name == "sacct"
    np.testing.assert_array_equal(workload.submit, [0, 60])
    np.testing.assert_array_equal(workload.run, [90, 600])
    np.testing.assert_array_equal(workload.gpus, [16, 2])
    np.testing.assert_array_equal(workload.estimate, [172_800, 3_600])
    np.testing.assert_array_equal(workload.cpus, [64, 8])
    np.testing.assert_array_equal(workload.memory_mib, [1.5 * 2**20, 65_536])
    assert [workload.user_names[code] for code in workload.user] == ["bob", "ada"]
    assert [workload.pool_names[code] for code in workload.pool] == ["big", "gpu"]
    assert workload.names.tolist() == ["2_7", "1"]
    assert dict(workload.provenance) == {
        "format": "slurm-sacct",
        "path": "sacct.txt",
        "rows": 2,
        "used": 2,
        "dropped": {},
        "origin_unix_time": None,
        "time_zone": None,
        "origin_local_time": 1_709_279_940.0,  # 2024-03-01 07:59 on the cluster's clock
        "status": {"COMPLETED": 2},
        "gpu_types": {"a100": 1, "h100": 1},
        "repeated_ids": 0,
        "mended_lines": 0,
        "cpu_jobs": 0,
    }


def test_jobs_without_gpus_can_be_kept(write):
    path = write(table({}, {"AllocTRES": "cpu=3,mem=2G"}, {"AllocTRES": "billing=1"}))
    workload = load_trace(path, cpu_jobs="keep")
    assert workload.gpus.tolist() == [2, 0]
    assert workload.cpus.tolist() == [8, 3]
    assert workload.memory_mib.tolist() == [65_536, 2_048]
    assert workload.provenance["cpu_jobs"] == 1
    assert workload.provenance["dropped"] == {"no GPUs, CPUs or memory": 1}
    assert load_trace(path).provenance["dropped"] == {"no GPUs": 2}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(table({}, {}, columns=COLUMNS[::-1]), id="another order"),
        pytest.param(
            table({}, {}).replace("JobID", "jobid").replace("Submit", "SUBMIT"), id="case"
        ),
        pytest.param(table({}, {}).replace("JobID", "JobIDRaw"), id="raw ids"),
        pytest.param(table({}, {}, end="|"), id="sacct -p"),
        pytest.param(table({}, {}).replace("\n", "\r\n"), id="CRLF"),
        pytest.param(table({}, {}, end="|").replace("\n", "\r\n"), id="sacct -p, CRLF"),
        pytest.param("\ufeff" + table({}) + "\n" + table({}), id="two files joined"),
        pytest.param(
            table({"ElapsedRaw": "00:10:00"}, {"ElapsedRaw": "00:10:00"}).replace(
                "ElapsedRaw", "Elapsed"
            ),
            id="Elapsed",
        ),
        pytest.param(
            table({}, {}, columns=[name for name in COLUMNS if name != "ElapsedRaw"]),
            id="start and end only",
        ),
        pytest.param(table({"AllocTRES": ""}, {}), id="never allocated, by the request"),
        pytest.param(
            table({}, {}, columns=[name for name in COLUMNS if name != "ReqTRES"]), id="no ReqTRES"
        ),
        pytest.param(table({"JobName": 'a "quoted" name'}, {"JobName": '"'}), id="quotes"),
        pytest.param(table({"JobName": "a|b"}, {"JobName": "|"}), id="bars"),
        pytest.param(table({"State": "CANCELLED by 1000"}, {"State": "TIMEOUT"}), id="states"),
    ],
)
def test_real_life_deviations_are_read_all_the_same(write, text):
    workload = load_trace(write(text))
    np.testing.assert_array_equal(workload.run, [600, 600])
    np.testing.assert_array_equal(workload.gpus, [2, 2])
    assert workload.names.tolist() == ["1", "1"]
    assert workload.provenance["repeated_ids"] == 1
    assert workload.user_names == ("ada",)


def test_only_what_is_needed_must_be_there(write):
    columns = ("JobID", "Submit", "ElapsedRaw", "AllocTRES")
    workload = load_trace(write(table({}, columns=columns)))
    assert workload.user_names == ("unknown",)
    np.testing.assert_array_equal(workload.pool, [-1])
    assert np.isnan(workload.estimate).all()


@pytest.mark.parametrize(
    ("limit", "seconds"),
    [
        ("04:00:00", 14_400),
        ("30:00", 1_800),
        ("1-12:30:05", 131_405),
        ("UNLIMITED", np.nan),
        ("Partition_Limit", np.nan),
        ("", np.nan),
        ("00:00:00", np.nan),
    ],
)
def test_limits(write, limit, seconds):
    np.testing.assert_array_equal(
        load_trace(write(table({"Timelimit": limit}))).estimate, [seconds]
    )


def test_limits_in_minutes(write):
    text = table({"Timelimit": "90"}, {"Timelimit": "UNLIMITED"}, {"Timelimit": ""})
    workload = load_trace(write(text.replace("Timelimit", "TimelimitRaw")))
    np.testing.assert_array_equal(workload.estimate, [5_400, np.nan, np.nan])


@pytest.mark.parametrize(
    ("tres", "gpus"),
    [
        ("cpu=1,gres/gpu=4", 4),
        ("gres/gpu=4,gres/gpu:a100=4", 4),
        ("gres/gpu:a100=4,gres/gpu:v100=2", 6),
        ("gres/gpu:1g.5gb=3,node=1", 3),
        ("cpu=8,gres/gpumem=40G,gres/shard=2", 0),
        ("license/gres/gpu=7", 0),
        ("", 0),
        (None, 0),
    ],
)
def test_gpus_of_resources(tres, gpus):
    assert slurm_fields.tres_gpus(pl.Series([tres], dtype=pl.String)).tolist() == [gpus]


@pytest.mark.parametrize(
    ("tres", "memory"),
    [
        ("mem=10M", 10),
        ("mem=512K,cpu=1", 1),
        ("mem=2G", 2048),
        ("mem=1.5G", 1536),
        ("mem=7", 7),
        ("cpu=1", 0),
        ("mem=18446744073709551615M", 0),
    ],
)
def test_memory_of_resources(tres, memory):
    assert slurm_fields.tres_memory_mib(pl.Series([tres])).tolist() == [memory]


def test_every_row_left_out_is_counted_once_under_its_first_reason(write):
    rows = (
        {},
        {"JobID": "1.batch", "AllocTRES": "cpu=8", "ReqTRES": "", "User": ""},
        {"JobID": "1.extern"},
        {"JobID": "1_4.0"},
        {"JobID": "2", "State": "CANCELLED by 1000", "Start": "None", "ElapsedRaw": "0"},
        {"JobID": "3", "State": "CANCELLED by 1000", "ElapsedRaw": "0"},
        {"JobID": "4", "State": "CANCELLED"},  # while it ran: it used its GPUs
        {"JobID": "5_[2-9%3]", "State": "PENDING", "Start": "Unknown", "End": "Unknown"},
        {"JobID": "6", "State": "RUNNING", "End": "Unknown"},
        {"JobID": "7", "Submit": "Unknown"},
        {"JobID": "8", "AllocTRES": "cpu=8", "ReqTRES": "gres/gpu=1"},
        {"JobID": "9", "State": "FAILED", "ElapsedRaw": "0"},
        {"JobID": "10+0", "State": "NODE_FAIL"},
    )
    workload = load_trace(write(table(*rows)))
    assert workload.names.tolist() == ["1", "4", "10+0"]
    assert workload.provenance["dropped"] == {
        "step of a job that has a row of its own": 3,
        "cancelled before start": 2,
        "never started": 1,
        "not finished when the trace ends": 1,
        "submit time unknown": 1,
        "no GPUs": 1,
        "run time 0 or unknown": 1,
    }
    assert workload.provenance["status"] == {
        "COMPLETED": 3,
        "CANCELLED": 3,
        "PENDING": 1,
        "RUNNING": 1,
        "FAILED": 1,
        "NODE_FAIL": 1,
    }


def test_bars_in_names_and_comments_are_put_where_the_times_fit(write):
    columns = ("JobID", "Constraints", "Submit", "State", "ElapsedRaw", "AllocTRES", "JobName")
    text = table(
        {"JobName": "a|b|c"},
        {"JobName": "n"},
        columns=tuple(name for name in columns if name != "Constraints"),
    )
    lines = text.splitlines()
    lines = [
        line.replace("|", "|x|" if row else "|Constraints|", 1) for row, line in enumerate(lines)
    ]
    lines[2] = lines[2].replace("|x|", "|a100|h100|")
    workload = load_trace(write("\n".join(lines)))
    np.testing.assert_array_equal(workload.run, [600, 600])
    assert workload.provenance["mended_lines"] == 2


def test_lines_with_too_many_or_too_few_cells_are_refused(write):
    text = table({}, {}, columns=[name for name in COLUMNS if name != "JobName"])
    lines = text.splitlines()
    error = refused(write("\n".join([*lines[:2], lines[2] + "|more"])))
    assert error.what == "the line has 12 cells"
    assert error.where.endswith("line 3")
    error = refused(write(table({}, {}, {})[:-90]))
    assert error.what == "the line has 11 cells"
    assert error.where.endswith("line 4")
    assert "cut short" in error.hint


def test_a_time_zone_makes_times_absolute(write):
    rows = ({"Submit": "2024-03-30T23:00:00"}, {"Submit": "2024-03-31T04:00:00"})
    path = write(table(*rows))
    np.testing.assert_array_equal(load_trace(path).submit, [0, 5 * 3600])
    workload = load_trace(path, time_zone="Europe/Berlin")
    np.testing.assert_array_equal(workload.submit, [0, 4 * 3600])  # the clocks skipped an hour
    assert workload.provenance["time_zone"] == "Europe/Berlin"
    assert workload.provenance["origin_unix_time"] == 1711836000
    with pytest.raises(ConfigError, match="unknown time zone 'Berlin'"):
        load_trace(path, time_zone="Berlin")


def test_unix_times(write):
    rows = ({"Submit": 1711836000, "Start": 1711836060, "End": 1711836660},)
    workload = load_trace(write(table(*rows)))
    assert workload.provenance["origin_unix_time"] == 1711836000


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ({"Submit": "yesterday"}, "column 'Submit' holds 'yesterday'"),
        ({"End": "2024-13-01T00:00:00"}, "column 'End' holds '2024-13-01T00:00:00'"),
        ({"ElapsedRaw": "10m"}, "column 'ElapsedRaw' holds '10m'"),
        ({"Timelimit": "1 day"}, "column 'Timelimit' holds '1 day'"),
        ({"AllocTRES": "gres/gpu=99999999999"}, "column 'AllocTRES' holds 'gres/gpu=99999999999'"),
        ({"JobID": "9" * 300}, "column 'JobID' holds '999"),
    ],
)
def test_a_wrong_value_is_named_with_its_line(write, row, what):
    # A joined header and a name with a bar must not shift the number of the line.
    text = table({"JobName": "a|b"}) + table({}, row)
    error = refused(write(text))
    assert error.what.startswith(what)
    assert error.where.endswith("sacct.txt, line 5")


@pytest.mark.parametrize("missing", ["AllocTRES ReqTRES", "ElapsedRaw Start"])
def test_missing_columns_are_named(write, missing):
    columns = [name for name in COLUMNS if name not in missing.split()]
    error = refused(write(table({}, columns=columns)))
    assert error.what.startswith("there is no column")
    assert "sacct -aXP" in error.hint


@pytest.mark.skipif(not SAMPLE.is_file(), reason="shared trace files are not here")
def test_the_sample():
    workload = load_trace(SAMPLE)
    assert workload.names.tolist() == ["1001", "1002_1", "1006"]
    np.testing.assert_array_equal(workload.submit, [0, 60, 3_600])
    np.testing.assert_array_equal(workload.run, [9_000, 172_820, 10_800])
    np.testing.assert_array_equal(workload.gpus, [2, 1, 16])
    np.testing.assert_array_equal(workload.estimate, [14_400, 172_800, 86_400])
    np.testing.assert_array_equal(workload.memory_mib, [65_536, 32_000, 131_072])
    provenance = workload.provenance
    assert provenance["rows"] == 9
    assert provenance["dropped"] == {
        "step of a job that has a row of its own": 2,
        "cancelled before start": 1,
        "never started": 1,
        "not finished when the trace ends": 1,
        "no GPUs": 1,
    }
    assert provenance["mended_lines"] == 1
    assert provenance["gpu_types"] == {"a100": 2, "v100": 1}
