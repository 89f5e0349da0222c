"""Pick jobs with RLlib's PPO, and choices that the mask allows only.

pip install 'ray[rllib]' && python examples/rllib_pick.py
"""

import sys

import gymnasium as gym
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.algorithms.ppo.torch.default_ppo_torch_rl_module import DefaultPPOTorchRLModule
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.tune.registry import register_env

ACTIONS = 33


def make_env(_config):
    import berthline  # noqa: F401 - registers the environments, in every worker

    env = gym.make("berthline/Pick-v0", episode_jobs=64, load=1.5, window=ACTIONS - 1)
    return gym.wrappers.FlattenObservation(env)  # action_mask comes first


class Masked(DefaultPPOTorchRLModule):
    def _forward(self, batch, **kwargs):
        out = super()._forward(batch, **kwargs)
        allowed = batch[Columns.OBS][..., :ACTIONS] > 0
        logits = out[Columns.ACTION_DIST_INPUTS]
        out[Columns.ACTION_DIST_INPUTS] = logits.masked_fill(~allowed, -1e9)
        return out


register_env("berthline-pick", make_env)
config = PPOConfig().environment("berthline-pick").rl_module(rl_module_spec=RLModuleSpec(Masked))
config.env_runners(num_env_runners=0).training(train_batch_size=1024, minibatch_size=256)
algorithm = config.build_algo()
for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 20):
    print(f"mean return {algorithm.train()['env_runners']['episode_return_mean']:.3f}")
