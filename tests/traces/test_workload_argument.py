"""The WORKLOAD argument: files, generators, and what is neither."""

from __future__ import annotations

import numpy as np
import pytest

from berthline.errors import BerthlineError, ConfigError, TraceError
from berthline.model.cluster import Cluster
from berthline.model.workload import Workload
from berthline.traces.generators.synthetic import generate
from berthline.traces.offered_load import offered_load, scale_to_load
from berthline.traces.workload_argument import resolve_workload

CLUSTER = Cluster.uniform(nodes=2, gpus_per_node=4)


def row(job, submit, run, procs):
    return f"{job} {submit} 0 {run} {procs} -1 -1 -1 -1 -1 1 7 -1 -1 -1 -1 -1 -1\n"


@pytest.fixture
def trace(tmp_path):
    """Three jobs of 800 + 400 + 400 GPU-seconds, submitted at 0, 100 and 400 of their log."""
    path = tmp_path / "log.swf"
    path.write_text(row(1, 50, 200, 4) + row(2, 150, 400, 1) + row(3, 450, 200, 2))
    return path


def refused(text, kind=ConfigError, **options) -> BerthlineError:
    with pytest.raises(kind) as caught:
        resolve_workload(str(text), cluster=CLUSTER, **options)
    return caught.value


def test_a_file_is_left_as_it_is_unless_asked(trace):
    workload = resolve_workload(str(trace), cluster=CLUSTER, seed=99)
    np.testing.assert_array_equal(workload.submit, [0, 100, 400])
    assert workload.provenance["format"] == "swf"
    assert "scaled" not in workload.provenance


def test_jobs_takes_the_first_jobs_of_a_file(trace):
    workload = resolve_workload(str(trace), cluster=CLUSTER, jobs=2)
    np.testing.assert_array_equal(workload.submit, [0, 100])
    assert workload.name == "log[0:2]"


def test_a_cut_does_not_take_the_counts_of_the_whole_file_for_its_own(trace):
    trace.write_text(trace.read_text() + row(4, 500, 0, 2))
    whole = resolve_workload(str(trace), cluster=CLUSTER)
    assert sum(whole.provenance["dropped"].values()) == 1
    cut = resolve_workload(str(trace), cluster=CLUSTER, jobs=2)
    assert not {"rows", "used", "dropped"} & cut.provenance.keys()
    assert cut.provenance["cut"] == {"first": 0, "jobs": 2, "of": 3}
    assert cut.provenance["path"] == "log.swf"
    for key in ("rows", "used", "dropped"):
        assert cut.provenance["origin"][key] == whole.provenance[key]
    everything = resolve_workload(str(trace), cluster=CLUSTER, jobs=3)
    assert everything.provenance == whole.provenance


def test_a_mapping_is_for_files():
    error = refused("synthetic", settings={"mapping": "submit=a"})
    assert "`mapping` only with a trace file" in error.expected


def test_load_scales_the_submissions_of_a_file(trace):
    # 1600 GPU-seconds over 400 s on 8 GPUs is a load of 0.5.
    workload = resolve_workload(str(trace), cluster=CLUSTER, load=1.0, format="swf")
    np.testing.assert_array_equal(workload.submit, [0, 50, 200])
    np.testing.assert_array_equal(workload.run, [200, 400, 200])
    assert offered_load(workload, CLUSTER) == 1.0
    assert workload.provenance["scaled"] == {
        "load_before": 0.5,
        "load": 1.0,
        "time_factor": 0.5,
        "gpus": 8,
    }
    assert not workload.submit.flags.writeable


def test_jobs_are_taken_before_the_load_is_set(trace):
    # 1200 GPU-seconds over 100 s on 8 GPUs is a load of 1.5.
    workload = resolve_workload(str(trace), cluster=CLUSTER, jobs=2, load=0.75)
    np.testing.assert_array_equal(workload.submit, [0, 200])


def test_scaling_keeps_the_first_submission_and_the_slack_of_deadlines():
    workload = Workload.from_columns(
        submit=[10, 20, 50], run=[8, 8, 8], gpus=[1, 1, 1], deadline=[30, np.inf, 70], rebase=False
    )
    scaled = scale_to_load(workload, Cluster.uniform(nodes=1, gpus_per_node=1), 0.3)
    np.testing.assert_allclose(scaled.submit, [10, 30, 90])
    np.testing.assert_allclose(scaled.deadline, [30, np.inf, 110])
    np.testing.assert_array_equal(workload.submit, [10, 20, 50])


def test_a_load_cannot_be_set_without_a_span(tmp_path):
    path = tmp_path / "burst.swf"
    path.write_text(row(1, 5, 10, 1) + row(2, 5, 10, 1))
    assert "same time" in refused(path, load=0.9).what
    assert offered_load(resolve_workload(str(path), cluster=CLUSTER), CLUSTER) == float("inf")


def test_options_that_do_not_fit_a_file_are_refused(trace):
    error = refused(trace, jobs=4)
    assert error.what == "`jobs=4` is more than the trace has"
    assert "up to 3" in error.expected
    assert refused(trace, jobs=0).what == "jobs is 0"
    assert refused(trace, load=0).what == "load is 0"
    assert refused(trace, settings={"users": "3"}).what == "unknown trace option 'users'"
    assert "unknown trace format" in refused(trace, TraceError, format="swff").what
    assert "directory" in refused(trace.parent, TraceError).what


def test_a_generator_has_its_defaults_and_takes_all_options():
    plain = resolve_workload("synthetic", cluster=CLUSTER)
    np.testing.assert_array_equal(plain.submit, generate(cluster=CLUSTER).submit)
    turned = resolve_workload(
        "synthetic", cluster=CLUSTER, jobs=50, load=0.5, seed=3, settings={"users": "2"}
    )
    same = generate(cluster=CLUSTER, jobs=50, load=0.5, seed=3, users=2)
    np.testing.assert_array_equal(turned.submit, same.submit)
    np.testing.assert_array_equal(turned.user, same.user)


def test_options_that_do_not_fit_a_generator_are_refused():
    assert refused("synthetic", settings={"usrs": "3"}).hint == "did you mean 'users'?"
    assert refused("synthetic", settings={"jobs": "3"}).expected == "`jobs=3`"
    assert refused("synthetic", settings={"cluster": "x"}).what == "unknown dial 'cluster'"
    assert refused("synthetic", settings={"name": "x"}).what == "unknown dial 'name'"
    assert "`format=swf`" in refused("synthetic", format="swf").what


def test_a_file_wins_over_a_generator_but_a_directory_does_not(trace, monkeypatch):
    monkeypatch.chdir(trace.parent)
    (trace.parent / "synthetic").mkdir()
    assert len(resolve_workload("synthetic", cluster=CLUSTER)) == 1000
    (trace.parent / "synthetic").rmdir()
    trace.rename(trace.parent / "synthetic")
    assert len(resolve_workload("synthetic", cluster=CLUSTER)) == 3


def test_what_is_neither_gets_one_error_for_both(trace, monkeypatch):
    error = refused("synthetik")
    assert error.what == (
        "unknown workload 'synthetik': no such file, and no generator of that name"
    )
    assert "synthetic" in error.expected
    assert error.hint == "did you mean 'synthetic'?"
    assert refused(trace.with_name("lgo.swf")).hint == f"did you mean {str(trace)!r}?"
    monkeypatch.chdir(trace.parent)
    assert refused("log.sw").hint == "did you mean 'log.swf'?"
    for text in ("nowhere/at/all.qqq", "", "x" * 5000, "a\0b"):
        kind = ConfigError if text else TraceError
        assert refused(text, kind).what
