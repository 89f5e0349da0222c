"""D3QN: dueling double Q-learning (Wang et al. 2016, van Hasselt et al. 2016), with masked actions.

One iteration steps every environment `rollout` times and learns from batches of the replay:
transitions of n steps, those with large errors more often. Actions that the mask forbids
are never chosen, explored or bootstrapped from, and do not count in the mean of advantages.
`noisy` and `distributional` add the other two parts of Rainbow (Hessel et al. 2018). The policy is
an average of the network over time, which is steadier than the network itself.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import torch
from torch import Tensor, nn
from torch.func import functional_call

from berthline.learn.checkpoint import optimizer_tensors, restore_optimizer
from berthline.learn.experience import Experience
from berthline.learn.masked import MaskedCategorical
from berthline.learn.networks import Network, NetworkConfig, mlp
from berthline.learn.random_state import generator_state, restore_generator
from berthline.learn.schedules import factor

if TYPE_CHECKING:
    from berthline.learn.checkpoint import Checkpoint
    from berthline.learn.environments import Environments
    from berthline.learn.replay import Transitions


class DQNConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of D3QN.

    Attributes:
        rollout: steps of each environment in an iteration.
        reuse: how often a step is learned from, on average.
        batch: transitions of a batch.
        capacity: states of the replay.
        warmup: steps before learning begins.
        learning_rate: of Adam.
        learning_rate_schedule: see `schedules`.
        max_gradient: norm at which gradients are cut.
        discount: of rewards, per decision.
        horizon: seconds of simulated time after which rewards count 1 / e of what they would now;
            None = only decisions count.
        n_step: steps of a transition.
        no_op: advantage of the no-op at first; jobs have about 0.
        priority_exponent: of errors, when they become priorities; 0 = all are drawn alike.
        importance: how far that is made up for at first; wholly in the end.
        epsilon: share of random actions at first.
        epsilon_final: in the end.
        epsilon_share: share of all steps after which it is that.
        dueling: values and advantages are parts of their own.
        double: one network chooses the next action, the other one values it.
        target_network: next values are those of a network that follows slowly.
        target_rate: how far it follows in each update.
        target_every: updates after which it follows wholly instead; 0 = never.
        average_rate: how far the policy, an average over time, follows the network in each update.
        noisy: exploration by noise in the last layers, whose size is learned, not by epsilon.
        noise: size of that noise at first.
        distributional: learns chances of returns, not their means (C51).
        atoms: returns that have a chance.
        least_return: the first of them, in units of the size of returns.
        largest_return: the last of them.
    """

    rollout: int = 4
    reuse: float = 3.0
    batch: int = 128
    capacity: int = 50_000
    warmup: int = 5_000
    learning_rate: float = 1e-3
    learning_rate_schedule: str = "linear"
    max_gradient: float = 10.0
    discount: float = 1.0
    horizon: float | None = 7200.0
    n_step: int = 10
    no_op: float = -0.1
    priority_exponent: float = 0.5
    importance: float = 0.4
    epsilon: float = 1.0
    epsilon_final: float = 0.2
    epsilon_share: float = 0.6
    dueling: bool = True
    double: bool = True
    target_network: bool = True
    target_rate: float = 0.005
    target_every: int = 0
    average_rate: float = 0.005
    noisy: bool = False
    noise: float = 0.5
    distributional: bool = False
    atoms: int = 51
    least_return: float = -4.0
    largest_return: float = 4.0


class Values(NamedTuple):
    """Of actions: means (batch, actions), and where learned, chances (batch, actions, atoms)."""

    means: Tensor
    log_chances: Tensor | None


class QNetwork(nn.Module):
    """Values of actions. The policy's scores are their advantages, which have the same best one.

    Args:
        policy: scores actions.
        dueling: whether scores are advantages, and a value is added.
    """

    def __init__(self, policy: Network, *, dueling: bool) -> None:
        super().__init__()
        self.policy = policy
        # With chances of returns, the policy has a part that all actions have in common.
        has_value = dueling and policy.support is None
        self.value = mlp((policy.width, policy.width, 1), last_gain=1.0) if has_value else None

    def forward(self, flat: Tensor, masks: Tensor) -> Values:
        """Return values of actions; those of forbidden ones mean nothing."""
        if self.policy.support is not None:
            log_chances, _ = self.policy.log_chances(flat)
            return Values((log_chances.exp() * self.policy.support).sum(dim=-1), log_chances)
        scores, summary = self.policy(flat)
        if self.value is None:
            return Values(scores.squeeze(-1), None)
        return Values(dueling(self.value(summary), scores.squeeze(-1), masks), None)


class Noise(nn.Module):
    """Noise in the last layers of a network (Fortunato et al. 2018), beside their weights.

    Args:
        network: whose last layers.
        size: of the noise at first.
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
        """Return what is to be added to parameters, by name."""
        found: dict[str, Tensor] = {}
        sizes = iter(self.sizes)
        for name, (width_out, width_in) in self.shapes.items():
            plain = torch.randn(width_out + width_in, generator=generator)
            drawn = plain.sign() * plain.abs().sqrt()
            out = drawn[:width_out]
            found[f"{name}.weight"] = next(sizes) * torch.outer(out, drawn[width_out:])
            found[f"{name}.bias"] = next(sizes) * out
        return found


class DQN:
    """See the module.

    Args:
        envs: where to learn.
        network: shape of the network.
        config: settings.
        seed: of weights and draws.
        num_regimes: regimes that the network knows.
        num_drawn_alike: regimes that the replay draws from alike.
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
        self.steps, self.updates = 0, 0
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
        self.generator = torch.Generator().manual_seed(seed)
        self.experience = Experience(
            envs,
            capacity=config.capacity,
            discount=config.discount,
            horizon=config.horizon,
            n_step=config.n_step,
            exponent=config.priority_exponent,
            num_regimes=num_drawn_alike,
        )
        parameters = [*self.q.parameters(), *(self.noise.parameters() if self.noise else ())]
        self.optimizer = torch.optim.Adam(
            parameters, lr=config.learning_rate, eps=1e-5, foreach=True
        )

    def iterate(self, progress: float) -> dict[str, float]:
        """Collect, learn, and return what is to be logged."""
        config = self.config
        epsilon = 0.0
        if not config.noisy:
            share = min(1.0, progress / config.epsilon_share) if config.epsilon_share else 1.0
            epsilon = config.epsilon + share * (config.epsilon_final - config.epsilon)
        log = self._collect(epsilon)
        log["charts/epsilon"] = epsilon
        fresh = config.rollout * self.experience.envs.num
        self.steps += fresh
        if self.steps < config.warmup or len(self.experience.replay) == 0:
            return log
        if self.updates == 0:
            # The policy may have been given another beginning meanwhile.
            self.q.policy.load_state_dict(self.policy.state_dict())
            self.target.load_state_dict(self.q.state_dict())
        for group in self.optimizer.param_groups:
            group["lr"] = config.learning_rate * factor(config.learning_rate_schedule, progress)
        importance = config.importance + progress * (1 - config.importance)
        updates = max(1, round(config.reuse * fresh / config.batch))
        logs = [self._update(importance) for _ in range(updates)]
        log |= {name: sum(entry[name] for entry in logs) / len(logs) for name in logs[0]}
        log["learning_rate"] = self.optimizer.param_groups[0]["lr"]
        return log

    def _collect(self, epsilon: float) -> dict[str, float]:
        return self.experience.collect(
            self.config.rollout, lambda seen, masks: self.choose(seen, masks, epsilon)
        )

    def choose(self, observations: Tensor, masks: Tensor, epsilon: float) -> Tensor:
        """Return the best allowed actions, or any allowed ones in a share of cases."""
        best = masked_argmax(self.values(observations, masks).means, masks)
        any_allowed = MaskedCategorical(torch.zeros(masks.shape), masks).sample(self.generator)
        explores = torch.rand(len(best), generator=self.generator) < epsilon
        return torch.where(explores, any_allowed, best)

    def values(self, observations: Tensor, masks: Tensor) -> Values:
        """Return values of actions, with new noise if there is any."""
        if self.noise is None:
            found: Values = self.q(observations, masks)
            return found
        added = self.noise.draw(self.generator)
        parameters = dict(self.q.named_parameters())
        moved = {name: parameters[name] + noise for name, noise in added.items()}
        found = functional_call(self.q, moved, (observations, masks))
        return found

    def _update(self, importance: float) -> dict[str, float]:
        config = self.config
        batch = self.experience.sample(config.batch, self.generator, importance=importance)
        values = self.values(batch.observations, batch.masks)
        if values.log_chances is None:
            errors = taken(values.means, batch.actions) - self._targets(batch)
            loss = (batch.weights * huber(errors)).mean()
        else:
            log_chances = taken(values.log_chances, batch.actions)
            # The error is how many nats the chances are off, apart from what no one can know.
            errors = -(self._target_chances(batch) * log_chances).sum(dim=-1)
            loss = (batch.weights * errors).mean()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        norm = nn.utils.clip_grad_norm_(parameters, config.max_gradient)
        self.optimizer.step()
        self.experience.replay.set_errors(batch.slots, errors.detach().double().numpy())
        self.updates += 1
        self._follow()
        follow(self.policy, self.q.policy, config.average_rate)
        return {
            "losses/td_loss": loss.item(),
            "losses/q_values": taken(values.means, batch.actions).mean().item(),
            "losses/gradient_norm": norm.item(),
        }

    @torch.no_grad()
    def _next_values(self, batch: Transitions) -> tuple[Values, Tensor]:
        """Return values of what follows, and the actions that count there."""
        follower = self.target if self.config.target_network else self.q
        values: Values = follower(batch.following, batch.following_masks)
        chooser = values
        if self.config.double:
            chooser = self.values(batch.following, batch.following_masks)
        return values, masked_argmax(chooser.means, batch.following_masks)

    @torch.no_grad()
    def _targets(self, batch: Transitions) -> Tensor:
        values, best = self._next_values(batch)
        return batch.returns + batch.discounts * taken(values.means, best)

    @torch.no_grad()
    def _target_chances(self, batch: Transitions) -> Tensor:
        values, best = self._next_values(batch)
        assert values.log_chances is not None
        assert self.q.policy.support is not None
        chances = taken(values.log_chances, best).exp()
        return project(chances, self.q.policy.support, batch.returns, batch.discounts)

    @torch.no_grad()
    def _follow(self) -> None:
        config = self.config
        if not config.target_network:
            return
        if config.target_every:
            if self.updates % config.target_every == 0:
                self.target.load_state_dict(self.q.state_dict())
            return
        follow(self.target, self.q, config.target_rate)

    def tensors(self) -> dict[str, Tensor]:
        """Return what is to be saved."""
        return {
            **{f"policy.{name}": t for name, t in self.policy.state_dict().items()},
            **{f"q.{name}": t for name, t in self.q.state_dict().items()},
            **{f"target.{name}": t for name, t in self.target.state_dict().items()},
            **({f"noise.{k}": t for k, t in self.noise.state_dict().items()} if self.noise else {}),
            **optimizer_tensors("optimizer", self.optimizer),
            **self.experience.tensors(),
        }

    def state(self) -> dict[str, Any]:
        """Return the rest of it, as JSON."""
        return {
            "steps": self.steps,
            "updates": self.updates,
            "generator": generator_state(self.generator),
            "experience": self.experience.state(),
        }

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint."""
        state = checkpoint.facts["state"]
        self.policy.load_state_dict(checkpoint.part("policy"))
        self.q.load_state_dict(checkpoint.part("q"))
        self.target.load_state_dict(checkpoint.part("target"))
        if self.noise:
            self.noise.load_state_dict(checkpoint.part("noise"))
        restore_optimizer(checkpoint, "optimizer", self.optimizer)
        self.steps, self.updates = state["steps"], state["updates"]
        restore_generator(self.generator, state["generator"])
        self.experience.restore(checkpoint, state["experience"])


def dueling(value: Tensor, advantages: Tensor, masks: Tensor) -> Tensor:
    """Return value + advantage - the mean advantage of allowed actions: (batch, actions)."""
    allowed = masks.to(advantages.dtype)
    total = (advantages * allowed).sum(dim=-1, keepdim=True)
    return value + advantages - total / allowed.sum(dim=-1, keepdim=True).clamp_min(1.0)


def masked_argmax(values: Tensor, masks: Tensor) -> Tensor:
    """Return the allowed actions with the largest values: (batch,)."""
    return values.masked_fill(~masks, -torch.inf).argmax(dim=-1)


def taken(values: Tensor, actions: Tensor) -> Tensor:
    """Return what belongs to the actions: (batch, actions, ...) to (batch, ...)."""
    return values[torch.arange(len(actions)), actions]


def huber(errors: Tensor) -> Tensor:
    """Return error^2 / 2, or |error| - 1/2 where that is beyond 1."""
    size = errors.abs()
    return torch.where(size <= 1, 0.5 * errors.square(), size - 0.5)


def project(chances: Tensor, support: Tensor, returns: Tensor, discounts: Tensor) -> Tensor:
    """Return the chances of returns + discounts x support, on the support itself (C51).

    What falls between two of its returns is shared between them, the nearer one gets more; what
    falls beyond its ends is at the ends.

    Args:
        chances: (batch, atoms), of the support.
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


@torch.no_grad()
def follow(target: nn.Module, network: nn.Module, rate: float) -> None:
    """Move a network's parameters towards another's, and copy what is no parameter."""
    torch._foreach_lerp_(list(target.parameters()), list(network.parameters()), rate)
    for ours, theirs in zip(target.buffers(), network.buffers(), strict=True):
        ours.copy_(theirs)
