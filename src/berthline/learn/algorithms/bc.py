"""Behaviour cloning: a network learns to choose the actions of a scheduler.

The scheduler (env/experts.py) acts in all environments, and the network learns its actions by
cross-entropy over the allowed actions. There are always new episodes, so the network cannot
memorise them. Every eighth environment is held out: the network does not learn from it, and the
agreement is how often it would have chosen the expert's action there. States with one allowed
action are excluded from both. The result is a warm start for other algorithms: `--init-from`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from berthline.errors import ConfigError
from berthline.learn.algorithms.schedules import rate_factor
from berthline.learn.networks.masked_actions import MaskedCategorical
from berthline.learn.networks.networks import Network, NetworkConfig
from berthline.learn.training.checkpoint import (
    generator_state,
    optimizer_tensors,
    restore_generator,
    restore_optimizer,
)

if TYPE_CHECKING:
    from berthline.learn.algorithms.configs import BCConfig
    from berthline.learn.training.checkpoint import Checkpoint
    from berthline.learn.training.environments import Environments

HELD_OUT = 8
"""One of every HELD_OUT environments is held out."""


class BC:
    """Behaviour cloning; see the module.

    Args:
        envs: where the expert acts; two or more.
        network: shape of the policy.
        config: settings.
        seed: of weights and random draws.

    Raises:
        ConfigError: there is no such expert, or only one environment.
    """

    def __init__(
        self, envs: Environments, network: NetworkConfig, config: BCConfig, *, seed: int
    ) -> None:
        experts = list(envs.plan.options.experts)
        self.expert = config.expert or (experts[0] if experts else "")
        if self.expert not in experts:
            raise ConfigError(
                f"{self.expert!r} is not among the environment's experts"
                if self.expert
                else "there is no expert to learn from",
                expected="one of " + ", ".join(map(repr, experts)) if experts else "",
                hint=f'name it among the experts: option `experts=["{self.expert or "sjf"}"]`',
            )
        if envs.num < 2:
            raise ConfigError("only one environment", expected="two or more: some are held out")
        self.envs, self.config = envs, config
        self.steps = self.updates = 0
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.policy = Network(envs.layout, network)
        self.generator = torch.Generator().manual_seed(seed)
        self.optimizer = torch.optim.Adam(
            self.policy.parameters(), lr=config.learning_rate, eps=1e-5, foreach=True
        )
        self._held_out = np.arange(envs.num) % HELD_OUT == 1
        learned = np.flatnonzero(~self._held_out)
        self._acts_itself = np.zeros(envs.num, np.bool_)
        self._acts_itself[learned[: round(config.own_share * len(learned))]] = True

    def iterate(self, progress: float) -> dict[str, float]:
        """Observe the expert, learn, and return values to log."""
        steps = self.steps + self.config.rollout * self.envs.num
        rate = self.config.learning_rate * rate_factor(self.config, progress, steps)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        batch, log = self._collect()
        log |= self._learn(*batch)
        log["learning_rate"] = rate
        return log

    @torch.no_grad()
    def _collect(self) -> tuple[tuple[Tensor, Tensor, Tensor], dict[str, float]]:
        """Return decisions to learn from, and values to log, such as the held-out agreement."""
        envs = self.envs
        seen: list[tuple[Tensor, Tensor, Tensor]] = []
        agreed: list[Tensor] = []
        finished: dict[str, list[float]] = {}
        for _ in range(self.config.rollout):
            observations = torch.from_numpy(envs.observations.copy())
            masks = torch.from_numpy(envs.masks.copy())
            right = envs.expert_actions(self.expert)
            has_choice = envs.masks.sum(axis=1) > 1
            tested = torch.from_numpy(np.flatnonzero(has_choice & self._held_out))
            taught = torch.from_numpy(np.flatnonzero(has_choice & ~self._held_out))
            answers = torch.from_numpy(right)
            seen.append((observations[taught], masks[taught], answers[taught]))
            if len(tested):
                own = self.choices(observations[tested], masks[tested]).mode()
                agreed.append(own == answers[tested])
            taken = right
            if self._acts_itself.any():
                own = self.choices(observations, masks).mode()
                taken = np.where(self._acts_itself, own.numpy(), right)
            _, terminated, truncated = envs.step(taken)
            over = np.flatnonzero(terminated | truncated)
            if over.size:
                for name, found in envs.scores(over).items():
                    finished.setdefault(name, []).extend(found.tolist())
        self.steps += self.config.rollout * envs.num
        log = {f"sched/{name}": float(np.mean(found)) for name, found in finished.items()}
        if "return" in finished:
            log["charts/episodic_return"] = log.pop("sched/return")
            log["charts/episodic_length"] = log.pop("sched/length")
        if agreed:
            log["charts/agreement"] = float(torch.cat(agreed).float().mean())
        observations, masks, answers = (torch.cat(columns) for columns in zip(*seen, strict=True))
        return (observations, masks, answers), log

    def choices(self, observations: Tensor, masks: Tensor) -> MaskedCategorical:
        """Return the network's distribution over actions."""
        scores, _ = self.policy(observations)
        return MaskedCategorical(scores.squeeze(-1), masks)

    def _learn(self, observations: Tensor, masks: Tensor, answers: Tensor) -> dict[str, float]:
        config, size = self.config, len(answers)
        if not size:
            return {}
        part = max(1, -(-size // config.minibatches))
        losses: list[float] = []
        for _ in range(config.epochs):
            order = torch.randperm(size, generator=self.generator)
            for begin in range(0, size, part):
                chosen = order[begin : begin + part]
                self.optimizer.zero_grad(set_to_none=True)
                total = 0.0
                for piece in chosen.chunk(config.accumulate):
                    chances = self.choices(observations[piece], masks[piece])
                    loss = -chances.log_prob(answers[piece]).mean() * (len(piece) / len(chosen))
                    loss.backward()  # type: ignore[no-untyped-call]
                    total += loss.item()
                nn.utils.clip_grad_norm_(self.policy.parameters(), config.max_gradient)
                self.optimizer.step()
                self.updates += 1
                losses.append(total)
        return {"losses/cross_entropy": sum(losses) / len(losses)}

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors to save."""
        return {
            **{f"policy.{name}": t for name, t in self.policy.state_dict().items()},
            **optimizer_tensors("optimizer", self.optimizer),
        }

    def state(self) -> dict[str, Any]:
        """Return the rest of the state as JSON."""
        return {
            "steps": self.steps,
            "updates": self.updates,
            "generator": generator_state(self.generator),
            "environments": self.envs.position(),
        }

    def restore(self, checkpoint: Checkpoint) -> None:
        """Continue from a checkpoint."""
        state = checkpoint.facts["state"]
        self.policy.load_state_dict(checkpoint.part("policy"))
        restore_optimizer(checkpoint, "optimizer", self.optimizer)
        self.steps, self.updates = state["steps"], state["updates"]
        restore_generator(self.generator, state["generator"])
        self.envs.restore(state["environments"])
