"""Experience: environments that fill a replay, for off-policy algorithms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import torch
from torch import Tensor

from berthline.learn.training.replay_buffer import ReplayBuffer, Transitions
from berthline.learn.training.running_statistics import RewardScale, fading

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from berthline.learn.training.checkpoint import Checkpoint
    from berthline.learn.training.environments import Environments


class ExperienceConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of all algorithms with a replay.

    Attributes:
        rollout: steps of each environment per iteration.
        reuse: how often a step is used for learning, on average.
        batch: transitions per batch.
        capacity: states in the replay.
        warmup: steps before learning begins.
        learning_rate: of Adam.
        learning_rate_schedule: see `schedules`.
        max_gradient: norm at which gradients are clipped.
        discount: of rewards, per decision.
        horizon: seconds of simulated time after which rewards are discounted by 1 / e; None = no
            discount by time.
        n_step: steps of a transition.
        target_rate: how far target networks follow in each update.
        average_rate: how far the policy, a moving average, follows the network that learns in each
            update.
    """

    rollout: int = 4
    reuse: float = 6.0
    batch: int = 256
    capacity: int = 50_000
    warmup: int = 5_000
    learning_rate: float = 1e-3
    learning_rate_schedule: str = "linear"
    max_gradient: float = 10.0
    discount: float = 1.0
    horizon: float | None = 7200.0
    n_step: int = 10
    target_rate: float = 0.02
    average_rate: float = 0.005


class Experience:
    """Environments, their replay, and the size of their rewards.

    Args:
        envs: where to learn.
        capacity: states in the replay.
        discount: of rewards, per step.
        horizon: seconds of simulated time after which rewards are discounted by 1 / e; None = no
            discount by time.
        n_step: steps of a transition.
        exponent: priority = |error|^exponent.
        num_regimes: number of regimes, which are drawn equally often.
    """

    def __init__(
        self,
        envs: Environments,
        *,
        capacity: int,
        discount: float,
        horizon: float | None,
        n_step: int,
        exponent: float = 0.0,
        num_regimes: int = 1,
    ) -> None:
        self.envs, self.discount, self.horizon = envs, discount, horizon
        self.replay = ReplayBuffer(
            capacity,
            envs.num,
            size=envs.layout.size,
            actions=envs.layout.actions,
            n_step=n_step,
            exponent=exponent,
            num_regimes=num_regimes,
        )
        self.scale = RewardScale(envs.num)

    @torch.no_grad()
    def collect(
        self,
        steps: int,
        choose: Callable[[Tensor, Tensor], Tensor],
        regimes: Callable[[Tensor], npt.NDArray[np.int64] | None] = lambda _: None,
    ) -> dict[str, float]:
        """Step all environments, and return values to log about episodes that ended.

        Args:
            steps: of each environment.
            choose: returns actions for observations and masks.
            regimes: returns the regimes of observations; None = there is only one.
        """
        envs = self.envs
        finished: dict[str, list[float]] = {}
        for _ in range(steps):
            seen, masks = torch.from_numpy(envs.observations), torch.from_numpy(envs.masks)
            self.replay.see(envs.observations, envs.masks, regimes(seen))
            actions = choose(seen, masks).numpy()
            rewards, terminated, truncated = envs.step(actions)
            discounts = fading(self.discount, self.horizon, envs.seconds)
            cut = np.flatnonzero(truncated)
            self.replay.act(
                actions,
                rewards,
                discounts,
                terminated,
                truncated,
                envs.last_observations(cut),
                envs.last_masks(cut),
            )
            ended = terminated | truncated
            self.scale.update(rewards, discounts, ended)
            if ended.any():
                for name, found in envs.scores(np.flatnonzero(ended)).items():
                    finished.setdefault(name, []).extend(found.tolist())
        log = {f"sched/{name}": float(np.mean(found)) for name, found in finished.items()}
        if finished:
            log["charts/episodic_return"] = log.pop("sched/return")
            log["charts/episodic_length"] = log.pop("sched/length")
        return log

    def sample(
        self, size: int, generator: torch.Generator, *, importance: float = 0.0
    ) -> Transitions:
        """Draw transitions whose returns are of order 1; see `ReplayBuffer.sample`."""
        batch = self.replay.sample(size, generator, importance=importance)
        batch.returns.div_(self.scale.size)
        return batch

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors to save."""
        return {f"replay.{name}": tensor for name, tensor in self.replay.tensors().items()}

    def state(self) -> dict[str, Any]:
        """Return the rest of the state as JSON."""
        return {
            "replay": self.replay.state(),
            "scale": self.scale.state(),
            "environments": self.envs.position(),
        }

    def restore(self, checkpoint: Checkpoint, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        self.replay.restore(checkpoint, "replay", state["replay"])
        self.scale.restore(state["scale"])
        self.envs.restore(state["environments"])
