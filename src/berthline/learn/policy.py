"""Policies in use: a learned policy runs a workload as a scheduler does, and gives the same log.

It fills the seat it was trained for, with the best-scored allowed action; all else is decided
by the scheduler of its training environment, and the jobs and nodes are those that are given.
Plain networks run in the native core and exported ones in onnxruntime; only others need torch.
"""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from berthline.deploy.native_policy import NativePolicy, is_plain
from berthline.env.make_plan import make_plan
from berthline.env.native import NativeEnvs
from berthline.env.options import Options, resolve_options
from berthline.errors import ConfigError, MissingExtraError, PolicyError, SimulationError
from berthline.learn.layout import Layout
from berthline.learn.pairs import Pairs
from berthline.model.schedule import PREEMPT
from berthline.policies.learned import ONNX, Learned, policy_files
from berthline.sim.inputs import max_preemptions

if TYPE_CHECKING:
    from berthline.env.plan import Plan
    from berthline.model.cluster import Cluster
    from berthline.model.schedule import Schedule
    from berthline.model.workload import Workload

_OWN: dict[str, Any] = {
    "episode_jobs": None,
    "load": None,
    "dials": {},
    "split": None,
    "split_gap": Options.split_gap,
    "missing_types": Options.missing_types,
    "conditions": None,
    "horizon_factor": None,
    "max_steps": None,
    "experts": (),
    "reward": "mean-jct-hours",
    "reward_weights": None,
    "observation": "flat",
}
"""Options of training that say nothing about what the policy decides."""


class Policy(Protocol):
    """Answers one question after another."""

    def choose(self, observation: npt.NDArray[np.float32], mask: npt.NDArray[np.bool_]) -> int:
        """Return the best-scored action of those that the mask allows."""


class Trained(msgspec.Struct, frozen=True):
    """What is known of a policy.

    Attributes:
        facts: of its checkpoint or manifest.
        tensors: of its network, by name; those of an exported policy are in its file.
    """

    facts: dict[str, Any]
    tensors: dict[str, npt.NDArray[Any]]

    @property
    def layout(self) -> Layout:
        """What it was trained on."""
        return msgspec.convert(self.facts["layout"], Layout)

    @property
    def network(self) -> dict[str, Any]:
        """The shape of its network: kind, hidden, heads."""
        return dict(self.facts["config"]["network"])

    @property
    def takes_any_rows(self) -> bool:
        """Whether it does not matter how many rows tables have."""
        return bool(self.network["kind"] != "mlp")


def run_policy(
    learned: Learned, workload: Workload, cluster: Cluster, *, knowledge: str, seed: int
) -> Schedule:
    """Let a policy schedule a workload, and return the log.

    Args:
        learned: the policy.
        workload: the jobs.
        cluster: the nodes.
        knowledge: what is known of run times: the same as when it was trained.
        seed: as of `simulate`.

    Raises:
        PolicyError: another knowledge.
        ConfigError: the policy does not fit: see `Layout.check_fits`.
        SimulationError: jobs are preempted without end.
    """
    plan = policy_plan(learned, workload, cluster, knowledge=knowledge)
    policy = load_policy(learned, Layout.of(plan))
    envs = NativeEnvs(plan, 1, 1, same_step=False)
    # An episode's number is the seed of its draws; see `episode_seed`.
    envs.seed(0, 0, seed)
    envs.reset([0])
    observation, mask = envs.observation[0], envs.mask[0]
    choose, step = policy.choose, envs.step_single
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
            hint="set min_run or max_restarts where the policy is trained",
        )
    return log


def policy_plan(learned: Learned, workload: Workload, cluster: Cluster, *, knowledge: str) -> Plan:
    """Return the environment of a policy, over other jobs and nodes.

    Raises:
        PolicyError: another knowledge than it was trained with.
    """
    if knowledge != learned.knowledge:
        raise PolicyError(
            f"the policy was trained with knowledge {learned.knowledge!r}, not {knowledge!r}",
            where=learned.name,
            hint=f"use --knowledge {learned.knowledge}",
        )
    options = dict(read_policy(learned).facts["config"]["options"])
    options |= _OWN | {"workload": workload, "cluster": cluster}
    return make_plan(learned.seat, resolve_options(learned.seat, options))


def training_settings(learned: Learned) -> dict[str, Any]:
    """Return what a policy was trained on, in the words of the command line."""
    options = resolve_options(learned.seat, read_policy(learned).facts["config"]["options"])
    found = {
        "workload": options.workload,
        "cluster": options.cluster,
        "knowledge": learned.knowledge,
        "window_jobs": options.episode_jobs,
        "set": {name: str(value) for name, value in options.dials.items()},
        # Of a range it is the middle, which is what episodes have on average.
        "load": sum(options.load) / 2 if isinstance(options.load, tuple | list) else options.load,
        "conditions": dict(options.conditions or {}),
    }
    return {name: value for name, value in found.items() if value not in (None, {})}


@functools.lru_cache(maxsize=8)
def read_policy(learned: Learned) -> Trained:
    """Return what is known of a policy; a comparison asks for the same one many times.

    Raises:
        ConfigError: it cannot be read.
        MissingExtraError: safetensors is not installed.
    """
    numbers, about = policy_files(learned.path)
    tensors: dict[str, npt.NDArray[Any]] = {}
    try:
        facts = json.loads(about.read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigError(f"not a policy: {error}", where=str(about)) from None
    if numbers.suffix == ONNX:
        return Trained(facts, tensors)
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError:
        raise MissingExtraError("safetensors", "deploy", "reading checkpoints") from None
    try:
        # Optimisers and replays are in there too, and are left where they are.
        with safe_open(numbers, framework="numpy") as file:
            for name in file.keys():  # noqa: SIM118 - not a mapping
                if name.startswith("policy."):
                    tensors[name.removeprefix("policy.")] = file.get_tensor(name)
    except (OSError, SafetensorError) as error:
        raise ConfigError(f"not a checkpoint: {error}", where=str(numbers)) from None
    return Trained(facts, tensors)


def load_policy(learned: Learned, layout: Layout) -> Policy:
    """Return a policy that answers questions of a layout, without torch where that is possible.

    Raises:
        ConfigError: it does not fit; see `Layout.check_fits`.
    """
    trained = read_policy(learned)
    if learned.path.suffix == ONNX:
        from berthline.deploy.onnx_policy import OnnxPolicy

        trained.layout.check_fits(layout, where=learned.name, any_rows=False)
        return OnnxPolicy(learned.path)
    trained.layout.check_fits(layout, where=learned.name, any_rows=trained.takes_any_rows)
    kind = trained.network["kind"]
    if is_plain(kind, trained.tensors):
        return NativePolicy(kind, trained.tensors, layout)
    return TorchPolicy(trained, layout)


class TorchPolicy:
    """A policy whose network runs in torch.

    Attributes:
        network: the network.

    Args:
        trained: the policy.
        layout: of the questions.
    """

    def __init__(self, trained: Trained, layout: Layout) -> None:
        try:
            import torch
        except ImportError:
            raise MissingExtraError(
                "torch", "train", f"a network {trained.network['kind']!r} that is not exported"
            ) from None
        from berthline.learn.networks import Network, NetworkConfig

        config = msgspec.convert(trained.network, NetworkConfig)
        tensors = {name: torch.from_numpy(values) for name, values in trained.tensors.items()}
        self.network = Network.load(layout, config, tensors).eval()

    def choose(self, observation: npt.NDArray[np.float32], mask: npt.NDArray[np.bool_]) -> int:
        """Return the best-scored action of those that the mask allows."""
        return best_by(self.network, observation, mask)


def best_by(network: Any, observation: npt.NDArray[np.float32], mask: npt.NDArray[np.bool_]) -> int:
    """Return the best-scored action of those that a mask allows, by a network of torch."""
    import torch

    with torch.inference_mode():
        scores, _ = network(torch.from_numpy(observation).unsqueeze(0))
        return int(scores[0, :, 0].masked_fill(~torch.from_numpy(mask), -torch.inf).argmax())
