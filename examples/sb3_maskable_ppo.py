"""Train sb3-contrib's MaskablePPO, with its default settings, to order the queue of Pick.

`RowPolicy` scores jobs one by one; with "MultiInputPolicy" in its place the same learns slower.
Each choice is rewarded with what it changes if shortest job first decides from then on (`credit`).
That is all that it causes, so it counts as an episode of its own (`one_decision`).

pip install 'berthline[sb3]' && python examples/sb3_maskable_ppo.py [STEPS] [SEED] [ENVIRONMENTS]
"""

import sys

import gymnasium as gym
import numpy as np
import torch
from sb3_contrib import MaskablePPO

from berthline.compat import sb3
from berthline.compat.sb3_rows import RowPolicy
from berthline.environments import expert_actions

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 60_000
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 1
ENVS = int(sys.argv[3]) if len(sys.argv) > 3 else 2


def judge(choose, seeds=range(10**9, 10**9 + 64)):
    """Mean JCT in one episode of each seed, with jobs that training has not seen."""
    envs = gym.make_vec("berthline/Pick-v0", num_envs=len(seeds), experts=["fcfs", "sjf"])
    seen, _ = envs.reset(seed=list(seeds))
    jct = np.full(len(seeds), np.nan)
    while np.isnan(jct).any():
        seen, _, terminated, truncated, infos = envs.step(choose(envs, seen))
        over = (terminated | truncated) & np.isnan(jct)
        if over.any():
            jct[over] = infos["final_info"]["sched"]["mean_jct"][over]
    return jct


def greedy(envs, seen):
    return model.predict(seen, action_masks=envs.action_masks(), deterministic=True)[0]


def sampled(envs, seen):
    return model.predict(seen, action_masks=envs.action_masks(), deterministic=False)[0]


torch.set_num_threads(1)  # faster than two where other programs run
envs = sb3.make("berthline/Pick-v0", ENVS, credit="sjf", one_decision=True)
model = MaskablePPO(RowPolicy, envs, seed=SEED)
model.learn(STEPS)
for rule in ("fcfs", "sjf"):
    jct = judge(lambda envs, _, rule=rule: expert_actions(envs, rule))
    print(f"{rule}+easy: mean JCT {jct.mean():,.0f} s")
for choose in (greedy, sampled):
    print(f"MaskablePPO, {choose.__name__}: mean JCT {judge(choose).mean():,.0f} s")
