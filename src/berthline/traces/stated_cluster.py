"""The cluster that the file of a trace states, for runs that name no cluster.

The header of an SWF file has the number of processors. It becomes one node with that many GPUs,
because the header does not say how jobs were placed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from berthline.errors import TraceError
from berthline.model.workload import Workload
from berthline.text_or_path import text_of
from berthline.traces.formats.format_table import FORMATS, detect_format
from berthline.traces.reading.files import read_head

if TYPE_CHECKING:
    from collections.abc import Callable

    from berthline.text_or_path import TextOrPath

DEFAULT_CLUSTER = "uniform:8x8:V100"
"""For generators, and for traces whose file states no cluster."""


def default_cluster(
    workload: Workload | TextOrPath,
    format: str | None = None,  # noqa: A002 - the same name as in load_trace
    remark: Callable[[str], None] | None = None,
) -> str:
    """Return the CLUSTER argument of a run that names none: what the trace states, else 64 V100.

    Args:
        workload: a Workload or a WORKLOAD argument.
        format: of a trace file; None = recognise it.
        remark: called with a sentence if the trace states its cluster.
    """
    processors = _stated(workload, format)
    if processors is None:
        return DEFAULT_CLUSTER
    found = f"uniform:1x{processors}"
    if remark is not None:
        name = (
            workload.name
            if isinstance(workload, Workload)
            else Path(text_of("workload", workload)).name
        )
        remark(f"no cluster is given: {found}, as the header of {name} states")
    return found


def _stated(workload: Workload | TextOrPath, format_name: str | None) -> int | None:
    """Return the processors of the trace's cluster; None = its file does not say."""
    if isinstance(workload, Workload):
        processors = workload.provenance.get("max_procs")
        return processors if isinstance(processors, int) and processors > 0 else None
    path = Path(text_of("workload", workload))
    try:
        if not path.is_file():
            return None
        head = read_head(path)
        found = FORMATS.get(format_name) if format_name else detect_format(head, path)
        return found.processors(head, path) if found and found.processors else None
    except (OSError, ValueError, TraceError):
        return None  # reading the jobs will say what is wrong
