"""SAC: soft actor-critic for discrete actions (Christodoulou 2019), with masked actions.

Two critics value actions, and the lower value counts. The temperature, the price of a nat of
entropy, is adjusted until the policy has the target entropy: in each state
`entropy` * log(number of allowed actions), which is 0 with one allowed action. Only entropy above
the target is rewarded, as in the Lagrangian of this constraint. Otherwise states with many actions
would have a value of their own, and jobs would be kept waiting to keep the choice large. Forbidden
actions have probability 0 and are excluded from every sum.

Entropy is measured relative to a plain choice: all jobs with equal probability, and the no-op
rarely. Relative to equal probabilities, as is usual, it would require a policy that holds every
second job, and what critics learn about such states does not help in others. Without a no-op, the
two are the same.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from berthline.learn.algorithms.dqn import QNetwork, huber, taken
from berthline.learn.algorithms.off_policy import OffPolicy, follow
from berthline.learn.networks.masked_actions import MaskedCategorical
from berthline.learn.networks.networks import Network, NetworkConfig
from berthline.learn.training.experience import Experience

if TYPE_CHECKING:
    from berthline.learn.algorithms.configs import SACConfig
    from berthline.learn.training.environments import Environments
    from berthline.learn.training.replay_buffer import Transitions


class SAC(OffPolicy):
    """SAC; see the module.

    Args:
        envs: where to learn.
        network: shape of the actor and of the critics, which share no weights.
        config: settings.
        seed: of weights and random draws.
    """

    def __init__(
        self, envs: Environments, network: NetworkConfig, config: SACConfig, *, seed: int
    ) -> None:
        self.config = config
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.actor = Network(envs.layout, network, no_op=config.no_op)
            self.critics = nn.ModuleList(
                QNetwork(Network(envs.layout, network), dueling=True) for _ in range(2)
            )
        self.policy = copy.deepcopy(self.actor).requires_grad_(requires_grad=False)
        self.targets = copy.deepcopy(self.critics).requires_grad_(requires_grad=False)
        self.temperature = nn.ParameterDict({"log": torch.tensor(config.temperature).log()})
        experience = Experience(
            envs,
            capacity=config.capacity,
            discount=config.discount,
            horizon=config.horizon,
            n_step=config.n_step,
        )
        modules = {
            "policy": self.policy,
            "actor": self.actor,
            "critics": self.critics,
            "targets": self.targets,
            "temperature": self.temperature,
        }
        learned = {
            "actor_optimizer": (self.actor.parameters(), config.learning_rate),
            "critics_optimizer": (self.critics.parameters(), config.learning_rate),
            "temperature_optimizer": (self.temperature.parameters(), config.temperature_rate),
        }
        super().__init__(experience, config, modules, learned, seed=seed)

    def _collect(self, _progress: float) -> dict[str, float]:
        return self.experience.collect(
            self.config.rollout,
            lambda seen, masks: self.choices(seen, masks).sample(self.generator),
        )

    def _begin(self, usual: float) -> None:
        self.actor.load_state_dict(self.policy.state_dict())
        for critic in self.critics:
            assert isinstance(critic, QNetwork)
            critic.begin_at(usual)
        self.targets.load_state_dict(self.critics.state_dict())

    def choices(self, observations: Tensor, masks: Tensor) -> MaskedCategorical:
        """Return the actor's distribution over actions."""
        scores, _ = self.actor(observations)
        return MaskedCategorical(scores.squeeze(-1), masks)

    def plain(self, masks: Tensor) -> MaskedCategorical:
        """Return the plain choice: all jobs with equal probability, and the no-op rarely."""
        scores = torch.zeros(masks.shape)
        if self.actor.layout.no_op is not None:
            scores[:, self.actor.layout.no_op] = self.config.no_op
        return MaskedCategorical(scores, masks)

    def _allowed_apart(self, masks: Tensor) -> Tensor:
        """Return the target of KL(policy || plain choice), in nats: (batch,)."""
        return (1 - self.config.entropy) * log_allowed(masks)

    def _update(self, _progress: float) -> dict[str, float]:
        config = self.config
        batch = self.experience.sample(config.batch, self.generator)
        temperature = self.temperature["log"].detach().exp()
        goals = self._goals(batch, temperature)
        values = [critic(batch.observations, batch.masks).means for critic in self.critics]
        losses = [huber(taken(q, batch.actions) - goals).mean() for q in values]
        self._step("critics_optimizer", torch.stack(losses).sum())
        chances = self.choices(batch.observations, batch.masks)
        lower = torch.minimum(values[0], values[1]).detach()
        plain = self.plain(batch.masks)
        policy_loss = policy_objective(chances, lower + temperature * plain.log_probs, temperature)
        norm = self._step("actor_optimizer", policy_loss)
        apart = plain.kl_from(chances).detach()
        temperature_loss = temperature_objective(
            self.temperature["log"], apart, self._allowed_apart(batch.masks)
        )
        if config.temperature_rate:
            self._step("temperature_optimizer", temperature_loss)
        follow(self.targets, self.critics, config.target_rate)
        follow(self.policy, self.actor, config.average_rate)
        return {
            "losses/qf1_values": taken(values[0], batch.actions).mean().item(),
            "losses/qf2_values": taken(values[1], batch.actions).mean().item(),
            "losses/qf1_loss": losses[0].item(),
            "losses/qf2_loss": losses[1].item(),
            "losses/actor_loss": policy_loss.item(),
            "losses/alpha": temperature.item(),
            "losses/alpha_loss": temperature_loss.item(),
            "losses/entropy": chances.entropy().mean().item(),
            "losses/gradient_norm": norm,
        }

    @torch.no_grad()
    def _goals(self, batch: Transitions, temperature: Tensor) -> Tensor:
        """Return the targets of the critics: return + discount * soft value of the next state."""
        chances = self.choices(batch.following, batch.following_masks)
        first, second = (
            critic(batch.following, batch.following_masks).means for critic in self.targets
        )
        plain = self.plain(batch.following_masks)
        lower = torch.minimum(first, second) + temperature * plain.log_probs
        value = soft_value(chances, lower, temperature)
        allowed = self._allowed_apart(batch.following_masks)
        return batch.returns + batch.discounts * (value + temperature * allowed)


def soft_value(chances: MaskedCategorical, values: Tensor, temperature: Tensor) -> Tensor:
    """Return the sum of p (q - temperature log p) over allowed actions: (batch,)."""
    log_probs = chances.log_probs.masked_fill(~chances.mask, 0.0)
    allowed = values.masked_fill(~chances.mask, 0.0)
    return (chances.probs * (allowed - temperature * log_probs)).sum(dim=-1)


def policy_objective(chances: MaskedCategorical, values: Tensor, temperature: Tensor) -> Tensor:
    """Return the loss of the policy: minus its mean soft value."""
    return -soft_value(chances, values, temperature).mean()


def temperature_objective(log_temperature: Tensor, apart: Tensor, allowed: Tensor) -> Tensor:
    """Return log temperature * mean(allowed - apart); apart > allowed raises the temperature."""
    return log_temperature * (allowed - apart).mean()


def log_allowed(masks: Tensor) -> Tensor:
    """Return the logarithm of the number of allowed actions: (batch,), 0 for one."""
    return masks.sum(dim=-1).clamp_min(1).to(torch.float32).log()
