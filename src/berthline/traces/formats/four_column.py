"""Tables of four columns: `job_id,arrival_s,service_sec,gpu_count`.

One project reduced two public traces to this form, and the ids show which: `363167#0` is a Slurm
id and a row of the Helios log, `ali-<job>-<task>#<row>` a task of Alibaba's PAI v2020. In both, run
times were cut off at 48 hours, CPU-only and zero-length jobs were left out, and users and pools
were lost. The PAI table is a random sample of tasks, with the start of each in place of its
submission. Any table with these columns is read; times are seconds on its own clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from berthline.model.gpu_types import RECORDED
from berthline.model.workload import Workload
from berthline.traces.formats import helios
from berthline.traces.formats.detection import Match, header_cells
from berthline.traces.formats.row_filter import NO_GPUS, NO_RUN_TIME, choose_rows, row_facts
from berthline.traces.reading.csv.csv_table import CsvTable
from berthline.traces.reading.files import bare_name

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt

COLUMNS = ("job_id", "arrival_s", "service_sec", "gpu_count")

_SOURCES = {
    "helios": r"^\d+#\d+$",
    "alibaba-pai-v2020": r"^ali-.*#\d+$",
}
_REFERENCE_TYPES = {"helios": helios.REFERENCE_TYPE}
_CUT_AT = 172_800.0  # seconds; 48 hours
_MOST_GPUS = 2**31 - 1  # the limit of the workload's column

# The first job in the table of the Helios cluster Venus; its clock starts there.
_VENUS_FIRST_JOB = "363167#0"
_VENUS_ORIGIN = 1584475299.0  # 2020-03-18 04:01:39 in China
_VENUS_ZONE = "Asia/Shanghai"


def detect(head: bytes, path: Path) -> Match:
    """Return whether the header line is that of a four-column table."""
    del path  # only the content counts
    return Match.CERTAIN if tuple(header_cells(head)) == COLUMNS else Match.NO


def read(path: Path) -> Workload:
    """Return the jobs of a table of four columns.

    Provenance, besides what `load_trace` lists: `source` (which trace, by the form of all ids:
    `helios`, `alibaba-pai-v2020` or None) and, for these two, `cut_off` (rows whose run time is
    the cut-off).

    Raises:
        TraceError: the file cannot be read, a line is invalid, or no job is usable.
    """
    table = CsvTable(path, required=COLUMNS, numbers=COLUMNS[1:], texts=COLUMNS[:1])
    names = table.labels("job_id")
    arrival = table.numbers("arrival_s")
    run = table.numbers("service_sec")
    gpus = table.numbers("gpu_count", lowest=0, highest=_MOST_GPUS, whole=True)
    used, dropped = choose_rows(
        {NO_RUN_TIME: run <= 0, NO_GPUS: gpus == 0},
        path=path,
        expected="a service_sec and gpu_count of more than 0",
    )
    source = _source(table)
    origin, zone = _origin(names, arrival, used)
    provenance = {
        **row_facts("reduced-csv", path, used, dropped, origin=origin, zone=zone),
        "source": source,
    }
    if source is not None:
        provenance["cut_off"] = int((run == _CUT_AT).sum())
    return Workload.from_columns(
        submit=arrival[used],
        run=run[used],
        gpus=gpus[used],
        user_names=("unknown",),
        reference_type=_REFERENCE_TYPES.get(source or "", RECORDED),
        names=names[used],
        name=bare_name(path, ".csv"),
        provenance=provenance,
    )


def _source(table: CsvTable) -> str | None:
    ids = table.text("job_id").fill_null("")
    for name, pattern in _SOURCES.items():
        if ids.str.contains(pattern).all():
            return name
    return None


def _origin(
    names: npt.NDArray[np.str_], arrival: npt.NDArray[np.float64], used: npt.NDArray[np.bool_]
) -> tuple[float | None, str | None]:
    """Return the Unix time of the first job used, and the zone, if the ids identify them."""
    venus = bool(((names == _VENUS_FIRST_JOB) & (arrival == 0)).any())
    return (_VENUS_ORIGIN + float(arrival[used].min()), _VENUS_ZONE) if venus else (None, None)
