"""The options of an environment that its policies depend on: they are stored with every policy.

A policy runs on other jobs and other clusters than it was trained on. Everything else that it sees
or may choose stays as in its training, whatever the defaults, presets and sets of columns are by
then, and whatever the dials of the training set: a preset's columns are scaled by its dials.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from berthline.env.columns import TABLES, resolve_columns
from berthline.env.options import ONLY_OF, Options, resolve_options

if TYPE_CHECKING:
    from collections.abc import Mapping

WITHOUT_EFFECT: dict[str, Any] = {
    "episode_jobs": None,
    "load": None,
    "dials": {},
    "slice": None,
    "split": None,
    "split_gap": Options.split_gap,
    "split_fractions": Options.split_fractions,
    "missing_types": Options.missing_types,
    "conditions": None,
    "horizon_factor": None,
    "max_steps": None,
    "experts": (),
    "reward": "mean-jct-hours",
    "reward_weights": None,
    "credit": None,
    "observation": "flat",
}
"""Options that do not affect the decisions of a policy, with the values that it runs with."""

_OF_THE_RUN = ("workload", "cluster", "start", "warm_rule", "preset")
"""Jobs, nodes and beginning of a run; what follows from a preset is stored itself."""


def options_of_decisions(
    seat: str, given: Mapping[str, Any], *, are_complete: bool = False
) -> dict[str, Any]:
    """Return every option that decisions depend on, with the values that `given` leads to.

    Args:
        seat: of the environment.
        given: its options.
        are_complete: whether they have all that the seat's defaults were when they were stored.

    Raises:
        ConfigError: the options are not valid.
    """
    options = resolve_options(seat, given, are_complete=are_complete)
    left_out = {*_OF_THE_RUN, *WITHOUT_EFFECT}
    # An option without effect in a seat must have its default, which may be another one by then.
    left_out |= {name for name, own in ONLY_OF.items() if seat not in own}
    if options.semantics == "rank":
        left_out.add("no_op")
    found = {
        field.name: getattr(options, field.name)
        for field in dataclasses.fields(options)
        if field.name not in left_out
    }
    columns = resolve_columns(options.features, knowledge=options.knowledge)
    found["features"] = {table: list(getattr(columns, table)) for table in TABLES}
    # JSON has no infinity; an option with no limit has none by default.
    return {name: value for name, value in found.items() if value != math.inf}
