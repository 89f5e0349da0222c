"""SchedulingEnv: one environment, with an agent in one seat of the scheduler."""

from __future__ import annotations

import copy
from operator import index
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
import numpy.typing as npt

from berthline import _native
from berthline.env.make_plan import make_plan
from berthline.env.native_envs import (
    SCORES,
    HasNativeState,
    NativeEnvs,
    check_fork,
    take_out_of_range,
)
from berthline.env.option_types import SEED
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
    from collections.abc import Callable

    from berthline.env.plan import Plan
    from berthline.model.schedule import Schedule
    from berthline.model.snapshot import Snapshot
    from berthline.model.workload import Workload

Observation = dict[str, npt.NDArray[Any]] | npt.NDArray[np.float32]


class SchedulingEnv(HasNativeState, gymnasium.Env[Observation, Any]):
    """A run of a cluster in which an agent fills one seat of the scheduler.

    docs/mdp.md describes questions and observations. A forbidden action counts as the no-op, or as
    the first allowed action if there is no no-op; `info["illegal"]` is then True. In PickPlace, a
    job that may start, but not on the chosen node, starts where the placement puts it.

    Args:
        seat: pick, place, pickplace, meta, backfill, gate or preempt.
        max_episode_steps: the same as the option `max_steps`.
        out_of_range: what an action out of range is: an `error`, or `illegal`, as one that the mask
            forbids.
        render_mode: what `render` returns: `ansi`, a text, or `rgb_array`, a picture; None =
            nothing.
        options: see `berthline.env.options.Options`.

    Example:
        >>> import berthline, gymnasium as gym
        >>> env = gym.make("berthline/Pick-v0", episode_jobs=64)
        >>> observation, info = env.reset(seed=1)
        >>> observation["jobs"].shape
        (32, 8)
    """

    metadata = RENDERING

    def __init__(
        self,
        seat: str = "pick",
        *,
        max_episode_steps: int | None = None,
        out_of_range: str = "error",
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        options = with_max_steps(options, max_episode_steps)
        out_of_range = take_out_of_range(out_of_range)
        self.render_mode = take_render_mode(render_mode)
        self._thoughts: Thoughts | None = None
        plan = make_plan(seat, resolve_options(seat, options))
        self.observation_space = observation_space(plan)
        self.action_space = action_space(plan)
        self._use(NativeEnvs(plan, 1, 1, same_step=False, out_of_range=out_of_range))
        self._is_seeded = False
        self._is_over = True

    def _use(self, envs: NativeEnvs) -> None:
        """Play in these environments, which are one."""
        self.plan: Plan = envs.plan
        self._envs = envs
        self._has_pairs = self.plan.seat == "pickplace"
        self._mask: npt.NDArray[np.bool_] = self._envs.mask[0]
        # Without rendering, a step does nothing for it.
        self._last_choices = LastChoices(envs)
        self._answer = envs.step_single if self.render_mode is None else self._answer_and_note
        self._copy_observation = self._observation_copies()
        told = {"action_mask": self._envs.mask, "reward_terms": self._envs.terms}
        self._copy_told = _native.RowCopies(told).row
        self._terms = [term.name for term in self.plan.reward.terms]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin the next episode; with a seed, the first episode of that seed."""
        seed = SEED.or_none().take("seed", seed)
        super().reset(seed=seed, options=options)
        if seed is not None or not self._is_seeded:
            self._is_seeded = True
            self._envs.seed(0, int(self.np_random.integers(2**30)) if seed is None else seed)
        self._envs.reset([0])
        self._last_choices.forget([0])
        self._is_over = False
        number = self._envs.episode(0)
        return self._copy_observation(0), {
            "action_mask": self.action_masks(),
            "episode_key": np.array(number),
        }

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Carry out a decision and advance to the next one."""
        if self._is_over:
            self._envs.check_open()
            raise SimulationError(
                "a step without an episode", where="env.step", expected="env.reset() first"
            )
        try:
            choice, node = action if self._has_pairs else (action, 0)
            # The native core refuses what does not fit into 64 bits.
            answer = self._answer(_integer(choice), _integer(node))
        except IndexError:
            given = [int(choice), int(node)] if self._has_pairs else int(choice)
            raise self._envs.not_in_range(given, "env.step") from None
        except (TypeError, ValueError):
            raise ConfigError(
                f"action is {action!r}",
                where="env.step",
                expected="two integers: a row or the no-op, and a node"
                if self._has_pairs
                else "an integer",
            ) from None
        reward, terminated, truncated, illegal, seconds = answer
        info: dict[str, Any] = self._copy_told(0)
        info["seconds"] = seconds
        if illegal:
            info["illegal"] = True
        if terminated or truncated:
            self._is_over = True
            info["sched"] = dict(zip(SCORES, self._envs.scores[0].tolist(), strict=True))
        return self._copy_observation(0), reward, terminated, truncated, info

    def fork(self, *, into: SchedulingEnv | None = None) -> SchedulingEnv:
        """Return a copy of this environment, in the middle of the episode.

        With equal actions both show the same, bit for bit, in this episode and in later ones.
        Nothing that is done to one affects the other.

        Args:
            into: an earlier fork, which is overwritten and returned: cheaper than a new one.

        Example:
            >>> import berthline, gymnasium as gym
            >>> env = gym.make("berthline/Pick-v0", episode_jobs=64).unwrapped
            >>> observation, info = env.reset(seed=1)
            >>> what_if = env.fork()
            >>> _ = what_if.step(0)
            >>> len(what_if.log().time) > len(env.log().time)
            True
        """
        self._envs.check_open()
        self._envs.episode(0)  # there must be one
        if into is not None:
            check_fork(into, self)
            into._envs.overwrite([0], self._envs, [0])
        else:
            into = self._twin()
            into._use(self._envs.fork([0], 1))
            into.observation_space = copy.deepcopy(self.observation_space)
            into.action_space = copy.deepcopy(self.action_space)
        into._np_random = copy.deepcopy(self._np_random)
        into._is_seeded, into._is_over = self._is_seeded, self._is_over
        return into

    def render(self) -> RenderedFrame | None:
        """Return what the cluster, the queue and the question look like now.

        Returns:
            A text, or a picture of shape (height, width, 3); None if there is no render mode.
        """
        if self.render_mode is None:
            warn_without_mode()
            return None
        thoughts = self._thoughts and self._thoughts(self._copy_observation(0), self.action_masks())
        [last] = self._last_choices.words
        return frame_of(
            scene_of(self._envs, 0, thoughts=thoughts, last_choice=last), self.render_mode
        )

    def show_policy(self, policy: Thoughts | None) -> None:
        """Let `render` show what a policy thinks.

        Args:
            policy: a function of an observation and its mask, which returns a probability for each
                entry of the mask; it is called by `render` only. None = no policy.
        """
        self._thoughts = policy

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return which actions are allowed now; for PickPlace, jobs and no-op, then nodes."""
        self._envs.check_open()
        return self._mask.copy()

    def close(self) -> None:
        """Release the native memory. A second call does nothing; any other call is then refused."""
        self._envs.close()

    def set_load(self, low: float, high: float | None = None) -> None:
        """Set the load of all episodes that have not begun, for example in a curriculum."""
        self._envs.set_load(low, high)

    @property
    def reward_terms(self) -> list[str]:
        """Names of the terms in `info["reward_terms"]`."""
        return self._terms

    def question(self) -> dict[str, Any]:
        """Return the question: the clock, the job of each row, the job at hand."""
        return self._envs.question(0)

    def log(self) -> Schedule:
        """Return the schedule log of this episode, so far."""
        return self._envs.log(0)

    def workload(self) -> Workload:
        """Return the jobs of this episode."""
        return self._envs.workload(0)

    def start(self) -> Snapshot | None:
        """Return the state in which this episode began; None = an empty cluster."""
        start = self._envs.start(0)
        return None if start is None else start.snapshot

    def snapshot(self) -> Snapshot:
        """Return the state that this episode is in, before the first decision of the instant.

        Episodes of another environment can begin there (`start=`). With a generator, each has a
        future of its own; `fork` copies the future too.
        """
        return self._envs.snapshot(0)

    def _answer_and_note(self, choice: int, node: int) -> Any:
        """Carry out a decision, and keep it in words for the next frame."""
        self._last_choices.note(0, choice, node)
        return self._envs.step_single(choice, node)

    def _observation_copies(self) -> Callable[[int], Observation]:
        envs = self._envs
        if self.plan.options.observation == "flat":
            flat = _native.RowCopies({"observation": envs.observation}).values
            return lambda env: flat(env)[0]
        tables: dict[str, npt.NDArray[Any]] = {
            **views(self.plan, envs.observation),
            "action_mask": envs.mask.view(np.int8),
        }
        if self._has_pairs:
            tables["pair_mask"] = envs.pair_mask.view(np.int8)
        return _native.RowCopies(tables).row


def _integer(value: Any) -> int:
    if isinstance(value, bool):  # a batch refuses them too
        raise TypeError
    return index(value)
