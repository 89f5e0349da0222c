"""What a system must offer to be scheduled: records of what it says, actions, and their outcomes.

An adapter translates between one system (a cluster manager, one node, the simulator) and these
records. It decides nothing, remembers nothing that it cannot read again, and raises `AdapterError`
when it gets no answer. Everything else (numbers of jobs, rules, the journal) is above it and knows
no system.

All times are seconds on the system's own clock, which `Adapter.clock` reads: Unix time for a real
system.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from berthline.errors import BerthlineError

WAITING, HELD, RUNNING, FINISHED = "waiting", "held", "running", "finished"
JOB_STATES = (WAITING, HELD, RUNNING, FINISHED)

UP, CLOSED, DOWN, UNKNOWN = "up", "closed", "down", "unknown"
NODE_STATES = (UP, CLOSED, DOWN, UNKNOWN)

BY_US, BY_OTHERS = "us", "others"
"""Who holds a job."""


class AdapterError(BerthlineError):
    """A system gave no answer, or one that cannot be read. The cycle is left out."""

    exit_code = 1


class JobRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job as the system describes it.

    Attributes:
        id: the system's own id. Systems use ids again, so a job is its id and `submitted`.
        submitted: when it was first submitted. A system that changes the time at a requeue reports
            the time that it has; `restarts` then tells that it is the same job.
        state: one of JOB_STATES. `waiting`: may start now as far as the system is concerned.
            `held`: waits, and does not start by itself. `running`: holds GPUs, also while it starts
            or stops. `finished`: over, however it ended.
        ours: whether the controller may touch it: it is in the queue, partition or namespace that
            was given to us. Others are load on their nodes.
        gpus: GPUs that start together; None = the request cannot be read, so the job is load.
        gpu_milli: thousandths of each GPU: 1000, or less for a job on part of one GPU.
        gpu_types: the GPU types that it may use, such as `A100|V100`; empty = any.
        pool: the pool (partition) whose nodes it may use; empty = any.
        cpus: CPU cores of the whole job; 0 = no limit.
        memory_mib: memory of the whole job; 0 = no limit.
        estimate: the run time that the user stated, in seconds; None = none.
        priority: larger is more important.
        deadline: by when it should be finished; None = none.
        user: who submitted it.
        name: what the user called it.
        held_by: of a held job: BY_US if the hold carries our mark, else BY_OTHERS. Only holds that
            are certainly ours may be reported as ours.
        is_eligible: nothing else keeps it from starting: no dependency, no later begin time.
        started: when it last started; None = it does not run.
        nodes: GPUs that it holds on each node, by name. A node where it holds none (a job without
            GPUs) has 0.
        gpu_ids: the numbers of these GPUs on each node, if the system tells.
        finished: when it ended; None = it did not, or the system does not tell.
        exit_code: how it ended; None = not told.
        restarts: how often it has started again after a requeue or a preemption.
        words: its state in the system's own words, for people.
        reason: why it waits, or how it ended, in the system's own words.
    """

    id: str
    submitted: float
    state: str
    ours: bool
    gpus: int | None
    gpu_milli: int = 1000
    gpu_types: str = ""
    pool: str = ""
    cpus: int = 0
    memory_mib: int = 0
    estimate: float | None = None
    priority: float = 0.0
    deadline: float | None = None
    user: str = ""
    name: str = ""
    held_by: str = ""
    is_eligible: bool = True
    started: float | None = None
    nodes: Mapping[str, int] = {}
    gpu_ids: Mapping[str, tuple[int, ...]] = {}
    finished: float | None = None
    exit_code: int | None = None
    restarts: int = 0
    words: str = ""
    reason: str = ""


class NodeRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A node as the system describes it.

    Attributes:
        name: its name.
        gpus: GPUs that it has.
        state: one of NODE_STATES. Only an `up` node takes starts. `closed`: drained, draining,
            reserved or in maintenance; its jobs go on. `unknown`: the system does not know.
        gpus_in_use: GPUs that cannot be given away, for whatever reason; None = the system does not
            say, and what its jobs hold is in use.
        gpu_type: the type of its GPUs; an unknown name is kept.
        cpus: CPU cores; 0 = no limit.
        memory_mib: memory; 0 = no limit.
        pool: the pool (partition) that owns it; empty = none.
        words: its state in the system's own words.
    """

    name: str
    gpus: int
    state: str
    gpus_in_use: int | None = None
    gpu_type: str = "recorded"
    cpus: int = 0
    memory_mib: int = 0
    pool: str = ""
    words: str = ""


class QuotaRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A limit on the GPUs in use, of a pool, a user or a GPU type; empty = of all of them."""

    gpus: int
    pool: str = ""
    user: str = ""
    gpu_type: str = ""


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """What a system says of itself at one instant.

    Attributes:
        time: when the answer was true, on the system's clock: of the oldest part of it.
        jobs: every job that waits or runs, also those that are not ours; finished ones as long as
            the system lists them.
        nodes: all nodes.
        quotas: limits that the system enforces, if it tells.
    """

    time: float
    jobs: tuple[JobRecord, ...]
    nodes: tuple[NodeRecord, ...]
    quotas: tuple[QuotaRecord, ...] = ()


class ActionKind(enum.StrEnum):
    """What can be done to a job."""

    START = "start"
    """Start it on these nodes and no others, lifting our hold."""
    PREEMPT = "preempt"
    """Stop it and put it back into the queue, held by us."""
    HOLD = "hold"
    """Keep it from starting by itself, with our mark; also takes back a start that has not
    happened."""
    RELEASE = "release"
    """Lift our hold and give the job back to the system; takes back its rank and its nodes too."""
    RANK = "rank"
    """Say where it should stand in the system's own queue: a hint, which a release takes back."""


class Action(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing to do to one job.

    Attributes:
        kind: what.
        job: the system's id of the job.
        submitted: as in the record of the job, by which an adapter can tell that an id was reused.
        nodes: of a start: the GPUs to take on each node, by name.
        slots: of a start on part of a GPU: the number of the shared GPU on its node.
        rank: of a rank: its place in the order, 0 = first.
        of: how many jobs are ranked.
    """

    kind: ActionKind
    job: str
    submitted: float
    nodes: Mapping[str, int] = {}
    slots: tuple[int, ...] = ()
    rank: int = 0
    of: int = 0


DONE, REFUSED, NOT_KNOWN = "done", "refused", "unknown"


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of an action.

    Attributes:
        status: DONE: the system accepted it. REFUSED: it certainly did not happen. NOT_KNOWN:
            neither is certain: no answer, or a cut one. The next look tells.
        words: the system's own words.
    """

    status: str
    words: str = ""


class Abilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a system can do, and how fast.

    Attributes:
        places: a start names its nodes, and the system follows.
        holds: jobs can be held with a mark of ours, and released.
        ranks: the system's own queue takes hints.
        preempts: a running job can be put back into the queue.
        spans_nodes: a job may run on several nodes.
        shares_gpus: jobs may run on part of a GPU.
        checks_capacity: the system refuses a start that does not fit. We check in any case.
        tick: seconds between an action and its effect, at most, if nothing is wrong.
        requeue_delay: seconds that a preempted job waits before it can start again.
        identity: what identifies a job, in words.
    """

    places: bool = False
    holds: bool = False
    ranks: bool = False
    preempts: bool = False
    spans_nodes: bool = True
    shares_gpus: bool = False
    checks_capacity: bool = False
    tick: float = 0.0
    requeue_delay: float = 0.0
    identity: str = "the id and the first submission"


class GuardOrders(msgspec.Struct, frozen=True, kw_only=True):
    """How a process that has nothing but Python's standard library lifts our holds.

    Attributes:
        module: a module of Berthline that imports nothing but the standard library, with a function
            `lift(arguments) -> tuple[int, int]`: lift every hold of ours and take back every start
            that has not happened; return how many were lifted and how many are left. It must also
            leave the system so that new submissions flow natively.
        arguments: for that function, as plain JSON. No secrets: they are written to a file.
    """

    module: str
    arguments: Mapping[str, Any]


class Adapter(Protocol):
    """One system behind this contract."""

    @property
    def name(self) -> str:
        """What is looked at, for people: `simulated philly`, `slurm at login1`."""

    @property
    def abilities(self) -> Abilities:
        """What it can do."""

    @property
    def is_over(self) -> bool:
        """Whether nothing will ever happen again: a trace is played. False for a real system."""

    def look(self) -> Look:
        """Return what the system says now.

        Raises:
            AdapterError: it gave no answer in time, or one that cannot be read.
        """

    def do(self, actions: Sequence[Action]) -> list[Outcome]:
        """Do these things in order and return one outcome for each.

        It does not raise for what the system says or fails to say: that is an outcome. An action
        on a job whose `submitted` differs from the system's is refused. Doing an action twice has
        the effect of doing it once.
        """

    def clock(self) -> float:
        """Return the time on the clock of looks; cheap."""

    def wait(self, seconds: float) -> None:
        """Let so much time pass on that clock."""

    def beat(self) -> None:
        """Tell the system that the controller lives, if the system itself keeps watch.

        Called at each heartbeat, from another thread than the other methods.
        """

    def leave(self) -> None:
        """Tell the system that the controller goes: new submissions flow natively from now on.

        Called before holds are lifted; holds that are there stay.
        """

    def guard(self) -> GuardOrders | None:
        """Return how a guard lifts our holds; None = this system has no holds."""

    def close(self) -> None:
        """Give back connections. Holds stay as they are."""
