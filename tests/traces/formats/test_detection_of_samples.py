"""Every shared trace file: the format it is recognised as, or that no format claims it.

Formats are recognised by content, so each new one must leave the files of all others alone. A new
format adds its files to `DETECTED`; a file that holds no jobs belongs to `REFUSED`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.shared_traces import SHARED_TRACES

from berthline.errors import TraceError
from berthline.traces.formats.format_table import FORMATS, detect_format
from berthline.traces.load import load_trace
from berthline.traces.reading.files import read_head

TRACES = SHARED_TRACES

pytestmark = pytest.mark.skipif(not TRACES.is_dir(), reason="shared trace files are not here")

# Patterns of paths below TRACES, and the format their files are recognised as.
DETECTED = {
    "swf/*.swf.gz": "swf",
    "philly/philly_2017-*.csv.gz": "philly-reduced",
    "helios_venus/venus_gpu_jobs_*.csv.gz": "reduced-csv",
    "alibaba_pai_v2020/pai_gpu_tasks_sample_*.csv.gz": "reduced-csv",
    "mit_supercloud_slurm/*.csv.gz": "slurm-database",
    "format_samples/philly/cluster_job_log.json": "philly",
    "format_samples/helios/cluster_log.csv": "helios",
    "format_samples/acme/trace_*.csv": "acme",
    "format_samples/slurm/sacct_parsable2.txt": "slurm-sacct",
    "format_samples/lsf/lsb.acct": "lsf-acct",
    "format_samples/lsf/jobs.csv": "lsf-csv",
    "format_samples/rltune/*.csv": "rltune",
    "format_samples/tiresias/60_job.csv": "tiresias",
    "format_samples/muri/*.csv.gz": "muri",
    "format_samples/pollux_sia/*.csv": "pollux-sia",
    "format_samples/gavel/*.trace": "gavel",
    "alibaba_gpu_v2023/openb_pod_list_*.csv.gz": "alibaba-openb",
    "alibaba_dlrm_v2025/*.csv.gz": "alibaba-dlrm",
    "alibaba_spot_v2026/jobs_reduced_batch_*.csv.gz": "alibaba-spot-reduced",
    "format_samples/alibaba_spot_v2026/job_info_df.csv": "alibaba-spot",
    "format_samples/alibaba_pai_v2020/pai_*_table.csv": "alibaba-pai",
    "google_2011/job_events/part-*.csv.gz": "google-2011",
    "format_samples/google_2011/task_events.csv": "google-2011",
}

# Files about machines, quotas and columns: they hold no jobs.
REFUSED = (
    "README.md",
    "philly/philly_vc.csv",
    "philly/revised_machine_list.csv",
    "helios_venus/cluster_gpu_number.csv",
    "helios_venus/helios_cluster_summary.csv",
    "alibaba_gpu_v2023/openb_node_list_*.csv.gz",
    "alibaba_pai_v2020/headers/*.header",
    "alibaba_pai_v2020/pai_machine_spec.csv.gz",
    "alibaba_spot_v2026/node_info_df.csv.gz",
    "format_samples/google_2011/machine_events.csv",
    "format_samples/philly/cluster_machine_list.csv",
    "format_samples/tiresias/cluster_n32g4.csv",
)


def _files(pattern):
    return sorted(TRACES.glob(pattern))


def _cases(patterns):
    return [
        pytest.param(path, patterns[pattern], id=str(path.relative_to(TRACES)))
        for pattern in patterns
        for path in _files(pattern)
    ]


@pytest.mark.parametrize(("path", "name"), _cases(DETECTED))
def test_a_file_is_recognised_as_its_format_and_no_other_is_as_sure(path, name):
    head = read_head(path)
    found = detect_format(head, path)
    assert found is not None
    assert found.name == name
    sureness = {entry.name: entry.detect(head, path) for entry in FORMATS.values()}
    assert [other for other in sureness if sureness[other] >= sureness[name]] == [name]


@pytest.mark.parametrize(("path", "name"), _cases(DETECTED))
def test_a_file_is_recognised_by_its_content_whatever_its_name(path, name):
    found = detect_format(read_head(path), Path("jobs.dat"))
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(("path", "_"), _cases(dict.fromkeys(REFUSED)))
def test_a_file_without_jobs_is_refused(path, _):
    with pytest.raises(TraceError) as caught:
        load_trace(path)
    assert str(path) in caught.value.where
    assert caught.value.expected


@pytest.mark.parametrize("pattern", [*DETECTED, *REFUSED])
def test_every_pattern_has_files(pattern):
    assert _files(pattern)


def test_every_file_is_listed_once():
    listed = [path for pattern in (*DETECTED, *REFUSED) for path in _files(pattern)]
    assert len(set(listed)) == len(listed)
    missing = {path for path in TRACES.rglob("*") if path.is_file()} - set(listed)
    assert sorted(str(path.relative_to(TRACES)) for path in missing) == []
