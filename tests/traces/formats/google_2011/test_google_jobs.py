"""Google 2011: events in parts, sentinels, the mapping to GPUs, and the shared parts."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from tests.shared_traces import SHARED_TRACES

from berthline.errors import ConfigError, TraceError
from berthline.traces.formats.detection import Match
from berthline.traces.formats.google_2011.google_tables import (
    JOB_EVENTS,
    MACHINE_EVENTS,
    TASK_EVENTS,
    recognise,
)
from berthline.traces.load import load_trace

TRACES = SHARED_TRACES

AFTER = 2**63 - 1
SUBMIT, SCHEDULE, EVICT, FAIL, FINISH, KILL, LOST, UPDATE_PENDING = range(8)


def job(seconds, number, event, user="u1", scheduling_class=0, missing=""):
    time = seconds if seconds == AFTER else round(seconds * 1e6)
    return f"{time},{missing},{number},{event},{user},{scheduling_class},nameHash=,logicalHash="


def task(seconds, number, index, event, cpu, user="u1"):
    return f"{round(seconds * 1e6)},,{number},{index},,{event},{user},1,9,{cpu},0.01,0.0004,0"


# Two parts: jobs that end in them, and one for each way not to.
PARTS = [
    [
        job(0, 1, SUBMIT),
        job(0, 1, SCHEDULE),
        job(600.5, 10, SUBMIT, "u2", 3),
        job(601.5, 10, SCHEDULE, "u2", 3),
        job(610, 1, FINISH),
        job(700, 20, SUBMIT),
        job(701, 20, SCHEDULE),
        job(702, 20, FAIL),
        job(703, 20, SUBMIT),
        job(704, 30, SUBMIT),
        job(705, 30, SCHEDULE),
        job(706, 40, SUBMIT),
        job(707, 50, SUBMIT),
    ],
    [
        job(800, 10, KILL, "u2", 3),
        job(801, 20, SCHEDULE),
        job(802, 40, KILL),
        job(803, 60, SCHEDULE),
        job(804, 60, FINISH),
        job(805, 70, SUBMIT, ""),
        job(805, 70, SCHEDULE, ""),
        job(805.000001, 70, LOST, "", "", 1),
        job(900, 20, FINISH),
        job(901, 80, SUBMIT),
        job(902, 80, SCHEDULE),
        job(902, 80, EVICT),
        job(AFTER, 30, FINISH),
    ],
]


def text(rows):
    return "\n".join(rows) + "\n"


@pytest.fixture
def trace(tmp_path):
    """Return the directory of a trace with two parts of job_events."""
    directory = tmp_path / "clusterdata"
    (directory / "job_events").mkdir(parents=True)
    for number, rows in enumerate(PARTS):
        path = directory / "job_events" / f"part-{number:05}-of-00500.csv.gz"
        path.write_bytes(gzip.compress(text(rows).encode()))
    (directory / "job_events" / "SHA256SUM").write_text("no part\n")
    return directory


def refused(path, name=None):
    with pytest.raises(TraceError) as caught:
        load_trace(path, name)
    return caught.value


def by_name(workload, values):
    assert workload.names is not None
    return dict(zip(workload.names.tolist(), np.round(values, 6).tolist(), strict=True))


@pytest.mark.parametrize("given", ["", "job_events"])
def test_a_directory_of_parts_is_one_trace(trace, given):
    workload = load_trace(trace / given)
    assert workload.name == "clusterdata"
    assert by_name(workload, workload.submit) == {"10": 0, "20": 99.5, "70": 204.5}
    assert by_name(workload, workload.run) == {"10": 198.5, "20": 199, "70": 1e-6}
    assert by_name(workload, workload.gpus) == {"10": 1, "20": 1, "70": 1}
    assert by_name(workload, workload.priority) == {"10": 3, "20": 0, "70": 0}
    assert [workload.user_names[code] for code in workload.user] == ["u2", "u1", "unknown"]
    assert dict(workload.provenance) == {
        "format": "google-2011",
        "path": given or "clusterdata",
        "rows": 9,
        "used": 3,
        "dropped": {
            "submitted before the trace begins": 1,
            "submit time unknown": 1,
            "cancelled before start": 1,
            "never started": 1,
            "not finished when the trace ends": 1,
            "run time 0 or unknown": 1,
        },
        "origin_unix_time": 1_304_290_800.5,
        "time_zone": "America/New_York",
        "events": {
            "submit": 9,
            "schedule": 8,
            "evict": 1,
            "fail": 1,
            "finish": 4,
            "kill": 2,
            "lost": 1,
        },
        "parts": {"read": 2, "of": 500},
        "ended": {"kill": 1, "finish": 1, "lost": 1},
        "gpus_are": "1 for every job, for lack of task_events",
        "without_cpu_request": 3,
        "task_events": False,
        "machine_events": False,
    }


def test_one_part_is_a_trace_of_its_own(trace):
    workload = load_trace(trace / "job_events" / "part-00001-of-00500.csv.gz")
    assert workload.name == "part-00001-of-00500"
    assert by_name(workload, workload.run) == {"70": 1e-6}
    assert workload.provenance["parts"] == {"read": 1, "of": 500}
    assert workload.provenance["dropped"]["submit time unknown"] == 5


TASKS = [
    task(600.5, 10, 0, SUBMIT, 0.0625, "u2"),
    task(600.5, 10, 1, SUBMIT, 0.0625, "u2"),
    task(601.5, 10, 0, SCHEDULE, 0.0625, "u2"),
    task(602, 10, 1, SCHEDULE, 0.0625, "u2"),
    task(650, 10, 1, EVICT, 0.0625, "u2"),
    task(650, 10, 1, SUBMIT, 0.0625, "u2"),
    task(660, 10, 1, SCHEDULE, 0.0625, "u2"),
    task(700, 10, 0, FINISH, 0.0625, "u2"),
    task(700, 20, 0, SUBMIT, 0.3),
    task(701, 20, 0, SCHEDULE, 0.3),
    task(705, 20, 1, UPDATE_PENDING, ""),
    task(800, 10, 1, KILL, 0.0625, "u2"),
]


@pytest.mark.parametrize("in_parts", [True, False])
def test_task_events_beside_them_give_the_gpus(trace, in_parts):
    if in_parts:
        (trace / "task_events").mkdir()
        for number, rows in enumerate((TASKS[:4], TASKS[4:])):
            path = trace / "task_events" / f"part-{number:05}-of-00500.csv"
            path.write_text(text(rows))
    else:
        (trace / "task_events.csv").write_text(text(TASKS))
    one_part = load_trace(trace / "job_events" / "part-00001-of-00500.csv.gz")
    assert one_part.provenance["task_events"]
    workload = load_trace(trace)
    # 2 tasks of 1/16 of a machine of 8 GPUs; 0.3 of it; nothing known.
    assert by_name(workload, workload.gpus) == {"10": 1, "20": 3, "70": 1}
    assert workload.provenance["gpus_are"].startswith("CPU requests of all tasks x 8")
    assert workload.provenance["without_cpu_request"] == 1
    workload = load_trace(trace, gpus_per_machine="64")
    assert by_name(workload, workload.gpus) == {"10": 8, "20": 20, "70": 1}


def test_task_events_alone_are_jobs_too(tmp_path):
    path = tmp_path / "task_events.csv"
    path.write_text(text(TASKS))
    workload = load_trace(path)
    # A job ends when its last task does; one task of job 20 never does.
    assert by_name(workload, workload.run) == {"10": 198.5}
    assert workload.provenance["dropped"] == {"not finished when the trace ends": 1}
    assert load_trace(tmp_path).provenance["used"] == 1


@pytest.mark.parametrize("value", [0, -1, "many", float("nan"), 1e6])
def test_a_wrong_number_of_gpus_is_refused(trace, value):
    with pytest.raises(ConfigError) as caught:
        load_trace(trace, "google-2011", gpus_per_machine=value)
    assert "gpus_per_machine" in caught.value.what


@pytest.mark.parametrize(
    ("row", "what"),
    [
        (job(900, 1, 9), "'event type' holds '9'"),
        (job(900, 1, FINISH, "u", 4), "'scheduling class' holds '4'"),
        (job(900, "", FINISH), "'job ID' holds nothing"),
        ("10" + "0" * 17 + ",,1,4,u,0,n,l", "'timestamp' holds '1000"),
        ("-5,,1,4,u,0,n,l", "'timestamp' holds '-5'"),
        ("1.5,,1,4,u,0,n,l", "'timestamp' holds '1.5'"),
        ("900,,1", "the line has 3 cells"),
    ],
)
def test_a_wrong_value_is_told_with_part_and_line(trace, row, what):
    path = trace / "job_events" / "part-00002-of-00500.csv"
    path.write_text(text([*PARTS[1], row]))
    error = refused(trace)
    assert what in error.what
    assert error.where == f"{path}, line 14"


def test_tables_are_told_by_the_shape_of_their_rows():
    assert recognise(text(PARTS[0]).encode()) == (JOB_EVENTS, Match.CERTAIN)
    assert recognise(text([*PARTS[0], "damaged"]).encode()) == (JOB_EVENTS, Match.NAMED)
    assert recognise(text(TASKS).encode()) == (TASK_EVENTS, Match.CERTAIN)
    machines = b"0,5,0,HofLGzk1Or/8=,0.5,0.2493\n2000000000,7,1,HofLGzk1Or/8=,,\n"
    assert recognise(machines) == (MACHINE_EVENTS, Match.CERTAIN)
    assert recognise(b"1,2,3\n") == (None, Match.NO)
    assert recognise(b"") == (None, Match.NO)


def test_what_holds_no_events_is_refused(tmp_path):
    assert refused(tmp_path, "google-2011").what == "there are no job events"
    assert "directory" in refused(tmp_path).what
    path = tmp_path / "part-00000-of-00001.csv"
    path.write_text("0,5,0,HofLGzk1Or/8=,0.5,0.2493\n")
    assert refused(path, "google-2011").what == "there are no job events"
    assert "list of nodes (google)" in refused(path).what
    assert "directory" in refused(tmp_path).what
    path.write_text("1,2,3\n")
    assert "3 cells" in refused(path, "google-2011").what


@pytest.mark.skipif(not TRACES.is_dir(), reason="shared trace files are not here")
class TestSharedParts:
    def test_statistics_are_those_of_the_readme(self):
        workload = load_trace(TRACES / "google_2011")
        provenance = workload.provenance
        assert provenance["rows"] == 27_105
        assert provenance["events"] == {
            "submit": 27_106,
            "schedule": 27_101,
            "evict": 1,
            "fail": 325,
            "finish": 14_188,
            "kill": 8_425,
            "lost": 2,
        }
        assert sum(provenance["events"].values()) == 77_148
        assert provenance["parts"] == {"read": 20, "of": 500}
        assert len(workload) == provenance["used"] == 22_578
        assert provenance["used"] + sum(provenance["dropped"].values()) == 27_105
        assert round(float(np.median(workload.run)), 1) == 181.5
        assert round(workload.run.mean()) == 842
        assert round(np.percentile(workload.run, 99)) == 12_316
        assert (workload.gpus == 1).all()
        assert set(workload.priority) == {0, 1, 2, 3}

    def test_columns_equal_a_plain_reading_and_waits_are_those_of_the_readme(self):
        jobs = {}
        for path in sorted((TRACES / "google_2011" / "job_events").glob("part-*")):
            for line in gzip.decompress(path.read_bytes()).decode().splitlines():
                cells = line.split(",")
                times = jobs.setdefault(cells[2], {"user": cells[4]})
                kind = {"0": "submit", "1": "schedule"}.get(cells[3], "end")
                if kind == "end" or kind not in times:
                    times[kind] = int(cells[0])
        used = {name: times for name, times in jobs.items() if times["submit"] and "end" in times}
        waits = [times["schedule"] - times["submit"] for times in used.values()]
        assert round(float(np.median(waits)) / 1e6, 1) == 1.8
        assert round(float(np.percentile(waits, 99)) / 1e6) == 82

        workload = load_trace(TRACES / "google_2011" / "job_events")
        assert workload.names is not None
        ordered = sorted(used, key=lambda name: used[name]["submit"])
        assert workload.names.tolist() == ordered
        first = used[ordered[0]]["submit"]
        submit = [(used[name]["submit"] - first) / 1e6 for name in ordered]
        np.testing.assert_allclose(workload.submit, submit, rtol=0, atol=1e-9)
        run = [(used[name]["end"] - used[name]["schedule"]) / 1e6 for name in ordered]
        np.testing.assert_array_equal(workload.run, run)
        users = [workload.user_names[code] for code in workload.user]
        assert users == [used[name]["user"] for name in ordered]

    def test_sample_of_task_events(self):
        workload = load_trace(TRACES / "format_samples" / "google_2011" / "task_events.csv")
        assert by_name(workload, workload.run) == {"200": 2395}
        assert workload.provenance["machine_events"]
        assert workload.provenance["dropped"] == {"submitted before the trace begins": 1}
