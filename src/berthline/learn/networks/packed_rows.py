"""Packed observations: only the rows that are present, since most of a window is empty.

The rows of all observations are concatenated. Each has the number of its observation and its place
there. Networks that treat all rows the same way compute them at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berthline.env.observation_layout import ObservationLayout


class PackedTable(msgspec.Struct, frozen=True):
    """The rows of one table.

    Attributes:
        rows: (rows, columns).
        owner: the observation of each row, ascending: (rows,).
        place: the place of each row in the table: (rows,).
        counts: number of rows of each observation: (batch,).
    """

    rows: Tensor
    owner: Tensor
    place: Tensor
    counts: Tensor

    def select(self, chosen: Tensor) -> PackedTable:
        """Return the rows of some observations, in their order."""
        counts = self.counts[chosen]
        owner = torch.repeat_interleave(counts)
        # New row i is the old row with index first_old + i - first_new of its owner.
        first_old = (self.counts.cumsum(0) - self.counts)[chosen]
        first_new = counts.cumsum(0) - counts
        index = (first_old - first_new).index_select(0, owner) + torch.arange(len(owner))
        return PackedTable(
            self.rows.index_select(0, index), owner, self.place.index_select(0, index), counts
        )

    def to(self, device: str) -> PackedTable:
        """Return the rows on a device."""
        parts = (self.rows, self.owner, self.place, self.counts)
        return PackedTable(*(part.to(device) for part in parts))

    def mean(self, made: Tensor) -> Tensor:
        """Return the mean of the encoded rows of each observation; without rows 0."""
        total = made.new_zeros((len(self.counts), made.shape[-1])).index_add(0, self.owner, made)
        return total / self.counts.clamp_min(1).unsqueeze(-1)

    def first(self, made: Tensor) -> Tensor:
        """Return the encoded row at place 0 of each observation; 0 where there is none."""
        index = (self.place == 0).nonzero().squeeze(-1)
        out = made.new_zeros((len(self.counts), made.shape[-1]))
        return out.index_copy(0, self.owner[index], made.index_select(0, index))

    def spread(self, made: Tensor, height: int) -> Tensor:
        """Return the encoded rows at their places, else zeros: (batch, height, width)."""
        batch, width = len(self.counts), made.shape[-1]
        out = made.new_zeros((batch * height, width))
        return out.index_copy(0, self.owner * height + self.place, made).view(batch, height, width)


class Packed(msgspec.Struct, frozen=True):
    """Observations of a layout.

    Attributes:
        tables: by name.
        globals: the numbers of the cluster as a whole; None = there are none.
    """

    tables: dict[str, PackedTable]
    globals: Tensor | None

    def select(self, chosen: Tensor) -> Packed:
        """Return some of the observations."""
        return Packed(
            {name: table.select(chosen) for name, table in self.tables.items()},
            None if self.globals is None else self.globals.index_select(0, chosen),
        )

    def to(self, device: str) -> Packed:
        """Return the observations on a device."""
        return Packed(
            {name: table.to(device) for name, table in self.tables.items()},
            None if self.globals is None else self.globals.to(device),
        )


def join(parts: Sequence[Packed]) -> Packed:
    """Return the observations of all parts, one after another."""
    tables: dict[str, PackedTable] = {}
    for name in parts[0].tables:
        own = [part.tables[name] for part in parts]
        counts = torch.cat([table.counts for table in own])
        tables[name] = PackedTable(
            torch.cat([table.rows for table in own]),
            torch.repeat_interleave(counts),
            torch.cat([table.place for table in own]),
            counts,
        )
    whole = [part.globals for part in parts if part.globals is not None]
    return Packed(tables, torch.cat(whole) if whole else None)


def pack(layout: ObservationLayout, flat: Tensor) -> Packed:
    """Return flat observations without their empty rows."""
    tables: dict[str, PackedTable] = {}
    whole = None
    for name, place in layout.slices().items():
        shape, table = layout.shapes[name], flat[:, place]
        if 0 in shape:
            continue
        if name == "globals":
            whole = table.clone()
        elif name == "lookahead":
            # A column of numbers; the position of each defines its meaning.
            where = torch.linspace(0, 1, shape[0]).expand_as(table)
            there = torch.ones_like(table, dtype=torch.bool)
            tables[name] = _packed(torch.stack((table, where), dim=-1), there)
        else:
            rows = table.reshape(-1, *shape)
            # A product with ones is faster than a sum over such a short dimension.
            tables[name] = _packed(rows, rows.abs() @ rows.new_ones(shape[-1]) != 0)
    return Packed(tables, whole)


def _packed(rows: Tensor, present: Tensor) -> PackedTable:
    index = present.flatten().nonzero().squeeze(-1)
    height = present.shape[-1]
    owner = torch.div(index, height, rounding_mode="floor")
    return PackedTable(
        rows.flatten(0, 1).index_select(0, index),
        owner,
        index - owner * height,
        present.sum(dim=-1),
    )
