"""What readers keep of when jobs really ran."""

import numpy as np
import pytest
from tests.shared_traces import SHARED_TRACES

import berthline as bl
from berthline.errors import ConfigError
from berthline.model.history import History

SAMPLES = SHARED_TRACES / "format_samples"
SACCT = """\
JobID|User|Partition|State|Submit|Eligible|Start|End|ElapsedRaw|Timelimit|Priority|AllocTRES|NodeList
2|b|gpu|RUNNING|2024-03-04T10:00:00|2024-03-04T11:00:00|2024-03-04T11:30:00|Unknown|600|1:00:00|7|gres/gpu:a100=2,gres/gpu=2|n[1-2]
1|a|gpu|COMPLETED|2024-03-04T09:00:00|2024-03-04T09:00:00|2024-03-04T09:00:30|2024-03-04T09:10:30|600|1:00:00|9|gres/gpu=1|n1
3|b|gpu|PENDING|2024-03-04T11:00:00|Unknown|Unknown|Unknown|0|1:00:00|7|gres/gpu=1|None assigned
"""


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "jobs.sacct"
    path.write_text(SACCT)
    return path


def test_sacct__times_are_on_the_clock_of_the_workload(log):
    found = bl.load_trace(log, running_jobs="keep")
    history = found.history
    assert found.names.tolist() == ["1", "2"]
    assert history.start.tolist() == [30.0, 9000.0]
    assert history.eligible.tolist() == [0.0, 7200.0]
    assert history.running.tolist() == [False, True]
    assert history.priority.tolist() == [9.0, 7.0]
    assert [history.node_lists[code] for code in history.nodes] == ["n1", "n[1-2]"]
    assert history.gpu_type.tolist() == [-1, history.gpu_type_names.index("a100")]
    assert found.run.tolist() == [600.0, 600.0]


def test_sacct__running_jobs_are_left_out_and_counted_by_default(log):
    found = bl.load_trace(log)
    assert len(found) == 1
    assert found.provenance["dropped"]["not finished when the trace ends"] == 1
    with pytest.raises(ConfigError, match="running_jobs"):
        bl.load_trace(log, running_jobs="perhaps")


def test_swf__waits_are_kept_and_unknown_ones_are_not(tmp_path):
    rows = "1 5 20 100 2 -1 -1 2 200 -1 1 1 1 -1 -1 -1 -1 -1\n2 9 -1" + " 1" * 15 + "\n"
    (tmp_path / "a.swf").write_text(rows)
    history = bl.load_trace(tmp_path / "a.swf").history
    assert history.start[0] == 20.0  # the clock begins with the first job
    assert np.isnan(history.start[1])


def test_history_is_sorted_and_cut_with_its_jobs():
    found = bl.Workload.from_columns(
        submit=[20.0, 10.0, 30.0],
        run=[1.0, 2.0, 3.0],
        gpus=[1, 1, 1],
        history=History(
            np.array([25.0, 11.0, 37.0]), nodes=np.array([0, 1, 0]), node_lists=("a", "b")
        ),
    )
    assert found.history.start.tolist() == [1.0, 15.0, 27.0]
    assert found.history.nodes.tolist() == [1, 0, 0]
    cut = found.window(1, 3)
    assert cut.submit.tolist() == [0.0, 10.0]
    assert cut.history.start.tolist() == [5.0, 17.0]


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the format samples are not there")
@pytest.mark.parametrize(
    ("sample", "waits"),
    [
        ("helios/cluster_log.csv", [0.0, 0.0, 0.0]),
        ("acme/trace_seren.csv", None),
        ("philly/cluster_job_log.json", None),
        ("lsf/lsb.acct", [600.0]),
        ("rltune/synthetic_trace.csv", None),
    ],
)
def test_formats_with_recorded_starts_keep_them(sample, waits):
    found = bl.load_trace(SAMPLES / sample)
    recorded = found.history.start - found.submit
    assert (recorded >= 0).all()
    if waits is not None:
        assert recorded.tolist() == waits


def test_sacct__the_type_of_a_run_time_comes_from_tres_or_the_node(log):
    found = bl.load_trace(log, running_jobs="keep")
    # Job 1 names no type; its node n1 had a100 for job 2.
    assert found.reference_type == "recorded"
    assert [found.ran_on_types[code] for code in found.ran_on] == ["a100", "a100"]


def test_sacct__a_node_with_two_types_tells_nothing(tmp_path):
    rows = SACCT + SACCT.splitlines()[2].replace("1|a", "4|a").replace("gpu=1", "gpu:v100=1") + "\n"
    (tmp_path / "two.sacct").write_text(rows)
    found = bl.load_trace(tmp_path / "two.sacct", running_jobs="keep")
    types = dict(zip(found.names.tolist(), found.ran_on, strict=True))
    assert types["1"] == -1
    assert found.ran_on_types[types["4"]] == "v100"


def test_history_is_kept_in_parquet(tmp_path, log):
    from berthline.traces.formats.parquet import write_parquet

    found = bl.load_trace(log, running_jobs="keep")
    again = bl.load_trace(write_parquet(found, tmp_path / "x.parquet"))
    for name in ("start", "eligible", "running", "priority", "nodes", "gpu_type", "status"):
        np.testing.assert_array_equal(
            getattr(again.history, name), getattr(found.history, name), err_msg=name
        )
    assert again.history.node_lists == found.history.node_lists
    assert again.history.status_names == found.history.status_names
    assert again.ran_on.tolist() == found.ran_on.tolist()
    assert again.ran_on_types == found.ran_on_types
    assert again.reference_type == "recorded"
