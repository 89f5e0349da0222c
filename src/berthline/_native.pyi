"""The native core (native/src/bindings.cpp). Private: use `berthline.sim.native`."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

compiler: str
operations: list[str]
words: list[str]
disciplines: list[str]
placements: list[str]

def version() -> str: ...
def run(
    *,
    submit: npt.NDArray[np.float64],
    run_time: npt.NDArray[np.float64],
    estimate: npt.NDArray[np.float64],
    gpus: npt.NDArray[np.int32],
    cpus: npt.NDArray[np.int32],
    memory_mib: npt.NDArray[np.int64],
    priority: npt.NDArray[np.float64],
    deadline: npt.NDArray[np.float64],
    user: npt.NDArray[np.int32],
    job_class: npt.NDArray[np.int32],
    random: npt.NDArray[np.float64],
    node_gpus: npt.NDArray[np.int32],
    node_cpus: npt.NDArray[np.int32],
    node_memory_mib: npt.NDArray[np.int64],
    may_use: npt.NDArray[np.uint8],
    class_reason: npt.NDArray[np.int32],
    order: Sequence[tuple[str, str | float]],
    order_changes: str,
    gate: Sequence[tuple[str, str | float]],
    gate_changes: str,
    discipline: str,
    placement: str,
    predicted: bool,
    first_prediction: float,
    max_priority: float,
    placement_key: int,
    horizon: float,
    progress: Callable[[int], None] | None,
) -> dict[str, Any]: ...
