"""Origin: what a workload's provenance says about the file its jobs were first read from.

A reader counts the rows it leaves out. When the jobs are written as Parquet, or only some of them
are taken, these counts still describe that first file: they move under the key `origin`, so that
they are not mistaken for counts of the copy or of the cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

ORIGIN = "origin"
"""The key of provenance for the facts of the first file."""

_PLACE = ("format", "path")
_COUNTS = ("rows", "used", "dropped", "rounded", "cpu_jobs", "gpus_asked")


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """The file from which the jobs of a copy or a cut were first read."""

    path: str = ""
    """The file's name; empty = not known."""
    format: str = ""
    rows: int | None = None
    dropped: dict[str, int] = {}
    rounded: dict[str, int] = {}


def origin_of(provenance: Mapping[str, Any]) -> Origin | None:
    """Return the file that the jobs were first read from; None = this file, or no file."""
    facts = provenance.get(ORIGIN)
    if not isinstance(facts, Mapping):
        return None
    known = {key: facts[key] for key in Origin.__struct_fields__ if facts.get(key) is not None}
    return Origin(**known)


def provenance_of_copy(
    provenance: Mapping[str, Any], *, format_name: str, file_name: str, jobs: int
) -> dict[str, Any]:
    """Return the provenance of jobs that were read from a copy of a workload.

    Args:
        provenance: the workload's provenance when the copy was written.
        format_name: the format of the copy.
        file_name: its name.
        jobs: the number of its jobs; all are used.
    """
    own = {"format": format_name, "path": file_name, "rows": jobs, "used": jobs, "dropped": {}}
    return own | _inherited(provenance)


def provenance_of_cut(
    provenance: Mapping[str, Any], *, first: int, jobs: int, of: int
) -> dict[str, Any]:
    """Return the provenance of `jobs` jobs, from `first` on, of a workload that has `of` jobs."""
    if jobs == of:
        return dict(provenance)
    place = {key: provenance[key] for key in _PLACE if key in provenance}
    return place | _inherited(provenance) | {"cut": {"first": first, "jobs": jobs, "of": of}}


def _inherited(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Return provenance with the facts of the file under `origin`; the first origin stays."""
    of_file = {key: provenance[key] for key in (*_PLACE, *_COUNTS) if key in provenance}
    rest = {key: value for key, value in provenance.items() if key not in of_file}
    return {ORIGIN: of_file, **rest} if of_file else rest
