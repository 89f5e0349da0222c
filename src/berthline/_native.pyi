"""The native core (native/src/bindings.cpp).

Private: use `berthline.sim.native` and `berthline.traces.csv_native`.
"""

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
    plan: Callable[..., Sequence[tuple[int, int]]] | None,
    predicted: bool,
    first_prediction: float,
    max_priority: float,
    max_preemptions: int,
    placement_key: int,
    refusal_key: int,
    horizon: float,
    progress: Callable[[int], None] | None,
) -> dict[str, Any]: ...
def count_bytes(text: bytes, mark: str) -> int: ...

class ArrowColumn:
    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[object, object]: ...

class TextTable:
    def __init__(
        self,
        *,
        columns: list[tuple[int, str, str]],
        width: int,
        separator: str,
        quote: str,
        comment: str,
    ) -> None: ...
    def read(self, piece: bytes) -> bool: ...
    def take(self) -> list[list[ArrowColumn]]: ...
    def words(self, column: int) -> ArrowColumn: ...
