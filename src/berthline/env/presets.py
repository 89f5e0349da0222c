"""Presets: the reference systems' environments as options of ours."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any


@dataclasses.dataclass(frozen=True)
class Preset:
    """The options of a reference system.

    Attributes:
        name: what the option `preset` calls it.
        seat: which environment it is for.
        system: whose environment it follows.
        options: keywords of Options.
        differences: what differs from the original, and why.
    """

    name: str
    seat: str
    system: str
    options: Mapping[str, Any]
    differences: tuple[str, ...]


PRESETS: dict[str, Preset] = {}
