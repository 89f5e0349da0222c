"""The table of trace formats.

A format is one module with two functions, and one entry in the table below: `detect` returns how
certain it is that a file has this format, `read` turns the file into a Workload. Nothing else in
Berthline knows a format by name. The table is here, not in the modules, to show all formats at
once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from berthline.model.workload import Workload
from berthline.traces.formats import (
    acme,
    command_list,
    four_column,
    gavel,
    helios,
    parquet,
    philly,
    philly_reduced,
    plain_csv,
    pollux_sia,
    rltune,
    swf,
    tiresias_muri,
)
from berthline.traces.formats.alibaba import dlrm, openb, pai, spot, spot_reduced
from berthline.traces.formats.detection import Match
from berthline.traces.formats.google_2011 import google_jobs
from berthline.traces.formats.lsf import lsb_acct, lsf_csv
from berthline.traces.formats.slurm import database_dump, sacct_json, sacct_text


@dataclasses.dataclass(frozen=True)
class Format:
    """One kind of trace file.

    Attributes:
        name: its name for `--format` and `load_trace(format=...)`.
        description: one line for lists.
        detect: from the unpacked first bytes of a file and its path, how certain it is that the
            file has this format.
        read: returns the jobs of a file; raises TraceError, with the line, on failure.
        options: the keyword arguments of `read` after the path, all optional, and their meaning.
        parts: returns the files of a directory that together are one trace of this format, or an
            empty list; None = `read` takes single files only.
        by_line: whether the first lines of a file are its first jobs, so that the rest need not be
            read for them.
        read_first: `read` of only the first jobs, for formats that have them in order of submission
            but not as lines of text: takes the path and a number; None = there is no such way.
        whole: why all of a file is read even where only its first jobs are asked for; empty with
            `by_line` or `read_first`.
        processors: from the same as `detect`, the processors (GPUs) of the cluster that the file
            states, or None; None = files of this format do not state them.
        lists_nodes: from the same as `detect`, whether the file has the nodes that jobs ran on;
            None = files of this format never do.
    """

    name: str
    description: str
    detect: Callable[[bytes, Path], Match]
    read: Callable[..., Workload]
    options: Mapping[str, str] = dataclasses.field(default_factory=dict)
    parts: Callable[[Path], list[Path]] | None = None
    by_line: bool = False
    read_first: Callable[[Path, int], Workload] | None = None
    whole: str = ""
    processors: Callable[[bytes, Path], int | None] | None = None
    lists_nodes: Callable[[bytes, Path], bool] | None = None


_JSON_IS_ONE = "a JSON document ends with its last line"
_NEEDS_A_TABLE = "its jobs need a second table"

FORMATS: dict[str, Format] = {
    entry.name: entry
    for entry in (
        Format(
            "swf",
            "Standard Workload Format of the Parallel Workloads Archive; processors are GPUs",
            swf.detect,
            swf.read,
            swf.OPTIONS,
            processors=swf.processors,
            by_line=True,
        ),
        Format(
            "philly",
            "Microsoft Philly: the native cluster_job_log JSON",
            philly.detect,
            philly.read,
            whole=_JSON_IS_ONE,
        ),
        Format(
            "philly-reduced",
            "Microsoft Philly reduced to timestamp, duration, num_gpus, gpu_time, cluster",
            philly_reduced.detect,
            philly_reduced.read,
            by_line=True,
        ),
        Format(
            "helios",
            "SenseTime Helios: the native cluster_log.csv",
            helios.detect,
            helios.read,
            helios.OPTIONS,
            by_line=True,
        ),
        Format(
            "reduced-csv",
            "Helios or Alibaba PAI reduced to job_id, arrival_s, service_sec, gpu_count",
            four_column.detect,
            four_column.read,
            by_line=True,
        ),
        Format(
            "acme",
            "Acme of the Shanghai AI Laboratory: trace_seren.csv and trace_kalos.csv",
            acme.detect,
            acme.read,
            acme.OPTIONS,
            by_line=True,
        ),
        Format(
            "slurm-sacct",
            "Slurm accounting: text of sacct -P",
            sacct_text.detect,
            sacct_text.read,
            sacct_text.OPTIONS,
            by_line=True,
            lists_nodes=sacct_text.lists_nodes,
        ),
        Format(
            "slurm-json",
            "Slurm accounting: sacct --json",
            sacct_json.detect,
            sacct_json.read,
            sacct_json.OPTIONS,
            lists_nodes=sacct_json.lists_nodes,
            whole=_JSON_IS_ONE,
        ),
        Format(
            "slurm-database",
            "Slurm accounting: dump of the database's job table, such as MIT Supercloud's",
            database_dump.detect,
            database_dump.read,
            database_dump.OPTIONS,
            by_line=True,
            lists_nodes=database_dump.lists_nodes,
        ),
        Format(
            "lsf-acct",
            "LSF accounting: lsb.acct",
            lsb_acct.detect,
            lsb_acct.read,
            lsb_acct.OPTIONS,
            by_line=True,
            lists_nodes=lsb_acct.lists_nodes,
        ),
        Format(
            "commands",
            "commands to run on one node, with estimates and submission times",
            command_list.detect,
            command_list.read,
            by_line=True,
        ),
        Format(
            "lsf-csv",
            "LSF jobs as CSV, made from lsb.acct or bacct",
            lsf_csv.detect,
            lsf_csv.read,
            lsf_csv.OPTIONS,
            by_line=True,
        ),
        Format(
            "alibaba-pai",
            "Alibaba PAI (cluster-trace-gpu-v2020): headerless job, task and instance tables",
            pai.detect,
            pai.read,
            pai.OPTIONS,
            parts=pai.parts,
            whole="the ends of its jobs are in another table",
        ),
        Format(
            "alibaba-openb",
            "Alibaba openb pods (cluster-trace-gpu-v2023): pod lists with times",
            openb.detect,
            openb.read,
            openb.OPTIONS,
            by_line=True,
        ),
        Format(
            "alibaba-dlrm",
            "Alibaba DLRM inference instances (cluster-trace-gpu-v2025)",
            dlrm.detect,
            dlrm.read,
            dlrm.OPTIONS,
            by_line=True,
        ),
        Format(
            "alibaba-spot",
            "Alibaba spot and high-priority jobs (cluster-trace-v2026-spot-gpu): job_info_df",
            spot.detect,
            spot.read,
            spot.OPTIONS,
            by_line=True,
        ),
        Format(
            "alibaba-spot-reduced",
            "Alibaba spot jobs reduced to arrival_time, runtime, gpus, priority",
            spot_reduced.detect,
            spot_reduced.read,
            by_line=True,
        ),
        Format(
            "google-2011",
            "Google clusterdata-2011-2: parts of job_events or task_events; GPUs are an assumption",
            google_jobs.detect,
            google_jobs.read,
            google_jobs.OPTIONS,
            google_jobs.parts,
            whole="the ends of its first jobs may be on the last line",
        ),
        Format(
            "rltune",
            "RLTune job lists: 19 or 20 columns without a header, virtual cluster and GPU type",
            rltune.detect,
            rltune.read,
            by_line=True,
        ),
        Format(
            "tiresias",
            "Tiresias job lists: training jobs with iterations and durations",
            tiresias_muri.detect_tiresias,
            tiresias_muri.read_tiresias,
            by_line=True,
        ),
        Format(
            "muri",
            "Muri job lists: those of Tiresias in milliseconds, with resource times",
            tiresias_muri.detect_muri,
            tiresias_muri.read_muri,
            by_line=True,
        ),
        Format(
            "pollux-sia",
            "Pollux and Sia workloads, which need a table of run times",
            pollux_sia.detect,
            pollux_sia.read,
            pollux_sia.OPTIONS,
            whole=_NEEDS_A_TABLE,
        ),
        Format(
            "gavel",
            "Gavel traces, which need a table of throughputs",
            gavel.detect,
            gavel.read,
            gavel.OPTIONS,
            whole=_NEEDS_A_TABLE,
        ),
        Format(
            "parquet",
            "Berthline's own format: an exact copy of a workload, with its provenance",
            parquet.detect,
            parquet.read,
            read_first=parquet.read_first,
            processors=parquet.processors,
        ),
        Format(
            "csv",
            "any CSV: columns by a mapping, or by names such as submit_time, duration, num_gpus",
            plain_csv.detect,
            plain_csv.read,
            plain_csv.OPTIONS,
            by_line=True,
        ),
    )
}


COMMON_OPTIONS = {
    "reference_type": "the GPU type that all run times were recorded on, such as A100; on other "
    "types they are scaled; recorded = never scale them"
}
"""Options that every format has; `load_trace` applies them."""


def detect_format(head: bytes, path: Path, among: Iterable[Format] | None = None) -> Format | None:
    """Return the format that is most certain of a file, the first of equals, or None.

    Args:
        head: the unpacked first bytes of the file.
        path: the file, for its name.
        among: the formats to choose from; None = all.
    """
    best, surest = None, Match.NO
    for entry in FORMATS.values() if among is None else among:
        match = entry.detect(head, path)
        if match > surest:
            best, surest = entry, match
    return best
