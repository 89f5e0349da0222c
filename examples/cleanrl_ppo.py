"""PPO for Pick in a single file, in the manner of CleanRL: read it from top to bottom.

pip install berthline torch && python examples/cleanrl_ppo.py [STEPS] [SEED]

The agent names the job that comes first, and EASY backfilling works with its order. Each choice is
rewarded with what it changes if shortest job first decides from then on (`credit`): that is all
that it causes, so later rewards would only add noise, and GAMMA is 0. At the end the agent is
compared on jobs it has not seen with first come, first served and shortest job first.
"""

import sys
import time

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

from berthline.environments import expert_actions

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 1
ENVS, ROLLOUT, EPOCHS, MINIBATCHES = 64, 64, 6, 8
LEARNING_RATE, CLIP, ENTROPY, VALUE_WEIGHT, MAX_GRADIENT = 4e-3, 0.2, 0.0, 0.5, 0.5
GAMMA, LAMBDA = 0.0, 0.95
SCALE = 8.0  # of logits: a choice among ten jobs is sharp at differences of about that size


def layer(size_in, size_out, gain=2**0.5):
    linear = nn.Linear(size_in, size_out)
    nn.init.orthogonal_(linear.weight, gain)
    nn.init.zeros_(linear.bias)
    return linear


class Queue(nn.Module):
    """Reads every row of the queue in the same way, and what the queue as a whole looks like."""

    def __init__(self, columns, numbers, width=32):
        super().__init__()
        self.job = nn.Sequential(layer(columns, width), nn.ReLU(), layer(width, width), nn.ReLU())
        self.queue = nn.Sequential(layer(width + numbers, width), nn.ReLU())

    def forward(self, jobs, numbers):
        """Return the rows, and the queue."""
        present = (jobs != 0).any(-1, keepdim=True).float()
        rows = self.job(jobs) * present
        mean = rows.sum(1) / present.sum(1).clamp_min(1)
        return rows, self.queue(torch.cat((mean, numbers), -1))


class Agent(nn.Module):
    """One small network scores every row, given the queue; another one values the queue."""

    def __init__(self, columns, numbers, width=32):
        super().__init__()
        self.seen, self.valued = Queue(columns, numbers), Queue(columns, numbers)
        self.actor = nn.Sequential(layer(2 * width, width), nn.ReLU(), layer(width, 1, 0.01))
        self.critic = nn.Sequential(layer(width, width), nn.ReLU(), layer(width, 1, 1.0))

    def forward(self, jobs, numbers, mask):
        """Return the distribution over actions, and the value of the state."""
        rows, queue = self.seen(jobs, numbers)
        beside = queue.unsqueeze(1).expand(-1, jobs.shape[1], -1)
        scores = self.actor(torch.cat((rows, beside), -1)).squeeze(-1) * SCALE
        logits = nn.functional.pad(scores, (0, 1)).masked_fill(~mask, -1e9)  # the no-op comes last
        return Categorical(logits=logits), self.critic(self.valued(jobs, numbers)[1]).squeeze(-1)


def seen(observation):
    """Return the tables the network reads, as tensors."""
    jobs, numbers = (torch.from_numpy(observation[name]) for name in ("jobs", "globals"))
    return jobs, numbers, torch.from_numpy(observation["action_mask"]).bool()


@torch.no_grad()
def judge(choose, seeds=range(10**9, 10**9 + 64), experts=()):
    """Mean JCT in one episode of each seed, with jobs that training has not seen."""
    envs = gym.make_vec("berthline/Pick-v0", num_envs=len(seeds), experts=list(experts))
    observation, _ = envs.reset(seed=list(seeds))
    jct = np.full(len(seeds), np.nan)
    while np.isnan(jct).any():
        observation, _, terminated, truncated, infos = envs.step(choose(envs, observation))
        over = (terminated | truncated) & np.isnan(jct)
        if over.any():
            jct[over] = infos["final_info"]["sched"]["mean_jct"][over]
    return jct


def greedy(_, observation):
    return agent(*seen(observation))[0].probs.argmax(-1).numpy()


def sampled(_, observation):
    return agent(*seen(observation))[0].sample().numpy()


torch.manual_seed(SEED)
torch.set_num_threads(1)  # small networks: faster than two
envs = gym.make_vec("berthline/Pick-v0", num_envs=ENVS, credit="sjf")
observation, _ = envs.reset(seed=SEED)
shapes = {name: space.shape for name, space in envs.single_observation_space.items()}
agent = Agent(shapes["jobs"][1], shapes["globals"][0])
optimizer = torch.optim.Adam(agent.parameters(), lr=LEARNING_RATE, eps=1e-5)
next_seen, next_done = seen(observation), torch.zeros(ENVS)
scale, count = 1.0, 0  # running deviation of returns: values are learned in these units
began, updates = time.monotonic(), -(-STEPS // (ENVS * ROLLOUT))

for update in range(updates):
    optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - update / updates)
    states, actions, log_probs, rewards, dones, values, finished = [], [], [], [], [], [], []
    for _ in range(ROLLOUT):
        with torch.no_grad():
            chances, value = agent(*next_seen)
            action = chances.sample()
        states.append(next_seen)
        actions.append(action)
        log_probs.append(chances.log_prob(action))
        values.append(value * scale)
        # The default autoreset begins the next episode in the step that ends one.
        observation, reward, terminated, truncated, infos = envs.step(action.numpy())
        next_seen = seen(observation)
        rewards.append(torch.from_numpy(reward).float())
        dones.append(torch.from_numpy(terminated | truncated).float())
        if "final_info" in infos:
            over = infos["_final_info"]
            finished += infos["final_info"]["sched"]["mean_jct"][over].tolist()

    with torch.no_grad():
        following, carried = agent(*next_seen)[1] * scale, torch.zeros(ENVS)
    advantages = [torch.zeros(0)] * ROLLOUT
    for t in reversed(range(ROLLOUT)):
        left = GAMMA * (1 - dones[t])
        carried = rewards[t] + left * following - values[t] + left * LAMBDA * carried
        advantages[t], following = carried, values[t]
    jobs, numbers, masks = (torch.cat(part) for part in zip(*states, strict=True))
    old, taken, gained = torch.cat(log_probs), torch.cat(actions), torch.cat(advantages)
    returns = gained + torch.cat(values)
    count = min(count + 1, 50)
    scale += (float(returns.std()) + 1e-8 - scale) / count

    for _ in range(EPOCHS):
        for part in torch.randperm(len(taken)).chunk(MINIBATCHES):
            chances, value = agent(jobs[part], numbers[part], masks[part])
            ratio = (chances.log_prob(taken[part]) - old[part]).exp()
            a = (gained[part] - gained[part].mean()) / (gained[part].std() + 1e-8)
            gain = torch.minimum(ratio * a, ratio.clamp(1 - CLIP, 1 + CLIP) * a).mean()
            error = ((value - returns[part] / scale) ** 2).mean() / 2
            loss = VALUE_WEIGHT * error - gain - ENTROPY * chances.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), MAX_GRADIENT)
            optimizer.step()

    if update % 10 == 9 or update == updates - 1:
        steps = (update + 1) * ENVS * ROLLOUT
        pace = steps / (time.monotonic() - began)
        jct = np.mean(finished) if finished else np.nan
        print(f"{steps:,} steps, {pace:,.0f} a second, mean JCT {jct:,.0f} s", flush=True)

rules = {"first come, first served": "fcfs+easy", "shortest job first": "sjf+easy"}
for name, rule in rules.items():
    jct = judge(lambda envs, _, rule=rule: expert_actions(envs, rule), experts=[rule])
    print(f"{name}: mean JCT {jct.mean():,.0f} s")
for choose in (greedy, sampled):
    print(f"this agent, {choose.__name__}: mean JCT {judge(choose).mean():,.0f} s")
