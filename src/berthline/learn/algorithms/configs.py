"""Settings of algorithms: their names and defaults. `settings.py` has their ranges and meanings.

Nothing here needs torch, so that help and documentation can be made without it.
"""

from __future__ import annotations

import msgspec


class PPOConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of PPO."""

    rollout: int = 64
    epochs: int = 8
    minibatches: int = 8
    accumulate: int = 1
    learning_rate: float = 3e-3
    learning_rate_schedule: str = "linear"
    learning_rate_warmup: int | None = None
    discount: float = 1.0
    trace: float = 1.0
    horizon: float | None = 14_400.0
    trace_horizon: float | None = 14_400.0
    no_op: float = -3.0
    clip: float = 0.2
    value_clip: float | None = None
    value_weight: float = 0.5
    entropy: float = 0.0
    entropy_schedule: str = "linear"
    max_gradient: float = 0.5
    target_kl: float | None = 0.03


class ExperienceConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of all algorithms with a replay."""

    rollout: int = 4
    reuse: float = 12.0
    batch: int = 512
    capacity: int = 100_000
    warmup: int = 5_000
    learning_rate: float = 1e-3
    learning_rate_schedule: str = "linear"
    learning_rate_warmup: int | None = None
    max_gradient: float = 10.0
    discount: float = 1.0
    horizon: float | None = 14_400.0
    n_step: int = 10
    target_rate: float = 0.02
    average_rate: float = 0.02


class DQNConfig(ExperienceConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of D3QN, in addition to those of every algorithm with a replay."""

    no_op: float = -0.1
    gap: float = 0.0
    priority_exponent: float = 0.0
    importance: float = 0.4
    epsilon: float = 0.1
    epsilon_final: float = 0.02
    epsilon_share: float = 0.6
    dueling: bool = True
    double: bool = True
    target_network: bool = True
    target_every: int = 0
    noisy: bool = False
    noise: float = 0.5
    distributional: bool = False
    atoms: int = 51
    least_return: float = -4.0
    largest_return: float = 4.0


class SACConfig(ExperienceConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of SAC, in addition to those of every algorithm with a replay."""

    reuse: float = 6.0
    no_op: float = -3.0
    temperature: float = 0.02
    temperature_rate: float = 1e-2
    entropy: float = 0.85


class MetaDQNConfig(DQNConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of Meta-DQN, in addition to those of D3QN."""

    # A choice of a scheduler lasts; these were settled for that.
    reuse: float = 6.0
    batch: int = 256
    capacity: int = 50_000
    horizon: float | None = 7200.0
    average_rate: float = 0.005
    gap: float = 0.9
    priority_exponent: float = 0.5
    epsilon: float = 0.3
    epsilon_final: float = 0.1
    regimes: int = 4
    regime_embedding: bool = True
    balanced_replay: bool = True
    deadline_shaping: bool = True
    deadline_weight: float = 1.0
    energy: bool = True
    energy_weight: float = 0.01
    job_age: bool = True


class BCConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of behaviour cloning."""

    expert: str = ""
    rollout: int = 32
    epochs: int = 4
    minibatches: int = 8
    accumulate: int = 1
    learning_rate: float = 3e-3
    learning_rate_schedule: str = "linear"
    learning_rate_warmup: int | None = None
    own_share: float = 0.0
    max_gradient: float = 0.5
