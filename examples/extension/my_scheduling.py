"""An algorithm, a network, a reward, columns and a preset, added to Berthline by a package.

pyproject.toml names them as entry points. After `pip install examples/extension`:

    berthline train reinforce --network deep-sets --preset small-and-busy --out runs/mine
"""

from __future__ import annotations

from typing import Annotated

import msgspec
import torch
from torch import nn

from berthline.training import (
    MaskedCategorical,
    Network,
    generator_state,
    optimizer_tensors,
    restore_generator,
    restore_optimizer,
)

QUEUE_AND_USE = {
    "terms": {
        "queue": ("second", "-queue_len / num_jobs / 3600"),
        "use": ("second", "0.1 * utilization / num_jobs / 3600"),
    },
    "meaning": "minus waits, plus a tenth of the utilization",
}

SHORT_AND_SMALL = {
    "jobs": ["log10(1 + estimate) / 6", "log2(1 + gpus) / 10", "wait / (wait + 3600)"],
    "globals": ["utilization"],
}

SMALL_AND_BUSY = {
    "env": "Pick",
    "options": {
        "cluster": "uniform:2x4:V100",
        "episode_jobs": 32,
        "load": 1.3,
        "window": 16,
        "features": "short-and-small",
        "reward": "queue-and-use",
    },
    "system": "eight GPUs that cannot keep up",
}


class DeepSets(nn.Module):
    """Every job is encoded alone; the mean of all jobs and the cluster make the summary."""

    def __init__(self, layout, config):
        super().__init__()
        width = config.hidden[-1]
        self.job = nn.Sequential(nn.Linear(layout.shapes["jobs"][1], width), nn.GELU())
        self.all = nn.Sequential(nn.Linear(width + layout.shapes["globals"][0], width), nn.GELU())

    def forward(self, tables, present):
        rows = self.job(tables["jobs"]) * present["jobs"].unsqueeze(-1)
        summary = self.all(torch.cat((rows.mean(dim=1), tables["globals"]), dim=-1))
        return rows, summary


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of REINFORCE: `--config NAME=VALUE`."""

    rollout: int = 32
    learning_rate: float = 3e-3
    discount: float = 0.99
    mean_rate: Annotated[
        float, msgspec.Meta(gt=0, le=1, description="how fast the mean return is followed")
    ] = 0.1


class Reinforce:
    """REINFORCE (Williams, 1992) with a running mean of the return as the baseline."""

    Settings = Settings
    default_steps = 100_000

    def __init__(self, envs, network, config, *, seed):
        self.envs, self.config = envs, config
        self.steps = self.updates = 0
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.policy = Network(envs.layout, network)
        self.generator = torch.Generator().manual_seed(seed)
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=config.learning_rate)
        self.mean = 0.0

    def iterate(self, progress):
        """Play `rollout` steps in all environments, and follow the policy gradient once."""
        self.optimizer.param_groups[0]["lr"] = self.config.learning_rate * (1 - progress)
        log_probs, rewards, goes_on = [], [], []
        for _ in range(self.config.rollout):
            scores, _ = self.policy(torch.from_numpy(self.envs.observations.copy()))
            mask = torch.from_numpy(self.envs.masks.copy())
            choices = MaskedCategorical(scores[..., 0], mask)
            actions = choices.sample(self.generator)
            reward, terminated, truncated = self.envs.step(actions.numpy())
            log_probs.append(choices.log_prob(actions))
            rewards.append(torch.from_numpy(reward.copy()))
            goes_on.append(torch.from_numpy(~(terminated | truncated)))
        returns, following = [], torch.zeros(self.envs.num)
        for reward, alive in zip(reversed(rewards), reversed(goes_on), strict=True):
            following = reward + self.config.discount * following * alive
            returns.insert(0, following)
        gains = torch.stack(returns)
        self.mean += self.config.mean_rate * (float(gains.mean()) - self.mean)
        loss = -(torch.stack(log_probs) * (gains - self.mean)).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.updates += 1
        self.steps += self.config.rollout * self.envs.num
        return {"losses/policy": loss.item()}

    def tensors(self):
        """Return what a checkpoint keeps: `policy.*` is the policy."""
        return {
            **{f"policy.{name}": tensor for name, tensor in self.policy.state_dict().items()},
            **optimizer_tensors("optimizer", self.optimizer),
        }

    def state(self):
        """Return the rest of the state, as JSON."""
        return {
            "steps": self.steps,
            "updates": self.updates,
            "mean": self.mean,
            "generator": generator_state(self.generator),
            "environments": self.envs.position(),
        }

    def restore(self, checkpoint):
        """Continue from a checkpoint with the same bits."""
        state = checkpoint.facts["state"]
        self.policy.load_state_dict(checkpoint.part("policy"))
        restore_optimizer(checkpoint, "optimizer", self.optimizer)
        restore_generator(self.generator, state["generator"])
        self.steps, self.updates, self.mean = state["steps"], state["updates"], state["mean"]
        self.envs.restore(state["environments"])
