"""Experience: environments that fill a replay, for off-policy algorithms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
