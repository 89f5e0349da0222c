"""Train sb3-contrib's MaskablePPO, with its default settings, to order the queue of Pick.

`RowPolicy` scores jobs one by one; with "MultiInputPolicy" in its place the same learns slower.

pip install 'berthline[sb3]' && python examples/sb3_maskable_ppo.py [STEPS] [SEED]
"""

import sys

import numpy as np
import torch
from sb3_contrib import MaskablePPO

from berthline.compat import sb3
from berthline.compat.sb3_rows import RowPolicy
from berthline.environments import expert_actions

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 1


def mean_jct(envs, choose):
    """Mean JCT over the first episode of each environment, the same ones for everybody."""
    envs.seed(1_000_000)
    seen, found = envs.reset(), {}
    while len(found) < envs.num_envs:
        seen, _, _, infos = envs.step(choose(seen, envs.action_masks()))
        for env, info in enumerate(infos):
            if "sched" in info:
                found.setdefault(env, info["sched"]["mean_jct"])
    return np.mean(list(found.values()))


torch.set_num_threads(1)  # faster than two where other programs run
model = MaskablePPO(RowPolicy, sb3.make("berthline/Pick-v0", 8), seed=SEED)
model.learn(STEPS)
test = sb3.make("berthline/Pick-v0", 64, experts=["sjf", "fcfs"])
for greedy in (True, False):
    learnt = mean_jct(
        test, lambda seen, masks: model.predict(seen, action_masks=masks, deterministic=greedy)[0]
    )
    print(f"{'greedy' if greedy else 'sampled'}: mean JCT {learnt:.0f} s after {STEPS} steps")
for rule in ("fcfs", "sjf"):
    print(f"{rule}+easy: {mean_jct(test, lambda *_: expert_actions(test.envs, rule)):.0f} s")
