"""Checking trace files: all errors with their lines, and what looks odd."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from tests.shared_traces import SHARED_TRACES

from berthline.errors import ConfigError
from berthline.evaluate.trace_checks.job_lines import lines_of_jobs
from berthline.evaluate.trace_checks.trace_warnings import find_warnings
from berthline.evaluate.trace_checks.validate import MOST_ERRORS, validate_trace
from berthline.model.cluster import Cluster
from berthline.model.workload import Workload

SHARED = SHARED_TRACES


def swf_row(job, submit=None, wait=-1, run=100, gpus=2, estimate=200):
    submit = 60 * job if submit is None else submit
    return f"{job} {submit} {wait} {run} {gpus} -1 -1 {gpus} {estimate} -1 1 7 1 -1 -1 -1 -1 -1"


def write_swf(path, rows):
    path.write_text("; MaxProcs: 64\n" + "\n".join(rows) + "\n")
    return path


def write_csv(path, rows):
    path.write_text("id,submit_time,duration,num_gpus\n" + "\n".join(rows) + "\n")
    return path


def whats(problems):
    return [problem.what for problem in problems]


class TestErrors:
    def test_a_good_file_has_none(self, tmp_path):
        path = write_swf(tmp_path / "good.swf", [swf_row(n) for n in range(1, 30)])
        found = validate_trace(path)
        assert (found.errors, found.usable, found.complete) == ([], True, True)
        assert (found.format, found.jobs) == ("swf", 29)

    def test_parts_of_gpus_and_jobs_without_gpus_are_counted(self, tmp_path):
        path = tmp_path / "jobs.csv"
        path.write_text("submit,run,gpus,cpus\n0,5,0.5,1\n1,5,0,2\n2,5,1,1\n")
        found = validate_trace(path, cpu_jobs="keep")
        assert (found.jobs, found.jobs_on_parts, found.jobs_without_gpus) == (3, 1, 1)
        found = validate_trace(path)
        assert (found.jobs, found.jobs_on_parts, found.jobs_without_gpus) == (2, 1, 0)

    def test_every_kind_of_error_is_listed_with_its_line(self, tmp_path):
        rows = [swf_row(n) for n in range(1, 50)]
        rows[4] = swf_row(5, run="long")
        rows[8] = swf_row(9, gpus="1.5")
        rows[11] = "12 720"
        rows[20] = swf_row(21, submit="1e99")
        found = validate_trace(write_swf(tmp_path / "bad.swf", rows))
        assert [problem.line for problem in found.errors] == [6, 10, 13, 22]
        assert "run time" in found.errors[0].what
        assert "'long'" in found.errors[0].what
        assert "only 2 fields" in found.errors[2].what
        assert all(
            problem.where.startswith(f"{tmp_path / 'bad.swf'}, line ") for problem in found.errors
        )
        assert all(problem.expected for problem in found.errors)
        assert (found.usable, found.complete, found.jobs) == (False, True, 45)

    @pytest.mark.parametrize("packed", [False, True])
    def test_errors_of_one_kind_are_one_entry(self, tmp_path, packed):
        rows = [f"j{n},{60 * n},{'x' if n % 2 else 100},1" for n in range(200)]
        rows[50] = "j50,3000,100,1,7"
        rows[60] = "j60,soon,100,1"
        path = write_csv(tmp_path / "jobs.csv", rows)
        if packed:
            content = path.read_bytes()
            path = tmp_path / "packed.csv.gz"
            path.write_bytes(gzip.compress(content))
        found = validate_trace(path)
        assert [problem.line for problem in found.errors] == [3, 52, 62]
        assert "and 99 more like it" in found.errors[0].where
        assert found.errors[0].where.startswith(f"{path}, line 3")
        assert found.complete
        assert found.jobs == 98

    def test_the_list_ends_somewhere(self, tmp_path, monkeypatch):
        monkeypatch.setattr("berthline.evaluate.trace_checks.validate.MOST_ERRORS", 3)
        rows = [swf_row(n) for n in range(1, 50)]
        for at, bad in enumerate(("submit", "run", "gpus", "estimate")):
            rows[5 * at] = swf_row(5 * at + 1, **{bad: "x"})
        rows[30] = "31 1860"
        found = validate_trace(write_swf(tmp_path / "bad.swf", rows))
        assert len(found.errors) == 3
        assert not found.complete
        assert MOST_ERRORS == 20

    def test_a_file_of_which_nothing_is_left(self, tmp_path):
        path = write_csv(tmp_path / "jobs.csv", ["a,0,x,1", "b,1,y,1"])
        found = validate_trace(path)
        assert len(found.errors) == 1
        assert not found.usable

    @pytest.mark.parametrize(
        ("content", "text"),
        [
            (None, "no such trace file"),
            (b"", "empty"),
            (b"\0\1\2", "binary"),
            (b"a,b\n1,2\n", "not recognised"),
            (b"\x1f\x8b\x08\x00", "gzip"),
        ],
    )
    def test_a_file_that_is_no_trace(self, tmp_path, content, text):
        path = tmp_path / "what.dat"
        if content is not None:
            path.write_bytes(content)
        found = validate_trace(path)
        assert text in found.errors[0].what
        assert found.errors[0].line is None
        assert (found.format, found.jobs, found.warnings) == ("", 0, [])

    def test_a_wrong_option_is_no_fault_of_the_file(self, tmp_path):
        path = write_swf(tmp_path / "good.swf", [swf_row(1)])
        with pytest.raises(ConfigError):
            validate_trace(path, nonsense="1")

    def test_nothing_is_left_behind(self, tmp_path, monkeypatch):
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "t"))
        (tmp_path / "t").mkdir()
        validate_trace(write_swf(tmp_path / "bad.swf", [swf_row(1), swf_row(2, run="x")]))
        assert list((tmp_path / "t").iterdir()) == []


class TestWarnings:
    def test_with_the_line_of_an_example(self, tmp_path):
        rows = [swf_row(n) for n in range(1, 30)]
        rows[6] = swf_row(7, run=300)
        found = validate_trace(write_swf(tmp_path / "odd.swf", rows))
        (warning,) = found.warnings
        assert "1 job ran longer than the estimate" in warning.what
        assert warning.line == 8
        assert warning.where == f"{tmp_path / 'odd.swf'}, line 8, job 7"
        assert found.usable

    def test_unsorted(self, tmp_path):
        rows = [swf_row(n) for n in range(1, 30)]
        rows[10], rows[11] = rows[11], rows[10]
        found = validate_trace(write_swf(tmp_path / "odd.swf", rows))
        (warning,) = found.warnings
        assert "not sorted by submission: 1 line goes back in time, the furthest by 60 s" in (
            warning.what
        )
        assert warning.line == 13

    def test_negative_waits_in_swf(self, tmp_path):
        rows = [swf_row(n, wait=-50 if n in (4, 9) else -1) for n in range(1, 30)]
        found = validate_trace(write_swf(tmp_path / "odd.swf", rows))
        assert whats(found.warnings) == ["2 jobs started before the submission"]
        assert found.warnings[0].line == 5

    def test_negative_waits_in_a_table(self, tmp_path):
        rows = [
            f"{n},u,v,1,1,1,COMPLETED,2020-06-09 18:{n:02}:00,2020-06-09 18:{start:02}:00,"
            f"2020-06-09 19:{n:02}:00,3300,300"
            for n in range(6, 30)
            for start in [n - 5 if n == 9 else n + 5]
        ]
        path = tmp_path / "cluster_log.csv"
        header = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time"
        path.write_text(f"{header},duration,queue\n" + "\n".join(rows) + "\n")
        found = validate_trace(path)
        assert "1 job started before the submission" in whats(found.warnings)
        assert [problem.line for problem in found.warnings if "before" in problem.what] == [5]

    def test_rows_left_out_and_a_cluster_too_small(self, tmp_path):
        rows = [swf_row(n, gpus=16 if n < 4 else 1) for n in range(1, 30)]
        rows[20] = swf_row(21, run=0)
        path = write_swf(tmp_path / "odd.swf", rows)
        found = validate_trace(path, cluster=Cluster.uniform(nodes=1, gpus_per_node=8))
        assert any("1 row is left out: run time 0" in what for what in whats(found.warnings))
        assert any("3 jobs can never run on" in what for what in whats(found.warnings))


class TestOddities:
    def found(self, **columns):
        size = len(columns["submit"])
        workload = Workload.from_columns(
            **{"run": np.full(size, 100.0), "gpus": np.ones(size), "names": np.arange(size)}
            | columns
        )
        return [warning.what for warning in find_warnings(workload)]

    def test_nothing_odd(self):
        assert self.found(submit=np.arange(500) * 60.0) == []

    def test_repeated_ids(self):
        names = [str(n // 2) for n in range(10)] + [str(n) for n in range(10, 100)]
        (what,) = self.found(submit=np.arange(100.0), names=names)
        assert what == "10 jobs have the id of another"

    def test_equal_jobs_without_ids(self):
        (what,) = self.found(submit=[0, 10, 10, 20], names=None)
        assert what == "1 job is the same as another in time, size and user"

    def test_jobs_of_different_parts_and_cpus_are_not_equal(self):
        assert (
            self.found(submit=[0, 10, 10, 20], names=None, gpu_milli=[1000, 1000, 500, 250]) == []
        )
        assert self.found(submit=[0, 10, 10, 20], names=None, cpus=[1, 1, 2, 1]) == []

    def test_bursts(self):
        submit = np.concatenate([np.zeros(150), np.arange(1, 1000)])
        assert self.found(submit=submit) == ["150 jobs are submitted at the same instant"]

    def test_all_at_once(self):
        assert "all jobs are submitted at the same time" in self.found(submit=np.zeros(50))[0]

    def test_a_pause(self):
        submit = np.arange(500) * 60.0
        submit[300:] += 9 * 86_400
        (what,) = self.found(submit=submit)
        assert what == "no job is submitted for 9.0 days"

    def test_a_wrong_date(self):
        submit = np.arange(5) * 60.0
        (what,) = self.found(submit=submit, provenance={"origin_unix_time": 5.0})
        assert what == "the first job is dated 1970-01-01 00:00:05"

    def test_long_runs(self):
        run = np.linspace(1, 100, 50)
        run[7] = 90 * 86_400
        (what,) = self.found(submit=np.arange(50), run=run)
        assert what == "1 job ran for more than 30 days, the longest for 90"

    def test_run_times_cut_off(self):
        run = np.minimum(np.linspace(1, 1000, 500), 800)
        (what,) = self.found(submit=np.arange(500), run=run)
        assert what.startswith("100 jobs ran for 800 s exactly")

    def test_wrong_unit(self):
        assert any("or more" in what for what in self.found(submit=[0, 1], run=[1e7, 1e7 + 1]))

    def test_partly_missing_estimates(self):
        estimate = np.full(20, 500.0)
        estimate[3] = np.nan
        (what,) = self.found(submit=np.arange(20), estimate=estimate)
        assert what == "1 job has no estimate, though others do"

    def test_larger_than_the_machine_of_the_header(self):
        (what,) = self.found(submit=[0, 1], gpus=[8, 100], provenance={"max_procs": 64})
        assert what.startswith("1 job is larger than the machine")

    def test_pressed_pools(self):
        workload = Workload.from_columns(
            submit=np.arange(100.0),
            run=np.full(100, 50.0),
            gpus=np.ones(100),
            names=range(100),
            pool=np.zeros(100),
            pool_names=("p",),
        )
        found = find_warnings(workload, Cluster.uniform(nodes=1, gpus_per_node=4))
        assert any(warning.what.startswith("pool p is oversubscribed") for warning in found)
        assert any("more work than it can do" in warning.what for warning in found)


class TestLinesOfJobs:
    def test_ids_are_found_in_their_column(self, tmp_path):
        path = tmp_path / "jobs.csv"
        path.write_text("user,id\n" + "".join(f"{n % 5},{n}\n" for n in range(3, 60)))
        names = np.array([str(n) for n in (3, 10, 59, 1000)])
        assert lines_of_jobs(path, names).tolist() == [2, 9, 58, 0]

    def test_without_ids_or_file(self, tmp_path):
        assert lines_of_jobs(tmp_path, np.array(["1"])).tolist() == [0]
        assert lines_of_jobs(tmp_path / "none", np.array(["1"])).tolist() == [0]
        assert lines_of_jobs(tmp_path, None).size == 0


@pytest.mark.skipif(not SHARED.is_dir(), reason="shared trace files are not here")
class TestRealTraces:
    @pytest.mark.parametrize(
        ("path", "texts"),
        [
            (
                "swf/HPC2N-2002-2.2-cln.swf.gz",
                ["14,817 jobs ran longer than the estimate", "248 of 240 processors in use"],
            ),
            (
                "swf/CTC-SP2-1996-3.1-cln.swf.gz",
                [
                    "17 rows are left out",
                    "7,174 jobs ran longer",
                    "6 jobs have no estimate",
                    "592 of 338 processors in use",
                ],
            ),
            ("swf/lublin_256.swf.gz", []),
            (
                "helios_venus/venus_gpu_jobs_2020-03-18_2020-08-31.csv.gz",
                ["no job is submitted for 7.5 days", "1,907 jobs ran for 172,800 s exactly"],
            ),
            (
                "philly/philly_2017-09-04_2017-11-14.csv.gz",
                ["44 jobs are the same as another", "no job is submitted", "more than 30 days"],
            ),
        ],
    )
    def test_the_quirks_of_the_readme_are_found_and_no_others(self, path, texts):
        found = validate_trace(SHARED / path)
        assert found.usable
        assert len(found.warnings) == len(texts)
        for text, what in zip(texts, whats(found.warnings), strict=True):
            assert text in what
