"""The Alibaba spot jobs (2026), reduced to four columns: arrival_time, runtime, gpus, priority.

Times are seconds from the first submission of the whole trace, even in a file that contains a later
part of it. What the reduction lost: `gpus` are those of one worker, so gangs look small; there is
no GPU model, organization, CPU count (so rows without GPUs cannot be kept) or job id; and the
priority is a function of `gpus`, not the publisher's. Jobs that arrive at second 0 were running
when the trace began; they are kept and counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from berthline.model.gpu_types import RECORDED
from berthline.model.workload import Workload
from berthline.traces.formats.detection import Match, header_cells
from berthline.traces.formats.row_filter import NO_GPUS, NO_RUN_TIME, choose_rows, row_facts
from berthline.traces.reading.csv.csv_table import CsvTable
from berthline.traces.reading.files import bare_name
from berthline.traces.reading.request_columns import GpuRequests

if TYPE_CHECKING:
    from pathlib import Path

_COLUMNS = ("arrival_time", "runtime", "gpus", "priority")


def detect(head: bytes, path: Path) -> Match:
    """Return whether a file is a reduced list of spot jobs: exactly these four columns."""
    del path  # only the content counts
    return Match.CERTAIN if sorted(header_cells(head)) == sorted(_COLUMNS) else Match.NO


def read(path: Path) -> Workload:
    """Return the GPU jobs of a file.

    Provenance, besides what `load_trace` lists: `already_running` (used rows that arrive at second
    0), `lost` (what the reduction left out), `rounded`, and `origin_trace_seconds` (time 0 on the
    clock of the trace, whose date is not published).

    Raises:
        TraceError: the file cannot be read, a line is invalid, or no job is usable.
    """
    table = CsvTable(path, required=_COLUMNS, numbers=_COLUMNS)
    submit = table.numbers("arrival_time")
    run = table.numbers("runtime", missing=0)
    asked = table.numbers("gpus", lowest=0, highest=2**31 - 1)
    priority = table.numbers("priority", missing=0)
    used, dropped = choose_rows(
        {NO_GPUS: asked == 0, NO_RUN_TIME: run <= 0},
        path=path,
        expected="a runtime and gpus of more than 0",
    )
    requests = GpuRequests.of(asked)
    provenance: dict[str, Any] = {
        **row_facts("alibaba-spot-reduced", path, used, dropped, origin=None, zone=None),
        "origin_trace_seconds": float(submit[used].min()),
        "rounded": requests.rounded(used),
        "already_running": int((used & (submit == 0)).sum()),
        "lost": "worker_num (gpus are those of one worker), gpu_model, organization, job_type, "
        "cpu_request, job ids; priority is a function of gpus",
    }
    return Workload.from_columns(
        submit=submit[used],
        run=run[used],
        gpus=requests.gpus[used],
        gpu_milli=requests.gpu_milli[used],
        priority=priority[used],
        user_names=("unknown",),
        reference_type=RECORDED,
        name=bare_name(path, ".csv"),
        provenance=provenance,
    )
