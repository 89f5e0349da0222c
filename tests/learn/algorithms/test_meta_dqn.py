"""Meta-DQN: its switches, regimes without labels, and an interrupted run."""

import pytest
import torch
from tests.env.agents import plain

from berthline.env.make_plan import make_plan
from berthline.env.options import resolve_options
from berthline.errors import ConfigError
from berthline.learn.algorithms.algorithm_table import config_of, options_for
from berthline.learn.algorithms.configs import MetaDQNConfig
from berthline.learn.algorithms.meta_dqn import (
    MetaDQN,
    RegimeFinder,
    environment_options,
)
from berthline.learn.networks.networks import Network, NetworkConfig, Regimes
from berthline.learn.training import checkpoint
from berthline.learn.training.environments import Environments

OPTIONS = plain("meta") | {
    "episode_jobs": 24,
    "load": (0.5, 3.0),
    "window": 8,
    "running_window": 4,
}
SMALL = {"rollout": 4, "reuse": 2.0, "batch": 32, "capacity": 400, "warmup": 100, "n_step": 3}
NETWORK = NetworkConfig(hidden=(8, 8))
OFF = {
    "regime_embedding": False,
    "balanced_replay": False,
    "deadline_shaping": False,
    "energy": False,
    "job_age": False,
}


def _fresh(seed: int = 3, **settings) -> MetaDQN:
    config = MetaDQNConfig(**{**SMALL, **settings})
    envs = Environments("meta", num=8, seed=5, options=environment_options("meta", OPTIONS, config))
    return MetaDQN(envs, NETWORK, config, seed=seed)


def test_switches_change_the_environment_and_nothing_else():
    unchanged = make_plan("meta", resolve_options("meta", OPTIONS))

    def plan(**on):
        options = environment_options("meta", OPTIONS, MetaDQNConfig(**{**OFF, **on}))
        return make_plan("meta", resolve_options("meta", options))

    off = plan()
    assert off.columns == unchanged.columns
    assert [term.name for term in off.reward.terms] == ["jct"]
    deadlines = plan(deadline_shaping=True, deadline_weight=3.0)
    assert deadlines.columns == unchanged.columns
    assert [term.formula for term in deadlines.reward.terms][1:] == ["3.0 * (-missed / num_jobs)"]
    assert [term.name for term in plan(energy=True).reward.terms] == ["jct", "energy"]
    older = plan(job_age=True).columns
    assert older.jobs[:-2] == unchanged.columns.jobs
    assert older.jobs[-2:] == ("wait / (wait + 600)", "wait / (wait + 36000)")
    assert older.globals == unchanged.columns.globals
    for switch in ("regime_embedding", "balanced_replay"):
        columns = plan(**{switch: True}).columns
        assert columns.jobs == unchanged.columns.jobs
        assert columns.globals == (*unchanged.columns.globals, "tanh(arrival_burstiness / 4)")


def test_options_are_only_changed_once():
    config = config_of("meta-dqn", {"energy_weight": 2})
    given = {**OPTIONS, "reward": "multi-objective", "reward_weights": {"energy": 5.0}}
    once = options_for("meta-dqn", "meta", given, config)
    assert options_for("meta-dqn", "meta", once, config) == once
    # A term that the reward already has keeps its weight.
    assert once["reward"]["energy"][1].startswith("5.0 * (")
    assert options_for("d3qn", "meta", given, config) == given


def test_centres_find_the_regimes():
    """Three clusters of states, one of them rare: each gets a centre, and states the right one."""
    layout = Environments("meta", num=1, seed=1, options=OPTIONS).layout
    regimes = Regimes(layout, 3, 4)
    finder = RegimeFinder(regimes)
    torch.manual_seed(5)
    places = torch.tensor([[0.0] * 5, [1.0, 0, 0, 1, 0], [0, 1.0, 1, 0, 1]])
    for _ in range(300):
        kind = torch.multinomial(torch.tensor([0.6, 0.35, 0.05]), 64, replacement=True)
        flat = torch.zeros(64, layout.size)
        flat[:, regimes.place] = places[kind] + 0.05 * torch.randn(64, 5)
        nearest = finder.update(flat)
    of_kind = [set(nearest[kind == k].tolist()) for k in range(3)]
    assert all(len(found) == 1 for found in of_kind)
    assert len(set.union(*of_kind)) == 3
    centres = regimes.centres * regimes.deviation + regimes.mean
    for k in range(3):
        torch.testing.assert_close(centres[of_kind[k].pop()], places[k], atol=0.05, rtol=0)


def test_the_embedding_is_of_the_regime_and_is_saved_with_the_policy():
    algorithm = _fresh()
    for i in range(12):
        algorithm.iterate(i / 12)
    regimes = algorithm.q.policy.regimes
    assert regimes is not None
    assert regimes.embedding.weight.abs().sum() > 0
    envs = algorithm.experience.envs
    seen = torch.from_numpy(envs.observations)
    loaded = Network.load(envs.layout, NETWORK, algorithm.policy.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(loaded(seen)[0], algorithm.policy(seen)[0])
    # Very close to a centre, it is the embedding of that regime.
    state = torch.zeros(1, envs.layout.size)
    regimes.centres[1:] += 50
    state[:, regimes.place] = regimes.centres[:1] * regimes.deviation + regimes.mean
    torch.testing.assert_close(regimes(state)[0], regimes.embedding.weight[:, 0])


def test_regimes_need_something_to_be_known_by():
    layout = Environments(
        "meta", num=1, seed=1, options={**OPTIONS, "features": {"globals": []}}
    ).layout
    with pytest.raises(ConfigError, match="numbers of the cluster as a whole"):
        Regimes(layout, 3, 4)


@pytest.mark.parametrize("off", [(), ("regime_embedding",), ("balanced_replay",), tuple(OFF)])
def test_an_interrupted_run_goes_on_with_the_same_bits(tmp_path, off):
    more = dict.fromkeys(off, False)
    whole, first = _fresh(**more), _fresh(**more)
    for i in range(16):
        whole.iterate(i / 16)
    for i in range(9):
        first.iterate(i / 16)
    path = checkpoint.save(tmp_path, "last", 1, first.tensors(), {"state": first.state()})
    again = _fresh(seed=99, **more)
    again.restore(checkpoint.load(path))
    for i in range(9, 16):
        again.iterate(i / 16)
    for name, tensor in whole.tensors().items():
        assert torch.equal(tensor, again.tensors()[name]), name
    assert again.state() == whole.state()
    counts = whole.experience.replay.counts
    assert len(counts) == (1 if "balanced_replay" in off else 4)
