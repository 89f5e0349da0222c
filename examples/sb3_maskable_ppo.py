"""Train sb3-contrib's MaskablePPO to pick jobs, and compare it with shortest-job-first.

pip install 'berthline[sb3]' && python examples/sb3_maskable_ppo.py
"""

import sys

import numpy as np
import torch
from sb3_contrib import MaskablePPO

from berthline.compat import sb3
from berthline.environments import expert_actions

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
OPTIONS = {"episode_jobs": 128, "load": 1.5, "window": 32, "observation": "flat"}


def mean_wait(envs, choose):
    """Mean wait over the first episode of each environment, the same ones for everybody."""
    envs.seed(1_000_000)
    seen, waits = envs.reset(), {}
    while len(waits) < envs.num_envs:
        seen, _, _, infos = envs.step(choose(seen, envs.action_masks()))
        for env, info in enumerate(infos):
            if "sched" in info:
                waits.setdefault(env, info["sched"]["mean_wait"])
    return np.mean(list(waits.values()))


torch.set_num_threads(1)  # faster than two where other programs run
model = MaskablePPO("MlpPolicy", sb3.make("berthline/Pick-v0", 64, **OPTIONS), n_steps=64, seed=1)
model.learn(STEPS)
test = sb3.make("berthline/Pick-v0", 32, experts=["sjf"], **OPTIONS)
learnt = mean_wait(test, lambda seen, masks: model.predict(seen, action_masks=masks)[0])
sjf = mean_wait(test, lambda *_: expert_actions(test.envs, "sjf"))
print(f"mean wait: {learnt:.0f} s learnt in {STEPS} steps, {sjf:.0f} s shortest job first")
