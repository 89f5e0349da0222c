"""PPO against sb3-contrib's MaskablePPO: the same environment, MLP and settings, several seeds."""

from __future__ import annotations

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sb3_contrib")

from berthline.learn.algorithms.configs import PPOConfig  # noqa: E402
from berthline.learn.algorithms.ppo import PPO  # noqa: E402
from berthline.learn.networks.networks import NetworkConfig  # noqa: E402
from berthline.learn.training.environments import Environments  # noqa: E402
from berthline.learn.training.validation import EpisodeSet  # noqa: E402

# The action is the next scheduler: jobs start under each, so no policy learns to wait forever.
OPTIONS = {
    "cluster": "uniform:2x4",
    "load": 1.5,
    "episode_jobs": 64,
    "window": 8,
    "running_window": 4,
    "reward": "mean-wait-hours",
    "schedulers": ("lcfs", "fcfs", "sjf+easy", "largest-first"),
}
ENVS, ROLLOUT, ITERATIONS, SEEDS = 16, 32, 40, 4
HIDDEN = (64, 64)
SHARED = {"epochs": 4, "minibatches": 4, "learning_rate": 1e-3, "discount": 0.99, "trace": 0.95}
ENTROPY, CLIP, VALUE_WEIGHT, MAX_GRADIENT = 0.01, 0.2, 0.5, 0.5


def ours(seed):
    """Return the policy learned by PPO."""
    envs = Environments("meta", num=ENVS, seed=1000 * seed, options=OPTIONS)
    config = PPOConfig(
        **SHARED,
        rollout=ROLLOUT,
        learning_rate_schedule="constant",
        entropy=ENTROPY,
        entropy_schedule="constant",
        clip=CLIP,
        value_weight=VALUE_WEIGHT,
        max_gradient=MAX_GRADIENT,
        # Not available in the library.
        horizon=None,
        trace_horizon=None,
        target_kl=None,
        no_op=0.0,
    )
    ppo = PPO(envs, NetworkConfig(kind="mlp", hidden=HIDDEN), config, seed=seed)
    for _ in range(ITERATIONS):
        ppo.iterate(0.0)
    return ppo.policy


def theirs(seed):
    """Return the policy learned by the library, callable like one of our networks."""
    from sb3_contrib import MaskablePPO

    from berthline.compat import sb3

    envs = sb3.make("berthline/Meta-v0", num_envs=ENVS, observation="flat", **OPTIONS)
    model = MaskablePPO(
        "MlpPolicy",
        envs,
        n_steps=ROLLOUT,
        batch_size=ROLLOUT * ENVS // SHARED["minibatches"],
        n_epochs=SHARED["epochs"],
        learning_rate=SHARED["learning_rate"],
        gamma=SHARED["discount"],
        gae_lambda=SHARED["trace"],
        ent_coef=ENTROPY,
        clip_range=CLIP,
        vf_coef=VALUE_WEIGHT,
        max_grad_norm=MAX_GRADIENT,
        policy_kwargs={"net_arch": list(HIDDEN)},
        seed=1000 * seed,
        device="cpu",
    )
    model.learn(ITERATIONS * ROLLOUT * ENVS)

    def scores(observations):
        policy = model.policy
        hidden = policy.mlp_extractor.forward_actor(policy.extract_features(observations))
        return policy.action_net(hidden).unsqueeze(-1), None

    return scores


@pytest.mark.slow
def test_ppo__learns_what_the_library_learns():
    """Both clearly beat random actions, and ours is not worse than theirs beyond seed noise."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        fresh = EpisodeSet("meta", OPTIONS, part="report", episodes=64)
        random = fresh.random().mean("mean_jct")
        found = {
            learner.__name__: np.array(
                [fresh.policy("ppo", learner(seed)).mean("mean_jct") for seed in range(SEEDS)]
            )
            for learner in (ours, theirs)
        }
    finally:
        torch.set_num_threads(before)
    print(f"mean JCT: random {random:.0f}", {k: v.round().tolist() for k, v in found.items()})
    mine, other = found["ours"], found["theirs"]
    assert other.max() < 0.95 * random
    assert mine.max() < 0.95 * random
    noise = math.sqrt((mine.var(ddof=1) + other.var(ddof=1)) / SEEDS)
    # Three standard errors of the difference: for equals, about 1 in 60 such tests would fail.
    assert mine.mean() - other.mean() < 3 * noise
