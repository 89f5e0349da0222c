"""D3QN: dueling double Q-learning (Wang et al. 2016, van Hasselt et al. 2016), with masked actions.

It learns from n-step transitions, more often from those with large errors. Actions that the mask
forbids are never chosen, explored or bootstrapped from, and do not count in the mean of advantages.
The effect of one decision is small compared with the value of the state, so the gap between the
best action and the others is widened (Bellemare et al. 2016). `noisy` and `distributional` add the
other two parts of Rainbow (Hessel et al. 2018).
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from berthline.learn.algorithms.off_policy import OffPolicy, follow
from berthline.learn.networks.masked_actions import MaskedCategorical
from berthline.learn.networks.networks import Network, NetworkConfig, mlp
from berthline.learn.training.experience import Experience

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from berthline.learn.algorithms.configs import DQNConfig
    from berthline.learn.training.environments import Environments
    from berthline.learn.training.replay_buffer import Transitions


class Values(NamedTuple):
    """Action values: means (batch, actions); log-probabilities (batch, actions, atoms) or None."""

    means: Tensor
    log_chances: Tensor | None


class QNetwork(nn.Module):
    """Values of actions. The policy's scores are advantages, which have the same best action.

    Args:
        policy: scores actions.
        dueling: whether scores are advantages to which a state value is added.
    """

    def __init__(self, policy: Network, *, dueling: bool) -> None:
        super().__init__()
        self.policy = policy
        # A distributional policy has its own part for what all actions have in common.
        has_value = dueling and policy.support is None
        self.value = mlp((policy.width, policy.width, 1), last_gain=0.1) if has_value else None

    def begin_at(self, value: float) -> None:
        """Set the initial value of states, if there is a separate value output."""
        if self.value is not None:
            last = self.value[-1]
            assert isinstance(last, nn.Linear)
            nn.init.constant_(last.bias, value)

    def forward(self, flat: Tensor, masks: Tensor) -> Values:
        """Return values of actions; those of forbidden actions are meaningless."""
        if self.policy.support is not None:
            log_chances, _ = self.policy.log_chances(flat)
            return Values((log_chances.exp() * self.policy.support).sum(dim=-1), log_chances)
        scores, summary = self.policy(flat)
        if self.value is None:
            return Values(scores.squeeze(-1), None)
        return Values(dueling(self.value(summary), scores.squeeze(-1), masks), None)


class Noise(nn.Module):
    """Noise in the last layers of a network (Fortunato et al. 2018), kept apart from the weights.

    Args:
        network: the network.
        size: initial size of the noise.
    """

    def __init__(self, network: QNetwork, size: float) -> None:
        super().__init__()
        parts = ("policy.head.", "policy.no_op.", "policy.common.", "value.")
        self.shapes = {
            name: (layer.out_features, layer.in_features)
            for name, layer in network.named_modules()
            if isinstance(layer, nn.Linear) and name.startswith(parts)
        }
        self.sizes = nn.ParameterList(
            torch.full(shape, size / width_in**0.5)
            for width_out, width_in in self.shapes.values()
            for shape in ((width_out, width_in), (width_out,))
        )

    def draw(self, generator: torch.Generator) -> dict[str, Tensor]:
        """Return what to add to the parameters, by name."""
        found: dict[str, Tensor] = {}
        sizes = iter(self.sizes)
        for name, (width_out, width_in) in self.shapes.items():
            plain = torch.randn(width_out + width_in, generator=generator)
            drawn = plain.sign() * plain.abs().sqrt()
            out = drawn[:width_out]
            found[f"{name}.weight"] = next(sizes) * torch.outer(out, drawn[width_out:])
            found[f"{name}.bias"] = next(sizes) * out
        return found


class DQN(OffPolicy):
    """D3QN; see the module.

    Args:
        envs: where to learn.
        network: shape of the network.
        config: settings.
        seed: of weights and random draws.
        num_regimes: number of regimes that the network distinguishes.
        num_drawn_alike: number of regimes that the replay draws equally often.
    """

    def __init__(
        self,
        envs: Environments,
        network: NetworkConfig,
        config: DQNConfig,
        *,
        seed: int,
        num_regimes: int = 0,
        num_drawn_alike: int = 1,
    ) -> None:
        self.config = config
        support = None
        if config.distributional:
            support = torch.linspace(config.least_return, config.largest_return, config.atoms)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            policy = Network(
                envs.layout,
                network,
                no_op=0.0 if support is not None else config.no_op,
                support=support,
                num_regimes=num_regimes,
            )
            self.q = QNetwork(policy, dueling=config.dueling)
        self.policy = copy.deepcopy(policy).requires_grad_(requires_grad=False)
        self.target = copy.deepcopy(self.q).requires_grad_(requires_grad=False)
        self.noise = Noise(self.q, config.noise) if config.noisy else None
        experience = Experience(
            envs,
            capacity=config.capacity,
            discount=config.discount,
            horizon=config.horizon,
            n_step=config.n_step,
            exponent=config.priority_exponent,
            num_regimes=num_drawn_alike,
        )
        modules: dict[str, nn.Module] = {"policy": self.policy, "q": self.q, "target": self.target}
        parameters = list(self.q.parameters())
        if self.noise is not None:
            modules["noise"] = self.noise
            parameters += self.noise.parameters()
        learned = {"optimizer": (parameters, config.learning_rate)}
        super().__init__(experience, config, modules, learned, seed=seed)

    def _collect(self, progress: float) -> dict[str, float]:
        config = self.config
        epsilon = 0.0
        if not config.noisy:
            share = min(1.0, progress / config.epsilon_share) if config.epsilon_share else 1.0
            epsilon = config.epsilon + share * (config.epsilon_final - config.epsilon)
        log = self.experience.collect(
            config.rollout,
            lambda seen, masks: self.choose(seen, masks, epsilon),
            self._regimes_of,
        )
        log["charts/epsilon"] = epsilon
        return log

    def _regimes_of(self, _seen: Tensor) -> npt.NDArray[np.int64] | None:
        """Return the regimes for the replay; None = there is only one."""
        return None

    def choose(self, observations: Tensor, masks: Tensor, epsilon: float) -> Tensor:
        """Return the best allowed actions, or random allowed ones with probability epsilon."""
        best = masked_argmax(self.values(observations, masks).means, masks)
        any_allowed = MaskedCategorical(torch.zeros(masks.shape), masks).sample(self.generator)
        explores = torch.rand(len(best), generator=self.generator) < epsilon
        return torch.where(explores, any_allowed, best)

    def values(self, observations: Tensor, masks: Tensor) -> Values:
        """Return values of actions, with new noise if noise is used."""
        if self.noise is None:
            found: Values = self.q(observations, masks)
            return found
        added = self.noise.draw(self.generator)
        parameters = dict(self.q.named_parameters())
        moved = {name: parameters[name] + noise for name, noise in added.items()}
        found = functional_call(self.q, moved, (observations, masks))
        return found

    def _begin(self, usual: float) -> None:
        self.q.policy.load_state_dict(self.policy.state_dict())
        self.q.begin_at(usual)
        self.target.load_state_dict(self.q.state_dict())

    def _update(self, progress: float) -> dict[str, float]:
        config = self.config
        importance = config.importance + progress * (1 - config.importance)
        batch = self.experience.sample(config.batch, self.generator, importance=importance)
        values = self.values(batch.observations, batch.masks)
        if values.log_chances is None:
            errors = taken(values.means, batch.actions) - self._targets(batch)
            loss = (batch.weights * huber(errors)).mean()
        else:
            log_chances = taken(values.log_chances, batch.actions)
            # Cross-entropy, in nats: KL(target || ours) + the entropy of the target.
            errors = -(self._target_chances(batch) * log_chances).sum(dim=-1)
            loss = (batch.weights * errors).mean()
        norm = self._step("optimizer", loss)
        self.experience.replay.set_errors(batch.slots, errors.detach().double().numpy())
        self._follow()
        follow(self.policy, self.q.policy, config.average_rate)
        return {
            "losses/td_loss": loss.item(),
            "losses/q_values": taken(values.means, batch.actions).mean().item(),
            "losses/gradient_norm": norm,
        }

    @torch.no_grad()
    def _next_values(self, batch: Transitions) -> tuple[Values, Tensor]:
        """Return the values of the following states, and the actions chosen there."""
        values: Values = self._follower(batch.following, batch.following_masks)
        chooser = values
        if self.config.double:
            chooser = self.values(batch.following, batch.following_masks)
        return values, masked_argmax(chooser.means, batch.following_masks)

    @property
    def _follower(self) -> QNetwork:
        return self.target if self.config.target_network else self.q

    @torch.no_grad()
    def _returns(self, batch: Transitions) -> Tensor:
        """Return the returns minus gap * (best value - value of the action)."""
        if self.config.gap == 0.0:
            return batch.returns
        means = self._follower(batch.observations, batch.masks).means
        best = taken(means, masked_argmax(means, batch.masks))
        return batch.returns - self.config.gap * (best - taken(means, batch.actions))

    @torch.no_grad()
    def _targets(self, batch: Transitions) -> Tensor:
        values, best = self._next_values(batch)
        return self._returns(batch) + batch.discounts * taken(values.means, best)

    @torch.no_grad()
    def _target_chances(self, batch: Transitions) -> Tensor:
        values, best = self._next_values(batch)
        assert values.log_chances is not None
        assert self.q.policy.support is not None
        chances = taken(values.log_chances, best).exp()
        return project(chances, self.q.policy.support, self._returns(batch), batch.discounts)

    @torch.no_grad()
    def _follow(self) -> None:
        config = self.config
        if not config.target_network:
            return
        if config.target_every:
            if (self.updates + 1) % config.target_every == 0:
                self.target.load_state_dict(self.q.state_dict())
            return
        follow(self.target, self.q, config.target_rate)


def dueling(value: Tensor, advantages: Tensor, masks: Tensor) -> Tensor:
    """Return value + advantage - the mean advantage of allowed actions: (batch, actions)."""
    allowed = masks.to(advantages.dtype)
    total = (advantages * allowed).sum(dim=-1, keepdim=True)
    return value + advantages - total / allowed.sum(dim=-1, keepdim=True).clamp_min(1.0)


def masked_argmax(values: Tensor, masks: Tensor) -> Tensor:
    """Return the allowed actions with the largest values: (batch,)."""
    return values.masked_fill(~masks, -torch.inf).argmax(dim=-1)


def taken(values: Tensor, actions: Tensor) -> Tensor:
    """Select the entries of the actions: (batch, actions, ...) to (batch, ...)."""
    return values[torch.arange(len(actions)), actions]


def huber(errors: Tensor) -> Tensor:
    """Return error^2 / 2 where |error| <= 1, else |error| - 1/2."""
    size = errors.abs()
    return torch.where(size <= 1, 0.5 * errors.square(), size - 0.5)


def project(chances: Tensor, support: Tensor, returns: Tensor, discounts: Tensor) -> Tensor:
    """Return the distribution of returns + discounts x support, projected on the support (C51).

    Probability that falls between two atoms is split linearly between them; beyond the ends of the
    support it goes to the end.

    Args:
        chances: (batch, atoms), probabilities of the support.
        support: (atoms,), evenly spaced.
        returns: (batch,).
        discounts: (batch,).
    """
    last = len(support) - 1
    moved = returns.unsqueeze(-1) + discounts.unsqueeze(-1) * support
    place = ((moved - support[0]) / (support[-1] - support[0]) * last).clamp(0, last)
    below = place.floor().clamp(max=last - 1)
    above_share = place - below
    projected = torch.zeros_like(chances)
    projected.scatter_add_(-1, below.long(), chances * (1 - above_share))
    projected.scatter_add_(-1, below.long() + 1, chances * above_share)
    return projected
