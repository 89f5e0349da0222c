"""Off-policy learning: what D3QN and SAC have in common.

One iteration steps every environment `rollout` times and learns from batches of the replay. The
policy is a moving average of the network that learns, which is more stable than that network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from berthline.learn.algorithms.schedules import rate_factor
from berthline.learn.training.checkpoint import (
    generator_state,
    optimizer_tensors,
    restore_generator,
    restore_optimizer,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from berthline.learn.algorithms.configs import ExperienceConfig
    from berthline.learn.training.checkpoint import Checkpoint
    from berthline.learn.training.experience import Experience


class OffPolicy:
    """Collects, learns, saves and restores; subclasses choose actions and update networks.

    Args:
        experience: the environments and their replay.
        config: settings.
        modules: everything that has weights, by the name it is saved under.
        learned: by the name of each optimiser: its parameters and its learning rate.
        seed: of random draws.
    """

    def __init__(
        self,
        experience: Experience,
        config: ExperienceConfig,
        modules: Mapping[str, nn.Module],
        learned: Mapping[str, tuple[Iterable[nn.Parameter], float]],
        *,
        seed: int,
    ) -> None:
        self.experience, self._common = experience, config
        self.steps, self.updates = 0, 0
        self.generator = torch.Generator().manual_seed(seed)
        self._modules = dict(modules)
        self._rates = {name: rate for name, (_, rate) in learned.items()}
        self._optimizers = {
            name: torch.optim.Adam(list(parameters), lr=rate, eps=1e-5, foreach=True)
            for name, (parameters, rate) in learned.items()
        }

    def iterate(self, progress: float) -> dict[str, float]:
        """Collect, learn, and return values to log."""
        config, envs = self._common, self.experience.envs
        if self.steps == 0:
            # Otherwise a short run would only see the first hours of episodes.
            envs.scatter(int(torch.randint(2**31, (), generator=self.generator)))
        log = self._collect(progress)
        fresh = config.rollout * envs.num
        self.steps += fresh
        if self.steps < config.warmup or len(self.experience.replay) == 0:
            return log
        if self.updates == 0:
            self._begin(self.experience.scale.usual)
        share = rate_factor(config, progress, self.steps)
        for name, optimizer in self._optimizers.items():
            for group in optimizer.param_groups:
                group["lr"] = self._rates[name] * share
        logs = []
        for _ in range(max(1, round(config.reuse * fresh / config.batch))):
            logs.append(self._update(progress))
            self.updates += 1
        log |= {name: sum(entry[name] for entry in logs) / len(logs) for name in logs[0]}
        log["learning_rate"] = config.learning_rate * share
        return log

    def _collect(self, progress: float) -> dict[str, float]:
        """Step the environments, and return values to log."""
        raise NotImplementedError

    def _begin(self, usual: float) -> None:
        """Begin to learn: copy the policy, which may come from a warm start.

        Args:
            usual: initial value of critics; see `for_ever`.
        """
        raise NotImplementedError

    def _update(self, progress: float) -> dict[str, float]:
        """Learn from a batch, and return values to log."""
        raise NotImplementedError

    def _step(self, name: str, loss: Tensor) -> float:
        """Make a step of an optimiser, and return the norm of the gradient."""
        optimizer = self._optimizers[name]
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        parameters = optimizer.param_groups[0]["params"]
        norm = nn.utils.clip_grad_norm_(parameters, self._common.max_gradient)
        optimizer.step()
        return norm.item()

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors to save."""
        found = self.experience.tensors()
        for name, module in self._modules.items():
            found |= {f"{name}.{key}": tensor for key, tensor in module.state_dict().items()}
        for name, optimizer in self._optimizers.items():
            found |= optimizer_tensors(name, optimizer)
        return found

    def state(self) -> dict[str, Any]:
        """Return the rest of the state as JSON."""
        return {
            "steps": self.steps,
            "updates": self.updates,
            "generator": generator_state(self.generator),
            "experience": self.experience.state(),
        }

    def restore(self, checkpoint: Checkpoint) -> None:
        """Continue from a checkpoint."""
        state = checkpoint.facts["state"]
        for name, module in self._modules.items():
            module.load_state_dict(checkpoint.part(name))
        for name, optimizer in self._optimizers.items():
            restore_optimizer(checkpoint, name, optimizer)
        self.steps, self.updates = state["steps"], state["updates"]
        restore_generator(self.generator, state["generator"])
        self.experience.restore(checkpoint, state["experience"])


@torch.no_grad()
def follow(target: nn.Module, network: nn.Module, rate: float) -> None:
    """Move a network's parameters towards another's, and copy the buffers."""
    torch._foreach_lerp_(list(target.parameters()), list(network.parameters()), rate)
    for ours, theirs in zip(target.buffers(), network.buffers(), strict=True):
        ours.copy_(theirs)
