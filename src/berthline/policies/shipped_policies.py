"""Shipped policies: schedulers that were tuned on the simulator, each described by a card.

A card is a file `shipped/NAME.json`. Its name can be used wherever a scheduler can. The scheduler
in the card is plain text and runs natively, without a network. The meaning of a name never changes:
a better policy gets another name.
"""

from __future__ import annotations

import functools
from pathlib import Path

import msgspec

from berthline.errors import PolicyError

FOLDER = Path(__file__).parent / "shipped"


class Gain(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A policy's effect on one metric on held-out windows, against one rival.

    Attributes:
        ratio: to the rival's value; below 1 is better.
        low: lower end of the 95 % interval.
        high: upper end.
    """

    ratio: float
    low: float
    high: float


class Measured(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A policy's results on one workload against one rival.

    Attributes:
        workload: the jobs, the cluster and the load.
        windows: how many were measured; paired.
        rival: the scheduler it is compared with.
        role: how the rival was chosen.
        slowdown: mean bounded slowdown.
        jct: mean JCT.
        p99: 99th percentile of JCT.
        makespan: when the last job of a window ended.
    """

    workload: str
    windows: int
    rival: str
    role: str
    slowdown: Gain
    jct: Gain
    p99: Gain
    makespan: Gain

    @property
    def is_loss(self) -> bool:
        """Whether slowdown or mean JCT is significantly worse."""
        return self.slowdown.low > 1.0 or self.jct.low > 1.0


class ContinuousRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A policy in one continuous run over a whole log, against the best heuristic there.

    Attributes:
        log: its name.
        jobs: number of jobs.
        estimates: `users'`, or `modelled` where the log has none.
        rival: the heuristic with the lowest mean JCT on this log, in hindsight.
        jct: mean JCT, as a ratio to the rival's.
        p99: the same for the 99th percentile of JCT.
        slowdown: the same for mean bounded slowdown.
        longest_wait: in seconds.
        rival_longest_wait: the rival's.
        left_behind: number of jobs left behind (evaluate/metrics/starvation.py).
    """

    log: str
    jobs: int
    estimates: str
    rival: str
    jct: float
    p99: float
    slowdown: float
    longest_wait: float
    rival_longest_wait: float
    left_behind: int


class Card(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A shipped policy.

    Attributes:
        name: its name.
        meaning: what it does, in a sentence.
        scheduler: what runs.
        parameters: the numbers in it that were tuned, by their names in the search space.
        knowledge: what it knew about run times in training.
        trained_on: the jobs, the cluster and the loads.
        training: how it was found: strategy, goal, candidates, windows, seeds and which was kept.
        curve: of the kept seed, loss on VAL by number of candidates.
        command: the command that trains it again.
        continuous: its results in continuous runs over whole logs, the worst first: what to expect
            on a cluster.
        measured: its results on held-out windows, losses included.
        loses: where it should not be used.
    """

    name: str
    meaning: str
    scheduler: str
    parameters: dict[str, float]
    knowledge: str
    trained_on: str
    training: dict[str, int | float | str | list[int]]
    curve: list[tuple[int, float]]
    command: str
    continuous: list[ContinuousRun] = []
    measured: list[Measured]
    loses: list[str]


@functools.cache
def shipped_names() -> tuple[str, ...]:
    """Return the names of the shipped policies."""
    return tuple(sorted(file.stem for file in FOLDER.glob("*.json")))


@functools.cache
def card_of(name: str) -> Card:
    """Return the card of a shipped policy.

    Raises:
        PolicyError: the card cannot be read.
    """
    file = FOLDER / f"{name}.json"
    try:
        return msgspec.json.decode(file.read_bytes(), type=Card)
    except (OSError, msgspec.MsgspecError) as error:
        raise PolicyError(f"cannot read the card of a policy: {error}", where=str(file)) from None
