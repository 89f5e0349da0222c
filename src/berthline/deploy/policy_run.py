"""PolicyRun: one run of the native core with a policy in a seat of the scheduler.

It begins on an empty cluster or in the state of a snapshot, and asks what training asked: agent,
observations and masks are those of the environments (native/src/agent/).
"""

from __future__ import annotations

import dataclasses
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from berthline import _native
from berthline.deploy.native_policy import NativePolicy
from berthline.deploy.other_libraries import one_torch_thread
from berthline.errors import PolicyError
from berthline.model.schedule import Schedule
from berthline.random_streams import stream_key, uniform_at
from berthline.sim.inputs import draw_numbers, prepare
from berthline.sim.native import run_arguments, snapshot_arguments

if TYPE_CHECKING:
    from collections.abc import Callable

    from berthline.env.plan import Plan
    from berthline.model.snapshot import Snapshot
    from berthline.model.workload import Workload
    from berthline.sim.inputs import Inputs

ALL = 2**62
"""As many answers as there are questions."""


class Chooser(Protocol):
    """Chooses an action for one observation after another."""

    def choose(self, observation: npt.NDArray[np.float32], mask: npt.NDArray[np.bool_]) -> int:
        """Return the allowed action with the highest score."""


def inputs_of(
    plan: Plan,
    workload: Workload,
    *,
    seed: int,
    horizon: float | None = None,
    start: Snapshot | None = None,
) -> Inputs:
    """Return the inputs of a run with an agent, with the draws that any of its formulas uses.

    Args:
        plan: of the agent's environment.
        workload: the jobs.
        seed: of the run.
        horizon: of the run; None = to the end.
        start: the state in which the run begins.

    Raises:
        PolicyError: the agent knows estimates, and no job has one.
    """
    knowledge = plan.options.knowledge
    inputs = prepare(
        workload,
        plan.cluster,
        plan.scheduler,
        knowledge=knowledge,
        seed=seed,
        horizon=horizon,
        start=start,
    )
    if knowledge == "estimate" and len(workload) and np.isnan(inputs.estimate).all():
        raise PolicyError(
            "no job has an estimate",
            where=f"workload {workload.name!r}",
            hint='use knowledge="predicted", "exact" or "none"',
        )
    if not (plan.uses_random or plan.draws_at_random):
        return inputs
    draw = draw_numbers(workload, start)
    random = uniform_at(stream_key(seed, "order"), draw)
    return dataclasses.replace(inputs, draw=draw, random=random)


class PolicyRun:
    """A run that stops at every question to its policy.

    Attributes:
        observation: the flat observation that goes with the question; overwritten by every answer.
        mask: which actions are allowed; in the seat PickPlace, a job and its first node are one
            action, see `env/pick_place_actions.py`. Also overwritten.

    Args:
        inputs: of the run.
        environment: the arguments of an environment of the policy (`Plan.native_arguments`).
        only_now: make only the decision of the instant at which the inputs start.
        before: only what happens before this time.
        expects_jobs: whether more jobs may come than are known. The no-op is forbidden where
            nothing else would ever happen.
    """

    def __init__(
        self,
        inputs: Inputs,
        environment: dict[str, Any],
        *,
        only_now: bool = False,
        before: float | None = None,
        expects_jobs: bool = False,
    ) -> None:
        arguments = run_arguments(inputs)
        of_seat = environment["inputs"]
        arguments["may_fail"] = of_seat["may_fail"]
        for limit in ("min_run", "max_restarts"):
            arguments["scheduler"][limit] = of_seat["scheduler"][limit]
        rewards = dict(environment["rewards"])
        if rewards["baseline"] is not None:
            was_interrupted = arguments["was_interrupted"]
            rewards["baseline"] = {**rewards["baseline"], "was_interrupted": was_interrupted}
        start = None if inputs.start is None else snapshot_arguments(inputs.start)
        if only_now:
            assert start is not None
            assert inputs.start is not None
            start["decides"] = True
            arguments["conditions"]["tick"] = 0.0  # decide now, whatever the time is
            before = inputs.start.now
        if before is not None:
            arguments["horizon"] = float(np.nextafter(before, -np.inf))
        self._kept = arguments  # its columns must outlive the run
        self._run = _native.AgentRun(
            inputs=arguments,
            seat=environment["seat"],
            observation=environment["observation"],
            rewards=rewards,
            snapshot=start,
            expects_jobs=expects_jobs,
        )
        self.observation, self.mask = self._run.observation, self._run.mask
        self.act = self._run.act
        """Answer the question."""

    @property
    def has_question(self) -> bool:
        """Whether the policy is asked something."""
        return self._run.has_question

    def play(
        self,
        policy: Chooser,
        *,
        progress: Callable[[int], None] | None = None,
        decision_seconds: list[float] | None = None,
    ) -> int:
        """Let a policy answer all questions; return how many.

        Args:
            policy: the policy.
            progress: called now and then with the number of jobs that have arrived.
            decision_seconds: the time of each choice is appended here.
        """
        if isinstance(policy, NativePolicy):
            return self._run.play(policy.network, ALL, progress, decision_seconds)
        with one_torch_thread():
            return self._play_here(policy, decision_seconds)

    def _play_here(self, policy: Chooser, decision_seconds: list[float] | None) -> int:
        answers = 0
        while self._run.has_question:
            began = perf_counter()
            action = policy.choose(self.observation, self.mask)
            if decision_seconds is not None:
                decision_seconds.append(perf_counter() - began)
            self._run.act(action)
            answers += 1
        return answers

    def log(self, horizon: float | None = None) -> Schedule:
        """Return the log so far.

        Args:
            horizon: where it ends; None = at the horizon of the run, or where the run was stuck.
        """
        ends = self._run.log_horizon if horizon is None else horizon
        return Schedule(**self._run.log(), horizon=ends)

    def memory(self) -> dict[str, Any]:
        """Return what no row says about the seat, as columns of Memory.

        Also `next`, when something happens next, and `timer` as in a Snapshot.
        """
        return self._run.memory()

    def question(self) -> dict[str, Any]:
        """Return the question: the clock, the jobs by row, the job at hand."""
        return self._run.question()
