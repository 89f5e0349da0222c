"""What a policy sees and may answer. A policy only fits environments with the same layout."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING

import msgspec

from berthline.errors import ConfigError

if TYPE_CHECKING:
    from berthline.env.plan import Plan

ROWS_OF_ACTIONS = {
    "pick": "jobs",
    "pickplace": "jobs",
    "backfill": "jobs",
    "place": "nodes",
    "preempt": "running",
}
"""The table whose rows are the actions of a seat; actions of other seats are not rows."""


class ObservationLayout(msgspec.Struct, frozen=True, kw_only=True):
    """The tables of an observation, in the order of the flat one, and the actions.

    Attributes:
        seat: which decision it is about.
        shapes: (rows, columns) of each table, or (numbers,).
        columns: the formulas of each table's columns.
        actions: the number of actions.
        row_table: the table whose rows are the first actions; empty = actions are not rows. If
            there is one more action, it is the no-op. For PickPlace, each row has one action per
            node; see `pick_place_actions.py`.
        knowledge: what is known about run times; a policy trained with estimates does not fit where
            there are none.
    """

    seat: str
    shapes: dict[str, tuple[int, ...]]
    columns: dict[str, tuple[str, ...]]
    actions: int
    row_table: str
    knowledge: str

    @classmethod
    def of(cls, plan: Plan) -> ObservationLayout:
        """Return the layout of an environment."""
        shapes = dict(plan.table_shapes())
        columns = {
            name: tuple(getattr(plan.columns, name)) for name in shapes if name != "lookahead"
        }
        rows = ROWS_OF_ACTIONS.get(plan.seat, "")
        if rows and plan.num_actions - shapes.get(rows, (0,))[0] not in (0, 1):
            rows = ""  # Place that chooses a rule
        actions = plan.num_actions
        if plan.seat == "pickplace":
            actions = plan.options.window * plan.cluster.num_nodes + 1
        return cls(
            seat=plan.seat,
            shapes=shapes,
            columns=columns,
            actions=actions,
            row_table=rows,
            knowledge=plan.options.knowledge,
        )

    @property
    def size(self) -> int:
        """How many numbers an observation has."""
        return sum(math.prod(shape) for shape in self.shapes.values())

    @property
    def no_op(self) -> int | None:
        """The action that does nothing; None = there is none."""
        if self.seat == "gate":
            return 0
        has_more = bool(self.row_table) and self.actions > self.shapes[self.row_table][0]
        return self.actions - 1 if has_more else None

    @property
    def has_pairs(self) -> bool:
        """Whether an action is a row of jobs and a row of nodes; see `pick_place_actions.py`."""
        return self.seat == "pickplace"

    @property
    def has_job_at_hand(self) -> bool:
        """Whether the first row of jobs is the job at hand."""
        return self.seat in ("place", "gate", "backfill", "preempt")

    def slices(self) -> dict[str, slice]:
        """Return where each table is in a flat observation."""
        begin, found = 0, {}
        for name, shape in self.shapes.items():
            found[name] = slice(begin, begin + math.prod(shape))
            begin = found[name].stop
        return found

    @property
    def sha256(self) -> str:
        """Hash of everything above."""
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()

    def check_same(self, other: ObservationLayout, *, where: str) -> None:
        """Raise unless another layout is the same.

        Raises:
            ConfigError: they differ; the message lists the differences.
        """
        if self == other:
            return
        raise ConfigError(
            "the policy was trained on other observations or actions",
            where=where,
            expected=self._differences(other),
            hint="use the options it was trained with, or train again",
        )

    def check_fits(self, other: ObservationLayout, *, where: str, any_rows: bool) -> None:
        """Raise unless a policy of this layout can be used with another one.

        Args:
            other: the layout to use it with.
            where: the policy, for the message.
            any_rows: whether its network takes any number of rows; all except `mlp` do, unless
                exported.

        Raises:
            ConfigError: other columns, or other actions that are not rows; or other numbers of rows
                where that matters.
        """
        if any_rows:
            if self._without_rows() == other._without_rows():
                return
            raise ConfigError(
                "the policy was trained on other columns or actions",
                where=where,
                expected=self._without_rows()._differences(other._without_rows()),
                hint="only the number of rows may differ: nodes, jobs and running jobs shown",
            )
        if self == other:
            return
        raise ConfigError(
            "the policy has a network of fixed size, and was trained on another size",
            where=where,
            expected=self._differences(other),
            hint="only networks other than mlp that are not exported take other numbers of nodes",
        )

    def _without_rows(self) -> ObservationLayout:
        """Return the layout with one row in each table."""
        shapes = {
            name: (1,) if name == "lookahead" else (1, *shape[1:]) if len(shape) > 1 else shape
            for name, shape in self.shapes.items()
        }
        actions = 1 + (self.no_op is not None) if self.row_table else self.actions
        return msgspec.structs.replace(self, shapes=shapes, actions=actions)

    def _differences(self, other: ObservationLayout) -> str:
        differences = []
        for name in self.__struct_fields__:
            ours, theirs = getattr(self, name), getattr(other, name)
            if isinstance(ours, dict):
                differences += [
                    f"{name}.{key}: {ours.get(key)} against {theirs.get(key)}"
                    for key in sorted({*ours, *theirs})
                    if ours.get(key) != theirs.get(key)
                ]
            elif ours != theirs:
                differences.append(f"{name}: {ours} against {theirs}")
        return "; ".join(differences)
