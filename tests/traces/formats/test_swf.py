"""SWF: hand-made texts for every deviation and error a real file can have."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from berthline.errors import ConfigError, TraceError
from berthline.model.workload import Workload
from berthline.traces.formats import swf
from berthline.traces.formats.detection import Match
from berthline.traces.load import load_trace

HEADER = """\
; Version: 2.2
; Computer: Model T
; Installation: Anywhere
; Acknowledge: Someone
; UnixStartTime: 1000000000
; TimeZoneString: Europe/Stockholm
; MaxNodes: 338 (batch partition; 512 total)
; MaxProcs: 340 processors
;
"""


def row(
    job=1, submit=0, run=100, procs=4, requested=-1, estimate=-1, status=1, user=7, wait=0, extra=""
):
    """Return one line of 18 fields, with `extra` after them."""
    fields = (job, submit, wait, run, procs, -1, -1, requested, estimate, -1, status, user)
    return " ".join(map(str, fields)) + " -1 -1 -1 -1 -1 -1" + extra


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a text to a file, byte for byte, and gives its path."""

    def write_file(text, name="log.swf"):
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write_file


def refused(path):
    """Return the error that reading the file must raise."""
    with pytest.raises(TraceError) as caught:
        load_trace(path)
    assert path.name in str(caught.value)
    return caught.value


def test_columns_come_from_the_right_fields(write):
    rows = [
        row(job=11, submit=50, run=100, procs=4, requested=8, estimate=200, user=7),
        row(job=12, submit=60, run=1.5, procs=-1, requested=8, estimate=-1, user=3),
        row(job=13, submit=70, run=300, procs=0, requested=2, estimate=0, user=-1),
    ]
    workload = load_trace(write(HEADER + "\n".join(rows) + "\n"))
    assert workload.name == "log"
    np.testing.assert_array_equal(workload.submit, [0, 10, 20])
    np.testing.assert_array_equal(workload.run, [100, 1.5, 300])
    np.testing.assert_array_equal(workload.gpus, [4, 8, 2])
    np.testing.assert_array_equal(workload.estimate, [200, np.nan, np.nan])
    np.testing.assert_array_equal(workload.priority, [0, 0, 0])
    assert np.isinf(workload.deadline).all()
    assert [workload.user_names[code] for code in workload.user] == ["7", "3", "unknown"]
    assert workload.names is not None
    assert workload.names.tolist() == ["11", "12", "13"]
    assert dict(workload.provenance) == {
        "format": "swf",
        "path": "log.swf",
        "rows": 3,
        "used": 3,
        "dropped": {},
        "status": {"completed": 3},
        "extra_fields": 0,
        "origin_unix_time": 1000000050,
        "time_zone": "Europe/Stockholm",
        "max_procs": 340,
        "header": [
            line.removeprefix("; ").split(": ", 1) for line in HEADER.splitlines() if ": " in line
        ],
        "source": {"computer": "Model T", "installation": "Anywhere", "acknowledge": "Someone"},
    }


def test_rows_out_of_order_are_sorted_with_all_their_columns(write):
    text = "\n".join([row(job=1, submit=90, run=1), row(job=2, submit=30, run=2, user=9)])
    workload = load_trace(write(text))
    np.testing.assert_array_equal(workload.submit, [0, 60])
    np.testing.assert_array_equal(workload.run, [2, 1])
    assert workload.names is not None
    assert workload.names.tolist() == ["2", "1"]
    assert [workload.user_names[code] for code in workload.user] == ["9", "7"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(row() + "\n" + row(job=2) + "\n", id="no header"),
        pytest.param(HEADER + row() + "\n" + row(job=2), id="no newline at the end"),
        pytest.param((HEADER + row() + "\n" + row(job=2) + "\n").replace("\n", "\r\n"), id="CRLF"),
        pytest.param((HEADER + row() + "\n" + row(job=2) + "\n").replace("\n", "\r"), id="CR"),
        pytest.param("\ufeff" + row() + "\n" + row(job=2), id="byte order mark"),
        pytest.param(f"\n\n{row()}\n  \t \n{row(job=2)}\n\n", id="blank lines"),
        pytest.param(f"  {row()}  \n\t{row(job=2)}\t\n".replace(" ", "   "), id="wide blanks"),
        pytest.param(row().replace(" ", "\t") + "\n" + row(job=2), id="tabs"),
        pytest.param(f"{row(extra=' 5')}\n{row(job=2, extra=' 1 2 3')}\n", id="19 and 21 fields"),
        pytest.param(f"{row(extra=' ran on node b7')}\n{row(job=2)}\n", id="trailing text"),
        pytest.param(f"{row(extra='; a note')}\n{row(job=2, extra=' ;x')}\n", id="row comments"),
        pytest.param(f"{row()}\n;{row(job=3)}\n{row(job=2)}\n", id="a row commented out"),
        pytest.param(row(procs="4.0") + "\n" + row(job=2, run="100.00"), id="decimal points"),
        pytest.param(
            HEADER.encode() + b"; Note: \xe5ke\n" + f"{row()}\n{row(job=2)}".encode(), id="latin-1"
        ),
    ],
)
def test_real_life_deviations_are_read_all_the_same(write, text):
    workload = load_trace(write(text))
    np.testing.assert_array_equal(workload.run, [100, 100])
    np.testing.assert_array_equal(workload.gpus, [4, 4])
    assert workload.names is not None
    assert workload.names.tolist() == ["1", "2"]
    assert workload.provenance["rows"] == workload.provenance["used"] == 2


def test_extra_fields_are_counted(write):
    workload = load_trace(write(f"{row(extra=' 5')}\n{row()}\n{row(extra=' 1 2 3')}"))
    assert workload.provenance["extra_fields"] == 2


def test_gzip_is_recognised_by_content_not_by_name(write):
    path = write(gzip.compress(row().encode()), name="jobs.dat")
    assert len(load_trace(path)) == 1


def test_names_lose_gz_and_swf(write):
    assert load_trace(write(gzip.compress(row().encode()), name="x.1.swf.gz")).name == "x.1"
    assert load_trace(write(row(), name="other.txt")).name == "other.txt"


@pytest.mark.parametrize(
    ("header", "submit", "origin"),
    [
        ("", 5, None),
        ("; UnixStartTime: 0\n", 5, None),
        ("; UnixStartTime: 749458803\n", 5, 749458808),
        ("", 1027839845, 1027839845),
        # Absolute times beside a header: the times already say it all.
        ("; UnixStartTime: 1027839845\n", 1027839850, 1027839850),
    ],
)
def test_origin_is_the_first_used_job_in_unix_time(write, header, submit, origin):
    rows = [row(submit=submit - 3, run=0), row(submit=submit), row(submit=submit + 10)]
    workload = load_trace(write(header + "\n".join(rows)))
    np.testing.assert_array_equal(workload.submit, [0, 10])
    assert workload.provenance["origin_unix_time"] == origin


@pytest.mark.parametrize(
    ("header", "max_procs"),
    [
        ("; MaxNodes: 338 (batch partition; 512 total)\n; MaxProcs: 676\n", 676),
        ("; MaxNodes: 338 (batch partition; 512 total)\n", 338),
        ("; MaxNodes: 256\n; MaxProcs: -1\n", 256),
        (";MaxProcs:12\n", 12),
        ("; MaxProcs: many\n", None),
        ("", None),
    ],
)
def test_max_procs_is_read_from_the_header_whatever_follows_the_number(write, header, max_procs):
    assert load_trace(write(header + row())).provenance["max_procs"] == max_procs


def test_every_row_left_out_is_counted_once_under_its_first_reason(write):
    rows = [
        row(job=1),
        row(job=2, run=0),
        row(job=3, run=-1, procs=-1),
        row(job=4, run=-1, status=5),
        row(job=5, run=40, status=5),  # cancelled while it ran: it used its GPUs
        row(job=6, procs=0, requested=0),
        row(job=7, submit=-1),
        row(job=8, status=0),
        row(job=9, status=1),
        row(job=9, status=2),
        row(job=9, status=3),
        row(job=10, status=2),  # parts only: the parts are all there is
        row(job=10, status=4),
        row(job=11, status=17),
    ]
    workload = load_trace(write("\n".join(rows)))
    provenance = workload.provenance
    assert workload.names is not None
    assert workload.names.tolist() == ["1", "5", "8", "9", "10", "10", "11"]
    assert provenance["dropped"] == {
        "part of a job that has a row of its own": 2,
        "cancelled before start": 1,
        "run time 0 or unknown": 2,
        "no processors": 1,
        "submit time unknown": 1,
    }
    assert provenance["rows"] == 14
    assert provenance["used"] + sum(provenance["dropped"].values()) == provenance["rows"]
    assert provenance["status"] == {
        "completed": 6,
        "failed": 1,
        "cancelled": 2,
        "partial, continued": 2,
        "partial, last, completed": 1,
        "partial, last, failed": 1,
        "code 17": 1,
    }


def test_too_few_fields_name_the_first_line_and_count_the_rest(write):
    error = refused(write(f"{HEADER}{row()}\n\n1 2 3\n{row()}\n4\n1 2\n"))
    assert error.what == "the line has only 3 fields"
    assert error.where.endswith("log.swf, line 12 and 2 more lines")
    assert "18 fields" in error.expected
    assert "cut short" in error.hint


def test_a_comment_does_not_count_as_fields(write):
    error = refused(
        write(f"{row()}\n1 0 0 10 4 ; and then a comment of more than enough words here")
    )
    assert error.what == "the line has only 5 fields"
    assert error.where.endswith("line 2")


def test_two_jobs_on_one_line_are_not_taken_for_one(write):
    error = refused(write(f"{row()}\n{row()} {row()}\n"))
    assert error.what == "the line has 36 fields"
    assert error.where.endswith("log.swf, line 2")


@pytest.mark.parametrize(
    ("fields", "what", "expected"),
    [
        ({"run": "soon"}, "field 4 (run time) is 'soon'", "a number"),
        ({"run": "nan"}, "field 4 (run time) is 'nan'", "a number from"),
        ({"run": "1e999"}, "field 4 (run time) is '1e999'", "a number from"),
        ({"submit": 10**18}, "field 2 (submit time) is '1000000000000000000'", "9007199254740992"),
        ({"procs": 10**18}, "field 5 (allocated processors) is '1000", "whole number from"),
        ({"procs": 2.5}, "field 5 (allocated processors) is '2.5'", "a whole number"),
        ({"requested": "x"}, "field 8 (requested processors) is 'x'", "a whole number"),
        ({"estimate": "1:00"}, "field 9 (requested time) is '1:00'", "a number"),
        ({"status": "ok"}, "field 11 (status) is 'ok'", "a whole number"),
        ({"user": "ada"}, "field 12 (user) is 'ada'", "a whole number"),
        ({"submit": "é"}, "field 2 (submit time) is 'é'", "a number"),
        ({"run": "9" * 5_000_000}, "field 4 (run time) is '999", "a number"),
        ({"job": "9" * 41}, "field 1 (job number) is '999", "a number"),
    ],
)
def test_a_wrong_value_is_named_with_line_field_and_remedy(write, fields, what, expected):
    error = refused(write(f"{HEADER}{row()}\n\n{row(**fields)}\n{row()}\n"))
    assert error.what.startswith(what)
    assert len(error.what) < 120
    assert error.where.endswith("log.swf, line 12")
    assert expected in error.expected
    assert "-1" in error.hint


def test_several_values_out_of_range_are_counted(write):
    error = refused(write("\n".join([row(), row(procs=1.5), row(), row(procs=2.5)])))
    assert error.where.endswith("line 2 and 1 more line")


def test_a_file_of_comments_only_is_refused(write):
    assert refused(write(HEADER)).what == "the file has comments but no jobs"


def test_a_file_without_usable_jobs_is_refused_with_counts(write):
    error = refused(write("\n".join([row(run=0), row(run=-1), row(procs=-1)])))
    assert error.what == "none of the 3 rows is a usable job"
    assert error.hint == "left out: 2 run time 0 or unknown, 1 no processors"


def test_detect_tells_swf_from_other_tables(tmp_path):
    def detect(text, name="jobs.txt"):
        return swf.detect(text.encode(), tmp_path / name)

    assert detect(row()) is Match.CERTAIN
    assert detect(HEADER + row() + "\n1 2 3 half a li") is Match.CERTAIN
    assert detect(HEADER) is Match.NAMED
    assert detect("1 2 3\n", name="log.swf.gz") is Match.NAMED
    assert detect("1 2 3\n") is Match.NO
    assert detect(row().replace(" ", ",")) is Match.NO
    assert detect("job submit wait " * 6) is Match.NO
    assert detect("PK\0\0", name="log.swf") is Match.NO


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=80),
            st.lists(
                st.sampled_from(["-1", "0", "1", "7", "1e18", "nan", "-0", "x", "1.5", ";", "\t"]),
                min_size=16,
                max_size=20,
            ).map(lambda words: " ".join(words).encode()),
            st.just(row().encode()),
        ),
        max_size=6,
    )
)
def test_any_bytes_give_a_workload_or_a_trace_error(write, lines):
    path = write(b"\n".join(lines))
    try:
        workload = load_trace(path, "swf")
    except TraceError:
        with pytest.raises(TraceError, match=r"log\.swf"):
            load_trace(path, "swf")
    else:
        assert isinstance(workload, Workload)
        assert workload.provenance["used"] == len(workload)


def test_pools_are_partitions_or_queues_or_none(write):
    rows = [
        "1 0 0 9 1 -1 -1 1 -1 -1 1 1 1 -1 4 1 -1 -1",
        "2 0 0 9 1 -1 -1 1 -1 -1 1 1 1 -1 5 1 -1 -1",
    ]
    path = write("; Queue: 4 long\n" + "\n".join(rows) + "\n")
    assert load_trace(path).pool_names == ("long", "5")  # one partition says nothing
    assert load_trace(path, pools="none").pool_names == ()
    assert load_trace(path, pools="partition").pool_names == ()
    path = write("\n".join(rows).replace("5 1 -1 -1", "5 2 -1 -1") + "\n")
    assert load_trace(path).pool_names == ("1", "2")
    assert load_trace(path, pools="queue").pool_names == ("4", "5")
    with pytest.raises(ConfigError, match="`pools` is 'room'") as caught:
        load_trace(path, pools="room")
    assert caught.value.expected == "one of partition, queue, none"


def test_text_in_a_field_that_nothing_needs_is_no_error(write):
    row_with_text = "1 0 0 9 1 -1 -1 1 -1 -1 1 1 lab -1 q1 -1 -1 -1"
    history = load_trace(write(row_with_text + "\n")).history
    assert (history.group, dict(history.other)) == (None, {})
