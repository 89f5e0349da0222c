"""Pick jobs in TorchRL: a native batch of environments, and a policy with masked choices.

pip install torchrl && python examples/torchrl_pick.py
"""

import sys

import gymnasium as gym
import torch
from tensordict.nn import TensorDictModule as Module
from torch import nn
from torchrl.envs import GymWrapper
from torchrl.modules import MaskedCategorical, ProbabilisticActor

import berthline  # noqa: F401 - registers the environments

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 256
torch.set_num_threads(1)
torch.manual_seed(1)
batch = gym.make_vec("berthline/Pick-v0", num_envs=16, episode_jobs=64, load=1.5)
envs = GymWrapper(batch, categorical_action_encoding=True)


class Scores(nn.Module):
    """A score for each job from its columns, and one for doing nothing."""

    def __init__(self):
        super().__init__()
        self.job = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, jobs, mask):
        return nn.functional.pad(self.job(jobs).squeeze(-1), (0, 1)), mask.bool()


scores = Module(Scores(), in_keys=["jobs", "action_mask"], out_keys=["logits", "mask"])
actor = ProbabilisticActor(scores, in_keys=["logits", "mask"], distribution_class=MaskedCategorical)
rollout = envs.rollout(STEPS, actor, break_when_any_done=False)
print(f"{rollout.numel()} steps, mean reward {rollout['next', 'reward'].mean():.4f} per step")
