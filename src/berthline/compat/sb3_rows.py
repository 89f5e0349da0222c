"""A policy for sb3-contrib's MaskablePPO that scores jobs one by one with the same weights.

Stable-Baselines3's own policies read the queue as one long vector: what they learn about the first
row they have to learn again for the second, and so on. Here each row of `jobs` gets its score from
its own columns and from what the queue as a whole looks like, wherever it stands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from berthline.errors import ConfigError, MissingExtraError

try:
    import torch
    from sb3_contrib.common.maskable.policies import MaskableMultiInputActorCriticPolicy
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
    from torch import Tensor, nn
except ModuleNotFoundError as error:
    raise MissingExtraError(str(error.name), "sb3", "berthline.compat.sb3_rows") from None

if TYPE_CHECKING:
    from collections.abc import Callable

    from gymnasium import spaces

WIDTH = 64
"""Of all layers, as in Stable-Baselines3's default networks."""

SCALE = 16.0
"""Of logits: a choice among ten jobs is sharp where they differ by about that much."""


class QueueFeatures(BaseFeaturesExtractor):  # type: ignore[misc]
    """Encoded rows of `jobs`, and a summary of them and of `globals`.

    Args:
        observation_space: with the table `jobs`; `globals` is used if it is there.

    Raises:
        ConfigError: there is no such table.
    """

    def __init__(self, observation_space: spaces.Space[Any]) -> None:
        tables = getattr(observation_space, "spaces", {})
        if "jobs" not in tables:
            raise ConfigError(
                "no table of jobs",
                where="QueueFeatures",
                expected='observation="dict", and columns of jobs',
            )
        self.rows, columns = tables["jobs"].shape
        numbers = tables["globals"].shape[0] if "globals" in tables else 0
        super().__init__(observation_space, (self.rows + 1) * WIDTH)
        self.encode = nn.Sequential(
            nn.Linear(columns, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh()
        )
        self.summary = nn.Sequential(nn.Linear(WIDTH + numbers, WIDTH), nn.Tanh())

    def forward(self, observations: dict[str, Tensor]) -> Tensor:
        """Return (batch, (rows + 1) * width): the rows, then the summary."""
        jobs = observations["jobs"]
        present = (jobs != 0).any(dim=-1, keepdim=True).to(jobs.dtype)
        rows = self.encode(jobs) * present
        parts = [rows.sum(dim=1) / present.sum(dim=1).clamp_min(1)]
        if "globals" in observations:
            parts.append(observations["globals"])
        return torch.cat((rows.flatten(1), self.summary(torch.cat(parts, dim=-1))), dim=-1)


class _Latent(nn.Module):
    """Gives the actor everything, and the critic the summary."""

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        return self.forward_actor(features), self.forward_critic(features)

    def forward_actor(self, features: Tensor) -> Tensor:
        return features

    def forward_critic(self, features: Tensor) -> Tensor:
        return features[:, -WIDTH:]


class _RowScores(nn.Module):
    """A score for each row, then one for the no-op."""

    def __init__(self) -> None:
        super().__init__()
        self.job = nn.Sequential(nn.Linear(2 * WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 1))
        self.no_op = nn.Linear(WIDTH, 1)

    def forward(self, features: Tensor) -> Tensor:
        parts = features.view(len(features), -1, WIDTH)
        rows, summary = parts[:, :-1], parts[:, -1]
        beside = summary.unsqueeze(1).expand_as(rows)
        scores = self.job(torch.cat((rows, beside), dim=-1)).squeeze(-1)
        return SCALE * torch.cat((scores, self.no_op(summary)), dim=-1)


class RowPolicy(MaskableMultiInputActorCriticPolicy):  # type: ignore[misc]
    """The policy, in place of `"MultiInputPolicy"`, where actions are jobs: Pick and Backfill.

    Example:
        envs = berthline.compat.sb3.make("berthline/Pick-v0", num_envs=8)
        MaskablePPO(RowPolicy, envs).learn(300_000)
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        lr_schedule: Callable[[float], float],
        **given: Any,
    ) -> None:
        given["features_extractor_class"] = QueueFeatures
        super().__init__(observation_space, action_space, lr_schedule, **given)

    def _build(self, lr_schedule: Callable[[float], float]) -> None:
        rows, actions = self.features_extractor.rows, self.action_space.n
        if actions != rows + 1:
            raise ConfigError(
                f"{actions} actions for {rows} rows of jobs",
                where="RowPolicy",
                expected="an environment whose actions are jobs: Pick or Backfill",
            )
        self.mlp_extractor, self.action_net = _Latent(), _RowScores()
        self.value_net = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 1))
        for module, last in (
            (self.features_extractor, 2**0.5),
            (self.action_net, 0.01),
            (self.value_net, 0.01),  # rewards may be small: the critic begins near 0, as they do
        ):
            layers = [part for part in module.modules() if isinstance(part, nn.Linear)]
            for layer in layers:
                is_score = layer.out_features == 1
                nn.init.orthogonal_(layer.weight, last if is_score else 2**0.5)
                nn.init.zeros_(layer.bias)
        self.optimizer = self.optimizer_class(
            self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs
        )
