"""The native core (native/src/bindings.cpp). Private: use `berthline.sim.native`."""

from collections.abc import Callable, Sequence
from typing import Any

compiler: str
operations: list[str]
words: list[str]
disciplines: list[str]
placements: list[str]
preemptions: list[str]

def version() -> str: ...
def run(
    *,
    jobs: dict[str, Any],
    cluster: dict[str, Any],
    conditions: dict[str, float],
    scheduler: dict[str, Any],
    quotas: dict[str, Any],
    outages: list[tuple[float, int, int]],
    typical: list[tuple[int, ...]],
    plan: Callable[..., Sequence[tuple[int, int]] | int] | None,
    predicted: bool,
    first_prediction: float,
    max_priority: float,
    max_preemptions: int,
    placement_key: int,
    refusal_key: int,
    horizon: float,
    progress: Callable[[int], None] | None,
) -> dict[str, Any]: ...
