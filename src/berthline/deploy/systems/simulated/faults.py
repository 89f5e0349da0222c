"""FaultyAdapter: an adapter that fails as real systems do, on demand and by a seed.

It stands between a controller and any adapter.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from berthline.deploy.systems.contract import (
    DONE,
    DOWN,
    NOT_KNOWN,
    REFUSED,
    UNKNOWN,
    AdapterError,
    Look,
    Outcome,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berthline.deploy.systems.contract import Abilities, Action, Adapter, GuardOrders


class Faults(msgspec.Struct, frozen=True, kw_only=True):
    """How often what goes wrong, as shares of calls, jobs or nodes.

    Attributes:
        silent: a look gets no answer, after `slow_seconds`.
        cut: a look is cut off: AdapterError.
        slow: a look is answered only after `slow_seconds`.
        slow_seconds: how long that takes.
        stale: a look is answered with an old one.
        torn: a look contradicts itself: a node has more in use than it has, a job is on a node that
            does not exist, or time runs backwards.
        vanish: a job is missing in a look; it is there again in the next.
        flap: a node is `unknown` or `down` in a look.
        refuse: an action is refused for no reason.
        lose: an action is accepted and never happens.
        unsure: an action happens, and its outcome is not known.
    """

    silent: float = 0.0
    cut: float = 0.0
    slow: float = 0.0
    slow_seconds: float = 20.0
    stale: float = 0.0
    torn: float = 0.0
    vanish: float = 0.0
    flap: float = 0.0
    refuse: float = 0.0
    lose: float = 0.0
    unsure: float = 0.0


EVERY_FAULT = Faults(
    silent=0.02,
    cut=0.02,
    slow=0.03,
    stale=0.03,
    torn=0.02,
    vanish=0.01,
    flap=0.01,
    refuse=0.05,
    lose=0.05,
    unsure=0.05,
)
_OLD_LOOKS = 6


class FaultyAdapter:
    """An adapter with faults.

    Args:
        adapter: the system.
        faults: how often what goes wrong.
        seed: of the draws.
    """

    def __init__(self, adapter: Adapter, faults: Faults, seed: int = 0) -> None:
        self._inner, self.faults = adapter, faults
        self._random = np.random.default_rng(seed)
        self._old: deque[Look] = deque(maxlen=_OLD_LOOKS)
        self.count: Counter[str] = Counter()
        self.is_on = True

    def _happens(self, name: str) -> bool:
        happens = self.is_on and bool(self._random.random() < getattr(self.faults, name))
        self.count[name] += happens
        return happens

    @property
    def name(self) -> str:
        """What is looked at."""
        return f"faulty {self._inner.name}"

    @property
    def abilities(self) -> Abilities:
        """What the system can do."""
        return self._inner.abilities

    @property
    def is_over(self) -> bool:
        """Whether every job has come and gone."""
        return self._inner.is_over

    def look(self) -> Look:
        """Return what the system says, or something else."""
        if self._happens("silent"):
            self._inner.wait(self.faults.slow_seconds)
            raise AdapterError("no answer in time")
        if self._happens("cut"):
            raise AdapterError("the answer is cut off")
        look = self._inner.look()
        self._old.append(look)
        if self._happens("slow"):
            self._inner.wait(self.faults.slow_seconds)
        if self._happens("stale"):
            return self._old[0]
        if self._happens("torn"):
            return self._torn(look)
        jobs = tuple(job for job in look.jobs if not self._happens("vanish"))
        nodes = tuple(
            msgspec.structs.replace(node, state=str(self._random.choice([UNKNOWN, DOWN])))
            if self._happens("flap")
            else node
            for node in look.nodes
        )
        return msgspec.structs.replace(look, jobs=jobs, nodes=nodes)

    def _torn(self, look: Look) -> Look:
        which = int(self._random.integers(3))
        if which == 0:
            return msgspec.structs.replace(look, time=look.time - 3600.0)
        if which == 1 or not any(job.nodes for job in look.jobs):
            nodes = list(look.nodes)
            nodes[0] = msgspec.structs.replace(nodes[0], gpus_in_use=nodes[0].gpus + 1)
            return msgspec.structs.replace(look, nodes=tuple(nodes))
        jobs = list(look.jobs)
        at = next(i for i, job in enumerate(jobs) if job.nodes)
        jobs[at] = msgspec.structs.replace(jobs[at], nodes={"nowhere": 1})
        return msgspec.structs.replace(look, jobs=tuple(jobs))

    def do(self, actions: Sequence[Action]) -> list[Outcome]:
        """Do these things, or some of them, and say so, or not."""
        return [self._do(action) for action in actions]

    def _do(self, action: Action) -> Outcome:
        if self._happens("refuse"):
            return Outcome(REFUSED, "not now")
        if self._happens("lose"):
            return Outcome(DONE)
        outcome = self._inner.do([action])[0]
        return Outcome(NOT_KNOWN, "no answer in time") if self._happens("unsure") else outcome

    def clock(self) -> float:
        """Return the time on the system's clock."""
        return self._inner.clock()

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self._inner.wait(seconds)

    def beat(self) -> None:
        """Tell the system that the controller lives."""
        self._inner.beat()

    def leave(self) -> None:
        """Let new jobs flow natively from now on."""
        self._inner.leave()

    def guard(self) -> GuardOrders | None:
        """Return how a guard lifts our holds."""
        return self._inner.guard()

    def close(self) -> None:
        """Close the adapter."""
        self._inner.close()
