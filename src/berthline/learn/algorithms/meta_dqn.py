"""Meta-DQN: D3QN that chooses schedulers and knows the current regime of the cluster.

Each part is a switch, so that its effect can be measured by leaving it out:

    regime_embedding  the network sees the regime it is in: the nearest of some centres of the
                      cluster-wide numbers; the centres are learned online, without labels
    balanced_replay   all regimes are drawn equally often, however rare they are
    deadline_shaping  missed deadlines cost
    energy            energy costs
    job_age           columns for the wait of jobs, on a short and a long time scale
    target_network    as in D3QN

Switches for rewards and columns change the environments: see `environment_options`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from berthline.env.columns import TABLES, resolve_columns
from berthline.env.options import resolve_options
from berthline.env.rewards import Term, resolve_reward
from berthline.learn.algorithms.dqn import DQN
from berthline.learn.networks.networks import Regimes

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import numpy.typing as npt
    from torch import Tensor

    from berthline.learn.algorithms.configs import MetaDQNConfig
    from berthline.learn.networks.networks import NetworkConfig
    from berthline.learn.training.checkpoint import Checkpoint
    from berthline.learn.training.environments import Environments

_REGIME_COLUMNS = ("arrival_rate * 60", "tanh(arrival_burstiness / 4)")
_AGE_COLUMNS = ("wait / (wait + 600)", "wait / (wait + 36000)")
_RATE = 0.02
"""How far a centre moves towards the mean of its states, in one step of all environments."""
_LEAST_SHARE = 0.1
"""A centre with less than this part of its fair share of states is moved elsewhere."""
_SHARE_MEMORY = 0.98


def environment_options(
    seat: str, options: Mapping[str, Any], config: MetaDQNConfig
) -> dict[str, Any]:
    """Return options with the columns and the reward terms that the switches require.

    Existing columns and terms stay as they are, so the function is idempotent.
    """
    resolved = resolve_options(seat, options)
    columns = resolve_columns(resolved.features, knowledge=resolved.knowledge)
    tables = {name: list(getattr(columns, name)) for name in TABLES}
    wanted = {
        "jobs": _AGE_COLUMNS if config.job_age else (),
        "globals": _REGIME_COLUMNS if config.regime_embedding or config.balanced_replay else (),
    }
    for table, texts in wanted.items():
        tables[table] += [text for text in texts if text not in tables[table]]
    terms = list(resolve_reward(resolved.reward, resolved.reward_weights).terms)
    names = {term.name for term in terms}
    if config.deadline_shaping and "deadlines" not in names:
        cost = Term("deadlines", "finish", "-missed / num_jobs", config.deadline_weight)
        terms.append(cost)
    if config.energy and "energy" not in names:
        cost = Term("energy", "second", "-power_w / 3.6e6 / num_jobs", config.energy_weight)
        terms.append(cost)
    found = {**options, "features": tables, "reward": {}}
    # The formulas contain the weights now.
    found.pop("reward_weights", None)
    for term in terms:
        weighted = term.formula if term.weight == 1.0 else f"{term.weight!r} * ({term.formula})"
        found["reward"][term.name] = [term.occasion, weighted]
    return found


class MetaDQN(DQN):
    """Meta-DQN; see the module.

    Args:
        envs: where to learn; made with `environment_options`.
        network: shape of the network.
        config: settings.
        seed: of weights and random draws.
    """

    config: MetaDQNConfig

    def __init__(
        self, envs: Environments, network: NetworkConfig, config: MetaDQNConfig, *, seed: int
    ) -> None:
        super().__init__(
            envs,
            network,
            config,
            seed=seed,
            num_regimes=config.regimes if config.regime_embedding else 0,
            num_drawn_alike=config.regimes if config.balanced_replay else 1,
        )
        self.regimes = self.q.policy.regimes
        if self.regimes is None and config.balanced_replay:
            self.regimes = Regimes(envs.layout, config.regimes, 1)
        self.finder = None if self.regimes is None else RegimeFinder(self.regimes)

    def _collect(self, progress: float) -> dict[str, float]:
        log = super()._collect(progress)
        counts = self.experience.replay.counts
        if len(counts) > 1:
            log["charts/rarest_regime"] = float(counts.min() / max(1, counts.sum()))
        return log

    def _regimes_of(self, seen: Tensor) -> npt.NDArray[np.int64] | None:
        if self.finder is None:
            return None
        nearest = self.finder.update(seen).numpy()
        return nearest if self.config.balanced_replay else None

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors to save."""
        found = super().tensors()
        if self.regimes is not None and self.q.policy.regimes is None:
            found |= {f"regimes.{name}": t for name, t in self.regimes.state_dict().items()}
        return found

    def state(self) -> dict[str, Any]:
        """Return the rest of the state as JSON."""
        return {**super().state(), "finder": self.finder.state() if self.finder else None}

    def restore(self, checkpoint: Checkpoint) -> None:
        """Continue from a checkpoint."""
        super().restore(checkpoint)
        if self.regimes is not None and self.q.policy.regimes is None:
            self.regimes.load_state_dict(checkpoint.part("regimes"))
        if self.finder is not None:
            self.finder.restore(checkpoint.facts["state"]["finder"])


class RegimeFinder:
    """Moves the centres of regimes towards the states (online k-means).

    Args:
        regimes: the regimes.
    """

    def __init__(self, regimes: Regimes) -> None:
        self.regimes = regimes
        self.count = 0
        self.shares = [0.0] * len(regimes.centres)

    @torch.no_grad()
    def update(self, flat: Tensor) -> Tensor:
        """Update the centres with states, and return their regimes: (batch,)."""
        regimes, number = self.regimes, len(self.regimes.centres)
        self._measure(flat[:, regimes.place])
        scaled = regimes.scaled(flat)
        if not any(self.shares):
            # At first, each centre is the state that is farthest from the centres before it.
            regimes.centres[:] = scaled[0]
            for index in range(1, number):
                gaps = torch.cdist(scaled, regimes.centres[:index]).min(dim=-1).values
                regimes.centres[index] = scaled[gaps.argmax()]
            self.shares = [1 / number] * number
        distances = regimes.distances(flat)
        nearest = distances.argmin(dim=-1)
        for index in range(number):
            own = scaled[nearest == index]
            share = len(own) / len(scaled)
            self.shares[index] += (1 - _SHARE_MEMORY) * (share - self.shares[index])
            if len(own):
                regimes.centres[index] += _RATE * (own.mean(dim=0) - regimes.centres[index])
            elif self.shares[index] < _LEAST_SHARE / number:
                # No states are left near this centre.
                regimes.centres[index] = scaled[distances.min(dim=-1).values.argmax()]
                self.shares[index] = 1 / number
        return nearest

    def _measure(self, numbers: Tensor) -> None:
        """Update the mean and the standard deviation (Chan et al. 1979)."""
        regimes, more = self.regimes, len(numbers)
        total = self.count + more
        gap = numbers.mean(dim=0) - regimes.mean
        variance = (
            regimes.deviation.square() * self.count
            + numbers.var(dim=0, correction=0) * more
            + gap.square() * self.count * more / total
        ) / total
        regimes.mean += gap * more / total
        # A number that never changes has no information, and its noise must not be amplified.
        regimes.deviation.copy_(variance.sqrt().clamp_min(1e-3))
        self.count = total

    def state(self) -> dict[str, Any]:
        """Return the argument of `restore`, as JSON."""
        return {"count": self.count, "shares": self.shares}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.count, self.shares = state["count"], list(state["shares"])
