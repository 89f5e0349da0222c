"""SchedulingVectorEnv: many environments that step together in the native core."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from berthline import _native
from berthline.env.episodes_source import batch_seeds
from berthline.env.interface.batch_attributes import HasAttributes
from berthline.env.make_plan import make_plan
from berthline.env.native_envs import (
    SCORES,
    HasNativeState,
    NativeEnvs,
    check_fork,
    take_out_of_range,
)
from berthline.env.option_types import FLAG, SEED, whole
from berthline.env.options import resolve_options, with_max_steps
from berthline.env.rendering.frames import (
    RENDERING,
    LastChoices,
    RenderedFrame,
    Thoughts,
    frame_of,
    scene_of,
    take_render_mode,
    warn_without_mode,
)
from berthline.env.spaces import action_space, observation_space, views
from berthline.errors import ConfigError, SimulationError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from berthline.env.plan import Plan
    from berthline.model.schedule import Schedule
    from berthline.model.snapshot import Snapshot
    from berthline.model.workload import Workload

_INT64 = np.dtype(np.int64)
_ENVS, THREADS = whole(1, 2**20), whole(1, 2**10)  # more threads than machines have cores


class SchedulingVectorEnv(HasNativeState, HasAttributes, VectorEnv[Any, Any, npt.NDArray[Any]]):
    """Environments of one kind, stepped together.

    Environment i depends only on its seed and its actions, not on the number of environments or
    threads. `reset(seed=s)` gives environment i the seed `batch_seeds(s, num_envs)[i]`.

    With `autoreset_mode="same_step"` an episode that ends is followed by the next in the same
    step; its last observation is in `infos["final_obs"]` and its results in `infos["final_info"]`,
    whose scores are 0 for the other environments. With `"next_step"` the step after the last begins
    the next episode, and its action is ignored. With `"disabled"` an episode that is over stays
    over: `reset(options={"reset_mask": terminated | truncated})` begins the next ones, and a step
    without that is an error.

    `final_obs` is an array of objects with an entry for each environment: the last observation, as
    a single environment returns it (a dict of tables, or a flat vector), where `_final_obs` is
    True, and None elsewhere.

    Args:
        num_envs: how many.
        seat: pick, place, pickplace, meta, backfill, gate or preempt.
        num_threads: threads that step them.
        autoreset_mode: `same_step`, `next_step` or `disabled`.
        copy: whether observations, masks and scores are copies; if not, the next step overwrites
            them, which is faster, and you must not write to them.
        max_episode_steps: the same as the option `max_steps`.
        out_of_range: what an action out of range is: an `error`, or `illegal`, as one that the mask
            forbids.
        render_mode: what `render` returns for each environment: `ansi`, a text, or `rgb_array`, a
            picture; None = nothing.
        options: see `berthline.env.options.Options`.

    Example:
        >>> import berthline, gymnasium as gym
        >>> envs = gym.make_vec("berthline/Pick-v0", num_envs=256, episode_jobs=64)
        >>> observations, infos = envs.reset(seed=1)
        >>> envs.action_masks().shape
        (256, 33)
    """

    closed = True  # until it is complete: a failed __init__ leaves nothing to close

    def __init__(
        self,
        num_envs: int,
        seat: str = "pick",
        *,
        num_threads: int = 1,
        autoreset_mode: str | AutoresetMode = AutoresetMode.SAME_STEP,
        copy: bool = True,
        max_episode_steps: int | None = None,
        out_of_range: str = "error",
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        options = with_max_steps(options, max_episode_steps)
        out_of_range = take_out_of_range(out_of_range)
        self.render_mode = take_render_mode(render_mode)
        self._thoughts: Thoughts | None = None
        num_envs = _ENVS.take("num_envs", num_envs)
        num_threads = THREADS.take("num_threads", num_threads)
        copy = FLAG.take("copy", copy)
        # Also an attribute, as in Gymnasium's vector environments: TorchRL reads it.
        self.autoreset_mode = _autoreset_mode(autoreset_mode)
        self.metadata = {**RENDERING, "autoreset_mode": self.autoreset_mode}
        plan = make_plan(seat, resolve_options(seat, options))
        self.single_observation_space = observation_space(plan)
        self.single_action_space = action_space(plan)
        self._copy = copy
        self._same_step = self.autoreset_mode == AutoresetMode.SAME_STEP
        self._never_resets = self.autoreset_mode == AutoresetMode.DISABLED
        self._use(
            NativeEnvs(
                plan, num_envs, num_threads, same_step=self._same_step, out_of_range=out_of_range
            )
        )
        self._is_seeded = np.zeros(num_envs, np.bool_)
        # Episodes that are over and wait for a reset.
        self._is_over = np.zeros(num_envs, np.bool_)
        self._own_attributes: dict[str, tuple[Any, ...]] = {}

    def _use(self, envs: NativeEnvs) -> None:
        """Play in these environments."""
        self.plan: Plan = envs.plan
        self._envs = envs
        self.num_envs = num_envs = envs.num_envs
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._everybody = np.ones(num_envs, np.bool_)
        self._views = self._make_views(self._envs.observation, self._envs.mask)
        self._actions_shape = self.action_space.shape
        self._make_copiers()
        self._last_choices = LastChoices(envs)
        self.closed = False

    def reset(
        self,
        *,
        seed: int | list[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Begin new episodes everywhere, or where `options["reset_mask"]` is True."""
        envs = list(range(self.num_envs))
        if options and "reset_mask" in options:
            chosen = _array(options["reset_mask"])
            if chosen.shape != (self.num_envs,) or chosen.dtype != np.bool_:
                raise ConfigError(
                    f"reset_mask is {chosen.dtype} of shape {chosen.shape}",
                    expected=f"bool of shape ({self.num_envs},)",
                )
            if not chosen.any():
                raise ConfigError(
                    "reset_mask is False everywhere", expected="True for at least one environment"
                )
            envs = np.flatnonzero(chosen).tolist()
        seeds = self._seeds(seed)
        for env in envs:
            own = seeds[env]
            if own is not None:
                self._envs.seed(env, own)
        self._is_seeded[envs] = True
        self._envs.reset(envs)
        self._is_over[envs] = False
        self._last_choices.forget(envs)
        infos = {"action_mask": self.action_masks(), "_action_mask": self._everybody}
        return self._observations(), infos

    def step(
        self, actions: Any
    ) -> tuple[Any, npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], dict[str, Any]]:
        """Carry out one decision in every environment."""
        envs = self._envs
        if (
            type(actions) is not np.ndarray
            or actions.dtype is not _INT64
            or actions.shape != self._actions_shape
        ):
            actions = self._as_int64(actions)
        if self.render_mode is not None:
            self._note_choices(actions)
        if self._never_resets:
            self._check_none_is_over()
        has_ended, has_illegal = envs.step(actions)
        reward, terms, seconds, terminated, truncated = self._results(0)
        infos: dict[str, Any] = {
            "action_mask": envs.mask.copy() if self._copy else envs.mask,
            "_action_mask": self._everybody,
            "reward_terms": terms,
            "_reward_terms": self._everybody,
            "seconds": seconds,
            "_seconds": self._everybody,
        }
        if has_illegal:
            infos["illegal"] = infos["_illegal"] = envs.illegal.copy()
        if has_ended:
            if self._never_resets:
                self._is_over = envs.ended.copy()
            self._add_ended(infos)
        observations = self._observations() if self._copy else self._views
        return observations, reward, terminated, truncated, infos

    def fork(
        self,
        envs: int | Sequence[int] | None = None,
        count: int = 1,
        *,
        num_threads: int = 1,
        into: SchedulingVectorEnv | None = None,
    ) -> SchedulingVectorEnv:
        """Return a batch of copies of environments, in the middle of their episodes.

        With equal actions an environment and its copies show the same, bit for bit, in this
        episode and in later ones. Nothing that is done to one affects the other.

        Args:
            envs: which environments, by number; None = all of them.
            count: copies of each, next to each other.
            num_threads: threads that step the copies.
            into: an earlier fork with as many environments, which is overwritten and returned:
                cheaper than a new one.

        Example:
            >>> import berthline, gymnasium as gym
            >>> envs = gym.make_vec("berthline/Pick-v0", num_envs=4, episode_jobs=64)
            >>> observations, infos = envs.reset(seed=1)
            >>> envs.fork(2, count=16).num_envs
            16
        """
        own = self._envs
        own.check_open()
        count = _ENVS.take("count", count)
        chosen = range(self.num_envs) if envs is None else envs
        numbers = [own.checked(env) for env in np.atleast_1d(_array(chosen)).tolist()]
        if not numbers:
            raise ConfigError("no environments", where="fork", expected="at least one")
        for env in dict.fromkeys(numbers):
            own.episode(env)  # there must be one
        from_ = [env for env in numbers for _ in range(count)]
        if into is not None:
            check_fork(into, self)
            if into.num_envs != len(from_):
                raise ConfigError(
                    f"into has {into.num_envs} environments",
                    where="fork",
                    expected=f"{len(from_)}, as many as copies",
                )
            into._envs.overwrite(range(len(from_)), own, from_)
        else:
            into = self._twin()
            into.single_observation_space = deepcopy(self.single_observation_space)
            into.single_action_space = deepcopy(self.single_action_space)
            into._use(own.fork(from_, THREADS.take("num_threads", num_threads)))
        into._np_random = deepcopy(self._np_random)
        into._is_seeded, into._is_over = self._is_seeded[from_], self._is_over[from_]
        into._own_attributes = self._attributes_of(from_)
        return into

    def render(self) -> tuple[RenderedFrame, ...] | None:
        """Return a frame of each environment; see `SchedulingEnv.render`."""
        if self.render_mode is None:
            warn_without_mode()
            return None
        masks, thoughts = self._envs.mask.copy(), None
        if self._thoughts is not None:
            thoughts = np.asarray(self._thoughts(self._observations(), masks))
        return tuple(
            frame_of(
                scene_of(
                    self._envs,
                    env,
                    thoughts=None if thoughts is None else thoughts[env],
                    last_choice=self._last_choices.words[env],
                ),
                self.render_mode,
            )
            for env in range(self.num_envs)
        )

    def show_policy(self, policy: Thoughts | None) -> None:
        """Let `render` show what a policy thinks.

        Args:
            policy: a function of the observations and the masks of all environments, which returns
                a probability for each entry of the masks; it is called by `render` only. None = no
                policy.
        """
        self._thoughts = policy

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return which actions are allowed now, (num_envs, num_actions)."""
        self._envs.check_open()
        return self._envs.mask.copy() if self._copy else self._envs.mask

    def close_extras(self, **kwargs: Any) -> None:  # noqa: ARG002 - Gymnasium's
        """End the threads and release the native memory: `close` calls it, once."""
        self._envs.close()

    def set_load(self, low: float, high: float | None = None) -> None:
        """Set the load of all episodes that have not begun, for example in a curriculum."""
        self._envs.set_load(low, high)

    @property
    def reward_terms(self) -> list[str]:
        """Names of the columns of `infos["reward_terms"]`."""
        return [term.name for term in self.plan.reward.terms]

    def question(self, env: int) -> dict[str, Any]:
        """Return the question: the clock, the job of each row, the job at hand."""
        return self._envs.question(env)

    def log(self, env: int) -> Schedule:
        """Return the schedule log of an environment's episode, so far."""
        return self._envs.log(env)

    def workload(self, env: int) -> Workload:
        """Return the jobs of an environment's episode, as `simulate` takes them."""
        return self._envs.workload(env)

    def start(self, env: int) -> Snapshot | None:
        """Return the state in which an environment's episode began; None = an empty cluster."""
        start = self._envs.start(env)
        return None if start is None else start.snapshot

    def snapshot(self, env: int) -> Snapshot:
        """Return the state that an environment's episode is in; see `SchedulingEnv.snapshot`."""
        return self._envs.snapshot(env)

    def episode_key(self, env: int) -> tuple[int, int]:
        """Return (seed, number) of an environment's episode."""
        return self._envs.episode(env)

    def _check_none_is_over(self) -> None:
        if self._is_over.any():
            over = np.flatnonzero(self._is_over).tolist()
            raise SimulationError(
                "a step of environments whose episode is over",
                where=f"environments {over[:8]}{' ...' if len(over) > 8 else ''}",
                expected='reset(options={"reset_mask": terminated | truncated}) first',
            )

    def _note_choices(self, actions: npt.NDArray[np.int64]) -> None:
        """Keep what environments are about to answer in words, for the next frames."""
        for env, answer in enumerate(actions.reshape(self.num_envs, -1).tolist()):
            self._last_choices.note(env, *answer)

    def _seeds(self, seed: Any) -> list[int | None]:
        if isinstance(seed, np.ndarray):
            seed = seed.tolist()
        if seed is not None and not isinstance(seed, list | tuple):
            self._np_random_seed = SEED.take("seed", seed)
            return [*batch_seeds(self._np_random_seed, self.num_envs)]
        if seed is not None and len(seed) != self.num_envs:
            raise ConfigError(f"{len(seed)} seeds", expected=f"{self.num_envs}, one each")
        seeds: list[int | None] = [*seed] if seed is not None else [None] * self.num_envs
        # Environments without a seed keep their own, or draw one.
        first = 0 if self._is_seeded.all() else int(self.np_random.integers(2**30))
        drawn = batch_seeds(first, self.num_envs)
        for env, own in enumerate(seeds):
            if own is not None:
                seeds[env] = SEED.take("seed", own)
            elif not self._is_seeded[env]:
                seeds[env] = drawn[env]
        return seeds

    def _as_int64(self, actions: Any) -> npt.NDArray[np.int64]:
        found = _array(actions)
        if found.shape != self._actions_shape or found.dtype.kind not in "iu":
            raise ConfigError(
                f"actions are {found.dtype} of shape {found.shape}",
                where="envs.step",
                expected=f"int64, or other integers, of shape {self._actions_shape}",
            )
        return found.astype(np.int64)

    def _observations(self) -> Any:
        if not self._copy:
            return self._views
        if self.plan.options.observation == "flat":
            return self._envs.observation.copy()
        return self._make_views(self._envs.observation.copy(), self._envs.mask.copy())

    def _make_views(self, flat: npt.NDArray[np.float32], mask: npt.NDArray[np.bool_]) -> Any:
        if self.plan.options.observation == "flat":
            return flat
        observations: dict[str, Any] = views(self.plan, flat)
        observations["action_mask"] = mask.view(np.int8)
        if self.plan.seat == "pickplace":
            pairs = self._envs.pair_mask.view(np.int8)
            observations["pair_mask"] = pairs.copy() if self._copy else pairs
        return observations

    def _make_copiers(self) -> None:
        """Prepare the copies that steps return: copying all at once is several times faster."""
        envs = self._envs

        def whole(tables: dict[str, npt.NDArray[Any]]) -> _native.RowCopies:
            return _native.RowCopies({name: table[None] for name, table in tables.items()})

        results = ("reward", "terms", "seconds", "terminated", "truncated")
        self._results = whole({name: getattr(envs, name) for name in results}).values
        scores = dict(zip(SCORES, envs.scores.T, strict=True))
        self._scores: Callable[[int], dict[str, npt.NDArray[np.float64]]]
        self._ended: Callable[[int], tuple[npt.NDArray[np.bool_], ...]]
        if self._copy:
            self._scores = whole(scores).row
            self._ended = whole({"ended": envs.ended, "mask": envs.final_mask}).values
        else:
            self._scores = lambda _: scores.copy()
            self._ended = lambda _: (envs.ended, envs.final_mask)
        self._last: Callable[[int], Any]
        if self.plan.options.observation == "flat":
            last = _native.RowCopies({"observation": envs.final_observation}).values
            self._last = lambda env: last(env)[0]
            return
        tables: dict[str, npt.NDArray[Any]] = {
            **views(self.plan, envs.final_observation),
            "action_mask": envs.final_mask.view(np.int8),
        }
        if self.plan.seat == "pickplace":
            tables["pair_mask"] = envs.final_pair_mask.view(np.int8)
        self._last = _native.RowCopies(tables).row

    def _add_ended(self, infos: dict[str, Any]) -> None:
        """Add the results of the episodes that ended in this step."""
        scores = self._scores(0)
        ended, masks = self._ended(0)
        info: dict[str, Any] = {"sched": scores, "_sched": ended}
        if not self._same_step:
            infos.update(info)
            return
        # Only here: beside `sched` it would collide with Gymnasium's RecordEpisodeStatistics.
        info["episode"], info["_episode"] = {"r": scores["return"], "l": scores["length"]}, ended
        observations = np.empty(self.num_envs, object)  # None everywhere
        for env in self._envs.which_ended():
            observations[env] = self._last(env)
        infos["final_obs"], infos["_final_obs"] = observations, ended
        info["action_mask"], info["_action_mask"] = masks, ended
        infos["final_info"], infos["_final_info"] = info, ended


def _array(given: Any) -> npt.NDArray[Any]:
    try:
        return np.asarray(given)
    except (TypeError, ValueError):
        return np.asarray(None)  # for example rows of different lengths: an object


def _autoreset_mode(given: Any) -> AutoresetMode:
    if isinstance(given, AutoresetMode):
        return given
    names = {mode.name.lower(): mode for mode in AutoresetMode}
    if not isinstance(given, str) or given not in names:
        raise ConfigError(
            f"autoreset_mode is {given!r}", expected="'same_step', 'next_step' or 'disabled'"
        )
    return names[given]
