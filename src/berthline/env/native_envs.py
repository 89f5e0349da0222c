"""NativeEnvs: environments in the native core, with the arrays they write into."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Never, Self

import numpy as np
import numpy.typing as npt

from berthline import _native
from berthline.env.episode_supply import Supply, episode_seed
from berthline.env.option_types import whole
from berthline.errors import ConfigError, SimulationError
from berthline.model.schedule import Schedule
from berthline.sim.simulate import Result
from berthline.sim.snapshots.take import take_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable

    from berthline.env.plan import Plan
    from berthline.env.sources.starts import Start
    from berthline.model.snapshot import Snapshot
    from berthline.model.workload import Workload

SCORES: tuple[str, ...] = tuple(_native.scores)
"""The scores of an episode that is over."""


class HasNativeState:
    """Base of classes that hold native environments, which cannot be copied or pickled."""

    def __reduce__(self) -> Never:
        """Refuse; `copy` and `pickle` call this."""
        raise ConfigError(
            "environments cannot be copied or pickled",
            where=type(self).__name__,
            expected="new ones, made from the same arguments",
            hint="pass a function that makes them, such as lambda: gym.make(...); a copy in the "
            "middle of an episode is env.unwrapped.fork()",
        )

    def _twin(self) -> Self:
        """Return an object with the same attributes, to be given native state of its own."""
        twin = object.__new__(type(self))
        vars(twin).update(vars(self))
        return twin


def take_out_of_range(given: Any) -> str:
    """Return what an action out of range is: `error` or `illegal`."""
    if given not in ("error", "illegal"):
        raise ConfigError(f"out_of_range is {given!r}", expected="'error' or 'illegal'")
    return str(given)


def check_fork(into: Any, of: Any) -> None:
    """Refuse to overwrite anything but a fork of these environments, or what they are a fork of."""
    if into is of or type(into) is not type(of) or into.plan.inputs is not of.plan.inputs:
        raise ConfigError(
            f"into is {into!r}",
            where="fork",
            expected="an earlier fork of these environments",
            hint="without `into`, fork() makes a new one",
        )


class NativeEnvs(HasNativeState):
    """A number of environments that step together.

    One thread at a time may use them. Use by another thread raises a SimulationError, and so does
    any use after `close`, or a question about an episode before the first one.

    Attributes:
        observation: (num_envs, size), the flat observations; overwritten by every step.
        mask: (num_envs, num_actions), True = allowed; also overwritten.
        pair_mask: (num_envs, window, num_nodes), for PickPlace; else empty.
        reward: (num_envs,).
        terms: (num_envs, num_terms), the terms of the reward.
        seconds: (num_envs,), simulated time that the step took.
        terminated: (num_envs,).
        truncated: (num_envs,).
        ended: (num_envs,), terminated or truncated.
        illegal: (num_envs,), whether the mask forbade the last action.
        final_observation: (num_envs, size), of those that ended in the last step.
        final_mask: (num_envs, num_actions), of the same.
        final_pair_mask: (num_envs, window, num_nodes), of the same; empty except for PickPlace.
        scores: (num_envs, len(SCORES)), of the same; 0 for the others.
        same_step: as given.
        out_of_range: as given.

    Args:
        plan: of the environments.
        num_envs: how many.
        num_threads: threads that step them; 1 = the caller's own.
        same_step: whether an environment whose episode is over begins the next at once.
        out_of_range: what an action out of range is: an `error`, or `illegal`, as one that the mask
            forbids.
        like: environments of an equal plan, whose native arguments are used again.
    """

    def __init__(
        self,
        plan: Plan,
        num_envs: int,
        num_threads: int,
        *,
        same_step: bool,
        out_of_range: str = "error",
        like: NativeEnvs | None = None,
    ) -> None:
        self.plan = plan
        self.same_step = same_step
        self.out_of_range = out_of_range
        # Its columns must outlive the batch.
        self._arguments: dict[str, Any] = (
            plan.native_arguments() if like is None else like._arguments
        )
        self._batch = _native.Batch(
            **self._arguments, num_envs=num_envs, num_threads=num_threads, same_step=same_step
        )
        if out_of_range == "error":
            is_of_pairs = plan.seat == "pickplace"
            self._batch.refuse_out_of_range(
                plan.num_actions, plan.cluster.num_nodes if is_of_pairs else 0
            )
        size, actions = self._batch.observation_size, self._batch.num_actions
        nodes = plan.cluster.num_nodes if plan.seat == "pickplace" else 0
        self.num_envs = num_envs
        self._numbers = whole(0, num_envs - 1)
        self._is_closed = False
        self.observation = np.zeros((num_envs, size), np.float32)
        self.mask = np.zeros((num_envs, actions), np.bool_)
        self.pair_mask = np.zeros((num_envs, plan.options.window, nodes), np.bool_)
        self.reward = np.zeros(num_envs)
        self.terms = np.zeros((num_envs, self._batch.num_terms))
        self.seconds = np.zeros(num_envs)
        self.terminated = np.zeros(num_envs, np.bool_)
        self.truncated = np.zeros(num_envs, np.bool_)
        self.ended = np.zeros(num_envs, np.bool_)
        self.illegal = np.zeros(num_envs, np.bool_)
        self.final_observation = np.zeros((num_envs, size), np.float32)
        self.final_mask = np.zeros((num_envs, actions), np.bool_)
        self.final_pair_mask = np.zeros_like(self.pair_mask)
        scores = np.zeros((len(SCORES), num_envs))  # mostly read score by score
        self.scores = scores.T
        self._batch.set_buffers(
            observation=self.observation,
            mask=self.mask.view(np.uint8),
            pair_mask=self.pair_mask.view(np.uint8).reshape(num_envs, -1),
            reward=self.reward,
            terms=self.terms,
            seconds=self.seconds,
            terminated=self.terminated.view(np.uint8),
            truncated=self.truncated.view(np.uint8),
            ended=self.ended.view(np.uint8),
            illegal=self.illegal.view(np.uint8),
            final_observation=self.final_observation,
            final_mask=self.final_mask.view(np.uint8),
            final_pair_mask=self.final_pair_mask.view(np.uint8).reshape(num_envs, -1),
            final_scores=scores,
        )
        self._supply = Supply(plan, self._batch, num_envs)
        self.step_single = self._batch.step_single
        self.which_ended = self._batch.ended

    def seed(self, env: int, seed: int, episode: int = 0) -> None:
        """Set the seed and the episode that an environment's next reset begins."""
        self._supply.seed(env, seed, episode)

    def reset(self, envs: list[int]) -> None:
        """Begin the next episode of these environments, even in the middle of one."""
        numbers = np.array(envs, np.int64)
        with self._batch:
            self._supply.fill(numbers[~self._supply.is_ready(numbers)])
            self._batch.reset(numbers)
            self._supply.began(numbers)
            self._supply.fill(numbers)

    def step(self, actions: npt.NDArray[np.int64]) -> tuple[bool, bool]:
        """Answer every environment's question, and begin new episodes where one is over.

        Returns:
            Whether any episode ended, and whether any action was illegal.
        """
        try:
            has_ended, has_illegal, needs_episodes = self._batch.step(actions)
        except IndexError as error:
            env = int(str(error))
            raise self.not_in_range(
                actions[env].tolist(), f"envs.step, environment {env}"
            ) from None
        if needs_episodes:
            self.refill()
        return has_ended, has_illegal

    def not_in_range(self, action: Any, where: str) -> ConfigError:
        """Return the error for an action that is out of range."""
        plan = self.plan
        expected = f"0 to {plan.num_actions - 1}"
        if plan.seat == "pickplace":
            expected = f"a row or the no-op, {expected}, and a node, 0 to "
            expected += str(plan.cluster.num_nodes - 1)
        return ConfigError(
            f"action is {action}",
            where=where,
            expected=expected,
            hint='to count it as an action that the mask forbids, set out_of_range="illegal"',
        )

    def refill(self) -> None:
        """Supply new episodes where there are none, and begin them where environments wait."""
        with self._batch:
            self._supply.fill(self._note_begun())
            while self._batch.num_stuck:
                self._batch.begin_stuck()
                self._supply.fill(self._note_begun())

    def fork(self, envs: list[int], num_threads: int) -> NativeEnvs:
        """Return copies of environments, in the middle of their episodes.

        They continue as these would, with the same random numbers; neither affects the other.
        """
        plan = self.plan.with_own_source()
        forked = NativeEnvs(
            plan,
            len(envs),
            num_threads,
            same_step=self.same_step,
            out_of_range=self.out_of_range,
            like=self,
        )
        forked.overwrite(range(len(envs)), self, envs)
        return forked

    def overwrite(self, envs: Iterable[int], other: NativeEnvs, from_: Iterable[int]) -> None:
        """Let environments continue as others would, whose plan is equal."""
        own, theirs = np.array([*envs], np.int64), np.array([*from_], np.int64)
        other._note_begun()
        self._batch.copy(own, other._batch, theirs)
        self._supply.copy(own, other._supply, theirs)

    def close(self) -> None:
        """End the threads and release the native memory; the arrays stay as they are."""
        self._batch.close()
        self._is_closed = True

    def check_open(self) -> None:
        """Raise an error if they are closed; for calls that do not reach the native core."""
        if self._is_closed:
            raise SimulationError("the environments are closed", hint="make new ones")

    def _note_begun(self) -> npt.NDArray[np.int64]:
        """Return the environments that have begun the episode they had ready."""
        lacking = np.array(self._batch.lacking(), np.int64)
        self._supply.began(lacking)
        return lacking

    def set_load(self, low: float, high: float | None = None) -> None:
        """Set the load of all episodes that have not begun; see `GeneratedEpisodes.set_load`."""
        source: Any = self.plan.source
        if not hasattr(source, "set_load"):
            raise ConfigError(
                "a load for episodes that are all the same",
                where="set_load",
                expected="a generator, or episodes of some jobs of a trace (episode_jobs)",
            )
        with self._batch:
            self._note_begun()
            before = copy.copy(source)
            source.set_load(low, high)
            self._supply.redraw(before)

    def question(self, env: int) -> dict[str, Any]:
        """Return an environment's question: the clock, the jobs by row, the job at hand."""
        return self._batch.question(self.checked(env))

    def advice(self, env: int, expert: int) -> tuple[int, int]:
        """Return an expert's answer: an action, and the node for PickPlace."""
        return self._batch.advise(self.checked(env), expert)

    def log(self, env: int) -> Schedule:
        """Return the schedule log of an environment's episode, so far."""
        number = self.checked(env)
        horizon = self.question(number)["horizon"]
        return Schedule(**self._batch.log(number), horizon=horizon)

    def workload(self, env: int) -> Workload:
        """Return the jobs of an environment's episode."""
        self.episode(env)
        return self._supply.workload(self.checked(env))

    def start(self, env: int) -> Start | None:
        """Return where an environment's episode began; None = an empty cluster."""
        self.episode(env)
        return self._supply.start(self.checked(env))

    def snapshot(self, env: int) -> Snapshot:
        """Return the state that an environment is in, before the first decision of the instant."""
        plan, start = self.plan, self.start(env)
        episode = Result(
            log=self.log(env),
            workload=self.workload(env),
            cluster=plan.cluster,
            scheduler=plan.scheduler,
            knowledge=plan.options.knowledge,
            seed=episode_seed(*self.episode(env)),
            wall_seconds=0.0,
            start=None if start is None else start.snapshot,
        )
        return take_snapshot(episode, float(self.question(env)["now"]))

    def episode(self, env: int) -> tuple[int, int]:
        """Return (seed, number) of an environment's episode."""
        self._note_begun()
        seed, number = self._supply.key(self.checked(env))
        if number < 0:
            raise SimulationError("the environment has no episode yet", expected="reset() first")
        return seed, number

    def checked(self, env: int) -> int:
        """Return the number of an environment, if it exists."""
        try:
            number: int = self._numbers.convert(env)
        except (TypeError, ValueError):
            raise ConfigError(
                f"there is no environment {env!r}", expected=self._numbers.expected
            ) from None
        return number
