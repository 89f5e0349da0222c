"""Stable-Baselines3: a batch of environments as the VecEnv that its algorithms take.

All environments step in one call of the native core. `action_masks` returns the masks of all
environments at once, as sb3-contrib's MaskablePPO expects.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from berthline.env.episodes_source import batch_seeds
from berthline.env.option_types import SEED
from berthline.env.registration import SEATS, env_id
from berthline.env.vector import SchedulingVectorEnv
from berthline.errors import ConfigError, MissingExtraError, unknown_name

try:
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import VecEnv
except ModuleNotFoundError as error:
    raise MissingExtraError(str(error.name), "sb3", "berthline.compat.sb3") from None

if TYPE_CHECKING:
    from collections.abc import Iterable

_OF_ONE = ("episode_key", "log", "question", "snapshot", "start", "workload")
"""Methods of the batch that take the number of one environment."""


def make(
    id: str,  # noqa: A002 - Gymnasium's name
    num_envs: int = 1,
    *,
    num_threads: int = 1,
    one_decision: bool = False,
    **options: Any,
) -> SB3VecEnv:
    """Return environments as a Stable-Baselines3 VecEnv.

    Args:
        id: Gymnasium's id, such as `berthline/Pick-v0`.
        num_envs: number of environments.
        num_threads: threads that step them.
        one_decision: see SB3VecEnv.
        options: see `berthline.env.options.Options`; `observation="flat"` is for MlpPolicy, the
            default `"dict"` for MultiInputPolicy.

    Raises:
        ConfigError: an unknown id or option, or a batch that SB3VecEnv cannot use.

    Example:
        >>> from berthline.compat import sb3
        >>> envs = sb3.make("berthline/Pick-v0", num_envs=8, episode_jobs=64)
        >>> envs.reset()["jobs"].shape
        (8, 32, 8)
    """
    seats = {env_id(name): seat for name, seat in SEATS.items()}
    if id not in seats:
        what, expected, hint = unknown_name("environment", id, seats)
        raise ConfigError(what, where="berthline.compat.sb3.make", expected=expected, hint=hint)
    envs = SchedulingVectorEnv(num_envs, seats[id], num_threads=num_threads, **options)
    return SB3VecEnv(envs, one_decision=one_decision)


class SB3VecEnv(VecEnv):  # type: ignore[misc]
    """A batch of environments with Stable-Baselines3's interface.

    When an episode ends, its `info` has what SB3's algorithms and loggers look for: the
    `terminal_observation`, whether it was `TimeLimit.truncated`, the return and length as
    `episode`; and also the scores of the schedule as `sched`.

    Args:
        envs: the environments. They must begin the next episode in the step that ends one
            (`same_step`) and return copies; both are the defaults.
        one_decision: whether algorithms are told that an episode ends with each decision, so that
            no later reward counts, whatever their discount is. For the option `credit`, with which
            the reward of a decision is complete. `info` has scores only at the end of real ones.

    Raises:
        ConfigError: they do not, or `one_decision` is set without `credit`.
    """

    def __init__(self, envs: SchedulingVectorEnv, *, one_decision: bool = False) -> None:
        if envs.autoreset_mode != AutoresetMode.SAME_STEP:
            raise ConfigError(
                "autoreset_mode is 'next_step'",
                where="SB3VecEnv",
                expected="'same_step', as for every VecEnv",
            )
        if not envs._copy:
            raise ConfigError(
                "copy is False",
                where="SB3VecEnv",
                expected="True: SB3's algorithms store an observation after the next step",
            )
        if one_decision and envs.plan.credit is None:
            raise ConfigError(
                "one_decision without credit",
                where="SB3VecEnv",
                expected='environments with the option credit, such as credit="sjf"',
            )
        self.envs = envs
        self._one_decision = one_decision
        self._actions: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)

    def reset(self) -> Any:
        """Begin a new episode in every environment, with the seeds set by `seed`."""
        observations, infos = self.envs.reset(seed=list(self._seeds))
        self._reset_seeds()
        self._reset_options()
        self.reset_infos = [{"action_mask": mask} for mask in infos["action_mask"]]
        return observations

    def seed(self, seed: int | None = None) -> list[int]:
        """Set the seeds of the next reset: those of `batch_seeds`. Return them."""
        if seed is None:
            seed = int(self.envs.np_random.integers(2**30))
        self._seeds = batch_seeds(SEED.take("seed", seed), self.num_envs)
        return self._seeds

    def step_async(self, actions: npt.NDArray[Any]) -> None:
        """Store the actions for `step_wait`.

        Raises:
            ConfigError: they are not whole numbers.
        """
        given = np.asarray(actions)
        if given.dtype.kind not in "iu":
            raise ConfigError(
                f"actions have type {given.dtype}", where="step", expected="whole numbers"
            )
        self._actions = np.ascontiguousarray(given, np.int64)

    def step_wait(self) -> tuple[Any, npt.NDArray[np.float32], npt.NDArray[np.bool_], list[Any]]:
        """Carry out the actions."""
        observations, rewards, terminated, truncated, infos = self.envs.step(self._actions)
        dones = terminated | truncated
        own: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for env in np.flatnonzero(dones).tolist():
            final = infos["final_info"]
            own[env] = {
                "terminal_observation": infos["final_obs"][env],
                "TimeLimit.truncated": bool(truncated[env] and not terminated[env]),
                "episode": {
                    "r": float(final["episode"]["r"][env]),
                    "l": int(final["episode"]["l"][env]),
                },
                "sched": {name: float(column[env]) for name, column in final["sched"].items()},
            }
        if self._one_decision:
            dones = np.ones_like(dones)
        return observations, rewards.astype(np.float32), dones, own

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return the actions that are allowed now, (num_envs, num_actions)."""
        return self.envs.action_masks()

    def close(self) -> None:
        """Release the environments."""
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute, or a method, of each environment."""
        return [self._attribute(attr_name, env) for env in self._numbers(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of all environments, which share it.

        Raises:
            ConfigError: `indices` names only some of them.
        """
        self._in_common(attr_name, indices)
        setattr(self.envs, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method of each environment; call a method that they share once.

        Raises:
            ConfigError: they share it, and `indices` names only some of them.
        """
        numbers = self._numbers(indices)
        if method_name == "action_masks":
            return list(self.envs.action_masks()[numbers])
        method = getattr(self.envs, method_name)
        if method_name in _OF_ONE:
            return [method(env, *method_args, **method_kwargs) for env in numbers]
        self._in_common(method_name, indices)
        return [method(*method_args, **method_kwargs)] * self.num_envs

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Any = None) -> list[bool]:
        """Return True for Monitor only: `info["episode"]` has what Monitor provides."""
        return [wrapper_class is Monitor] * len(self._numbers(indices))

    def _attribute(self, name: str, env: int) -> Any:
        if name == "action_masks":
            return partial(self._mask_of, env)
        value = getattr(self.envs, name)
        return partial(value, env) if name in _OF_ONE else value

    def _mask_of(self, env: int) -> npt.NDArray[np.bool_]:
        mask: npt.NDArray[np.bool_] = self.envs.action_masks()[env]
        return mask

    def _in_common(self, name: str, indices: Any) -> None:
        """Refuse a change for some environments that would affect all of them."""
        if len(set(self._numbers(indices))) != self.num_envs:
            raise ConfigError(
                f"{name!r} for some environments of a batch",
                where="SB3VecEnv",
                expected="all environments: they share it",
            )

    def _numbers(self, indices: int | Iterable[int] | None) -> list[int]:
        if indices is None:
            return list(range(self.num_envs))
        numbers = [indices] if isinstance(indices, int) else [int(env) for env in indices]
        return [self.envs._envs.checked(env) for env in numbers]
