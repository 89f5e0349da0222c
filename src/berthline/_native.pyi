"""The native core (native/src/bindings*.cpp). Private: use `berthline.sim.native`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

compiler: str
operations: list[str]
words: list[str]
disciplines: list[str]
placements: list[str]
preemptions: list[str]
seats: list[str]
window_policies: list[str]
look_aheads: list[str]
occasions: list[str]
scores: list[str]
observation_limit: float

def version() -> str: ...
def run(inputs: dict[str, Any], progress: Callable[[int], None] | None) -> dict[str, Any]: ...

class Batch:
    num_lacking: int
    num_stuck: int
    observation_size: int
    num_actions: int
    num_terms: int

    def __init__(
        self,
        *,
        inputs: dict[str, Any],
        seat: dict[str, Any],
        observation: dict[str, Any],
        rewards: dict[str, Any],
        num_envs: int,
        num_threads: int,
        same_step: bool,
    ) -> None: ...
    def set_buffers(self, **buffers: npt.NDArray[Any]) -> None: ...
    def write_to(self, observation: npt.NDArray[Any], mask: npt.NDArray[Any]) -> None: ...
    def supply(
        self,
        envs: npt.NDArray[np.int64],
        columns: dict[str, Any],
        keys: npt.NDArray[np.uint64],
        outages: list[list[tuple[float, int, int]]] | None,
    ) -> None: ...
    def reset(self, env: int) -> None: ...
    def step(self, actions: npt.NDArray[np.int64]) -> None: ...
    def step_single(self, action: int, node: int) -> None: ...
    def begin_stuck(self) -> None: ...
    def lacking(self) -> list[int]: ...
    def log(self, env: int) -> dict[str, Any]: ...
    def question(self, env: int) -> dict[str, Any]: ...
