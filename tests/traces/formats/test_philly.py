"""Philly's job log: attempts, missing times, virtual clusters, damaged JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.shared_traces import SHARED_TRACES

from berthline.errors import TraceError
from berthline.traces.load import load_trace

SAMPLE = SHARED_TRACES / "format_samples/philly/cluster_job_log.json"


def attempt(start="10:00:00", end="11:00:00", gpus=((1,))):
    """Return an attempt on one day, with these GPUs on each machine."""
    return {
        "start_time": start if start == "None" else f"2017-10-07 {start}",
        "end_time": end if end == "None" else f"2017-10-07 {end}",
        "detail": [
            {"ip": f"m{machine}", "gpus": [f"gpu{gpu}" for gpu in range(count)]}
            for machine, count in enumerate(gpus)
        ],
    }


def job(*attempts, number=1, submitted="2017-10-07 09:00:00", **fields):
    return {
        "status": "Pass",
        "vc": "ee9e8c",
        "jobid": f"application_{number}",
        "attempts": list(attempts),
        "submitted_time": submitted,
        "user": "ce2f4c",
        **fields,
    }


@pytest.fixture
def write(tmp_path):
    def write_file(content, name="cluster_job_log"):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
        return path

    return write_file


def refused(path, name=None):
    with pytest.raises(TraceError) as caught:
        load_trace(path, name)
    assert path.name in caught.value.where
    return caught.value


def test_columns_come_from_the_right_fields(write):
    jobs = [
        job(attempt(gpus=(8, 8)), number=7),
        job(
            attempt(), number=8, submitted="2017-10-07 08:59:00", user="x", vc="y", status="Failed"
        ),
    ]
    workload = load_trace(write(jobs))
    np.testing.assert_array_equal(workload.submit, [0, 60])
    np.testing.assert_array_equal(workload.run, [3600, 3600])
    np.testing.assert_array_equal(workload.gpus, [1, 16])
    assert np.isnan(workload.estimate).all()
    assert workload.names.tolist() == ["application_8", "application_7"]
    assert [workload.user_names[code] for code in workload.user] == ["x", "ce2f4c"]
    assert workload.reference_type == "P100"
    assert [workload.pool_names[code] for code in workload.pool] == ["y", "ee9e8c"]
    assert dict(workload.provenance) == {
        "format": "philly",
        "path": "cluster_job_log",
        "rows": 2,
        "used": 2,
        "dropped": {},
        "origin_unix_time": 1507391940.0,
        "time_zone": "America/Los_Angeles",
        "status": {"Pass": 1, "Failed": 1},
        "run_time": "sum of the attempts that have a start and an end",
        "attempts": {
            "all": 2,
            "without a start or an end": 0,
            "jobs used with several": 0,
            "jobs used whose attempts differ in GPUs": 0,
        },
    }


def test_the_run_time_is_the_sum_of_complete_attempts(write):
    jobs = [
        job(attempt(end="10:10:00"), attempt(start="10:30:00", end="10:50:00"), number=1),
        job(attempt(end="None", gpus=(8,)), attempt(end="10:00:07"), number=2),
        job(attempt(end="10:05:00"), attempt(start="None"), number=3),
        job(attempt(end="10:02:00", gpus=(2,)), attempt(end="10:03:00", gpus=(2, 2)), number=4),
    ]
    workload = load_trace(write(jobs))
    np.testing.assert_array_equal(workload.run, [1800, 7, 300, 300])
    np.testing.assert_array_equal(workload.gpus, [1, 1, 1, 4])
    assert workload.provenance["attempts"] == {
        "all": 8,
        "without a start or an end": 2,
        "jobs used with several": 4,
        "jobs used whose attempts differ in GPUs": 1,
    }


def test_an_attempt_over_the_change_of_clocks_has_its_true_length(write):
    night = {
        "start_time": "2017-11-04 23:00:00",
        "end_time": "2017-11-05 03:00:00",
        "detail": [{"ip": "m1", "gpus": ["gpu0"]}],
    }
    workload = load_trace(write([job(night)]))
    np.testing.assert_array_equal(workload.run, [5 * 3600])


def test_every_job_left_out_is_counted_once_under_its_first_reason(write):
    jobs = [
        job(attempt()),
        job(),
        job(attempt(end="None")),
        job(attempt(), attempt(end="None")),
        job(attempt(), submitted="None"),
        job(attempt(start="None")),
        job(attempt(end="10:00:00")),
        job(attempt(end="09:00:00")),
        job(attempt(gpus=())),
    ]
    provenance = load_trace(write(jobs)).provenance
    assert provenance["rows"] == 9
    assert provenance["used"] == 1
    assert provenance["dropped"] == {
        "never started": 1,
        "not finished when the trace ends": 2,
        "submit time unknown": 1,
        "run time 0 or unknown": 3,
        "no GPUs": 1,
    }


def test_missing_texts_have_a_place(write):
    workload = load_trace(write([job(attempt(), vc=None, user=None, status=None)]))
    assert workload.user_names == ("unknown",)
    np.testing.assert_array_equal(workload.pool, [-1])
    assert workload.pool_names == ()
    assert workload.provenance["status"] == {"unknown": 1}


def test_unknown_fields_and_null_times_do_no_harm(write):
    more = attempt() | {"node": {"deep": [1, {}]}}
    workload = load_trace(write([job(more, attempt() | {"start_time": None}, extra=[1])]))
    np.testing.assert_array_equal(workload.run, [3600])


def test_a_wrong_date_is_named_with_its_line(write):
    jobs = [job(attempt(), number=1), job(attempt(), attempt(end="25:00:00"), number=2)]
    error = refused(write(jobs))
    assert error.what == "'end_time' is '2017-10-07 25:00:00'"
    lines = json.dumps(jobs, indent=1).splitlines()
    assert f", line {lines.index(' },') + 2} (job 2 of the list)" in error.where
    assert refused(write([job(attempt(), submitted="now")])).what == "'submitted_time' is 'now'"


def test_a_wrong_type_is_named_with_its_line_and_place(write):
    error = refused(write([job(attempt()), job(attempt(), user=5)]))
    assert error.what == "the JSON is not as expected: expected `str | null`, got `int`"
    assert error.where.endswith("($[1].user)")
    assert ", line " in error.where
    error = refused(write([job(attempt()), {"attempts": [], "submitted_time": "None"}]))
    assert "missing required field `jobid`" in error.what


def test_damaged_json_is_refused_with_its_line(write):
    text = json.dumps([job(attempt())] * 3, indent=1)
    assert "cut short" in refused(write(text[: len(text) // 2])).hint
    error = refused(write(text.replace('"ip"', "ip", 1)))
    assert error.what.startswith("the file is not valid JSON")
    line = next(n for n, row in enumerate(text.splitlines(), 1) if '"ip"' in row)
    assert error.where.endswith(f", line {line}")
    assert refused(write("[]"), "philly").what == "the list of jobs is empty"
    assert "not as expected" in refused(write('{"jobs": []}'), "philly").what
    assert "nested too deeply" in refused(write('[{"x": ' + "[" * 100_000), "philly").what


def test_a_list_without_usable_jobs_is_refused_with_counts(write):
    error = refused(write([job(), job(attempt(gpus=()))]))
    assert error.what == "none of the 2 rows is a usable job"
    assert error.hint == "left out: 1 never started, 1 no GPUs"


def test_a_whole_file_as_an_id_is_refused(write):
    jobs = [job(attempt()), job(attempt(), jobid="x" * 5_000_000)]
    error = refused(write(jobs))
    assert error.expected == "up to 200 characters"
    assert len(str(error)) < 500


@pytest.mark.skipif(not SAMPLE.is_file(), reason="shared trace files are not here")
def test_the_publishers_examples():
    workload = load_trace(SAMPLE)
    assert workload.provenance["rows"] == 3
    assert workload.provenance["dropped"] == {"never started": 1}
    # 74 s and 193,182 s; of the second job only one attempt has both times.
    np.testing.assert_array_equal(workload.run, [193_256, 43])
    np.testing.assert_array_equal(workload.gpus, [8, 1])
    assert workload.provenance["attempts"]["without a start or an end"] == 3
