"""Episode sources: the jobs of every episode of the environments in a batch.

A batch has slots, and each slot runs one episode after another. The k-th episode of slot i is a
function of (seed, i, k). It does not depend on the number of slots, the order in which they finish,
or what is drawn together. `draw` takes such pairs and returns every column of a Workload as a table
with one row per pair.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from berthline.errors import ConfigError
from berthline.model.gpu_types import REFERENCE_TYPE
from berthline.model.workload import WHOLE_GPU, Workload
from berthline.random_streams import bits_at, stream_key
from berthline.sim.inputs import FIRST_PREDICTION
from berthline.traces.cluster_argument import resolve_cluster
from berthline.traces.generators.dials import JOBS, LOAD, SEED
from berthline.traces.generators.draws import Draws
from berthline.traces.split import FRACTIONS, PARTS, split_by_time
from berthline.traces.workload_argument import resolve_generator

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from berthline.model.cluster import Cluster
    from berthline.text_or_path import TextOrPath
    from berthline.traces.generators.draws import Numbers

Keys = npt.NDArray[np.int64]
"""(n, 2): slot, and number of the episode in that slot; both count from 0."""

JobColumns = dict[str, npt.NDArray[Any]]
"""The columns of a Workload, each (n, jobs) with contiguous rows. Do not write to them: rows may
share memory, and so may columns. The dictionary belongs to the caller."""

NOTHING: frozenset[str] = frozenset()

MOST_SLOTS, MOST_EPISODES = 2**52, 2**32
"""Limits of a pair. Slots are exact as float64: some readers of JSON keep no more."""

NEXT_ENVIRONMENT = 2**31
"""How much larger the seed of each environment of a batch is than that of the one before."""

_DEFAULTS: dict[str, tuple[float, type[np.generic]]] = {
    "submit": (0.0, np.float64),
    "run": (1.0, np.float64),
    "estimate": (math.nan, np.float64),
    "gpus": (1, np.int32),
    "gpu_milli": (WHOLE_GPU, np.int32),
    "cpus": (0, np.int32),
    "memory_mib": (0, np.int64),
    "priority": (0.0, np.float64),
    "deadline": (math.inf, np.float64),
    "user": (0, np.int32),
    "pool": (-1, np.int32),
    "gpu_types": (-1, np.int32),
    "ran_on": (-1, np.int32),
}
"""Every column, with its default value and its type."""


class EpisodeSource(Protocol):
    """Where a batch of environments gets its jobs from.

    Attributes:
        jobs: jobs in every episode.
        user_names: names that `user` points to.
        pool_names: names that `pool` points to.
        gpu_type_sets: sets of GPU types that `gpu_types` points to.
        ran_on_types: GPU types that `ran_on` points to.
        reference_type: the GPU type that run times are on.
        has_estimates: whether any job of any episode may have an estimate.
        provenance: where the jobs come from; for windows, the provenance of the whole trace.
    """

    jobs: int
    user_names: tuple[str, ...]
    pool_names: tuple[str, ...]
    gpu_type_sets: tuple[str, ...]
    ran_on_types: tuple[str, ...]
    reference_type: str
    has_estimates: bool
    provenance: Mapping[str, Any]

    def draw(self, keys: Keys, unread: Container[str] = NOTHING) -> JobColumns:
        """Return the episodes of these (slot, episode) pairs, one row each.

        Args:
            keys: the pairs.
            unread: columns that will not be read: they may hold default values.
        """


class GeneratedEpisodes:
    """Episodes of a generator, all different.

    Episode k of slot i is episode `numbers_of((i, k))` of `traces.generators.synthetic.episodes`;
    slot 0 has its first ones.

    Args:
        workload: a generator's name, or a file that `berthline traces fit` wrote.
        cluster: what the load refers to: a Cluster or a CLUSTER argument.
        jobs: jobs in every episode.
        load: of every episode, or (lowest, highest) of a uniform draw for each; None = the
            generator's default.
        seed: selects the random numbers.
        dials: the generator's settings, as numbers or as their text.

    Raises:
        ConfigError: no such generator, or a value out of range.
        TraceError: the file holds no fitted generator.

    Example:
        >>> import numpy as np
        >>> source = GeneratedEpisodes("bursty", "philly", jobs=256, load=(0.5, 1.2))
        >>> source.draw(np.array([[0, 0], [7, 3]]))["run"].shape
        (2, 256)
    """

    def __init__(
        self,
        workload: str,
        cluster: Cluster | TextOrPath,
        *,
        jobs: int,
        load: float | tuple[float, float] | None = None,
        seed: int = 0,
        dials: Mapping[str, object] | None = None,
    ) -> None:
        low, high = load if isinstance(load, tuple) else (load, load)
        self._arguments = workload, cluster, seed, dials
        generator = resolve_generator(workload)
        self._maker = generator.maker(
            resolve_cluster(cluster), jobs=jobs, load=low, seed=seed, dials=dials or {}
        )
        self.jobs = self._maker.jobs
        self.user_names = self._maker.user_names
        self.pool_names = self._maker.pool_names
        self.gpu_type_sets = self._maker.gpu_type_sets
        self.ran_on_types: tuple[str, ...] = ()
        self.reference_type = self._maker.reference_type or REFERENCE_TYPE
        self.has_estimates = self._maker.has_estimates
        self.provenance = self._maker.provenance
        self._load: tuple[float, float] | None = None
        self._rows = {
            name: np.full(self.jobs, value, dtype) for name, (value, dtype) in _DEFAULTS.items()
        }
        self._defaults: dict[int, JobColumns] = {}  # by number of rows
        if low is not None and high is not None:
            self.set_load(low, high)

    def set_load(self, low: float, high: float | None = None) -> None:
        """Set the load of the episodes drawn from now on, for example in a curriculum.

        Args:
            low: the load, or the lowest of a uniform draw.
            high: the highest; None = `low`.

        Raises:
            ConfigError: a load out of range, the lowest above the highest, or a generator without a
                load.
        """
        where = f"generator {self._maker.name!r}"
        load = checked_load(low, high, where=where)
        if self._maker.gap_at_load_1 is None:
            raise ConfigError(
                f"load is {load[0]:g}",
                where=where,
                expected="no load: all jobs are submitted at once",
            )
        self._load = load

    def with_jobs(self, jobs: int) -> GeneratedEpisodes:
        """Return episodes of the same generator, with the same loads, of another length."""
        workload, cluster, seed, dials = self._arguments
        return GeneratedEpisodes(
            workload, cluster, jobs=jobs, load=self._load, seed=seed, dials=dials
        )

    def loads(self, keys: Keys) -> npt.NDArray[np.float64] | None:
        """Return the load of each of these episodes if drawn now; None = the default load."""
        load = self._load_of(numbers_of(keys))
        return None if load is None else np.full(len(keys), load)

    def _load_of(self, numbers: Numbers) -> float | npt.NDArray[np.float64] | None:
        if self._load is None:
            return None
        return load_of_episodes(self._load, self._maker.seed, numbers)

    def draw(self, keys: Keys, unread: Container[str] = NOTHING) -> JobColumns:
        """Return the episodes of these (slot, episode) pairs, one row each."""
        numbers = numbers_of(_checked(keys))
        defaults = self._default_columns(len(numbers))
        if not len(numbers):
            return dict(defaults)
        drawn = self._maker.columns(numbers, self._load_of(numbers), unread)
        if "estimate" in drawn and self.has_estimates:
            state_something(drawn)
        return {**defaults, **drawn}

    def _default_columns(self, count: int) -> JobColumns:
        """Return the default columns; all rows share memory."""
        found = self._defaults.get(count)
        if found is None:
            found = self._defaults[count] = {
                name: np.broadcast_to(row, (count, self.jobs)) for name, row in self._rows.items()
            }
        return found


class TraceWindows:
    """Episodes of consecutive jobs of a workload, each from a random first job.

    Every window is equally likely. Times count from its first submission. With a load, the times
    between submissions are scaled so that the window itself has that load: its work / (GPUs * time
    from its first to its last submission).

    Args:
        workload: the jobs.
        jobs: jobs in every window; None = all jobs, in one window.
        load: of every window, or (lowest, highest) of a uniform draw for each; None = as recorded.
        gpus: of the cluster, which a load refers to.
        seed: selects the random numbers.
        part: `train`, `validation` or `test`: only windows within that part of a split by time;
            None = anywhere.
        fractions: of the split, as for `split_by_time`.
        gap_seconds: of the split.
        gap_jobs: of the split.

    Raises:
        ConfigError: a window with more jobs than there are, or an invalid split.
    """

    def __init__(
        self,
        workload: Workload,
        *,
        jobs: int | None,
        load: float | tuple[float, float] | None = None,
        gpus: int = 0,
        seed: int = 0,
        part: str | None = None,
        fractions: Sequence[float] = FRACTIONS,
        gap_seconds: float = 0.0,
        gap_jobs: int = 0,
    ) -> None:
        where = f"windows of {workload.name}"
        self.user_names = workload.user_names
        self.pool_names = workload.pool_names
        self.gpu_type_sets = workload.gpu_type_sets
        self.ran_on_types = workload.ran_on_types
        self.reference_type = workload.reference_type
        self.provenance = workload.provenance
        self._seed = int(SEED.convert(seed, where=where))
        self._first, end = 0, len(workload)
        if part is not None:
            if part not in PARTS:
                raise ConfigError(
                    f"there is no part {part!r} of a split",
                    where=where,
                    expected=f"one of {', '.join(PARTS)}",
                )
            split = split_by_time(workload, fractions, gap_seconds=gap_seconds, gap_jobs=gap_jobs)
            bounds = getattr(split, part).provenance["split"]
            self._first, end = bounds["first"], bounds["last"] + 1
        there_are = end - self._first
        self.jobs = there_are if jobs is None else int(JOBS.convert(jobs, where=where))
        self._choices = there_are - self.jobs + 1
        if self._choices < 1:
            there = f"the {part} part has" if part else "there are"
            raise ConfigError(
                f"windows of {self.jobs:,} jobs, but {there} {there_are:,}",
                where=where,
                expected=f"windows of 1 to {there_are:,} jobs",
            )
        self.has_estimates = not np.isnan(workload.estimate).all()
        self._windows = {
            name: np.lib.stride_tricks.sliding_window_view(getattr(workload, name), self.jobs)
            for name in _DEFAULTS
        }
        self._where, self._gpus = where, gpus
        done = np.cumsum(workload.run * workload.gpu_amount)
        self._work = np.concatenate([[0.0], done])  # of all jobs before each
        self._load: tuple[float, float] | None = None
        if load is not None:
            self.set_load(*(load if isinstance(load, tuple) else (load, load)))

    def set_load(self, low: float, high: float | None = None) -> None:
        """Set the load of the episodes drawn from now on; see `GeneratedEpisodes.set_load`."""
        self._load = checked_load(low, high, where=self._where)

    def first_jobs(self, keys: Keys) -> npt.NDArray[np.int64]:
        """Return the first job of each of these episodes, as a row of the workload."""
        draws = Draws(self._seed, numbers_of(_checked(keys)), jobs=1)
        place = draws.uniform_of_episodes("window", 1)[:, 0] * self._choices
        return self._first + place.astype(np.int64)

    @property
    def rows(self) -> tuple[int, int]:
        """The first job that windows may begin with, and how many there are to choose from."""
        return self._first, self._choices

    def from_rows(
        self, first: npt.NDArray[np.int64], keys: Keys, since: npt.NDArray[np.float64] | None = None
    ) -> JobColumns:
        """Return the windows that begin with these rows of the workload.

        Args:
            first: the rows.
            keys: the episodes; their loads follow from them.
            since: times from which those of each window are scaled; None = its first submission.
        """
        columns = {name: windows[first] for name, windows in self._windows.items()}
        if self._load is None:
            return columns
        submit, deadline = columns["submit"], columns["deadline"]
        begin = submit[:, 0].copy()
        span = submit[:, -1] - begin
        work = self._work[first + self.jobs] - self._work[first]
        load = load_of_episodes(self._load, self._seed, numbers_of(keys))
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = work / (self._gpus * span) / load
        # Jobs that are all submitted at once, or do no work, stay as they are.
        factor = np.where(np.isfinite(factor) & (factor > 0), factor, 1.0)[:, None]
        origin = (begin if since is None else since)[:, None]
        scaled = origin + (submit - origin) * factor
        columns["deadline"] = scaled + (deadline - submit)
        columns["submit"] = scaled
        return columns

    def draw(self, keys: Keys, unread: Container[str] = NOTHING) -> JobColumns:  # noqa: ARG002
        """Return the episodes of these (slot, episode) pairs, one row each."""
        columns = self.from_rows(self.first_jobs(keys), keys)
        begin = columns["submit"][:, :1].copy()
        columns["submit"] -= begin
        columns["deadline"] -= begin
        if self.has_estimates:
            state_something(columns)
        return columns


class WholeTrace:
    """Episodes that are all the same: the whole workload.

    Args:
        workload: the jobs.
    """

    def __init__(self, workload: Workload) -> None:
        self.jobs = len(workload)
        self.user_names = workload.user_names
        self.pool_names = workload.pool_names
        self.gpu_type_sets = workload.gpu_type_sets
        self.ran_on_types = workload.ran_on_types
        self.reference_type = workload.reference_type
        self.has_estimates = not np.isnan(workload.estimate).all()
        self.provenance = workload.provenance
        self._columns = {name: getattr(workload, name) for name in _DEFAULTS}
        self._views = {name: column[None, :] for name, column in self._columns.items()}

    def first_jobs(self, keys: Keys) -> npt.NDArray[np.int64]:
        """Return 0, the first job, for every episode."""
        return np.zeros(len(_checked(keys)), np.int64)

    def draw(self, keys: Keys, unread: Container[str] = NOTHING) -> JobColumns:  # noqa: ARG002
        """Return the workload once per pair: all rows are views of the same memory."""
        shape = (len(_checked(keys)), self.jobs)
        if len(self._views["submit"]) != shape[0]:
            self._views = {
                name: np.broadcast_to(column, shape) for name, column in self._columns.items()
            }
        return dict(self._views)


def batch_seeds(seed: int, num_envs: int) -> list[int]:
    """Return the seeds of the environments of a batch that is reset with one seed.

    The first is the seed itself. Batches with different seeds below 2**31 have no seed in common,
    whatever their sizes. A larger seed is first mapped to a number below 2**31, except for the
    first environment.

    Args:
        seed: of the batch.
        num_envs: how many environments, at most 2**20.

    Example:
        >>> batch_seeds(7, 3)
        [7, 2147483655, 4294967303]
    """
    base = seed if seed < NEXT_ENVIRONMENT else stream_key(seed, "batch") % NEXT_ENVIRONMENT
    return [seed, *(base + env * NEXT_ENVIRONMENT for env in range(1, num_envs))]


def slot_of(seed: int) -> int:
    """Return the slot of a seed: the seed itself, if below MOST_SLOTS.

    Larger seeds are spread over all slots, so that two of them practically never share one.
    """
    return seed if seed < MOST_SLOTS else stream_key(seed, "slot") % MOST_SLOTS


def numbers_of(keys: Keys) -> npt.NDArray[np.int64]:
    """Return the number of each (slot, episode) pair.

    The numbers of slots below 2**31 count from 0. Those of other slots are below 0 and mixed: the
    pairs do not fit into 64 bits, but two of them are as unlikely to have one number as two streams
    of random numbers are to be the same.
    """
    slots, episodes = keys.T
    numbers: npt.NDArray[np.int64] = slots * MOST_EPISODES + episodes
    is_large = slots >= NEXT_ENVIRONMENT
    if is_large.any():
        large = keys[is_large].astype(np.uint64)
        mixed = bits_at(_LARGE_SLOTS, large[:, 0], large[:, 1])
        numbers[is_large] = (mixed | np.uint64(1 << 63)).view(np.int64)
    return numbers


_LARGE_SLOTS = stream_key(0, "episodes of large slots")


def checked_load(low: float, high: float | None, *, where: str) -> tuple[float, float]:
    """Return a range of loads; without `high` it is one load.

    Raises:
        ConfigError: a load out of range, or the lowest above the highest.
    """
    lowest = float(LOAD.convert(low, where=where))
    highest = lowest if high is None else float(LOAD.convert(high, where=where))
    if lowest > highest:
        raise ConfigError(
            f"the load goes from {lowest:g} to {highest:g}",
            where=where,
            expected="the lowest load first",
        )
    return lowest, highest


def load_of_episodes(
    load: tuple[float, float], seed: int, numbers: Numbers
) -> float | npt.NDArray[np.float64]:
    """Return the load of each episode: one for all, or a uniform draw from the range for each."""
    low, high = load
    if low == high:
        return low
    draws = Draws(seed, numbers, jobs=1)
    return np.asarray(low + (high - low) * draws.uniform_of_episodes("load", 1)[:, 0])


def state_something(columns: JobColumns) -> None:
    """Fill in the estimates of episodes in which no job has one, so that they can be simulated."""
    estimate = columns["estimate"]
    if not np.isnan(estimate[:, 0]).any():  # nearly always, and a cheap check
        return
    estimate[np.isnan(estimate).all(axis=1)] = FIRST_PREDICTION


def _checked(keys: Keys) -> Keys:
    if keys.ndim != 2 or keys.shape[1] != 2 or keys.dtype != np.int64:
        raise ConfigError(
            f"episode keys are {keys.dtype} of shape {keys.shape}",
            expected="(n, 2) of int64: slot and episode",
        )
    if len(keys) and keys.view(np.uint64).max() < NEXT_ENVIRONMENT:  # often, and a cheap check
        return keys
    if len(keys) and (keys.min() < 0 or (keys.max(axis=0) >= (MOST_SLOTS, MOST_EPISODES)).any()):
        raise ConfigError(
            f"slots and episodes from {keys.min()} to {keys.max()}",
            expected=f"slots from 0 to {MOST_SLOTS - 1}, episodes from 0 to {MOST_EPISODES - 1}",
        )
    return keys
