"""The schedule log as a table, and back: what `events.parquet` of a run directory holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from berthline.errors import ConfigError
from berthline.model.schedule import (
    FALLBACK,
    FALLBACK_REASONS,
    KINDS,
    NO_JOB,
    NODE_DOWN,
    NODE_UP,
    PREEMPT,
    PREEMPT_REASONS,
    REJECT,
    REJECT_REASONS,
    WHOLE_GPUS,
    Schedule,
)

if TYPE_CHECKING:
    from berthline.model.workload import IntColumn

SCHEMA = {
    "time": pl.Float64(),
    "kind": pl.String(),
    "job": pl.Int32(),
    "nodes": pl.List(pl.Int32()),
    "gpus": pl.List(pl.Int32()),
    "reason": pl.String(),
    "slots": pl.List(pl.Int32()),
}

REASONS = {REJECT: REJECT_REASONS, PREEMPT: PREEMPT_REASONS, FALLBACK: FALLBACK_REASONS}
"""The meaning of a row's detail, by its kind."""


def frame_of(log: Schedule) -> pl.DataFrame:
    """Return the log as a table."""
    starts = log.is_start
    first = log.detail[starts]
    counts = np.diff(first, append=len(log.alloc_node))
    events = np.repeat(np.flatnonzero(starts), counts).astype(np.uint32)
    about_nodes = np.flatnonzero((log.kind == NODE_DOWN) | (log.kind == NODE_UP))
    nothing = pl.repeat(None, len(about_nodes), dtype=pl.Int32, eager=True)
    slots = pl.Series(log.alloc_slot, dtype=pl.Int32).replace(WHOLE_GPUS, None)
    allocations = (
        pl.DataFrame(
            {
                "event": np.concatenate([events, about_nodes.astype(np.uint32)]),
                "nodes": np.concatenate([log.alloc_node, log.detail[about_nodes]]),
                "gpus": pl.concat([pl.Series(log.alloc_gpus, dtype=pl.Int32), nothing]),
                "slots": pl.concat([slots, nothing]),
            }
        )
        .group_by("event", maintain_order=True)
        .agg("nodes", pl.col("gpus").drop_nulls(), "slots")
        .with_columns(pl.when(pl.col("slots").list.drop_nulls().list.len() > 0).then("slots"))
    )
    names = [name for reasons in REASONS.values() for name in reasons]
    reason = np.full(len(log), len(names), dtype=np.uint32)
    offset = 0
    for kind, reasons in REASONS.items():
        rows = np.flatnonzero(log.kind == kind)
        reason[rows] = log.detail[rows] + offset
        offset += len(reasons)
    return (
        pl.DataFrame(
            {
                "time": log.time,
                "kind": pl.Series(log.kind, dtype=pl.UInt8).replace_strict(
                    dict(enumerate(KINDS)), return_dtype=pl.String
                ),
                "job": pl.Series(log.job, dtype=pl.Int32).replace(NO_JOB, None),
                "reason": pl.Series([*names, None], dtype=pl.String).gather(pl.Series(reason)),
            }
        )
        .with_row_index("event")
        .join(allocations, on="event", how="left", maintain_order="left")
        .select(pl.col(name).cast(dtype) for name, dtype in SCHEMA.items())
    )


def schedule_of(frame: pl.DataFrame, *, horizon: float, decisions: int) -> Schedule:
    """Return the log of a table that `frame_of` returned.

    Raises:
        ConfigError: `frame_of` does not return such a table.
    """
    if dict(frame.schema) != SCHEMA:
        found = [name for name, dtype in SCHEMA.items() if frame.schema.get(name) != dtype]
        raise ConfigError(
            f"the table of a log has no column {found[0]!r} of the right type"
            if found
            else "the table of a log has unknown columns",
            expected=", ".join(f"{name} ({dtype})" for name, dtype in SCHEMA.items()),
            hint="files of earlier versions lack slots: run berthline sim again",
        )
    kind = _index(frame["kind"], KINDS, "kind").astype(np.uint8)
    detail = np.full(len(frame), -1, dtype=np.int32)
    for code, reasons in REASONS.items():
        rows = kind == code
        if rows.any():
            given = frame["reason"].filter(rows)
            detail[rows] = _index(given, reasons, f"reason of a {KINDS[code]}")
    about_nodes = np.flatnonzero((kind == NODE_DOWN) | (kind == NODE_UP))
    if about_nodes.size:
        detail[about_nodes] = frame["nodes"].gather(about_nodes).list.first().to_numpy()
    # Columns one by one, by a mask of polars: both a query and numpy's masks take long to load.
    sizes = frame["gpus"].list.len().fill_null(0)
    holds = sizes > 0
    counts = sizes.filter(holds).to_numpy().astype(np.int64)
    detail[holds.to_numpy()] = counts.cumsum() - counts
    nodes, gpus, slots = (frame[name].filter(holds) for name in ("nodes", "gpus", "slots"))
    slot = np.full(int(counts.sum()), WHOLE_GPUS, dtype=np.int32)
    if slots.null_count() < len(slots):
        shared = np.repeat(slots.is_not_null().to_numpy(), counts)
        slot[shared] = slots.drop_nulls().explode().fill_null(WHOLE_GPUS).to_numpy()
    return Schedule(
        time=frame["time"].to_numpy(),
        kind=kind,
        job=frame["job"].fill_null(NO_JOB).to_numpy(),
        detail=detail,
        alloc_node=_flat(nodes),
        alloc_gpus=_flat(gpus),
        alloc_slot=slot,
        horizon=horizon,
        decisions=decisions,
    )


def _index(values: pl.Series, names: tuple[str, ...], what: str) -> IntColumn:
    """Return the index of each value among names."""
    codes = values.cast(pl.Enum(names), strict=False).to_physical()
    if codes.null_count():
        row = int(codes.is_null().arg_max() or 0)
        raise ConfigError(f"{what} is {values[row]!r}", expected="one of " + ", ".join(names))
    found: IntColumn = codes.to_numpy()
    return found


def _flat(lists: pl.Series) -> IntColumn:
    """Return the values of all lists, one after another."""
    found: IntColumn = lists.explode().to_numpy() if len(lists) else np.array([], np.int32)
    return found
