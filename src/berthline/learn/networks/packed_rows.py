"""Packed observations: only the rows that are there, since most of a window is empty.

Rows of all observations stand one after another, each with the observation it is of and the place
it has there. Networks that treat rows alike compute them at once.
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
        owner: which observation each is of, ascending: (rows,).
        place: its place in the table: (rows,).
        counts: rows of each observation: (batch,).
    """

    rows: Tensor
    owner: Tensor
    place: Tensor
    counts: Tensor

    def select(self, chosen: Tensor) -> PackedTable:
        """Return the rows of some observations, in their order."""
        counts = self.counts[chosen]
        owner = torch.repeat_interleave(counts)
        # Row i of the new ones is the (i - first new)-th from the first old one of its owner.
        first_old = (self.counts.cumsum(0) - self.counts)[chosen]
        first_new = counts.cumsum(0) - counts
        index = (first_old - first_new).index_select(0, owner) + torch.arange(len(owner))
        return PackedTable(
            self.rows.index_select(0, index), owner, self.place.index_select(0, index), counts
        )

    def mean(self, made: Tensor) -> Tensor:
        """Return the mean over each observation's rows of what was made of them; of none 0."""
        total = made.new_zeros((len(self.counts), made.shape[-1])).index_add(0, self.owner, made)
        return total / self.counts.clamp_min(1).unsqueeze(-1)

    def first(self, made: Tensor) -> Tensor:
        """Return what was made of the rows in the first place; 0 where there is none."""
        index = (self.place == 0).nonzero().squeeze(-1)
        out = made.new_zeros((len(self.counts), made.shape[-1]))
        return out.index_copy(0, self.owner[index], made.index_select(0, index))

    def spread(self, made: Tensor, height: int) -> Tensor:
        """Return what was made of the rows in their places, and zeros: (batch, height, width)."""
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
            # A column of numbers; where each stands is what it means.
            where = torch.linspace(0, 1, shape[0]).expand_as(table)
            there = torch.ones_like(table, dtype=torch.bool)
            tables[name] = _packed(torch.stack((table, where), dim=-1), there)
        else:
            rows = table.reshape(-1, *shape)
            # A product with ones adds up faster than a sum over so short a dimension.
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
