"""PPO: proximal policy optimisation with masked actions (Schulman et al. 2017).

One iteration collects `rollout` steps of every environment, estimates advantages (GAE), and learns
from them for `epochs` epochs in minibatches. Actions that the mask forbids have probability 0 in
sampling, in the ratio and in the entropy.

Decisions are not evenly spaced in time: after a job is held, the next decision comes at the next
event; after a start, often much later. With a discount per decision, the next twenty rewards cost
little if little time passes during them. Therefore rewards and traces are discounted by simulated
time. That alone did not prevent policies that hold everything. The initial values of the critic and
of the no-op (`no_op`) were changed too; which of these changes helps was not measured separately.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from berthline.learn.algorithms.schedules import factor, rate_factor
from berthline.learn.networks.masked_actions import MaskedCategorical
from berthline.learn.networks.networks import Network, NetworkConfig, mlp
from berthline.learn.networks.packed_rows import Packed, join
from berthline.learn.training.checkpoint import (
    generator_state,
    optimizer_tensors,
    restore_generator,
    restore_optimizer,
)
from berthline.learn.training.running_statistics import RunningMoments, fading, for_ever

if TYPE_CHECKING:
    from berthline.learn.algorithms.configs import PPOConfig
    from berthline.learn.training.checkpoint import Checkpoint
    from berthline.learn.training.environments import Environments


class Critic(nn.Module):
    """The value of a state, in standard deviations of returns."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.body = network.body
        # A flat network has combined all numbers by then; rows are combined only in the summary.
        hidden = () if network.config.kind == "mlp" else (network.width,)
        self.head = mlp((network.width, *hidden, 1), last_gain=0.1)

    def forward(self, observed: Tensor | Packed) -> Tensor:
        """Return (batch,)."""
        *_, summary = self.body(observed)
        value: Tensor = self.head(summary).squeeze(-1)
        return value


class PPO:
    """PPO; see the module.

    Args:
        envs: where to learn.
        network: shape of the policy and of the critic, which share no weights.
        config: settings.
        seed: of weights and random draws.
    """

    def __init__(
        self, envs: Environments, network: NetworkConfig, config: PPOConfig, *, seed: int
    ) -> None:
        self.envs, self.config = envs, config
        self.steps = self.updates = 0
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.policy = Network(envs.layout, network, no_op=config.no_op)
            self.critic = Critic(Network(envs.layout, network))
        self.generator = torch.Generator().manual_seed(seed)
        self.optimizer = torch.optim.Adam(
            [*self.policy.parameters(), *self.critic.parameters()],
            lr=config.learning_rate,
            eps=1e-5,
            foreach=True,
        )
        self.returns = RunningMoments()

    def iterate(self, progress: float) -> dict[str, float]:
        """Collect, learn, and return values to log."""
        steps = self.steps + self.config.rollout * self.envs.num
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.learning_rate * rate_factor(self.config, progress, steps)
        batch, log = self._collect()
        log |= self._learn(
            batch, self.config.entropy * factor(self.config.entropy_schedule, progress)
        )
        log["learning_rate"] = self.optimizer.param_groups[0]["lr"]
        return log

    @torch.inference_mode()
    def _collect(self) -> tuple[dict[str, Any], dict[str, float]]:
        envs, config, length = self.envs, self.config, self.config.rollout
        shape = (length, envs.num)
        seen: list[Any] = []
        masks = torch.empty((*shape, envs.layout.actions), dtype=torch.bool)
        actions = torch.empty(shape, dtype=torch.int64)
        log_probs, rewards, discounts, traces, ended = (torch.empty(shape) for _ in range(5))
        finished: dict[str, list[float]] = {}
        if self.steps == 0:
            envs.scatter(int(torch.randint(2**31, (), generator=self.generator)))
        for t in range(length):
            # The next step overwrites the arrays of the environments.
            seen.append(self.policy.observed(torch.from_numpy(envs.observations), copy=True))
            masks[t] = torch.from_numpy(envs.masks)
            chances = self.choices(seen[t], masks[t])
            actions[t] = chances.sample(self.generator)
            log_probs[t] = chances.log_prob(actions[t])
            reward, terminated, truncated = envs.step(actions[t].numpy())
            rewards[t] = torch.from_numpy(reward)
            discounts[t] = torch.from_numpy(fading(config.discount, config.horizon, envs.seconds))
            faded = fading(config.trace, config.trace_horizon, envs.seconds)
            traces[t] = torch.from_numpy(faded)
            over = np.flatnonzero(terminated | truncated)
            ended[t] = torch.from_numpy(terminated | truncated)
            if truncated.any():
                # The episode was only cut off, so the value of its last state is added.
                cut = np.flatnonzero(truncated)
                last = torch.from_numpy(envs.last_observations(cut))
                rewards[t, cut] += discounts[t, cut] * self._value(self.policy.observed(last))
            if over.size:
                for name, found in envs.scores(over).items():
                    finished.setdefault(name, []).extend(found.tolist())
        if self.returns.count == 0:
            self._begin_values(rewards, discounts)
        observed = join(seen) if isinstance(seen[0], Packed) else torch.cat(seen)
        values = self._value(observed).view(shape)
        after = self._value(self.policy.observed(torch.from_numpy(envs.observations)))
        following = torch.cat((values[1:], after[None]))
        advantages = gae(rewards, values, following, ended, discounts, traces)
        returns = advantages + values
        self.returns.update(returns)
        self.steps += length * envs.num
        batch = {
            "observations": observed,
            "masks": masks.flatten(0, 1),
            "actions": actions.flatten(),
            "log_probs": log_probs.flatten(),
            "advantages": advantages.flatten(),
            "values": self.returns.scale(values.flatten()),
            "returns": self.returns.scale(returns.flatten()),
        }
        explained = 1 - (returns - values).var() / returns.var().clamp_min(1e-12)
        log = {f"sched/{name}": float(np.mean(found)) for name, found in finished.items()}
        if "return" in finished:
            log["charts/episodic_return"] = log.pop("sched/return")
            log["charts/episodic_length"] = log.pop("sched/length")
        log["losses/explained_variance"] = float(explained)
        log["advantages/mean"] = float(advantages.mean())
        log["advantages/deviation"] = float(advantages.std())
        log["advantages/largest"] = float(advantages.abs().max())
        return batch, log

    def _begin_values(self, rewards: Tensor, discounts: Tensor) -> None:
        """Set the initial mean of values: the first rewards, repeated without end, discounted."""
        mean = for_ever(float(rewards.sum()), float((1 - discounts).sum()), self.envs.num)
        self.returns = RunningMoments(mean, variance=mean**2 / 100, count=1.0)

    def choices(self, observations: Tensor | Packed, masks: Tensor) -> MaskedCategorical:
        """Return the policy's distribution over actions."""
        scores, _ = self.policy(observations)
        return MaskedCategorical(scores.squeeze(-1), masks)

    def _value(self, observations: Tensor | Packed) -> Tensor:
        return self.returns.unscale(self.critic(observations))

    def _learn(self, batch: dict[str, Any], entropy_weight: float) -> dict[str, float]:
        config = self.config
        size = len(batch["actions"])
        part = max(1, size // config.minibatches)
        logs: list[dict[str, float]] = []
        epochs = 0
        for _ in range(config.epochs):
            order = torch.randperm(size, generator=self.generator)
            for begin in range(0, size - part + 1, part):
                chosen = order[begin : begin + part]
                logs.append(
                    self._update(
                        {name: _selected(rows, chosen) for name, rows in batch.items()},
                        entropy_weight,
                    )
                )
            epochs += 1
            newest = logs[-config.minibatches :]
            moved = sum(log["losses/approx_kl"] for log in newest) / len(newest)
            if config.target_kl is not None and moved > config.target_kl:
                break
        log = {name: sum(entry[name] for entry in logs) / len(logs) for name in logs[0]}
        log["losses/epochs"] = float(epochs)
        return log

    def _update(self, batch: dict[str, Any], entropy_weight: float) -> dict[str, float]:
        """Make a step of the optimiser; gradients of the parts of a minibatch are added up."""
        config = self.config
        # Of the whole minibatch, whatever its parts are.
        batch = {**batch, "advantages": scaled(batch["advantages"])}
        size = len(batch["actions"])
        self.optimizer.zero_grad(set_to_none=True)
        log: dict[str, float] = {}
        pieces = torch.arange(size).chunk(config.accumulate)
        for piece in pieces:
            part = batch
            if len(pieces) > 1:
                part = {name: _selected(rows, piece) for name, rows in batch.items()}
            loss, found = self._loss(part, entropy_weight)
            share = len(piece) / size
            (loss if share == 1 else loss * share).backward()  # type: ignore[no-untyped-call]
            log = {name: log.get(name, 0.0) + value * share for name, value in found.items()}
        parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        norm = nn.utils.clip_grad_norm_(parameters, config.max_gradient)
        self.optimizer.step()
        self.updates += 1
        return {**log, "losses/gradient_norm": norm.item()}

    def _loss(
        self, batch: dict[str, Any], entropy_weight: float
    ) -> tuple[Tensor, dict[str, float]]:
        config = self.config
        chances = self.choices(batch["observations"], batch["masks"])
        policy_loss, stats = policy_objective(
            chances.log_prob(batch["actions"]), batch["log_probs"], batch["advantages"], config.clip
        )
        value_loss = value_objective(
            self.critic(batch["observations"]), batch["values"], batch["returns"], config.value_clip
        )
        entropy = chances.entropy().mean()
        loss = policy_loss + config.value_weight * value_loss - entropy_weight * entropy
        return loss, {
            "losses/policy_loss": policy_loss.item(),
            "losses/value_loss": value_loss.item(),
            "losses/entropy": entropy.item(),
            **stats,
        }

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors to save."""
        return {
            **{f"policy.{name}": t for name, t in self.policy.state_dict().items()},
            **{f"critic.{name}": t for name, t in self.critic.state_dict().items()},
            **optimizer_tensors("optimizer", self.optimizer),
        }

    def state(self) -> dict[str, Any]:
        """Return the rest of the state as JSON."""
        return {
            "steps": self.steps,
            "updates": self.updates,
            "generator": generator_state(self.generator),
            "returns": self.returns.state(),
            "environments": self.envs.position(),
        }

    def restore(self, checkpoint: Checkpoint) -> None:
        """Continue from a checkpoint."""
        state = checkpoint.facts["state"]
        self.policy.load_state_dict(checkpoint.part("policy"))
        self.critic.load_state_dict(checkpoint.part("critic"))
        restore_optimizer(checkpoint, "optimizer", self.optimizer)
        self.steps, self.updates = state["steps"], state["updates"]
        restore_generator(self.generator, state["generator"])
        self.returns = RunningMoments(**state["returns"])
        self.envs.restore(state["environments"])


def _selected(rows: Tensor | Packed, chosen: Tensor) -> Tensor | Packed:
    return rows.select(chosen) if isinstance(rows, Packed) else rows.index_select(0, chosen)


def gae(
    rewards: Tensor,
    values: Tensor,
    following: Tensor,
    ended: Tensor,
    discount: Tensor,
    trace: Tensor,
) -> Tensor:
    """Return generalised advantage estimates (Schulman et al. 2016), all (time, envs).

    A_t = delta_t + discount_t trace_t (1 - ended_t) A_(t+1), where
    delta_t = reward_t + discount_t (1 - ended_t) following_t - value_t.
    """
    left = discount * (1 - ended)
    kept = trace * left
    deltas = rewards + left * following - values
    advantages = torch.empty_like(deltas)
    carried = torch.zeros_like(deltas[0])
    for t in reversed(range(len(deltas))):
        carried = deltas[t] + kept[t] * carried
        advantages[t] = carried
    return advantages


def scaled(advantages: Tensor) -> Tensor:
    """Return the advantages of a minibatch, scaled to mean 0 and deviation 1."""
    return (advantages - advantages.mean()) / (advantages.std() + 1e-8)


def policy_objective(
    log_probs: Tensor, old_log_probs: Tensor, advantages: Tensor, clip: float
) -> tuple[Tensor, dict[str, float]]:
    """Return the clipped loss of the policy, and how far the policy has moved.

    Formula: -mean(min(r A, clamp(r, 1 - clip, 1 + clip) A)), where r is the ratio of probabilities
    and A the advantages, which are `scaled`.
    """
    log_ratio = log_probs - old_log_probs
    ratio = log_ratio.exp()
    bounded = ratio.clamp(1 - clip, 1 + clip)
    loss = -torch.minimum(ratio * advantages, bounded * advantages).mean()
    with torch.no_grad():
        stats = {
            "losses/approx_kl": float(((ratio - 1) - log_ratio).mean()),
            "losses/clipfrac": float(((ratio - 1).abs() > clip).float().mean()),
        }
    return loss, stats


def value_objective(values: Tensor, old: Tensor, returns: Tensor, clip: float | None) -> Tensor:
    """Return half the mean squared error; with `clip`, of the larger of plain and clipped error."""
    loss = (values - returns) ** 2
    if clip is not None:
        near = old + (values - old).clamp(-clip, clip)
        loss = torch.maximum(loss, (near - returns) ** 2)
    return loss.mean() / 2
