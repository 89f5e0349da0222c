"""What a CLUSTER argument of the command line means: a preset, `uniform:...`, a file of nodes."""

from __future__ import annotations

from pathlib import Path

from berthline.model.cluster import Cluster
from berthline.traces.node_lists import read_cluster


def resolve_cluster(text: str) -> Cluster:
    """Return the cluster that `text` names.

    `Cluster.parse` knows presets, `uniform:NODESxGPUS[:TYPE]` and TOML files. Any other file is
    taken for a publisher's node list, such as openb's or Philly's.

    Raises:
        ConfigError: there is no such cluster, or the file does not describe one.
        TraceError: the node list cannot be read.
    """
    path = Path(text)
    if path.is_file() and path.suffix != ".toml":
        return read_cluster(path)
    return Cluster.parse(text)
