"""Policies in use: a learned policy runs a workload as a scheduler does, with the same kind of log.

A policy fills the seat it was trained for: it takes the allowed action with the highest score. The
scheduler of its training environment decides everything else. TARGETS lists what runs the network.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from berthline.deploy.native_policy import NativePolicy, is_plain
from berthline.deploy.onnx_policy import OnnxPolicy
from berthline.deploy.torch_policy import TorchPolicy
from berthline.deploy.trained_policy import Trained, read_policy
from berthline.env.make_plan import make_plan
from berthline.env.native_envs import NativeEnvs
from berthline.env.observation_layout import ObservationLayout
from berthline.env.options import Options, resolve_options
from berthline.env.pick_place_actions import Pairs
from berthline.errors import PolicyError, SimulationError
from berthline.model.schedule import PREEMPT
from berthline.policies.learned import ONNX, Learned
from berthline.policies.scheduler import Scheduler
from berthline.sim.inputs import max_preemptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from berthline.env.plan import Plan
    from berthline.model.cluster import Cluster
    from berthline.model.schedule import Schedule
    from berthline.model.workload import Workload

_OWN: dict[str, Any] = {
    "episode_jobs": None,
    "load": None,
    "dials": {},
    "slice": None,
    "split": None,
    "split_gap": Options.split_gap,
    "split_fractions": Options.split_fractions,
    "missing_types": Options.missing_types,
    "conditions": None,
    "horizon_factor": None,
    "max_steps": None,
    "experts": (),
    "reward": "mean-jct-hours",
    "reward_weights": None,
    "observation": "flat",
}
"""Training options that do not affect the policy's decisions, with the values used here."""


class Policy(Protocol):
    """Chooses an action for one observation after another."""

    def choose(self, observation: npt.NDArray[np.float32], mask: npt.NDArray[np.bool_]) -> int:
        """Return the allowed action with the highest score."""


class Target(NamedTuple):
    """Something that can run the network of a policy.

    Attributes:
        takes: whether it can run a given policy.
        takes_any_rows: whether the number of rows may differ from training, if the network
            allows it.
        load: returns the policy for observations of a layout.
    """

    takes: Callable[[Trained], bool]
    takes_any_rows: bool
    load: Callable[[Trained, ObservationLayout], Policy]


TARGETS: dict[str, Target] = {
    "onnxruntime": Target(
        takes=lambda policy: policy.file.suffix == ONNX,
        takes_any_rows=False,
        load=lambda policy, _: OnnxPolicy(policy.file),
    ),
    "native": Target(
        takes=lambda policy: is_plain(policy.network["kind"], policy.tensors),
        takes_any_rows=True,
        load=lambda policy, layout: NativePolicy(policy.network["kind"], policy.tensors, layout),
    ),
    "torch": Target(
        takes=lambda _: True,
        takes_any_rows=True,
        load=lambda policy, layout: TorchPolicy(policy.network, policy.tensors, layout),
    ),
}
"""The first target that takes a policy runs it. Torch is last: it is large and slow to start."""


def load_policy(learned: Learned, layout: ObservationLayout) -> Policy:
    """Return a policy for observations of a layout, without torch if possible.

    Raises:
        ConfigError: the policy does not fit; see `ObservationLayout.check_fits`.
    """
    trained = read_policy(learned)
    target = next(target for target in TARGETS.values() if target.takes(trained))
    any_rows = target.takes_any_rows and trained.takes_any_rows
    trained.layout.check_fits(layout, where=learned.name, any_rows=any_rows)
    return target.load(trained, layout)


def _other_rules(learned: Learned, options: Options) -> dict[str, Any]:
    """Return the options that a discipline and a placement beside a policy replace."""
    found: dict[str, Any] = {
        name: rule
        for name, rule in (
            ("discipline", learned.discipline),
            ("placement", learned.placement),
        )
        if rule
    }
    if found and learned.seat == "meta":
        # Each of its schedulers has a discipline and a placement of its own.
        found["schedulers"] = tuple(
            _with_rules(Scheduler.parse(text), learned) for text in options.schedulers
        )
    return found


def _with_rules(scheduler: Scheduler, learned: Learned) -> str:
    rule, mark, gate = str(scheduler).partition("?")
    queue, _, placement = rule.partition("@")
    order, _, discipline = queue.rpartition("+")
    written = f"{order}+{learned.discipline or discipline}@{learned.placement or placement}"
    return f"{written}{mark}{gate}"


def run_policy(
    learned: Learned,
    workload: Workload,
    cluster: Cluster,
    *,
    knowledge: str,
    seed: int,
    decision_seconds: list[float] | None = None,
) -> Schedule:
    """Let a policy schedule a workload, and return the log.

    Args:
        learned: the policy.
        workload: the jobs.
        cluster: the nodes.
        knowledge: what is known about run times; must be the same as in training.
        seed: as in `simulate`.
        decision_seconds: the time of each choice of the network is appended here.

    Raises:
        PolicyError: the knowledge differs from training.
        ConfigError: the policy does not fit; see `ObservationLayout.check_fits`.
        SimulationError: jobs are preempted without end.
    """
    plan = policy_plan(learned, workload, cluster, knowledge=knowledge)
    policy = load_policy(learned, ObservationLayout.of(plan))
    envs = NativeEnvs(plan, 1, 1, same_step=False)
    # The number of an episode is the seed of its random draws; see `episode_seed`.
    envs.seed(0, 0, seed)
    envs.reset([0])
    observation, mask = envs.observation[0], envs.mask[0]
    choose, step = policy.choose, envs.step_single
    if decision_seconds is not None:
        choose = _timed(choose, decision_seconds)
    pairs = Pairs(envs) if plan.seat == "pickplace" else None
    is_over = False
    while not is_over:
        if pairs is None:
            row, node = choose(observation, mask), 0
        else:
            pairs.look()
            chosen = np.array([choose(observation, pairs.masks[0])])
            row, node = pairs.split(chosen)[0].tolist()
        _, terminated, truncated, _ = step(row, node)
        is_over = terminated or truncated
    log = envs.log(0)
    if int(np.count_nonzero(log.kind == PREEMPT)) > max_preemptions(len(workload)):
        raise SimulationError(
            "jobs are preempted without end",
            where=learned.name,
            hint="set min_run or max_restarts when training the policy",
        )
    return log


def _timed(choose: Callable[..., int], seconds: list[float]) -> Callable[..., int]:
    """Return a function that also appends the time of each choice."""

    def timed(observation: npt.NDArray[np.float32], mask: npt.NDArray[np.bool_]) -> int:
        began = perf_counter()
        chosen = choose(observation, mask)
        seconds.append(perf_counter() - began)
        return chosen

    return timed


def policy_plan(learned: Learned, workload: Workload, cluster: Cluster, *, knowledge: str) -> Plan:
    """Return the policy's environment with these jobs and nodes.

    Raises:
        PolicyError: the knowledge differs from training.
    """
    if knowledge != learned.knowledge:
        raise PolicyError(
            f"the policy was trained with knowledge {learned.knowledge!r}, not {knowledge!r}",
            where=learned.name,
            hint=f"use `knowledge={learned.knowledge}`",
        )
    options = dict(read_policy(learned).facts["config"]["options"])
    options |= _OWN | {"workload": workload, "cluster": cluster}
    options |= _other_rules(learned, resolve_options(learned.seat, options))
    return make_plan(learned.seat, resolve_options(learned.seat, options))
