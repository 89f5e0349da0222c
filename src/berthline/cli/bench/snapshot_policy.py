"""How long a learned policy takes on a snapshot: a question, a decision, the rest of a run.

The policy is a kernel network with random weights in the seat Pick, which starts any job that can
start: which one does not matter for the time it takes. All times are CPU time.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from berthline.model.cluster import Cluster
    from berthline.model.snapshot import Snapshot
    from berthline.model.workload import Workload

CALLS, QUICK_CALLS = 500, 20
HIDDEN = (32, 16)
WINDOW = 128
SEED = 1
NEVER = -1e6
"""Score of the no-op: the policy starts what it can, so that queues are as they are with a rule."""


class PolicySpeed(msgspec.Struct, frozen=True, kw_only=True):
    """CPU time of a learned policy on a snapshot."""

    known: int
    """Jobs in the snapshot."""
    question_p50_us: float
    """A question: the choice of the network, its effect, and what is observed next."""
    question_p99_us: float
    decision_p50_ms: float
    """From the snapshot to the decision, with loading the network into the core."""
    decision_p99_ms: float
    load_ms: float
    """Loading the network into the core; its file has been read."""


class RestSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """CPU time of the rest of a run with a learned policy."""

    whole_ms: float
    """The run from its beginning."""
    first_ms: float
    """The same, until the snapshot's instant."""
    rest_ms: float
    """From the snapshot to the end."""
    begin_ms: float
    """From the snapshot to its first question: what does not depend on what comes."""
    known: int
    """Jobs in the snapshot."""

    @property
    def beyond_share_ms(self) -> float:
        """What resuming costs more than its share: than the whole run without its first part."""
        return self.rest_ms - (self.whole_ms - self.first_ms)


def save_random_policy(path: Path, cluster: str) -> str:
    """Write a policy with random weights for a cluster; return its SCHEDULER text.

    Raises:
        MissingExtraError: torch is not installed.
    """
    from berthline.errors import MissingExtraError

    try:
        import torch
    except ImportError:
        raise MissingExtraError("torch", "train", "a policy to measure") from None
    from berthline.learn.networks.networks import Network, NetworkConfig
    from berthline.learn.training import checkpoint
    from berthline.learn.training.environments import Environments
    from berthline.learn.training.trainer import TrainConfig

    options: dict[str, Any] = {"cluster": cluster, "window": WINDOW}
    layout = Environments("pick", num=1, seed=SEED, options=options).layout
    torch.manual_seed(SEED)
    network = Network(layout, NetworkConfig(kind="kernel", hidden=HIDDEN), gain=1.0)
    with torch.no_grad():
        network.state_dict()["no_op.2.bias"].fill_(NEVER)
    config = TrainConfig(algorithm="ppo", seat="pick", options=options, network=network.config)
    facts = {
        "algorithm": "ppo",
        "config": msgspec.to_builtins(config),
        "layout": msgspec.to_builtins(layout),
        "layout_sha256": layout.sha256,
    }
    tensors = {f"policy.{name}": tensor for name, tensor in network.state_dict().items()}
    checkpoint.save(path / "checkpoints", "best", 1, tensors, facts)
    return str(path)


def measure_policy(snapshot: Snapshot, policy: str, *, quick: bool) -> PolicySpeed:
    """Measure a policy on a snapshot, on which it must have a question.

    Args:
        snapshot: the state.
        policy: a SCHEDULER text, such as `save_random_policy` returns.
        quick: fewer calls.
    """
    from berthline.deploy.policy_run import PolicyRun, inputs_of
    from berthline.deploy.run_policy import decide, environment_of, load_policy
    from berthline.policies.scheduler import Scheduler

    learned = Scheduler.parse(policy).learned
    assert learned is not None
    environment = environment_of(learned, snapshot.cluster, learned.knowledge)
    network = load_policy(learned, environment.layout)
    inputs = inputs_of(environment.plan, snapshot.workload, seed=0, start=snapshot)
    calls = QUICK_CALLS if quick else CALLS
    questions = []
    for _ in range(calls):
        run = PolicyRun(inputs, environment.arguments, only_now=True, expects_jobs=True)
        began = time.process_time_ns()
        asked = run.play(network)
        questions.append((time.process_time_ns() - began) / 1e3 / asked)
    decisions = _times(
        lambda: decide(learned, snapshot, knowledge=learned.knowledge, seed=0), calls
    )
    loads = _times(lambda: load_policy(learned, environment.layout), calls)
    question = np.percentile(questions, (50, 99)).tolist()
    decision = (np.percentile(decisions, (50, 99)) / 1e3).tolist()
    return PolicySpeed(
        known=snapshot.num_jobs,
        question_p50_us=question[0],
        question_p99_us=question[1],
        decision_p50_ms=decision[0],
        decision_p99_ms=decision[1],
        load_ms=float(np.median(loads)) / 1e3,
    )


def measure_rest(
    workload: Workload, cluster: Cluster, policy: str, *, part: float = 0.5, rounds: int = 7
) -> RestSpeed:
    """Measure how long the rest of a run takes, the whole run, and its first part, in turns.

    Reading and checking the files of the policy is not measured.

    Args:
        workload: the jobs.
        cluster: the nodes.
        policy: a SCHEDULER text.
        part: where the snapshot is taken: after this part of the rows of the log.
        rounds: the fastest of these counts.
    """
    from berthline.policies.scheduler import Scheduler
    from berthline.sim.simulate import simulate
    from berthline.sim.snapshots.resume import resume
    from berthline.sim.snapshots.take import take_jobs

    scheduler = Scheduler.parse(policy)
    whole = simulate(workload, cluster, scheduler)
    at = float(np.quantile(whole.log.time, part))
    snapshot = whole.snapshot(at)
    known = snapshot.memory.jobs + snapshot.num_jobs
    arrivals = take_jobs(workload, np.arange(known, len(workload)))
    calls = (
        lambda: simulate(workload, cluster, scheduler),
        lambda: simulate(workload, cluster, scheduler, horizon=at),
        lambda: resume(snapshot, scheduler, arrivals=arrivals),
        lambda: resume(snapshot, scheduler, arrivals=arrivals, horizon=at),
    )
    times = np.min([[_times(call, 1)[0] for call in calls] for _ in range(rounds)], axis=0) / 1e3
    names = ("whole_ms", "first_ms", "rest_ms", "begin_ms")
    found = dict(zip(names, times.tolist(), strict=True))
    return RestSpeed(known=snapshot.num_jobs, **found)


def _times(call: Callable[[], object], count: int) -> list[float]:
    """Return the CPU time of calls, in microseconds."""
    found = []
    for _ in range(count):
        began = time.process_time_ns()
        call()
        found.append((time.process_time_ns() - began) / 1e3)
    return found


def measure_random_policy(snapshot: Snapshot, cluster: str, *, quick: bool) -> PolicySpeed:
    """Measure a policy with random weights on a snapshot of a cluster.

    Args:
        snapshot: the state.
        cluster: the text of its cluster.
        quick: fewer calls.

    Raises:
        MissingExtraError: torch is not installed.
    """
    with tempfile.TemporaryDirectory() as folder:
        return measure_policy(snapshot, save_random_policy(Path(folder), cluster), quick=quick)
