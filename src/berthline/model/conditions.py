"""Conditions: how jobs run on a cluster, besides the GPUs it has.

Speed, checkpoints, failures, sleeping nodes and the delays of live systems, as one flat record of
numbers. A cluster file gives them in a table `[conditions]`, a run may replace some of them
(`--condition restart=30`). The defaults are an ideal cluster: nothing fails and nothing is delayed.
Only GPU types differ in speed, and a preempted job loses the work since its last checkpoint.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from berthline.errors import ConfigError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclasses.dataclass(frozen=True, kw_only=True)
class Conditions:
    """How jobs run on a cluster. Times are seconds.

    Attributes:
        gpu_speeds: 1 = GPU types differ in speed; 0 = all are as fast as the reference type.
        max_nodes: a job that needs more nodes than this on an empty cluster is rejected.
        across_nodes: factor on the speed of a gang on more than one node.
        across_racks: further factor on the speed of a gang in more than one rack.
        interference: a job that shares its GPU with n others runs at 1 / (1 + interference * n).
        checkpoint: progress (seconds of run time) between two saved states of a job; 0 = always
            saved, infinity = never.
        restart: delay between a start after a preemption and further progress.
        start_delay: delay between every start and the first progress.
        requeue_delay: how long a preempted job stays out of the queue.
        tick: decisions are made at multiples of this time only; 0 = at every event.
        refusal_rate: share of starts that the system refuses.
        retry_delay: how long a job whose start was refused stays out of the queue.
        sleep_after: an idle node sleeps after this time; infinity = never.
        wake_delay: delay between a start on a sleeping node and the first progress.
        sleep_w: power of a sleeping node, in watts.
        mtbf: mean time between failures of a node; infinity = none.
        mttr: mean time to repair of a node.
        rack_mtbf: mean time between failures of a whole rack; infinity = none.
        rack_mttr: mean time to repair of a rack.
    """

    gpu_speeds: float = 1.0
    max_nodes: float = math.inf
    across_nodes: float = 1.0
    across_racks: float = 1.0
    interference: float = 0.0
    checkpoint: float = 1800.0
    restart: float = 60.0
    start_delay: float = 0.0
    requeue_delay: float = 0.0
    tick: float = 0.0
    refusal_rate: float = 0.0
    retry_delay: float = 60.0
    sleep_after: float = math.inf
    wake_delay: float = 0.0
    sleep_w: float = 0.0
    mtbf: float = math.inf
    mttr: float = 3600.0
    rack_mtbf: float = math.inf
    rack_mttr: float = 3600.0

    def __post_init__(self) -> None:
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if not low <= value <= high:
                raise ConfigError(
                    f"condition {name} is {value:g}",
                    expected=f"{low:g} to {high:g}"
                    if high <= 1
                    else (f"{low:g} or more" if value < low else f"at most {high:g}"),
                )

        if math.isfinite(self.max_nodes) and self.max_nodes != int(self.max_nodes):
            raise ConfigError(
                f"condition max_nodes is {self.max_nodes:g}",
                expected="a whole number, or infinity",
            )
        if 0 < self.tick < MIN_TICK:
            raise ConfigError(
                f"condition tick is {self.tick:g}", expected=f"0, or {MIN_TICK:g} or more"
            )

    def replace(self, changes: Mapping[str, float]) -> Conditions:
        """Return these conditions with some of them changed.

        Raises:
            ConfigError: a name is unknown, or a value is outside its range.
        """
        for name in changes:
            if name not in _RANGES:
                what, expected, hint = unknown_name("condition", name, _RANGES)
                raise ConfigError(what, expected=expected, hint=hint)
        return dataclasses.replace(self, **{key: float(value) for key, value in changes.items()})

    def changed(self) -> dict[str, float]:
        """Return the conditions that are not the defaults."""
        return {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if getattr(self, field.name) != field.default
        }


def json_conditions(conditions: Mapping[str, float]) -> dict[str, float | str]:
    """Return conditions for JSON, which has no infinity: the text `inf` replaces it."""
    return {name: value if math.isfinite(value) else "inf" for name, value in conditions.items()}


MIN_TICK = 0.001
"""Seconds. A finer tick makes a run slow without changing it."""
_SMALLEST = 1e-6
_LARGEST = 1e9
_RANGES: dict[str, tuple[float, float]] = {
    "gpu_speeds": (0, 1),
    "max_nodes": (1, math.inf),
    "across_nodes": (_SMALLEST, 1),
    "across_racks": (_SMALLEST, 1),
    "interference": (0, _LARGEST),
    "checkpoint": (0, math.inf),
    "restart": (0, _LARGEST),
    "start_delay": (0, _LARGEST),
    "requeue_delay": (0, _LARGEST),
    "tick": (0, _LARGEST),
    "refusal_rate": (0, 0.99),
    "retry_delay": (_SMALLEST, _LARGEST),
    "sleep_after": (0, math.inf),
    "wake_delay": (0, _LARGEST),
    "sleep_w": (0, _LARGEST),
    "mtbf": (1, math.inf),
    "mttr": (_SMALLEST, _LARGEST),
    "rack_mtbf": (1, math.inf),
    "rack_mttr": (_SMALLEST, _LARGEST),
}

MEANINGS: dict[str, str] = {}
"""Name to meaning, from the docstring of the class, for help texts and docs."""


def _read_meanings() -> None:
    text = (Conditions.__doc__ or "").partition("Attributes:")[2]
    name = ""
    for line in text.splitlines():
        head, colon, rest = line.strip().partition(": ")
        if colon and head in _RANGES:
            name = head
            MEANINGS[name] = rest
        elif name and line.strip():
            MEANINGS[name] += " " + line.strip()


_read_meanings()
