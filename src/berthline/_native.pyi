"""The native core (native/src/python/).

Private: use `berthline.sim.native`, `berthline.env.native_envs`, `berthline.deploy.native_policy`
and `berthline.traces.reading.csv.csv_native`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

compiler: str
operations: list[str]
words: list[str]
disciplines: list[str]
placements: list[str]
preemptions: list[str]
seats: list[str]
window_policies: list[str]
semantics: list[str]
no_ops: list[str]
look_aheads: list[str]
occasions: list[str]
scores: list[str]
observation_limit: float

def version() -> str: ...
def run(
    inputs: dict[str, Any], progress: Callable[[int], None] | None, time_decisions: bool = False
) -> dict[str, Any]: ...
def resume(
    inputs: dict[str, Any], snapshot: dict[str, Any], progress: Callable[[int], None] | None
) -> dict[str, Any]: ...
def decide(inputs: dict[str, Any], snapshot: dict[str, Any]) -> dict[str, Any]: ...
def remember(inputs: dict[str, Any], snapshot: dict[str, Any]) -> dict[str, Any]: ...

class AgentRun:
    has_question: bool
    observation: NDArray[np.float32]
    mask: NDArray[np.bool_]
    log_horizon: float

    def __init__(
        self,
        *,
        inputs: dict[str, Any],
        seat: dict[str, Any],
        observation: dict[str, Any],
        rewards: dict[str, Any],
        snapshot: dict[str, Any] | None,
        expects_jobs: bool,
    ) -> None: ...
    def act(self, action: int) -> None: ...
    def play(
        self,
        network: Network,
        most: int,
        progress: Callable[[int], None] | None,
        seconds: list[float] | None,
    ) -> int: ...
    def log(self) -> dict[str, Any]: ...
    def memory(self) -> dict[str, Any]: ...
    def question(self) -> dict[str, Any]: ...

class Start:
    def __init__(self, snapshot: dict[str, Any], columns: dict[str, Any]) -> None: ...

class Batch:
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
    def set_buffers(self, **buffers: NDArray[Any]) -> None: ...
    def supply(
        self,
        envs: NDArray[np.int64],
        columns: dict[str, Any],
        first: int,
        keys: NDArray[np.uint64],
        outages: list[list[tuple[float, int, bool]]] | None,
        starts: list[tuple[Start, NDArray[np.float64] | None]] | None,
    ) -> None: ...
    def reset(self, envs: NDArray[np.int64]) -> None: ...
    def copy(self, envs: NDArray[np.int64], other: Batch, from_: NDArray[np.int64]) -> None: ...
    def step(self, actions: NDArray[np.int64]) -> tuple[bool, bool, bool]: ...
    def refuse_out_of_range(self, choices: int, nodes: int) -> None: ...
    def step_single(self, action: int, node: int) -> tuple[float, bool, bool, bool, float]: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *error: object) -> None: ...
    def close(self) -> None: ...
    def begin_stuck(self) -> None: ...
    def ended(self) -> list[int]: ...
    def lacking(self) -> list[int]: ...
    def log(self, env: int) -> dict[str, Any]: ...
    def question(self, env: int) -> dict[str, Any]: ...
    def advise(self, env: int, expert: int) -> tuple[int, int]: ...

class RowCopies:
    def __init__(self, tables: dict[str, NDArray[Any]]) -> None: ...
    def row(self, number: int) -> dict[str, NDArray[Any]]: ...
    def values(self, number: int) -> tuple[NDArray[Any], ...]: ...

class Futures:
    def __init__(self, inputs: dict[str, Any], snapshot: dict[str, Any]) -> None: ...
    def run(
        self,
        rows: NDArray[np.int32],
        submit: NDArray[np.float64],
        run: NDArray[np.float64],
        draw: NDArray[np.uint64],
        random: NDArray[np.float64],
        estimate_is_run: bool,
        horizon: float,
        placement_key: int,
        refusal_key: int,
        watched: NDArray[np.int32],
        starts: NDArray[np.float64],
    ) -> str: ...
    def stop(self) -> None: ...

class Network:
    def __init__(self, parts: dict[str, Any]) -> None: ...
    def score(self, observation: NDArray[np.float32], scores: NDArray[np.float32]) -> None: ...
    def choose(self, observation: NDArray[np.float32], mask: NDArray[np.bool_]) -> int: ...

def fill_uniform(key: int, episodes: NDArray[np.int64], out: NDArray[np.float64]) -> None: ...
def normal_quantiles(probability: NDArray[np.float64], out: NDArray[np.float64]) -> None: ...
def lognormal_quantiles(
    probability: NDArray[np.float64], median: float, sigma: float, out: NDArray[np.float64]
) -> None: ...
def exponential_quantiles(u: NDArray[np.float64], out: NDArray[np.float64]) -> None: ...
def exponentials(x: NDArray[np.float64], out: NDArray[np.float64]) -> None: ...
def count_limits(
    values: NDArray[np.float64], limits: NDArray[np.float64], out: NDArray[np.intp]
) -> None: ...
def choose(
    values: NDArray[np.float64],
    limits: NDArray[np.float64],
    choices: NDArray[np.int32],
    out: NDArray[np.int32],
) -> None: ...
def round_within(table: NDArray[np.float64], low: float, high: float) -> None: ...
def running_sums(table: NDArray[np.float64], factors: NDArray[np.float64]) -> None: ...
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
