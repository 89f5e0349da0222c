"""Supply: gives every environment of a batch its next episode before it needs it.

Environment i's k-th episode is a function of (its seed, k) alone. Episodes are drawn in groups,
because one drawn alone costs several times as much.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.env.episodes_source import MOST_EPISODES, slot_of
from berthline.env.sources.starts import StartedEpisodes
from berthline.model.workload import Workload
from berthline.random_streams import stream_key, uniform_at, uniform_column
from berthline.sim.inputs import last_failure, stated_so_far
from berthline.sim.outages import outages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berthline import _native
    from berthline.env.episodes_source import EpisodeSource, JobColumns, Keys
    from berthline.env.plan import Plan
    from berthline.env.sources.starts import Start

ENOUGH, ENOUGH_JOBS = 32, 1 << 17
"""Most episodes drawn ahead, and most jobs in them: a whole trace may have millions."""

FEW = 4
"""Up to this many environments use episodes drawn ahead; for more, all are drawn at once."""

_Numbers = npt.NDArray[np.int64]
"""Numbers of environments."""


def episode_seed(seed: int, episode: int) -> int:
    """Return the seed that makes `simulate` draw what the environment draws in an episode."""
    return seed * MOST_EPISODES + episode


class Supply:
    """The coming episodes of a batch.

    Args:
        plan: of the environments.
        batch: the batch that gets them.
        num_envs: how many environments.
    """

    def __init__(self, plan: Plan, batch: _native.Batch, num_envs: int) -> None:
        self._plan, self._batch = plan, batch
        # Evaluated once: they take longer than drawing an episode's jobs.
        self._uses_random, self._can_fail = plan.uses_random, plan.can_fail
        self._needs_seed = self._can_fail or plan.draws_at_random
        self._unread = plan.unread
        # Where episodes begin in the middle: the source of the jobs that come.
        self._started = plan.source if isinstance(plan.source, StartedEpisodes) else None
        # Columns that are the same in all episodes, as one row.
        same_kind = plan.kinds.same_columns(plan.inputs, plan.source.jobs)
        self._has_kinds = not same_kind
        self._same: JobColumns = {"random": np.zeros((1, 0)), **same_kind}
        if plan.options.knowledge == "none":
            self._same["estimate"] = np.full((1, plan.source.jobs), np.nan)
        self._keys = np.zeros((num_envs, 2), np.int64)  # of the episodes to be drawn
        self._seeds, self._next = self._keys.T
        self._given = np.full(num_envs, -1, np.int64)  # episode that the batch has ready
        self._current = np.full(num_envs, -1, np.int64)  # current episode
        # The source of the current episodes' jobs, where the source has changed since.
        self._drawn_by: dict[int, EpisodeSource] = {}
        self._ahead: dict[int, deque[tuple[int, int, JobColumns]]] = {}  # of those that have any

    def seed(self, env: int, seed: int, episode: int = 0) -> None:
        """Restart an environment with an episode of a seed."""
        self._seeds[env] = slot_of(seed)
        self._next[env] = episode
        self._given[env] = -1
        self._ahead.pop(env, None)

    def copy(self, envs: _Numbers, other: Supply, from_: _Numbers) -> None:
        """Let environments go through the same episodes as those of another supply."""
        self._keys[envs] = other._keys[from_]
        self._given[envs] = other._given[from_]
        self._current[envs] = other._current[from_]
        for env, model in zip(envs.tolist(), from_.tolist(), strict=True):
            self._ahead.pop(env, None)
            self._drawn_by.pop(env, None)
            if model in other._drawn_by:
                self._drawn_by[env] = other._drawn_by[model]

    def is_ready(self, envs: _Numbers) -> npt.NDArray[np.bool_]:
        """Return which environments have their next episode ready in the batch."""
        return self._given[envs] >= 0

    def began(self, envs: _Numbers) -> None:
        """Record that environments have begun their ready episodes, if any."""
        begun = envs[self.is_ready(envs)]
        self._current[begun] = self._given[begun]
        self._given[begun] = -1
        if self._drawn_by:
            for env in begun.tolist():
                self._drawn_by.pop(env, None)

    def key(self, env: int) -> tuple[int, int]:
        """Return (seed, number) of the episode that an environment is in."""
        return int(self._seeds[env]), int(self._current[env])

    def redraw(self, before: EpisodeSource) -> None:
        """Draw again all episodes that have not begun, because the source has changed.

        Args:
            before: the source before the change.
        """
        self._ahead.clear()
        is_given, has_begun = self._given >= 0, self._current >= 0
        for env in np.flatnonzero(has_begun).tolist():
            self._drawn_by.setdefault(env, before)
        after = np.where(has_begun, self._current + 1, self._next)
        self._next[:] = np.where(is_given, self._given, after)
        self.fill(np.flatnonzero(is_given))

    def fill(self, envs: _Numbers) -> None:
        """Give each of these environments its next episode."""
        if len(envs) > FEW:
            if self._ahead:
                for env in envs.tolist():
                    self._ahead.pop(env, None)  # else they would be used again later
            keys = self._keys[envs]
            self._give(envs, keys, self._columns(keys))
            return
        short = [env for env in envs.tolist() if env not in self._ahead]
        if short:
            self._draw_ahead(short)
        for env in envs.tolist():
            ahead = self._ahead[env]
            episode, row, columns = ahead.popleft()
            if not ahead:
                del self._ahead[env]
            key = np.array([[self._seeds[env], episode]])
            self._give(np.array([env], np.int64), key, columns, row)

    def workload(self, env: int) -> Workload:
        """Return the jobs of the episode that an environment is in, as `simulate` takes them."""
        source = self._drawn_by.get(env, self._plan.source)
        drawn = source.draw(np.array([self.key(env)], np.int64))
        columns = {name: table[0] for name, table in drawn.items()}
        start = self.start(env)
        if start is not None:
            known = start.snapshot.workload
            columns = {
                name: np.concatenate([getattr(known, name), column])
                for name, column in columns.items()
            }
        return Workload.from_columns(
            **columns,
            user_names=source.user_names,
            pool_names=source.pool_names,
            gpu_type_sets=source.gpu_type_sets,
            ran_on_types=source.ran_on_types,
            reference_type=source.reference_type,
            name=f"episode {self.key(env)}",
            rebase=False,
        )

    def start(self, env: int) -> Start | None:
        """Return where the episode that an environment is in began; None = an empty cluster."""
        source = self._drawn_by.get(env, self._plan.source)
        if not isinstance(source, StartedEpisodes):
            return None
        return source.starts_of(np.array([self.key(env)], np.int64))[0]

    def _draw_ahead(self, envs: Sequence[int]) -> None:
        most = min(ENOUGH, ENOUGH_JOBS // max(self._plan.source.jobs, 1))
        if self._started is not None:
            most = FEW  # finding a state takes milliseconds
        each = max(1, most // len(envs))
        keys = np.array(
            [(self._seeds[env], self._next[env] + k) for env in envs for k in range(each)], np.int64
        )
        columns = self._columns(keys)
        for i, env in enumerate(envs):
            self._ahead[env] = deque(
                (int(self._next[env]) + k, i * each + k, columns) for k in range(each)
            )

    def _give(self, envs: _Numbers, keys: Keys, columns: JobColumns, first: int = 0) -> None:
        """Give environments the episodes with these keys, from row `first` of the tables on."""
        streams = np.zeros((len(envs), 2), np.uint64)
        failures: list[list[tuple[float, int, bool]]] | None = None
        if self._needs_seed:
            seeds = _seeds_of(keys)
            for i, seed in enumerate(seeds):
                streams[i] = stream_key(seed, "placement"), stream_key(seed, "refusal")
        starts = None
        if self._started is not None:
            states = self._started.starts_of(keys)
            failures = [failures_of(state) for state in states] if self._can_fail else None
            starts = [
                (self._plan.native_start(state), self._random(state, key))
                for state, key in zip(states, keys, strict=True)
            ]
        elif self._can_fail:
            failures = [self._failures(seed, columns, first + i) for i, seed in enumerate(seeds)]
        self._batch.supply(envs, columns, first, streams, failures, starts)
        episodes = keys[:, 1]
        self._given[envs] = episodes
        self._next[envs] = episodes + 1

    def _failures(self, seed: int, columns: JobColumns, row: int) -> list[tuple[float, int, bool]]:
        names = ("submit", "run", "gpus", "gpu_milli")
        one = {name: columns[name][row if len(columns[name]) > 1 else 0] for name in names}
        until = max(last_failure(one["submit"], one["run"]), self._plan.horizon(**one) or 0.0)
        found = outages(self._plan.cluster, seed=seed, until=until)
        return list(zip(found.time.tolist(), found.node.tolist(), found.up.tolist(), strict=True))

    def _random(self, start: Start, key: Keys) -> npt.NDArray[np.float64] | None:
        """Return the word `random` of the jobs of an episode that begins in the middle."""
        if not self._uses_random:
            return None
        jobs = self._plan.source.jobs
        to_come = np.arange(start.next_number, start.next_number + jobs)
        draw = np.concatenate([start.snapshot.number, to_come]).astype(np.uint64)
        [seed] = _seeds_of(key[None])
        return uniform_at(stream_key(seed, "order"), draw)

    def _columns(self, keys: Keys) -> JobColumns:
        """Return the columns of episodes as the native core reads them."""
        columns = self._plan.source.draw(keys, self._unread)
        estimate = columns["estimate"]
        if self._plan.options.knowledge != "estimate" or (
            estimate is columns["run"] and self._started is None
        ):
            del columns["estimate"]  # without the column, estimates are the run times
        elif self._started is not None:
            columns["estimate"] = self._started.stated(keys, columns)
        else:
            columns["estimate"] = stated_so_far(estimate)
        columns.update(self._same)
        if self._has_kinds:
            columns.update(self._plan.kinds.columns(self._plan.inputs, columns))
        if self._uses_random and self._started is None:
            jobs = self._plan.source.jobs
            draws = [uniform_column(stream_key(seed, "order"), jobs) for seed in _seeds_of(keys)]
            columns["random"] = np.stack(draws)
        return columns


def failures_of(start: Start) -> list[tuple[float, int, bool]]:
    """Return when nodes go down and come back in an episode that begins in the middle."""
    found = start.failures
    return list(zip(found.time.tolist(), found.node.tolist(), found.up.tolist(), strict=True))


def _seeds_of(keys: Keys) -> list[int]:
    return [episode_seed(seed, number) for seed, number in keys.tolist()]
