"""CLUSTER arguments: how the library, environments and the command line name a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from berthline.errors import ConfigError
from berthline.model.cluster import Cluster
from berthline.model.cluster_presets import PRESETS
from berthline.text_or_path import text_of
from berthline.traces.node_lists.read_cluster import read_cluster
from berthline.traces.reading.files import is_directory
from berthline.traces.reading.quoted import shorten
from berthline.traces.recorded_cluster import lists_nodes, read_recorded_cluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from berthline.text_or_path import TextOrPath

_FILE_SUFFIXES = frozenset({".csv", ".gz", ".json", ".txt"})


def resolve_cluster(
    given: Cluster | TextOrPath, remark: Callable[[str], None] | None = None
) -> Cluster:
    """Return the cluster that a CLUSTER argument names.

    A text or path is one of these:

    - a preset, such as `philly`;
    - a shape, `uniform:NODESxGPUS[:TYPE]`;
    - a TOML file with `[[nodes]]` groups;
    - an accounting log with lists of nodes (Slurm, LSF): the cluster that it was recorded on, as
      far as its jobs show it; run times are not scaled there;
    - a node list from a trace publisher or a resource manager: any other file, or a directory that
      contains one. A preset takes precedence over a directory of the same name.

    Args:
        given: the text or path; a Cluster is returned unchanged.
        remark: called with a sentence if a node list omits something or something is guessed.

    Raises:
        ConfigError: there is no such cluster, or the file does not describe one.
        TraceError: the node list cannot be read.

    Example:
        >>> resolve_cluster("uniform:64x8:V100").total_gpus
        512
        >>> resolve_cluster("philly").total_gpus
        2490
    """
    if isinstance(given, Cluster):
        return given
    text = text_of("cluster", given)
    path = Path(text)
    try:
        is_file = path.is_file()
    except (OSError, ValueError):  # not a possible file name
        raise ConfigError(
            f"unknown cluster {shorten(text)}",
            expected="a preset, uniform:NODESxGPUS[:TYPE] or a file",
            hint="all presets: berthline traces list clusters",
        ) from None
    if is_file and path.suffix != ".toml":
        if lists_nodes(path):
            return read_recorded_cluster(path, remark)
        return read_cluster(path, remark=remark)
    if text not in PRESETS:
        if is_directory(path):
            return read_cluster(path, remark=remark)
        if path.suffix.lower() in _FILE_SUFFIXES:
            raise ConfigError(
                "no such node list",
                where=text,
                expected="a publisher's node list, plain or gzip'd",
                hint="check the path; relative paths start at the current directory",
            )
    return Cluster.parse(text)
