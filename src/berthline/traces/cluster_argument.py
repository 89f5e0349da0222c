"""What a CLUSTER argument of the command line means: a preset, `uniform:...`, a file of nodes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from berthline.errors import ConfigError
from berthline.model.cluster import Cluster
from berthline.model.presets import PRESETS
from berthline.traces.files import is_directory
from berthline.traces.node_lists import read_cluster
from berthline.traces.shown import shorten

if TYPE_CHECKING:
    from collections.abc import Callable

_FILE_SUFFIXES = frozenset({".csv", ".gz", ".json", ".txt"})


def resolve_cluster(text: str, remark: Callable[[str], None] | None = None) -> Cluster:
    """Return the cluster that `text` names.

    `Cluster.parse` knows presets, `uniform:NODESxGPUS[:TYPE]` and TOML files. Any other file, and
    a directory that no preset is called like, is taken for a publisher's node list, such as
    openb's or Philly's.

    Args:
        text: the argument.
        remark: called with a sentence about what a node list leaves out, or leaves to a guess.

    Raises:
        ConfigError: there is no such cluster, or the file does not describe one.
        TraceError: the node list cannot be read.
    """
    path = Path(text)
    try:
        is_file = path.is_file()
    except (OSError, ValueError):  # no name that a file could have
        raise ConfigError(
            f"unknown cluster {shorten(text)}",
            expected="a preset, uniform:NODESxGPUS[:TYPE] or a file",
            hint="all presets: berthline traces list clusters",
        ) from None
    if is_file and path.suffix != ".toml":
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
