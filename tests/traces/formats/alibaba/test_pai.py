"""Alibaba PAI: the headerless tables, alone and joined."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from tests.shared_traces import SHARED_TRACES

from berthline.errors import TraceError
from berthline.model.cluster import Cluster
from berthline.sim.simulate import simulate
from berthline.traces.formats.alibaba import pai
from berthline.traces.formats.alibaba.pai_tables import (
    COLUMNS,
    INSTANCE,
    JOB,
    MACHINE,
    TASK,
    recognise,
)
from berthline.traces.formats.detection import Match
from berthline.traces.load import load_trace
from berthline.traces.node_lists.read_cluster import read_cluster

SAMPLES = SHARED_TRACES / "format_samples"
HEADERS = SAMPLES.parent / "alibaba_pai_v2020" / "headers"

A, B, C, D, E, F = (letter * 24 for letter in "abcdef")  # names of jobs
HOST = "0123456789abcdef01234567"
LONG = "9" * 60

TABLES = {
    TASK: [
        f"{A},worker,4.0,Terminated,1100.0,2100.0,600.0,29.296875,25.0,V100",
        f"{A},ps,2.0,Terminated,1100.0,2100.0,400.0,10.0,,",
        f"{A},evaluator,1.0,Failed,1500.0,1700.0,50.0,1.0,100.0,V100M32",
        f"{B},tensorflow,,Terminated,900.0,1000.0,100.0,1.0,200.0,",
        f"{C},worker,1.0,Running,1000.0,,100.0,1.0,100.0,T4",
        f"{D},worker,1.0,Waiting,,,100.0,1.0,100.0,T4",
        f"{E},worker,2.0,Terminated,1000.0,1000.0,100.0,1.0,100.0,MISC",
        f"{F},worker,1.0,Terminated,1200.0,1260.0,100.0,1.0,150.0,P100",
    ],
    JOB: [
        f"{A},{LONG},58540f191766,Terminated,1000.0,2100.0",
        f"{B},{LONG},aaaa0f191766,Terminated,950.0,1000.0",
        f"{F},{LONG},,Terminated,1200.0,1260.0",
    ],
    INSTANCE: [
        f"{A},worker,{LONG},{LONG},{LONG},Terminated,1100.0,2000.0,{HOST}",
        f"{A},worker,{LONG},{LONG},{LONG},Terminated,1150.0,2100.0,{HOST}",
        f"{B},tensorflow,{LONG},{LONG},{LONG},Terminated,900.0,1000.0,{HOST}",
        f"{C},worker,{LONG},{LONG},{LONG},Running,1000.0,,{HOST}",
    ],
    MACHINE: [f"{HOST},V100,96,512,8", f"{'8' * 24},CPU,96,512,0"],
}


@pytest.fixture
def write(tmp_path):
    """Return a function that writes the tables named and gives their directory."""

    def write_tables(*names, suffix=".csv"):
        for name in names:
            text = "\n".join(TABLES[name]) + "\n"
            packed = gzip.compress(text.encode()) if suffix.endswith(".gz") else text.encode()
            (tmp_path / f"{name}{suffix}").write_bytes(packed)
        return tmp_path

    return write_tables


def refused(path, name=None):
    with pytest.raises(TraceError) as caught:
        load_trace(path, name)
    return caught.value


def by_name(workload, values):
    assert workload.names is not None
    return dict(zip(workload.names.tolist(), values, strict=True))


def users(workload):
    return by_name(workload, [workload.user_names[code] for code in workload.user])


def types(workload):
    sets = (*workload.gpu_type_sets, None)  # -1 = any
    return by_name(workload, [sets[code] for code in workload.gpu_types])


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
@pytest.mark.parametrize("given", [TASK, JOB, INSTANCE, None])
def test_any_table_or_the_directory_leads_to_the_same_tasks(write, given, suffix):
    directory = write(*TABLES, suffix=suffix)
    workload = load_trace(directory / f"{given}{suffix}" if given else directory)
    assert by_name(workload, workload.submit) == {
        f"{B}/tensorflow": 0,  # its own start: the job table has a later one
        f"{A}/worker": 100,
        f"{A}/evaluator": 100,
        f"{F}/worker": 300,
    }
    assert by_name(workload, workload.run) == {
        f"{A}/worker": 1000,
        f"{A}/evaluator": 200,
        f"{B}/tensorflow": 100,
        f"{F}/worker": 60,
    }
    assert by_name(workload, workload.gpus) == {
        f"{A}/worker": 4,
        f"{A}/evaluator": 1,
        f"{B}/tensorflow": 2,
        f"{F}/worker": 2,
    }
    assert by_name(workload, workload.cpus)[f"{A}/worker"] == 24
    assert by_name(workload, workload.cpus)[f"{A}/evaluator"] == 1
    assert by_name(workload, workload.memory_mib)[f"{A}/worker"] == 4 * 30_000
    assert users(workload) == {
        f"{A}/worker": "58540f191766",
        f"{A}/evaluator": "58540f191766",
        f"{B}/tensorflow": "aaaa0f191766",
        f"{F}/worker": "unknown",
    }
    assert types(workload) == {
        f"{A}/worker": "V100-16",
        f"{A}/evaluator": "V100-32",
        f"{B}/tensorflow": "V100-16",  # from the machine of its instance
        f"{F}/worker": "P100",
    }
    provenance = workload.provenance
    assert provenance["format"] == "alibaba-pai"
    assert provenance["rows"] == 8
    assert provenance["used"] == 4
    assert provenance["dropped"] == {
        "no GPUs": 1,
        "never started": 1,
        "not finished when the trace ends": 1,
        "run time 0 or unknown": 1,
    }
    assert provenance["origin_unix_time"] == 900
    assert provenance["time_zone"] == "Asia/Shanghai"
    assert provenance["one_job_is"].startswith("one task")
    assert sorted(provenance["tables"]) == sorted(TABLES)
    assert provenance["missing_tables"] == []
    assert provenance["assumed"] == {
        "one instance where inst_num is empty": 1,
        "submitted when the task started": 1,
        "user unknown": 1,
        "GPU type of the machine that ran the first instance": 1,
    }
    assert provenance["rounded"] == {"fractional GPUs rounded up to whole ones": 2}
    assert provenance["gpus_asked"] == 1 + 1 + 2 + 1.5
    assert provenance["status"] == {"Terminated": 3, "Failed": 1}


def test_a_part_of_a_gpu_stays_what_it_is_for_a_single_instance(tmp_path):
    path = tmp_path / "pai_task_table.csv"
    path.write_text(f"{A},worker,1.0,Terminated,1.0,9.0,600.0,29.3,25.0,T4\n")
    workload = load_trace(path)
    assert (workload.gpus.tolist(), workload.gpu_milli.tolist()) == ([1], [250])
    assert workload.provenance["rounded"] == {}
    assert workload.provenance["gpus_asked"] == 0.25


def test_tasks_without_gpus_can_be_kept(write):
    workload = load_trace(write(*TABLES), cpu_jobs="keep")
    assert by_name(workload, workload.gpus)[f"{A}/ps"] == 0
    assert by_name(workload, workload.cpus)[f"{A}/ps"] == 8
    assert types(workload)[f"{A}/ps"] is None
    provenance = workload.provenance
    assert provenance["cpu_jobs"] == 1
    assert "no GPUs" not in provenance["dropped"]
    assert "any GPU type" not in provenance["assumed"]
    assert "CPU" not in workload.gpu_type_sets


def test_the_task_table_alone_says_what_is_missing(write):
    workload = load_trace(write(TASK) / f"{TASK}.csv")
    assert by_name(workload, workload.submit)[f"{A}/worker"] == 200
    assert workload.user_names == ("unknown",)
    assert types(workload)[f"{B}/tensorflow"] is None
    assert workload.provenance["missing_tables"] == [INSTANCE, JOB, MACHINE]
    assert workload.provenance["assumed"] == {
        "one instance where inst_num is empty": 1,
        "submitted when the task started": 4,
        "user unknown": 4,
        "any GPU type": 1,
    }


def test_without_tasks_an_instance_takes_one_gpu(write):
    workload = load_trace(write(INSTANCE, JOB, MACHINE) / f"{JOB}.csv")
    assert by_name(workload, workload.gpus) == {f"{A}/worker": 2, f"{B}/tensorflow": 1}
    assert by_name(workload, workload.run) == {f"{A}/worker": 1000, f"{B}/tensorflow": 100}
    assert by_name(workload, workload.submit)[f"{A}/worker"] == 100
    assert types(workload) == {f"{A}/worker": "V100-16", f"{B}/tensorflow": "V100-16"}
    provenance = workload.provenance
    assert provenance["rows"] == 3
    assert provenance["dropped"] == {"not finished when the trace ends": 1}
    assert provenance["assumed"]["one GPU for each instance, for lack of the task table"] == 3
    assert provenance["one_job_is"].endswith("in the instance table as one gang")


def test_the_job_table_alone_makes_jobs_of_one_gpu(write):
    workload = load_trace(write(JOB) / f"{JOB}.csv")
    assert by_name(workload, workload.gpus) == {A: 1, B: 1, F: 1}
    assert by_name(workload, workload.run) == {A: 1100, B: 50, F: 60}
    assert users(workload)[A] == "58540f191766"
    assert workload.provenance["one_job_is"] == "one PAI job"
    assert any("one GPU" in what for what in workload.provenance["assumed"])


def test_tables_with_a_header_line_or_another_name_are_read_too(write):
    directory = write(JOB)
    rows = [",".join(COLUMNS[TASK]), *TABLES[TASK]]
    path = directory / "tasks of July.csv"
    path.write_text("\n".join(rows))
    workload = load_trace(path)
    assert workload.name == "tasks of July"
    assert len(workload) == 4
    assert users(workload)[f"{A}/worker"] == "58540f191766"


@pytest.mark.parametrize("name", COLUMNS)
def test_tables_are_told_by_the_shape_of_their_rows(name):
    text = "\n".join(TABLES[name]).encode() + b"\n"
    assert recognise(text) == (name, Match.CERTAIN)
    expected = Match.NO if name == MACHINE else Match.CERTAIN
    assert pai.detect(text, Path("x")) == expected
    damaged = text.replace(b",", b";", 1)
    if len(TABLES[name]) > 2:
        assert recognise(damaged) == (name, Match.NAMED)
    assert recognise(b"a,b,c\n1,2,3\n") == (None, Match.NO)
    assert recognise(b"") == (None, Match.NO)


@pytest.mark.parametrize(
    ("row", "what"),
    [
        (f"{A},worker,1.5,Terminated,1.0,2.0,1.0,1.0,100.0,T4", "'inst_num' holds '1.5'"),
        (f"{A},worker,1.0,Terminated,1.0,2.0,1.0,1.0,1e18,T4", "'plan_gpu' holds '1e18'"),
        (f"{A},worker,1.0,Terminated,nan,2.0,1.0,1.0,100.0,T4", "'start_time' holds 'nan'"),
        (f"{'x' * 300},worker,1.0,Terminated,1.0,2.0,1.0,1.0,100.0,T4", "'job_name' holds"),
    ],
)
def test_a_wrong_value_is_told_with_its_line(tmp_path, row, what):
    path = tmp_path / "pai_task_table.csv"
    path.write_text("\n".join([*TABLES[TASK], row]) + "\n")
    error = refused(path)
    assert what in error.what
    assert "line 9" in error.where


def test_a_damaged_sibling_is_named(write):
    directory = write(*TABLES)
    path = directory / f"{INSTANCE}.csv"
    path.write_text(path.read_text() + f"{A},worker\n")
    error = refused(directory / f"{TASK}.csv")
    assert error.what == "the line has 2 cells"
    assert error.where == f"{path}, line 5"
    (directory / f"{JOB}.csv").write_text(f"{A},{LONG},u,Terminated,soon,2.0\n")
    error = refused(directory / f"{TASK}.csv")
    assert error.where == f"{directory / f'{JOB}.csv'}, line 1"


def test_what_is_no_table_is_refused_also_when_the_format_is_named(tmp_path):
    (tmp_path / "other.csv").write_text("1,2,3\n")
    error = refused(tmp_path / "other.csv", "alibaba-pai")
    assert error.what == "this is not one of the PAI tables"
    (tmp_path / "pai_task_table.csv").write_text("1,2,3\n")
    assert "3 cells" in refused(tmp_path / "pai_task_table.csv", "alibaba-pai").what
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "no PAI table" in refused(empty, "alibaba-pai").what
    assert "directory" in refused(empty).what


def test_the_jobs_run_on_the_cluster_of_the_machine_table(write):
    directory = write(*TABLES)
    cluster = read_cluster(directory)
    assert isinstance(cluster, Cluster)
    metrics = simulate(load_trace(directory), cluster, "fcfs+skip", knowledge="exact").metrics()
    # The machine has V100 only: the task on V100M32 and the one on P100 find no node.
    assert (metrics.jobs.completed, metrics.jobs.rejected) == (2, 2)


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="shared trace files are not here")
class TestPublishedFiles:
    @pytest.mark.parametrize("name", COLUMNS)
    def test_columns_are_those_of_the_publishers_headers(self, name):
        header = (HEADERS / f"{name}.header").read_text().strip()
        assert COLUMNS[name] == tuple(header.split(","))

    @pytest.mark.parametrize("name", [TASK, JOB, INSTANCE])
    def test_example_entries(self, name):
        workload = load_trace(SAMPLES / "alibaba_pai_v2020" / f"{name}.csv")
        assert len(workload) == 1
        assert workload.gpu_type_sets == ("MISC",)
        np.testing.assert_array_equal(workload.run, [38])
        np.testing.assert_array_equal(workload.gpus, [1])
        np.testing.assert_array_equal(workload.cpus, [6])
        np.testing.assert_array_equal(workload.memory_mib, [30_000])
        assert workload.provenance["gpus_asked"] == 0.5
        # The publisher's entries are of three different jobs.
        assert workload.provenance["assumed"] == {
            "submitted when the task started": 1,
            "user unknown": 1,
        }
