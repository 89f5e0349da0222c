"""Checkpoints of networks with random or hand-set weights, for tests of policies in use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import torch
from tests.env.agents import plain

from berthline.learn.networks.networks import Network, NetworkConfig
from berthline.learn.training import checkpoint
from berthline.learn.training.environments import Environments
from berthline.learn.training.trainer import TrainConfig

if TYPE_CHECKING:
    from pathlib import Path


def save_policy(
    path: Path, seat: str, options: dict[str, Any], config: NetworkConfig, *, seed: int = 0
) -> Network:
    """Write a run with a checkpoint of a random network, and return the network."""
    options = plain(seat) | options
    envs = Environments(seat, num=1, seed=0, options=options)
    torch.manual_seed(seed)
    network = Network(envs.layout, config, gain=1.0)
    write(path, network, options)
    return network


def write(path: Path, network: Network, options: dict[str, Any], step: int = 1) -> None:
    """Write a run with a checkpoint of a network, as the trainer does; options are plain."""
    layout = network.layout
    train = TrainConfig(algorithm="ppo", seat=layout.seat, options=options, network=network.config)
    facts = {
        "algorithm": "ppo",
        "config": msgspec.to_builtins(train),
        "layout": msgspec.to_builtins(layout),
        "layout_sha256": layout.sha256,
    }
    tensors = {f"policy.{name}": tensor for name, tensor in network.state_dict().items()}
    checkpoint.save(path / "checkpoints", "best", step, tensors, facts)


def save_shortest_first(path: Path, options: dict[str, Any]) -> None:
    """Write a run whose policy picks the job with the smallest first column.

    A kernel network with one number per row: the encoder computes relu(x) of the column x, and the
    head -relu(x). The no-op scores less than any job.
    """
    options = plain("pick") | options
    envs = Environments("pick", num=1, seed=0, options=options)
    network = Network(envs.layout, NetworkConfig(kind="kernel", hidden=(1,)))
    with torch.no_grad():
        for tensor in network.parameters():
            tensor.zero_()
        network.body.encoders["jobs"][0].weight[0, 0] = 1.0
        network.head[0].weight[0, 0] = 1.0
        network.head[2].weight[0, 0] = -1.0
        network.no_op[2].bias[0] = -1e6
    write(path, network, options)


def save_constant(path: Path, seat: str, options: dict[str, Any], action: int, kind: str) -> None:
    """Write a run whose policy always prefers one action, in a seat whose actions are not rows."""
    options = plain(seat) | options
    envs = Environments(seat, num=1, seed=0, options=options)
    network = Network(envs.layout, NetworkConfig(kind=kind, hidden=(8, 8)))
    with torch.no_grad():
        network.head[-1].bias.zero_()
        network.head[-1].bias[action] = 1e6
    write(path, network, options)
