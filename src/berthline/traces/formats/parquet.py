"""Berthline's own files: a Workload as Parquet, read back bit for bit.

The table has the columns of a Workload under their names, with users, pools and GPU type sets as
indexes, and job ids, if any, as `name`; what was recorded about the jobs is in further columns,
`history.start` and so on. Every tool that reads Parquet can read it. All other data (the names that
indexes point to, provenance) is JSON between the last column and Parquet's own
footer, where Parquet readers skip it:

    Parquet's data | JSON | its length, 8 bytes | SHA-256 of all the rest | BERTHLN1 | footer

The hash is needed because a decoder does not notice most flipped bits, and crashes on some. Parquet
files from other programs lack this part and are refused, because their columns may mean anything.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.atomic_write import write_atomically
from berthline.errors import TraceError
from berthline.model.gpu_types import REFERENCE_TYPE
from berthline.model.history import History
from berthline.model.provenance import provenance_of_copy
from berthline.model.workload import Workload
from berthline.traces.formats.detection import Match
from berthline.traces.reading.files import read_bytes

if TYPE_CHECKING:
    import os
    from pathlib import Path

    import numpy.typing as npt
    import polars as pl

SCHEMA = 3
"""The version of the layout; a reader refuses unknown versions."""

_WHOLE_GPUS_ONLY = 1
"""The layout without parts of GPUs and without the GPU type that run times are on."""

_WITHOUT_HISTORY = 2
"""The layout without history, and without the GPU type that each run time is on."""

_MAGIC = b"PAR1"
_OURS = b"BERTHLN1"
_LENGTH = struct.Struct("<Q")
_FOOTER_LENGTH = struct.Struct("<I")
_HASH_BYTES = hashlib.sha256().digest_size
_NAME_LISTS = ("user_names", "pool_names", "gpu_type_sets", "ran_on_types")
_NOT_COLUMNS = (
    *_NAME_LISTS,
    "reference_type",
    "names",
    "name",
    "provenance",
    "history",
    "in_order",
)
_ADDED = {"gpu_milli": 2, "ran_on": 3}
"""Columns that earlier layouts lack, with the layout that added them."""

_HISTORY = "history."
_OTHER = "other."
_COLUMNS = tuple(
    field.name for field in dataclasses.fields(Workload) if field.name not in _NOT_COLUMNS
)


def write_parquet(workload: Workload, path: str | os.PathLike[str]) -> Path:
    """Write a workload to a Parquet file, replacing an existing one, and return its path.

    Raises:
        OutputError: the file cannot be written.
        TraceError: provenance cannot be represented in JSON.
    """
    import polars as pl

    columns: dict[str, Any] = {name: getattr(workload, name) for name in _COLUMNS}
    if workload.names is not None:
        columns["name"] = pl.Series(workload.names.tolist(), dtype=pl.String)
    history, history_names = _history_columns(workload.history)
    columns |= history
    about = {
        "schema": SCHEMA,
        "name": workload.name,
        "reference_type": workload.reference_type,
        **{name: list(getattr(workload, name)) for name in _NAME_LISTS},
        "history": history_names,
        **({"of_snapshot": True} if not len(workload) or np.isnan(workload.run).any() else {}),
        "provenance": dict(workload.provenance),
    }
    try:
        text = json.dumps(about).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise TraceError(
            f"the provenance of the workload cannot be written ({error})",
            where=workload.name,
            expected="plain data: texts, numbers, lists and dictionaries of them",
        ) from None
    buffer = io.BytesIO()
    pl.DataFrame(columns).write_parquet(buffer)
    table = buffer.getvalue()
    data_end = _data_end(table)
    before = table[:data_end] + text + _LENGTH.pack(len(text))
    after = _OURS + table[data_end:]
    return write_atomically(path, before + hashlib.sha256(before + after).digest() + after)


def detect(head: bytes, path: Path) -> Match:  # noqa: ARG001 - every format has the same two
    """Return whether a file is Parquet, by its first bytes."""
    return Match.CERTAIN if head.startswith(_MAGIC) else Match.NO


def read(path: Path) -> Workload:
    """Return the workload that `write_parquet` wrote; see `read_first`."""
    return read_first(path, None)


def read_first(path: Path, jobs: int | None) -> Workload:
    """Return the workload that `write_parquet` wrote, or its first jobs.

    Its provenance describes this file; facts about the file that its jobs were first read from are
    under `origin`.

    Args:
        path: the file. All of it is read to check that it is intact; only the rows of these jobs
            are unpacked. They are in order of submission.
        jobs: how many; None = all.

    Raises:
        TraceError: the file cannot be read, is damaged, or has another format or a later version.
    """
    import polars as pl

    content = read_bytes(path)
    about = _about(content, path)
    schema = about.get("schema")
    if schema not in (_WHOLE_GPUS_ONLY, _WITHOUT_HISTORY, SCHEMA):
        is_later = isinstance(schema, int) and schema > SCHEMA
        raise TraceError(
            f"the file has layout {schema}",
            where=str(path),
            expected=f"layout {_WHOLE_GPUS_ONLY} to {SCHEMA}",
            hint="a later version of Berthline wrote it: update this one"
            if is_later
            else "import the trace again",
        )
    frame = pl.read_parquet(content, n_rows=jobs)
    rows = pl.scan_parquet(io.BytesIO(content)).select(pl.len()).collect().item()
    known = [name for name in _COLUMNS if schema >= _ADDED.get(name, 0)]
    columns: dict[str, Any] = {name: frame[name].to_numpy() for name in known}
    names = np.array(frame["name"].to_list(), dtype=np.str_) if "name" in frame.columns else None
    columns |= {name: tuple(about.get(name, ())) for name in _NAME_LISTS}
    return Workload.from_columns(
        **columns,
        reference_type=about.get("reference_type", REFERENCE_TYPE),
        names=names,
        history=_history(frame, about.get("history")),
        name=about["name"],
        provenance=provenance_of_copy(
            about["provenance"], format_name="parquet", file_name=path.name, jobs=rows
        ),
        rebase=False,  # keep times unchanged
        of_snapshot=bool(about.get("of_snapshot")),
    )


def processors(head: bytes, path: Path) -> int | None:  # noqa: ARG001 - as in other formats
    """Return the processors of the cluster, as the file states them; None = it does not."""
    found = _about(read_bytes(path), path)["provenance"].get("max_procs")
    return found if isinstance(found, int) and found > 0 else None


def _history_columns(
    history: History | None,
) -> tuple[dict[str, npt.NDArray[Any]], dict[str, list[str]] | None]:
    """Return the columns of a history, by their names in the table, and its lists of names."""
    if history is None:
        return {}, None
    columns: dict[str, npt.NDArray[Any]] = {}
    names: dict[str, list[str]] = {}
    for field in dataclasses.fields(history):
        value = getattr(history, field.name)
        if isinstance(value, tuple):
            names[field.name] = list(value)
        elif isinstance(value, Mapping):
            columns |= {f"{_HISTORY}{_OTHER}{key}": numbers for key, numbers in value.items()}
        elif value is not None:
            columns[_HISTORY + field.name] = value
    return columns, names


def _history(frame: pl.DataFrame, names: dict[str, list[str]] | None) -> History | None:
    """Return the history that `_history_columns` took apart."""
    if names is None:
        return None
    columns: dict[str, Any] = {}
    other: dict[str, npt.NDArray[np.float64]] = {}
    for cells in frame:
        if cells.name.startswith(_HISTORY + _OTHER):
            other[cells.name.removeprefix(_HISTORY + _OTHER)] = cells.to_numpy()
        elif cells.name.startswith(_HISTORY):
            columns[cells.name.removeprefix(_HISTORY)] = cells.to_numpy()
    columns |= {name: tuple(values) for name, values in names.items()}
    return History(**columns, other=other)


def _about(content: bytes, path: Path) -> dict[str, Any]:
    """Return the data that the file has besides its table, after checking its integrity.

    Raises:
        TraceError: the file is damaged, or another program wrote it.
    """
    end = _data_end(content)
    if not content.startswith(_MAGIC) or not content.endswith(_MAGIC) or end < len(_MAGIC):
        raise TraceError(
            "the file is not a complete Parquet file",
            where=str(path),
            expected="a Parquet file that Berthline wrote",
            hint="it may have been cut short: copy it again",
        )
    hash_end = end - len(_OURS)
    hash_start = hash_end - _HASH_BYTES
    if hash_start < len(_MAGIC) or content[hash_end:end] != _OURS:
        raise TraceError(
            "another program wrote this Parquet file",
            where=str(path),
            expected="a Parquet file that Berthline wrote",
            hint="write the table as CSV and map its columns: `mapping=submit=COLUMN,...`",
        )
    before = content[:hash_start]
    if hashlib.sha256(before + content[hash_end:]).digest() != content[hash_start:hash_end]:
        raise TraceError(
            "the Parquet file is damaged: its checksum is wrong",
            where=str(path),
            expected="a file that was not changed after Berthline wrote it",
            hint="copy it again, or import the trace again",
        )
    text_end = len(before) - _LENGTH.size
    (length,) = _LENGTH.unpack(before[text_end:])
    about: dict[str, Any] = json.loads(before[text_end - length : text_end])
    return about


def _data_end(content: bytes) -> int:
    """Return where Parquet's footer begins; less than 0 if the content is too short for one."""
    length_at = len(content) - len(_MAGIC) - _FOOTER_LENGTH.size
    if length_at < 0:
        return -1
    (length,) = _FOOTER_LENGTH.unpack_from(content, length_at)
    return length_at - int(length)
