"""Toy problems with a known optimum, which every algorithm has to find."""

import pytest
import torch
from tests.sim.scenarios import jobs

from berthline.learn.algorithms.algorithm_table import config_of, make_algorithm, options_for
from berthline.learn.networks.masked_actions import MaskedCategorical
from berthline.learn.networks.networks import NetworkConfig
from berthline.learn.training.environments import Environments
from berthline.model.cluster import Cluster, NodeGroup
from berthline.model.gpu_types import GpuType

HOUR = 3600
WHOLE = {
    "episode_jobs": None,
    "cluster": "uniform:1x1:V100",
    "window": 4,
    "running_window": 2,
    "reward": "mean-jct-hours",
}
PATIENT = {
    **WHOLE,
    "semantics": "mask",
    "no_op": "always",
    "workload": jobs((0, 4 * HOUR, 1), *[(HOUR / 2, HOUR, 1)] * 3),
}
CHANGING = {
    **WHOLE,
    "workload": jobs(
        (0, 2 * HOUR, 1),
        (0, HOUR, 1),
        (10 * HOUR, 2 * HOUR, 1),
        (10 * HOUR, HOUR, 1),
        deadline=[2 * HOUR, 10 * HOUR, 11 * HOUR, 13 * HOUR],
    ),
    "schedulers": ("sjf", "edf"),
    # Half of the shortest job: more often, most choices would change nothing.
    "every_seconds": HOUR / 2,
}
MIDDLING = GpuType("MIDDLING", 125, 16_384, 10, 100, measured_speed=2 / 3)
UNEQUAL = {
    **WHOLE,
    # Short compared with PPO's horizon of four hours, so later rewards count almost in full.
    "workload": jobs((0, HOUR / 10, 1), (0, 4 * HOUR / 10, 1)),
    "cluster": Cluster.from_groups(
        [
            NodeGroup(count=1, gpus=1, gpu_type="MIDDLING"),
            NodeGroup(count=1, gpus=1, gpu_type="V100"),
        ],
        extra_types=(MIDDLING,),
    ),
    "features": {
        "jobs": ["estimate/360", "1"],
        "nodes": ["node_free_gpus", "node_speed"],
        "running": [],
        "globals": [],
    },
}
OFF_POLICY = {
    "rollout": 2,
    "reuse": 4.0,
    "batch": 64,
    "capacity": 4000,
    "warmup": 500,
    "discount": 0.999,
    "horizon": None,
    "n_step": 3,
    "learning_rate": 3e-3,
}
NO_OP = {"gap": 0.9, "priority_exponent": 0.5, "epsilon": 0.3, "epsilon_final": 0.1}
"""What the small differences that a no-op makes need."""
SETTINGS = {
    "ppo": {"rollout": 16, "learning_rate": 3e-3, "minibatches": 4},
    "d3qn": {**OFF_POLICY, **NO_OP},
    "rainbow": {**OFF_POLICY, **NO_OP, "noisy": True, "distributional": True, "n_step": 1},
    "sac": {**OFF_POLICY, "entropy": 0.3, "temperature": 0.2},
    "meta-dqn": {**OFF_POLICY, "deadline_weight": 2.0, "energy": False},
}
STEPS = 6_000


def _best_found(name: str, seat: str, options: dict, kind: str = "mlp") -> float:
    """Train for STEPS steps, and return the return of the greedy policy."""
    algorithm_name = "d3qn" if name == "rainbow" else name
    config = config_of(algorithm_name, SETTINGS[name])
    options = options_for(algorithm_name, seat, options, config)
    envs = Environments(seat, num=8, seed=1, options=options)
    network = NetworkConfig(kind=kind, hidden=(32, 32))
    algorithm = make_algorithm(algorithm_name, envs, network, config, seed=1)
    while algorithm.steps < STEPS:
        algorithm.iterate(algorithm.steps / STEPS)
    return _greedy_return(algorithm.policy, Environments(seat, num=1, seed=2, options=options))


@torch.no_grad()
def _greedy_return(policy, envs: Environments) -> float:
    total = 0.0
    while True:
        scores, _ = policy(torch.from_numpy(envs.observations))
        masks = torch.from_numpy(envs.masks)
        rewards, terminated, truncated = envs.step(
            MaskedCategorical(scores[..., 0], masks).mode().numpy()
        )
        total += float(rewards[0])
        if terminated[0] or truncated[0]:
            return total


@pytest.mark.parametrize("name", ["ppo", "d3qn", "rainbow", "sac"])
def test_waiting_for_short_jobs(name):
    """One GPU; a long job is there, three short ones arrive half an hour later.

        hours    0   0.5  1.5  2.5  3.5            7.5
        optimum  | -- | S1 | S2 | S3 |      L       |      JCT 1 + 2 + 3 + 7.5 = 13.5

        at once  |      L      | S1 | S2 | S3 |            JCT 4 + 4.5 + 5.5 + 6.5 = 20.5
                 0             4    5    6    7

    Everything else lies between: if L starts after one short job, the two others wait for it, and
    so on. So it is best to do nothing although L could start, and the return is -13.5 / 4.
    """
    torch.set_num_threads(1)
    assert _best_found(name, "pick", PATIENT) == pytest.approx(-13.5 / 4)


@pytest.mark.parametrize("name", ["d3qn", "meta-dqn"])
def test_another_scheduler_for_other_times(name):
    """One GPU, two jobs at 0 and two at 10 h; an earliest deadline costs one kind more JCT.

        hours     0    1    2    3           10   11   12   13
        sjf       | B  |    A!   |            | D  |    C!   |     JCT 1 + 3 each
        edf       |    A    | B  |            |    C!   | D  |     JCT 2 + 3 each

    A is due at 2 and C at 11, which C cannot meet (! = missed); the others have time. A missed
    deadline costs 2 h, so `edf` is better at first: 5 against 4 + 2. Later `sjf` is better: 4 + 2
    against 5 + 2. The return is -(5 + 6) / 4. Without deadlines in the reward, `sjf` is always
    better: -(4 + 4) / 4.
    """
    torch.set_num_threads(1)
    optimum = -8 / 4 if name == "d3qn" else -11 / 4
    assert _best_found(name, "meta", CHANGING) == pytest.approx(optimum)


@pytest.mark.parametrize("kind", ["kernel", "attention", "mlp"])
def test_a_job_and_its_node_at_once(kind):
    """Two nodes of one GPU, one of them slower by a half; a short job S and a long one L.

        6 minutes     0    1   1.5      4
        V100          |        L        |         JCT 4 + 1.5 = 5.5
        MIDDLING      |    S    |

    Alternatives: S, then L on the V100: 1 + 5 = 6. S there and L on the slower node: 1 + 6 = 7. L,
    then S on the V100: 4 + 5 = 9. So the job and its node have to be chosen together; the return is
    -0.55 / 2.
    """
    torch.set_num_threads(1)
    assert _best_found("ppo", "pickplace", UNEQUAL, kind) == pytest.approx(-0.55 / 2)
