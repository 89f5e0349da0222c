"""LSF's accounting file: lists of hosts, quotes, requests for GPUs, damaged records."""

from __future__ import annotations

import numpy as np
import pytest
from tests.shared_traces import SHARED_TRACES

from berthline.errors import TraceError
from berthline.traces.formats.lsf.lsf_gpus import requested_gpus, requested_model
from berthline.traces.load import load_trace

SAMPLE = SHARED_TRACES / "format_samples/lsf/lsb.acct"


def record(
    job=501,
    submit=1709280000,
    start=1709280600,
    finish=1709290000,
    slots=4,
    user="alice",
    queue="gpu",
    requirement="",
    asked=(),
    hosts=("h1",),
    status=64,
    command="python train.py",
    event='"" ',
    index=0,
    effective="select[type == any] order[r15s:pg] rusage[ngpus_physical=2.00]",
    extensions='2 1032 "0" 1033 "0"',
):
    """Return one record in the field order of LSF 10.1."""

    def many(names):
        return " ".join([str(len(names)), *(f'"{name}"' for name in names)])

    return (
        f'"JOB_FINISH" "10.1" {finish} {job} 2001 33554438 {slots} {submit} 0 0 {start} "{user}" '
        f'"{queue}" "{requirement}" "" "" "login1" "work" "" "out.log" "" "1709280000.501" '
        f'{many(asked)} {many(hosts)} {status} 60.0 "train" "{command}" '
        "8123.500000 210.250000 3145728 0 -1 -1 0 0 0 0 0 -1 0 0 0 0 0 0 -1 "
        f'"" "default" 0 4 "" {event}{index} 3145728 4194304 "" "" "" "" 0 "" 0 "" -1 "/alice" "" '
        f'"" "" -1 "" "" 5136 "" 1709289999 "" "" {extensions} 0 0 0 3145728 "{effective}" "" -1 '
        '"" -1 0 "" 0 0 "" 9399 "" 0 "" 0.000000 0.00 0.00 0.00 0.00 1 "h1" -1 0 0 0'
    )


@pytest.fixture
def write(tmp_path):
    def write_file(*records):
        path = tmp_path / "lsb.acct"
        path.write_text("\n".join(records) + "\n")
        return path

    return write_file


def refused(path):
    with pytest.raises(TraceError) as caught:
        load_trace(path, "lsf-acct")
    assert path.name in caught.value.where
    return caught.value


def test_columns_come_from_the_right_fields(write):
    other = record(
        job=502,
        submit=1709279990,
        index=7,
        user="bob",
        queue="long",
        status=32,
        slots=8,
        asked=("any", "h9"),
        hosts=("4*h1", "4*h2"),
        command='say ""hello""  to "" "" all',
    )
    workload = load_trace(write(record(), other))
    np.testing.assert_array_equal(workload.submit, [0, 10])
    np.testing.assert_array_equal(workload.run, [9_400, 9_400])
    np.testing.assert_array_equal(workload.gpus, [4, 2])
    np.testing.assert_array_equal(workload.cpus, [8, 4])
    assert np.isnan(workload.estimate).all()
    assert [workload.user_names[code] for code in workload.user] == ["bob", "alice"]
    assert [workload.pool_names[code] for code in workload.pool] == ["long", "gpu"]
    assert workload.names.tolist() == ["502[7]", "501"]
    assert dict(workload.provenance) == {
        "format": "lsf-acct",
        "path": "lsb.acct",
        "rows": 2,
        "used": 2,
        "dropped": {},
        "origin_unix_time": 1709279990.0,
        "time_zone": None,
        "cpu_jobs": 0,
        "rounded": {},
        "status": {"DONE": 1, "EXIT": 1},
        "several_gpu_requests": 0,
    }


@pytest.mark.parametrize(
    ("text", "number", "per"),
    [
        ("rusage[ngpus_physical=2.00]", 2, "host"),
        ("select[ngpus>0] rusage[ngpus_physical=1.00/host] span[ptile=2]", 1, "host"),
        ("rusage[mem=4000.00,ngpus_physical=0.50/task:duration=1h]", 0.5, "task"),
        ("rusage[ngpus_excl_p=4]", 4, "host"),
        ("rusage[ngpus = 3/job]", 3, "job"),
        ("rusage[ngpus_shared=1/slot]", 1, "task"),
        ("num=2:mode=shared:mps=no", 2, "host"),
        ("mode=exclusive_process:num=4/task", 4, "task"),
        ("select[ngpus_physical=2]", None, None),
        ("rusage[mem=100]", None, None),
        ("gnum=2", None, None),
        ("", None, None),
    ],
)
def test_requests_for_gpus(text, number, per):
    request = requested_gpus(text)
    assert (request and request.number) == number
    assert (request and request.per) == per


@pytest.mark.parametrize(
    ("fields", "gpus"),
    [
        ({"hosts": ("h1", "h1", "h2")}, 4),
        ({"effective": "rusage[ngpus_physical=1.00/task]"}, 4),
        ({"effective": "rusage[ngpus_physical=5.00/job]", "hosts": ("h1", "h2")}, 5),
        ({"effective": "rusage[ngpus_physical=0.30/task]"}, 2),
        ({"effective": "", "extensions": '1 1078 "num=3:mode=shared"'}, 3),
        ({"effective": "select[type == any]", "requirement": "rusage[ngpus_excl_p=1]"}, 1),
        # The requirement in effect wins over what the user wrote.
        ({"requirement": "rusage[ngpus_physical=8]", "extensions": '1 1078 "num=3"'}, 2),
    ],
)
def test_gpus_of_a_job(write, fields, gpus):
    assert load_trace(write(record(**fields))).gpus.tolist() == [gpus]


def test_several_requests_are_counted_and_the_first_one_is_used(write):
    effective = "2*{rusage[ngpus_physical=1.00]} + 4*{rusage[ngpus_physical=2.00]}"
    workload = load_trace(write(record(effective=effective)))
    assert workload.gpus.tolist() == [1]
    assert workload.provenance["several_gpu_requests"] == 1


def test_every_record_left_out_is_counted_once_under_its_first_reason(write):
    other = '"EVENT_ADRSV_FINISH" "10.1" 1709290000 1 2 "x"'
    records = [
        "# a comment",
        record(),
        other,
        record(start=0, hosts=(), status=32),
        record(submit=0),
        record(effective=""),
        record(finish=1709280600),
    ]
    provenance = load_trace(write(*records)).provenance
    assert provenance["rows"] == 6
    assert provenance["used"] == 1
    assert provenance["dropped"] == {
        "not a JOB_FINISH record": 1,
        "never started": 1,
        "submit time unknown": 1,
        "no GPUs": 1,
        "run time 0 or unknown": 1,
    }
    assert provenance["status"] == {"DONE": 4, "EXIT": 1}


def test_commands_of_several_lines_belong_to_their_record(write):
    script = "#!/bin/sh\nexport A=1\n\npython train.py # 5 6 7"
    workload = load_trace(write(record(command=script), record(job=502)))
    assert workload.names.tolist() == ["501", "502"]
    error = refused(write(record(command=script), record(job=502, slots="x")))
    assert error.where.endswith("line 5")


def test_compatible_systems_leave_out_the_time_event(write):
    assert load_trace(write(record(event="", index=3))).names.tolist() == ["501[3]"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (record(submit="soon"), "field 8 (submitTime) is 'soon'"),
        (record(finish=10**18), "field 3 (event time) is '1000000000000000000'"),
        (record(slots=-1), "field 7 (numProcessors) is '-1'"),
        (record(status='"x"'), "field 26 (jStatus) is 'x'"),
        (record().replace(' 0 1 "h1" ', ' 999 1 "h1" '), "field 23 (number of hosts) is '999'"),
        (record(effective="rusage[ngpus_physical=99999999999]"), "the request for GPUs is"),
        (record(user="x" * 5_000_000), "userName or queue is 'xxx"),
        (record()[:200], "the record has only"),
        (
            record().partition("train.py")[0],
            "the record cannot be split into fields (unexpected end",
        ),
        (record().replace('"train"', '"tra"in"'), "the record cannot be split into fields"),
    ],
)
def test_a_damaged_record_is_named_with_its_line(write, text, what):
    error = refused(write(record(), text))
    assert error.what.startswith(what)
    assert len(str(error)) < 500
    assert error.where.endswith("lsb.acct, line 2")


def test_other_text_is_refused(write):
    assert refused(write("jobs of today", record())).what == "the line starts with 'jobs of today'"
    error = refused(write('"EVENT_ADRSV_FINISH" "10.1" 1709290000'))
    assert error.what == "the file has no JOB_FINISH record"


@pytest.mark.skipif(not SAMPLE.is_file(), reason="shared trace files are not here")
def test_the_sample():
    workload = load_trace(SAMPLE)
    assert workload.names.tolist() == ["501"]
    np.testing.assert_array_equal(workload.run, [9_400])
    np.testing.assert_array_equal(workload.gpus, [2])
    assert workload.user_names == ("alice",)
    assert workload.pool_names == ("gpu_short",)
    assert workload.provenance["rows"] == 2
    assert workload.provenance["dropped"] == {"no GPUs": 1}
    assert workload.provenance["status"] == {"DONE": 1, "EXIT": 1}


def test_a_model_asked_for_is_the_type_that_the_job_ran_on(write):
    asked = record(job=1, extensions='2 1032 "0" 1058 "num=2:gmodel=TeslaV100_SXM2_32GB"')
    same_host = record(job=2, submit=1709280001)
    unknown = record(job=3, submit=1709280002, hosts=("h2",), requirement="num=1:gmodel=K80-12G")
    workload = load_trace(write(asked, same_host, unknown))
    assert workload.ran_on_types == ("V100-32", "K80-12G")
    np.testing.assert_array_equal(workload.ran_on, [0, 0, 1])


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("num=1:gmodel=TeslaV100_SXM2_16GB", "V100-16"),
        ("num=1:gmodel=NVIDIAA100_SXM4_80GB:mode=shared", "A100-80"),
        ("num=1:gmodel=A100_PCIE_40GB", "A100-40"),
        ("num=1:gmodel=TeslaP100", "P100"),
        ("num=1:gmodel=K80-12G", "K80-12G"),
        ("num=1:mode=shared", None),
    ],
)
def test_models_have_the_names_of_gpu_types(text, model):
    assert requested_model(text) == model
