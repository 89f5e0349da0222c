"""What a journal keeps of a cycle."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from berthline.deploy.systems.contract import Action, Outcome

_Record = TypeVar("_Record", bound=msgspec.Struct)

SHADOW, ADVISE, ACT = "shadow", "advise", "act"
MODES = {
    SHADOW: "decides, touches nothing",
    ADVISE: "gives reversible hints about the order",
    ACT: "starts and preempts jobs",
}


class DecidedRow(msgspec.Struct, frozen=True, array_like=True):
    """A row of a decision.

    Attributes:
        kind: `start`, `resume`, `preempt` or `reject`.
        job: the job's number; -1 = load.
        nodes: of a start: GPUs on each node, by name.
        reason: of a preemption or rejection.
    """

    kind: str
    job: int
    nodes: Mapping[str, int]
    reason: str = ""


class RuleHit(msgspec.Struct, frozen=True, array_like=True):
    """A rule that changed what was decided.

    Attributes:
        rule: its name in RULES.
        job: the number of the job that it was about; -1 = none.
        words: what it found.
    """

    rule: str
    job: int
    words: str


class Held(msgspec.Struct, frozen=True, array_like=True):
    """A start that was asked for and not seen yet: it holds its GPUs in the snapshot."""

    job: int
    time: float
    nodes: Mapping[str, int]


class Numbered(msgspec.Struct, frozen=True, array_like=True):
    """An action, and the number of its job."""

    job: int
    action: Action
    why: str = ""
    """`decided`, or why it is done without a decision: `repeat`, `withdraw`, `hold`, `stop`."""


class SeenStart(msgspec.Struct, frozen=True, array_like=True):
    """A start or an end that a look showed for the first time.

    Attributes:
        job: the job's number.
        time: when, as the system says.
        nodes: of a start.
        kind: `start`, `finish`, `stop` (back in the queue) or `vanish` (no longer there).
    """

    kind: str
    job: int
    time: float
    nodes: Mapping[str, int] = {}


class CycleRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One cycle.

    Attributes:
        number: counts cycles of the journal from 1.
        time: on the system's clock.
        wall: Unix time.
        mode: the mode in this cycle.
        scheduler: the text of the scheduler that was to decide.
        policy: the hash of its policy; empty = a rule.
        knowledge: what it knew.
        fault: why nothing was decided; empty = something was.
        held: starts that were asked for before and not seen yet.
        snapshot: the hash of the snapshot that was decided on; empty = none was.
        decided_by: the text of the scheduler that decided: the scheduler or the fallback.
        fallback: why the fallback decided; empty = it did not.
        decision: the rows of the decision.
        rules: the rules that changed something.
        actions: what is to be done.
        seen: starts and ends that this look showed first.
        native: of starts in `seen`, how many jobs the scheduler would have started by now too.
        seconds: how long each step took.
    """

    number: int
    time: float
    wall: float
    mode: str
    scheduler: str
    policy: str = ""
    knowledge: str = "estimate"
    fault: str = ""
    held: tuple[Held, ...] = ()
    snapshot: str = ""
    decided_by: str = ""
    fallback: str = ""
    decision: tuple[DecidedRow, ...] = ()
    rules: tuple[RuleHit, ...] = ()
    actions: tuple[Numbered, ...] = ()
    seen: tuple[SeenStart, ...] = ()
    seconds: dict[str, float] = {}


class Outcomes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of the actions of a cycle.

    Attributes:
        cycle: its number.
        outcomes: one for each of its actions.
        seconds: how long it took.
    """

    cycle: int
    outcomes: tuple[Outcome, ...]
    seconds: float = 0.0


class Remark(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something outside cycles: a start, a stop, an override, a change of mode.

    Attributes:
        wall: Unix time.
        kind: which of these.
        words: for people.
        facts: for programs.
    """

    wall: float
    kind: str
    words: str
    facts: dict[str, Any] = {}


_encode = msgspec.msgpack.Encoder().encode


def packed_record(record: msgspec.Struct) -> bytes:
    """Return a record as bytes."""
    return zlib.compress(_encode(record), 6)


def unpacked_record(data: bytes, kind: type[_Record]) -> _Record:
    """Return the record of these bytes.

    Raises:
        ValueError: they are damaged.
    """
    try:
        return msgspec.msgpack.decode(zlib.decompress(data), type=kind)
    except (zlib.error, msgspec.MsgspecError) as error:
        raise ValueError(str(error)) from None
