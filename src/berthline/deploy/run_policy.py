"""Policies in use: a learned policy runs a workload as a scheduler does, with the same kind of log.

A policy fills the seat it was trained for: it takes the allowed action with the highest score. The
scheduler of its training environment decides everything else. TARGETS lists what runs the network.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from berthline.deploy.bandit_policy import BanditChoice, options_of
from berthline.deploy.given_policy import policy_of as policy_of
from berthline.deploy.native_policy import NativePolicy, is_plain
from berthline.deploy.onnx_policy import OnnxPolicy
from berthline.deploy.policy_run import PolicyRun, inputs_of
from berthline.deploy.torch_policy import TorchPolicy
from berthline.deploy.trained_policy import Trained, read_policy
from berthline.env.make_plan import make_plan
from berthline.env.observation_layout import ObservationLayout
from berthline.env.options import Options, resolve_options
from berthline.env.options_of_decisions import WITHOUT_EFFECT, options_of_decisions
from berthline.errors import PolicyError, SimulationError
from berthline.model.schedule import PREEMPT
from berthline.model.workload import Workload
from berthline.policies.learned import ONNX, Learned
from berthline.policies.scheduler import Scheduler
from berthline.sim.snapshots.resume import without_run_times

if TYPE_CHECKING:
    from collections.abc import Callable

    from berthline.deploy.policy_run import Chooser
    from berthline.env.plan import Plan
    from berthline.model.cluster import Cluster
    from berthline.model.schedule import Schedule
    from berthline.model.snapshot import Snapshot


_MOST_KEPT = 8


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
    load: Callable[[Trained, ObservationLayout], Chooser]


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


def load_policy(learned: Learned, layout: ObservationLayout) -> Chooser:
    """Return a policy for observations of a layout, without torch if possible.

    Raises:
        ConfigError: the policy does not fit; see `ObservationLayout.check_fits`.
    """
    if learned.given is not None:
        asked: Chooser = learned.given.load(layout)
        return asked
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


class Decided(NamedTuple):
    """One decision of a policy.

    Attributes:
        log: the log of the snapshot; the rows after it are the decision.
        questions: how many the policy was asked.
    """

    log: Schedule
    questions: int


def run(
    learned: Learned,
    workload: Workload,
    cluster: Cluster,
    *,
    knowledge: str,
    seed: int,
    horizon: float | None = None,
    start: Snapshot | None = None,
    progress: Callable[[int], None] | None = None,
    decision_seconds: list[float] | None = None,
) -> Schedule:
    """Let a policy schedule a workload, and return the log.

    Args:
        learned: the policy.
        workload: the jobs.
        cluster: the nodes.
        knowledge: what is known about run times; must be the same as in training.
        seed: as in `simulate`.
        horizon: as in `simulate`.
        start: the state in which the run begins; its jobs are the first of the workload.
        progress: as in `simulate`.
        decision_seconds: the time of each choice of the network is appended here.

    Raises:
        PolicyError: the knowledge differs from training.
        ConfigError: the policy does not fit; see `ObservationLayout.check_fits`.
        SimulationError: jobs are preempted without end.
    """
    environment = environment_of(learned, cluster, knowledge)
    inputs = inputs_of(environment.plan, workload, seed=seed, horizon=horizon, start=start)
    running = PolicyRun(inputs, environment.arguments)
    policy = _policy_in_run(learned, environment, running, workload, seed=seed, start=start)
    running.play(policy, progress=progress, decision_seconds=decision_seconds)
    log = running.log()
    if int(np.count_nonzero(log.kind == PREEMPT)) > inputs.max_preemptions:
        raise SimulationError(
            "jobs are preempted without end",
            where=learned.name,
            hint="set min_run or max_restarts when training the policy",
        )
    return log


def decide(
    learned: Learned,
    snapshot: Snapshot,
    *,
    knowledge: str,
    seed: int,
    expects_jobs: bool = True,
) -> Decided:
    """Let a policy make the decision of a snapshot's instant, and nothing else.

    No run time of an unfinished job is read, except under `exact` knowledge.

    Args:
        learned: the policy.
        snapshot: the state.
        knowledge: what is known about run times; must be the same as in training.
        seed: as in `simulate`.
        expects_jobs: whether more jobs may come. If none can, a policy may not wait where nothing
            else would ever happen.

    Raises:
        PolicyError: the knowledge differs from training.
        ConfigError: the policy does not fit; see `ObservationLayout.check_fits`.
    """
    snapshot = without_run_times(snapshot, knowledge)
    environment = environment_of(learned, snapshot.cluster, knowledge)
    inputs = inputs_of(environment.plan, snapshot.workload, seed=seed, start=snapshot)
    policy = load_policy(learned, environment.layout)
    running = PolicyRun(inputs, environment.arguments, only_now=True, expects_jobs=expects_jobs)
    questions = running.play(policy)
    return Decided(running.log(snapshot.now), questions)


def remember(
    learned: Learned,
    workload: Workload,
    cluster: Cluster,
    *,
    knowledge: str,
    seed: int,
    at: float,
    start: Snapshot | None = None,
) -> dict[str, Any]:
    """Return what the seat of a policy remembers at an instant of its run, as columns of Memory.

    No log tells it, so the policy runs again until there, if its seat remembers anything.

    Args:
        learned: the policy.
        workload: the jobs of the run.
        cluster: its nodes.
        knowledge: what is known about run times.
        seed: of the run.
        at: the instant.
        start: the state in which the run began.

    Returns:
        The columns, of the jobs that were submitted before the instant, and `decides` and `timer`
        of a Snapshot. Empty = nothing is remembered.
    """
    environment = environment_of(learned, cluster, knowledge)
    options = environment.plan.options
    waits = environment.plan.seat == "pick" and options.semantics == "wait"
    remembers = waits or environment.plan.seat in ("gate", "meta")
    if not remembers and options.lookahead != "per_gpu":
        return {}
    inputs = inputs_of(environment.plan, workload, seed=seed, start=start)
    running = PolicyRun(inputs, environment.arguments, before=at)
    running.play(_policy_in_run(learned, environment, running, workload, seed=seed, start=start))
    memory = running.memory()
    memory["decides"] = memory.pop("next") == at
    return memory


def _policy_in_run(
    learned: Learned,
    environment: Environment,
    running: PolicyRun,
    workload: Workload,
    *,
    seed: int,
    start: Snapshot | None,
) -> Chooser:
    """Return what answers the questions of a run; a bandit learns from the beginning of one."""
    if learned.bandit is None or start is not None:
        return load_policy(learned, environment.layout)
    return BanditChoice(learned.bandit, running, workload.submit, seed=seed)


class Environment(NamedTuple):
    """What a policy's environment says about its run on a cluster."""

    plan: Plan
    layout: ObservationLayout
    arguments: dict[str, Any]


def environment_of(learned: Learned, cluster: Cluster, knowledge: str) -> Environment:
    """Return the environment of a policy; cached, because it takes longer than a decision.

    It does not depend on jobs: the one it is made with stands for any.
    """
    if learned.given is None or learned.bandit is not None:
        return _environment_of_file(learned, cluster, knowledge)
    # Kept with the object, which a cache of its own would keep alive.
    known = learned.given.environments
    key = (cluster, knowledge, learned.discipline, learned.placement)
    if key not in known:
        if len(known) >= _MOST_KEPT:
            known.clear()
        known[key] = _environment(learned, cluster, knowledge)
    found: Environment = known[key]
    return found


@functools.lru_cache(maxsize=_MOST_KEPT)
def _environment_of_file(learned: Learned, cluster: Cluster, knowledge: str) -> Environment:
    return _environment(learned, cluster, knowledge)


def _environment(learned: Learned, cluster: Cluster, knowledge: str) -> Environment:
    anything = Workload.from_columns(
        submit=np.zeros(1), run=np.ones(1), gpus=np.ones(1, np.int32), estimate=np.ones(1)
    )
    plan = policy_plan(learned, anything, cluster, knowledge=knowledge)
    return Environment(plan, ObservationLayout.of(plan), plan.native_arguments())


def policy_plan(learned: Learned, workload: Workload, cluster: Cluster, *, knowledge: str) -> Plan:
    """Return the policy's environment with these jobs and nodes.

    Raises:
        PolicyError: the knowledge differs from training.
    """
    if learned.bandit is not None:
        options = WITHOUT_EFFECT | options_of(learned.bandit, knowledge)
        options |= {"workload": workload, "cluster": cluster}
        return make_plan(learned.seat, resolve_options(learned.seat, options, are_complete=True))
    if knowledge != learned.knowledge:
        raise PolicyError(
            f"the policy was trained with knowledge {learned.knowledge!r}, not {knowledge!r}",
            where=learned.name,
            hint=f"use `knowledge={learned.knowledge}`",
        )
    facts = learned.facts if learned.given is not None else read_policy(learned).facts
    # Checkpoints of 0.1 and 0.2 have only the options that were given.
    options = facts.get("environment") or options_of_decisions(
        learned.seat, facts["config"]["options"] | {"cluster": cluster}, are_complete=True
    )
    options = options | WITHOUT_EFFECT | {"workload": workload, "cluster": cluster}
    options |= _other_rules(learned, resolve_options(learned.seat, options, are_complete=True))
    return make_plan(learned.seat, resolve_options(learned.seat, options, are_complete=True))
