"""Starts: states in which episodes begin, and the jobs that come after them.

`StartedEpisodes` is a source of episodes that begin in the middle: with the snapshot that is given,
or inside a cluster that a rule has kept running, at times that are spread over the trace.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from berthline import _native
from berthline.env.episodes_source import (
    MOST_SLOTS,
    NOTHING,
    TraceWindows,
    numbers_of,
    state_something,
)
from berthline.errors import ConfigError
from berthline.model.schedule import (
    FINISH,
    PREEMPT,
)
from berthline.model.snapshot import Snapshot, forget_seat
from berthline.model.workload import WHOLE_GPU, Workload
from berthline.sim.inputs import stated_so_far
from berthline.sim.native import snapshot_arguments
from berthline.sim.outages import Outages, outages
from berthline.sim.snapshots.take import take_snapshot
from berthline.traces.generators.draws import Draws

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

    from berthline.env.episodes_source import GeneratedEpisodes, JobColumns, Keys
    from berthline.env.plan import Plan
    from berthline.sim.simulate import Result
    from berthline.sim.snapshots.run_in_parts import RunInParts

MOST_STARTS = 1024
"""States that episodes of one trace begin in, spread evenly over it."""

RUNS, RUN_JOBS = 64, 2048
"""Warm-up runs of a generator, each with one state at its end, and jobs of each run."""

_NAMED = (
    ("user", "user_names"),
    ("pool", "pool_names"),
    ("gpu_types", "gpu_type_sets"),
    ("ran_on", "ran_on_types"),
)


@dataclasses.dataclass(frozen=True, eq=False)
class Start:
    """A state in which episodes begin, and the jobs of the trace that come then.

    Attributes:
        snapshot: the state; the agent of the episode decides at once.
        first: the row of the first job to come, in the trace; of no use for generators.
    """

    snapshot: Snapshot
    first: int = 0

    @functools.cached_property
    def failures(self) -> Outages:
        """When nodes go down and come back: as in the run that the snapshot is from."""
        until = self.snapshot.memory.failures_until
        until = self.snapshot.now if math.isnan(until) else until
        return outages(self.snapshot.cluster, seed=self.snapshot.seed, until=until)

    @property
    def next_number(self) -> int:
        """The number of the first job to come, in streams of random numbers."""
        return self.snapshot.memory.jobs + self.snapshot.num_jobs

    @property
    def stated(self) -> npt.NDArray[np.float64]:
        """What stands for the estimates of the jobs of the snapshot."""
        memory = self.snapshot.memory
        if not math.isnan(memory.largest_estimate):
            return memory.stated
        return stated_so_far(self.snapshot.workload.estimate)

    def native(self, plan: Plan) -> _native.Start:
        """Return the state as the native core reads it."""
        workload, knowledge = self.snapshot.workload, plan.options.knowledge
        columns: dict[str, Any] = {
            name: getattr(workload, name)
            for name in ("submit", "run", "gpus", "gpu_milli", "cpus", "memory_mib", "priority")
        }
        columns |= {"deadline": workload.deadline, "user": workload.user}
        columns["estimate"] = {
            "estimate": self.stated,
            "none": np.full(len(workload), np.nan),
        }.get(knowledge, workload.run)
        table = {name: getattr(workload, name) for name, _ in _NAMED}
        columns |= plan.kinds.columns(plan.inputs, table)
        columns["draw"] = self.snapshot.number.astype(np.uint64)
        columns["next_draw"] = self.next_number
        columns["gpu_seconds"] = _gpu_seconds(self.snapshot)
        columns = {
            name: np.ascontiguousarray(column) if isinstance(column, np.ndarray) else column
            for name, column in columns.items()
        }
        return _native.Start(snapshot_arguments(self.snapshot), columns)


class StartedEpisodes:
    """Episodes that begin in the middle: a source of the jobs that come.

    Args:
        starts: where they begin.
        windows: the jobs that come, on the clock of the starts; None = `generator` draws them.
        generator: see `windows`.
    """

    def __init__(
        self,
        starts: Starts,
        *,
        windows: TraceWindows | None = None,
        generator: GeneratedEpisodes | None = None,
    ) -> None:
        source: TraceWindows | GeneratedEpisodes | None = generator if windows is None else windows
        assert source is not None
        self.starts, self.jobs = starts, source.jobs
        self._generator, self._windows = generator, windows
        # Names of the jobs of the states come first, then those that only jobs to come have.
        known = starts.names
        self._moved: dict[str, npt.NDArray[np.int32]] = {}
        for column, names in _NAMED:
            every = dict.fromkeys((*getattr(known, names), *getattr(source, names)))
            position = {name: i for i, name in enumerate(every)}
            moved = [position[name] for name in getattr(source, names)]
            if moved != list(range(len(moved))):
                self._moved[column] = np.array([*moved, -1], np.int32)
            setattr(self, names, tuple(every))
        self.user_names: tuple[str, ...]
        self.pool_names: tuple[str, ...]
        self.gpu_type_sets: tuple[str, ...]
        self.ran_on_types: tuple[str, ...]
        self.reference_type: str = known.reference_type
        if source.reference_type != known.reference_type:
            raise ConfigError(
                f"run times on {source.reference_type}",
                where="start",
                expected=f"jobs with run times on {known.reference_type}, as in the snapshot",
            )
        self.has_estimates = starts.has_estimates or source.has_estimates
        self.provenance: Mapping[str, Any] = source.provenance

    def set_load(self, low: float, high: float | None = None) -> None:
        """Set the load of the episodes drawn from now on; see `GeneratedEpisodes.set_load`."""
        if self._windows is not None:
            self._windows = copy.copy(self._windows)
            self._windows.set_load(low, high)
            return
        self._generator = copy.copy(self._generator)
        assert self._generator is not None
        self._generator.set_load(low, high)
        self.starts = self.starts.at_load(self._generator)

    def starts_of(self, keys: Keys) -> list[Start]:
        """Return where each of these (slot, episode) pairs begins."""
        return self.starts.of(keys)

    def draw(self, keys: Keys, unread: Container[str] = NOTHING) -> JobColumns:
        """Return the jobs that come in these episodes, one row each."""
        starts = self.starts_of(keys)
        if self._generator is None:
            assert self._windows is not None
            first = np.array([start.first for start in starts], np.int64)
            since = np.array([start.snapshot.now for start in starts])
            columns = self._windows.from_rows(first, keys, since)
            if self.has_estimates:
                state_something(columns)
        else:
            columns = dict(self._generator.draw(keys, unread))
            # The time to the first submission is that between the first two.
            submit = columns["submit"]
            gap = submit[:, 1:2] - submit[:, :1] if self.jobs > 1 else np.ones((len(keys), 1))
            now = np.array([[start.snapshot.now] for start in starts])
            later = now + (submit - submit[:, :1] + gap)
            columns["deadline"] = columns["deadline"] + (later[:, :1] - submit[:, :1])
            columns["submit"] = np.maximum(later, np.nextafter(now, np.inf))
        for name, moved in self._moved.items():
            columns[name] = moved[columns[name]]
        return columns

    def stated(self, keys: Keys, columns: JobColumns) -> npt.NDArray[np.float64]:
        """Return what stands for the estimates of the jobs that come."""
        largest = [[start.snapshot.memory.largest_estimate] for start in self.starts_of(keys)]
        stated = stated_so_far(np.hstack([np.array(largest), columns["estimate"]]))
        return np.ascontiguousarray(stated[:, 1:])


class Starts:
    """Where episodes begin.

    Attributes:
        names: a workload with the names that columns of the jobs of all states point to.
        has_estimates: whether any job of any state has an estimate.
        is_interrupted: whether jobs may have stopped before, or nodes failed.
    """

    names: Workload
    has_estimates: bool
    is_interrupted: bool

    def of(self, keys: Keys) -> list[Start]:
        """Return where each of these (slot, episode) pairs begins."""
        raise NotImplementedError

    def at_load(self, generator: GeneratedEpisodes) -> Starts:
        """Return the states for episodes of another load."""
        raise NotImplementedError


class OneStart(Starts):
    """All episodes begin in the state of a snapshot.

    Args:
        snapshot: the state.
        first: the row of the first job to come, if they are of a trace.
    """

    def __init__(self, snapshot: Snapshot, first: int = 0) -> None:
        self.start = Start(_begins_here(snapshot), first)
        self.names = snapshot.workload
        self.has_estimates = not (
            math.isnan(snapshot.memory.largest_estimate)
            and bool(np.isnan(snapshot.workload.estimate).all())
        )
        self.is_interrupted = snapshot.was_interrupted

    def of(self, keys: Keys) -> list[Start]:
        """Return the same state for all."""
        return [self.start] * len(keys)

    def at_load(self, generator: GeneratedEpisodes) -> Starts:  # noqa: ARG002
        """Return itself: the state is given."""
        return self


class TraceStarts(Starts):
    """States of a trace that a rule has run, each found when it is first needed.

    Args:
        trace: the jobs.
        run: the run of the rule on the trace.
        rows: the rows at which the jobs to come may begin, see `starting_rows`.
        seed: selects the random numbers.
    """

    def __init__(
        self, trace: Workload, run: RunInParts, rows: npt.NDArray[np.int64], seed: int = 0
    ) -> None:
        self._trace, self._run, self._seed, self._rows = trace, run, seed, rows
        self._found: dict[int, Start] = {}
        self.names = trace
        self.has_estimates = not np.isnan(trace.estimate).all()
        self.is_interrupted = True  # a state may be so if no other is

    def of(self, keys: Keys) -> list[Start]:
        """Return states at random times."""
        draws = Draws(self._seed, numbers_of(keys), jobs=1)
        place = draws.uniform_of_episodes("window", 1)[:, 0] * len(self._rows)
        return [self._start(int(self._rows[k])) for k in place.astype(np.int64)]

    def _start(self, row: int) -> Start:
        found = self._found.get(row)
        if found is None:
            snapshot = self._run.snapshot(float(self._trace.submit[row - 1]))
            found = Start(_begins_here(snapshot), row)
            self._found[row] = found
        return found


def starting_rows(trace: Workload, first: int, choices: int) -> npt.NDArray[np.int64]:
    """Return rows at which the jobs that come may begin, spread evenly; none = there is no past.

    Args:
        trace: the jobs.
        first: the first row at which they may begin.
        choices: how many rows there are to choose from.
    """
    rows = first + np.unique(np.linspace(0, choices - 1, MOST_STARTS).astype(np.int64))
    # The jobs of one instant come together.
    rows = np.unique(np.searchsorted(trace.submit, trace.submit[rows]))
    return np.asarray(rows[rows > 0])


class GeneratedStarts(Starts):
    """States at the end of warm-up runs of a generator, each found when it is first needed.

    Args:
        generator: of the jobs that come; it draws those of the runs too, with the same loads.
        run: simulates a workload with the rule.
        seed: selects the random numbers.
    """

    def __init__(
        self, generator: GeneratedEpisodes, run: Callable[[Workload], Result], seed: int = 0
    ) -> None:
        self._generator, self._run, self._seed = generator, run, seed
        self._source = generator.with_jobs(RUN_JOBS)
        # The first episodes of the last slot.
        self._keys = np.array([(MOST_SLOTS - 1, number) for number in range(RUNS)], np.int64)
        self._loads = self._source.loads(self._keys)
        self._found: dict[int, Start] = {}
        self.names = self._workload(0)
        self.has_estimates = self._source.has_estimates
        # Nodes may fail in other runs than the first, and rules may preempt later.
        self.is_interrupted = True

    def of(self, keys: Keys) -> list[Start]:
        """Return random states, of runs with about the load of the episodes."""
        if self._loads is None or self._loads.min() == self._loads.max():
            draws = Draws(self._seed, numbers_of(keys), jobs=1)
            place = draws.uniform_of_episodes("start", 1)[:, 0] * RUNS
            return [self._start(int(k)) for k in place]
        loads = self._generator.loads(keys)
        assert loads is not None
        nearest = np.abs(self._loads[None, :] - loads[:, None]).argmin(axis=1)
        return [self._start(int(k)) for k in nearest]

    def at_load(self, generator: GeneratedEpisodes) -> Starts:
        """Return the states for episodes of another load."""
        return GeneratedStarts(generator, self._run, self._seed)

    def _workload(self, number: int) -> Workload:
        source = self._source
        drawn = source.draw(self._keys[number : number + 1])
        return Workload.from_columns(
            **{name: table[0] for name, table in drawn.items()},
            user_names=source.user_names,
            pool_names=source.pool_names,
            gpu_type_sets=source.gpu_type_sets,
            ran_on_types=source.ran_on_types,
            reference_type=source.reference_type,
            name=f"warm-up {number}",
        )

    def _start(self, number: int) -> Start:
        found = self._found.get(number)
        if found is None:
            run = self._run(self._workload(number))
            snapshot = take_snapshot(run, float(run.workload.submit[-1]))
            found = self._found[number] = Start(_begins_here(snapshot))
        return found


def _begins_here(snapshot: Snapshot) -> Snapshot:
    """Return the state for an agent that decides at once, and remembers nothing."""
    memory = forget_seat(snapshot.memory)
    return dataclasses.replace(snapshot, decides=True, timer=math.inf, memory=memory)


def _gpu_seconds(snapshot: Snapshot) -> float:
    """Return the GPU-seconds that the jobs of a snapshot have used until now."""
    log, workload = snapshot.log, snapshot.workload
    gpus = workload.gpus * workload.gpu_milli.astype(np.float64) / WHOLE_GPU
    ends = (log.kind == FINISH) | (log.kind == PREEMPT)
    used = gpus[log.job] * (snapshot.now - log.time) if len(gpus) else np.zeros(len(log))
    return float(used[log.is_start].sum() - used[ends].sum())
