"""SAC: soft actor-critic for discrete actions (Christodoulou 2019), with masked actions.

One iteration steps every environment `rollout` times and learns from batches of the replay. Two
critics value actions, the lower value counts. The temperature, the price of a nat of entropy, moves
until the policy has the entropy that is asked for: in each state a share of what its number of
allowed actions makes possible, 0 where only one is allowed. Only what is above that is paid for, as
the Lagrangian of that constraint says: otherwise states with many actions would be worth something
by themselves, and jobs would be left waiting to be chosen from. Forbidden actions have probability
0, and are left out of every sum. The policy is an average of the actor over time, which is steadier
than the actor itself.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import msgspec
import torch
from torch import Tensor, nn

from berthline.learn.checkpoint import optimizer_tensors, restore_optimizer
from berthline.learn.dqn import QNetwork, follow, huber, taken
from berthline.learn.experience import Experience
from berthline.learn.masked import MaskedCategorical
from berthline.learn.networks import Network, NetworkConfig
from berthline.learn.random_state import generator_state, restore_generator
from berthline.learn.schedules import factor

if TYPE_CHECKING:
    from berthline.learn.checkpoint import Checkpoint
    from berthline.learn.environments import Environments
    from berthline.learn.replay import Transitions


class SACConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of SAC.

    Attributes:
        rollout: steps of each environment in an iteration.
        reuse: how often a step is learned from, on average.
        batch: transitions of a batch.
        capacity: states of the replay.
        warmup: steps before learning begins.
        learning_rate: of Adam, for the actor and the critics.
        learning_rate_schedule: see `schedules`.
        max_gradient: norm at which gradients are cut.
        discount: of rewards, per decision.
        horizon: seconds of simulated time after which rewards count 1 / e of what they would now;
            None = only decisions count.
        n_step: steps of a transition.
        no_op: logit of the no-op at first; jobs have about 0.
        target_rate: how far the critics' targets follow them in each update.
        average_rate: how far the policy, an average over time, follows the actor in each update.
        temperature: at first; returns have a size of about 1.
        temperature_rate: learning rate of its logarithm; 0 = it stays as it is.
        entropy: the policy's, as a share of the logarithm of the number of allowed actions.
    """

    rollout: int = 4
    reuse: float = 2.0
    batch: int = 128
    capacity: int = 50_000
    warmup: int = 5_000
    learning_rate: float = 1e-3
    learning_rate_schedule: str = "linear"
    max_gradient: float = 10.0
    discount: float = 1.0
    horizon: float | None = 7200.0
    n_step: int = 10
    no_op: float = -3.0
    target_rate: float = 0.005
    average_rate: float = 0.005
    temperature: float = 1.0
    temperature_rate: float = 1e-2
    entropy: float = 0.98


class SAC:
    """See the module.

    Args:
        envs: where to learn.
        network: shape of the actor and of the critics, which share nothing.
        config: settings.
        seed: of weights and draws.
    """

    def __init__(
        self, envs: Environments, network: NetworkConfig, config: SACConfig, *, seed: int
    ) -> None:
        self.config = config
        self.steps, self.updates = 0, 0
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.actor = Network(envs.layout, network, no_op=config.no_op)
            self.critics = nn.ModuleList(
                QNetwork(Network(envs.layout, network), dueling=True) for _ in range(2)
            )
        self.policy = copy.deepcopy(self.actor).requires_grad_(requires_grad=False)
        self.targets = copy.deepcopy(self.critics).requires_grad_(requires_grad=False)
        self.log_temperature = torch.tensor(config.temperature).log().requires_grad_()
        self.generator = torch.Generator().manual_seed(seed)
        self.experience = Experience(
            envs,
            capacity=config.capacity,
            discount=config.discount,
            horizon=config.horizon,
            n_step=config.n_step,
        )
        self.optimizers = {
            name: torch.optim.Adam(parameters, lr=rate, eps=1e-5, foreach=True)
            for name, parameters, rate in (
                ("actor_optimizer", list(self.actor.parameters()), config.learning_rate),
                ("critics_optimizer", list(self.critics.parameters()), config.learning_rate),
                ("temperature_optimizer", [self.log_temperature], config.temperature_rate),
            )
        }

    def iterate(self, progress: float) -> dict[str, float]:
        """Collect, learn, and return what is to be logged."""
        config = self.config
        log = self.experience.collect(
            config.rollout,
            lambda seen, masks: self.choices(seen, masks).sample(self.generator),
        )
        fresh = config.rollout * self.experience.envs.num
        self.steps += fresh
        if self.steps < config.warmup or len(self.experience.replay) == 0:
            return log
        if self.updates == 0:
            # The policy may have been given another beginning meanwhile.
            self.actor.load_state_dict(self.policy.state_dict())
        rate = factor(config.learning_rate_schedule, progress)
        for name, optimizer in self.optimizers.items():
            base = (
                config.temperature_rate if name == "temperature_optimizer" else config.learning_rate
            )
            for group in optimizer.param_groups:
                group["lr"] = base * rate
        updates = max(1, round(config.reuse * fresh / config.batch))
        logs = [self._update() for _ in range(updates)]
        log |= {name: sum(entry[name] for entry in logs) / len(logs) for name in logs[0]}
        log["learning_rate"] = config.learning_rate * rate
        return log

    def choices(self, observations: Tensor, masks: Tensor) -> MaskedCategorical:
        """Return the actor's distribution over actions."""
        scores, _ = self.actor(observations)
        return MaskedCategorical(scores.squeeze(-1), masks)

    def _update(self) -> dict[str, float]:
        config = self.config
        batch = self.experience.sample(config.batch, self.generator)
        temperature = self.log_temperature.detach().exp()
        goals = self._goals(batch, temperature)
        values = [critic(batch.observations, batch.masks).means for critic in self.critics]
        losses = [huber(taken(q, batch.actions) - goals).mean() for q in values]
        self._step("critics_optimizer", torch.stack(losses).sum())
        chances = self.choices(batch.observations, batch.masks)
        lower = torch.minimum(values[0], values[1]).detach()
        policy_loss = policy_objective(chances, lower, temperature)
        norm = self._step("actor_optimizer", policy_loss)
        entropy = chances.entropy().detach()
        temperature_loss = temperature_objective(
            self.log_temperature, entropy, config.entropy * log_allowed(batch.masks)
        )
        if config.temperature_rate:
            self._step("temperature_optimizer", temperature_loss)
        follow(self.targets, self.critics, config.target_rate)
        follow(self.policy, self.actor, config.average_rate)
        self.updates += 1
        return {
            "losses/qf1_values": taken(values[0], batch.actions).mean().item(),
            "losses/qf2_values": taken(values[1], batch.actions).mean().item(),
            "losses/qf1_loss": losses[0].item(),
            "losses/qf2_loss": losses[1].item(),
            "losses/actor_loss": policy_loss.item(),
            "losses/alpha": temperature.item(),
            "losses/alpha_loss": temperature_loss.item(),
            "losses/entropy": entropy.mean().item(),
            "losses/gradient_norm": norm,
        }

    @torch.no_grad()
    def _goals(self, batch: Transitions, temperature: Tensor) -> Tensor:
        """Return what critics are to say: returns and the soft value of what follows."""
        chances = self.choices(batch.following, batch.following_masks)
        first, second = (
            critic(batch.following, batch.following_masks).means for critic in self.targets
        )
        value = soft_value(chances, torch.minimum(first, second), temperature)
        wanted = self.config.entropy * log_allowed(batch.following_masks)
        return batch.returns + batch.discounts * (value - temperature * wanted)

    def _step(self, name: str, loss: Tensor) -> float:
        optimizer = self.optimizers[name]
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        parameters = optimizer.param_groups[0]["params"]
        norm = nn.utils.clip_grad_norm_(parameters, self.config.max_gradient)
        optimizer.step()
        return norm.item()

    def tensors(self) -> dict[str, Tensor]:
        """Return what is to be saved."""
        found = {
            "temperature.log": self.log_temperature,
            **{f"policy.{name}": t for name, t in self.policy.state_dict().items()},
            **{f"actor.{name}": t for name, t in self.actor.state_dict().items()},
            **{f"critics.{name}": t for name, t in self.critics.state_dict().items()},
            **{f"targets.{name}": t for name, t in self.targets.state_dict().items()},
            **self.experience.tensors(),
        }
        for name, optimizer in self.optimizers.items():
            found |= optimizer_tensors(name, optimizer)
        return found

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
        self.actor.load_state_dict(checkpoint.part("actor"))
        self.critics.load_state_dict(checkpoint.part("critics"))
        self.targets.load_state_dict(checkpoint.part("targets"))
        with torch.no_grad():
            self.log_temperature.copy_(checkpoint.tensors["temperature.log"])
        for name, optimizer in self.optimizers.items():
            restore_optimizer(checkpoint, name, optimizer)
        self.steps, self.updates = state["steps"], state["updates"]
        restore_generator(self.generator, state["generator"])
        self.experience.restore(checkpoint, state["experience"])


def soft_value(chances: MaskedCategorical, values: Tensor, temperature: Tensor) -> Tensor:
    """Return the sum of p (q - temperature log p) over allowed actions: (batch,)."""
    log_probs = chances.log_probs.masked_fill(~chances.mask, 0.0)
    allowed = values.masked_fill(~chances.mask, 0.0)
    return (chances.probs * (allowed - temperature * log_probs)).sum(dim=-1)


def policy_objective(chances: MaskedCategorical, values: Tensor, temperature: Tensor) -> Tensor:
    """Return the loss of the policy: minus its mean soft value."""
    return -soft_value(chances, values, temperature).mean()


def temperature_objective(log_temperature: Tensor, entropy: Tensor, wanted: Tensor) -> Tensor:
    """Return a loss that falls where the temperature falls and there is more than is wanted."""
    return log_temperature * (entropy - wanted).mean()


def log_allowed(masks: Tensor) -> Tensor:
    """Return the logarithm of the number of allowed actions: (batch,), 0 for one."""
    return masks.sum(dim=-1).clamp_min(1).to(torch.float32).log()
