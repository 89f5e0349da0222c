"""The native core (native/src/bindings*.cpp). Private: use `berthline.sim.native`."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
def fill_uniform(key: int, episodes: NDArray[np.int64], out: NDArray[np.float64]) -> None: ...
def normal_quantiles(probability: NDArray[np.float64], out: NDArray[np.float64]) -> None: ...
def exponential_quantiles(u: NDArray[np.float64], out: NDArray[np.float64]) -> None: ...
def exponentials(x: NDArray[np.float64], out: NDArray[np.float64]) -> None: ...
def count_limits(
    values: NDArray[np.float64], limits: NDArray[np.float64], out: NDArray[np.intp]
) -> None: ...
def running_sums(table: NDArray[np.float64], factors: NDArray[np.float64]) -> None: ...

class PointLists:
    def __init__(
        self,
        points: NDArray[np.float64],
        begin: NDArray[np.int64],
        heights: NDArray[np.float64] | None,
    ) -> None: ...
    def reached(
        self, values: NDArray[np.float64], which: NDArray[np.intp] | None, out: NDArray[np.intp]
    ) -> None: ...
    def at(
        self, x: NDArray[np.float64], which: NDArray[np.intp] | None, out: NDArray[np.float64]
    ) -> None: ...

def series_starts(length: NDArray[np.intp], out: NDArray[np.intp]) -> None: ...
def repeat_origins(
    user: NDArray[np.intp],
    chance: NDArray[np.float64],
    likely: float,
    num_users: int,
    out: NDArray[np.intp],
) -> None: ...
def bend_to_levels(
    *,
    times: NDArray[np.float64],
    heavy: NDArray[np.float64],
    profile: NDArray[np.float64],
    start: int,
    day_rate: NDArray[np.float64],
    day_work: NDArray[np.float64],
    week_rate: NDArray[np.float64],
    week_work: NDArray[np.float64],
    first_week: NDArray[np.int64],
    long_episode: float,
    spread: float,
) -> None: ...
