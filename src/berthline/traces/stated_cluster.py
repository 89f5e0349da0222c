"""The cluster that the file of a trace states, for runs that name no cluster.

The header of an SWF file has the number of processors. It becomes one node with that many GPUs,
because the header does not say how jobs were placed. An accounting log with lists of nodes shows
its nodes.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, overload

from berthline.errors import TraceError
from berthline.model.cluster_presets import PRESETS
from berthline.model.workload import Workload
from berthline.text_or_path import text_of
from berthline.traces.formats.format_table import FORMATS, detect_format
from berthline.traces.reading.files import read_head
from berthline.traces.recorded_cluster import lists_nodes, recorded_cluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from berthline.model.cluster import Cluster
    from berthline.text_or_path import TextOrPath

DEFAULT_CLUSTER = "uniform:8x8:V100"
"""For generators, and for traces whose file states no cluster."""


@overload
def default_cluster(
    workload: TextOrPath,
    format: str | None = None,
    remark: Callable[[str], None] | None = None,
) -> str: ...


@overload
def default_cluster(
    workload: Workload | TextOrPath,
    format: str | None = None,
    remark: Callable[[str], None] | None = None,
) -> str | Cluster: ...


def default_cluster(
    workload: Workload | TextOrPath,
    format: str | None = None,  # noqa: A002 - the same name as in load_trace
    remark: Callable[[str], None] | None = None,
) -> str | Cluster:
    """Return the CLUSTER argument of a run that names none.

    It is the cluster that the trace's header states, or that its lists of nodes show (the log
    itself is then the argument), else 64 V100. It is a text unless the jobs of a log are given.

    Args:
        workload: a Workload or a WORKLOAD argument.
        format: of a trace file; None = recognise it.
        remark: called with a sentence if the trace states its cluster.
    """
    if isinstance(workload, Workload):
        stated = workload.provenance.get("max_procs")
        if isinstance(stated, int) and stated > 0:
            return _stated(stated, workload.name, remark)
        return recorded_cluster(workload) or DEFAULT_CLUSTER
    text = text_of("workload", workload)
    path = Path(text)
    try:
        if not path.is_file():
            return DEFAULT_CLUSTER
        head = read_head(path)
        found = FORMATS.get(format) if format else detect_format(head, path)
        processors = found.processors(head, path) if found and found.processors else None
        if processors is not None:
            return _stated(processors, path.name, remark)
        if path.suffix != ".toml" and text not in PRESETS and lists_nodes(path):
            return text
    except (OSError, ValueError, TraceError):
        pass  # reading the jobs will say what is wrong
    return DEFAULT_CLUSTER


def _stated(processors: int, name: str, remark: Callable[[str], None] | None) -> str:
    found = f"uniform:1x{processors}"
    if remark is not None:
        remark(f"no cluster is given: {found}, as the header of {name} states")
    return found
